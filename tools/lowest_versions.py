"""Print the lowest versions of the dependencies that pyproject.toml allows, as constraints for pip.

python tools/lowest_versions.py > lowest.txt && pip install -c lowest.txt .
"""

import re
import tomllib
from pathlib import Path


def lowest(requirements: list[str]) -> list[str]:
    """Each requirement NAME>=VERSION as NAME==VERSION.

    >>> lowest(["numpy>=1.26"])
    ['numpy==1.26']
    """
    found = []
    for requirement in requirements:
        match = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(f"{requirement!r}: expected NAME>=VERSION")
        found.append(f"{match[1]}=={match[2]}")
    return found


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(*lowest(project["dependencies"]), sep="\n")
