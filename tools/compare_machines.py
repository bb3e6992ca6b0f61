"""Compare what tests/cross/driver.cpp printed on two machines: compare_machines.py HERE OTHER.

Costs and permutations must be the same to the last bit. Bounds may differ, since a machine may fuse a product and
a sum: each must prove its permutation optimal, and none may be above the optimum.
"""

from __future__ import annotations

import sys
from pathlib import Path

OPTIMAL = "0"
CLOSE = 1e-8  # of the cost; whole costs are proved as soon as the bound is above the next one


def problems(here: str, other: str) -> list[str]:
    """What must not differ, but does."""
    rows, others = ([line.split() for line in text.splitlines()] for text in (here, other))
    if len(rows) != 10 or len(rows) != len(others):
        return [f"{len(rows)} and {len(others)} problems; expected 10 each"]
    found = []
    for row, twin in zip(rows, others, strict=True):
        if (row[1], twin[1]) != (OPTIMAL, OPTIMAL):
            found.append(f"problem {row[0]} is not proved optimal on both")
        if (row[2], row[4:]) != (twin[2], twin[4:]):
            found.append(f"problem {row[0]}: cost {row[2]} here, {twin[2]} there, or another permutation")
        cost = float(row[2])
        slack = 1.0 if cost.is_integer() else CLOSE * abs(cost)
        for bound in (float(row[3]), float(twin[3])):
            if not cost - slack <= bound <= cost:
                found.append(f"problem {row[0]}: bound {bound} for the optimum {cost}")
    return found


def main(here: str, other: str) -> int:
    """Print what differs; 1 if something does."""
    texts = [Path(path).read_text(encoding="utf-8") for path in (here, other)]
    found = problems(*texts)
    same = sum(a == b for a, b in zip(*(text.splitlines() for text in texts), strict=False))
    print("\n".join(found) or f"10 problems: costs and permutations are equal; {same} bounds too, to the last bit.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
