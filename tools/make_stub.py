"""Write src/blindmatch/_core.pyi, the types of the C++ core, by nanobind's own stub generator.

    python tools/make_stub.py            after a change of the bindings, with the built core installed
    python tools/make_stub.py --check    only say whether the file is current (exit code 1 if not)

Needs nanobind 3 and ruff.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

STUB = Path(__file__).parents[1] / "src" / "blindmatch" / "_core.pyi"
HEADER = "# Made by tools/make_stub.py: do not edit.\n"


def generated() -> str:
    from nanobind.stubgen import StubGen

    import blindmatch._core

    generator = StubGen(blindmatch._core)
    generator.put(blindmatch._core)
    return HEADER + re.sub(r"os\.PathLike\b", "os.PathLike[str]", generator.get())  # nanobind leaves it bare


def main() -> int:
    text = generated()
    if sys.argv[1:] == ["--check"]:  # whatever the layout
        current = ast.dump(ast.parse(text)) == ast.dump(ast.parse(STUB.read_text(encoding="utf-8")))
        if not current:
            print(f"{STUB} is not what the core says of itself: run python tools/make_stub.py", file=sys.stderr)
        return 0 if current else 1
    STUB.write_text(text, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", STUB], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
