"""Published and reproduced figures side by side, as Markdown.

python examples/openb/compare.py openb/results.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from statistics import fmean

FOLDER = Path(__file__).parent
POLICIES = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
#: Its published runs cannot be repeated one by one.
NOT_REPEATABLE = "Random"
AT = "at130"

Runs = dict[tuple[str, str, str], float]


def read(path: Path, policy: str) -> Runs:
    """Workload, policy and seed -> allocation when 130 % have arrived."""
    with path.open(encoding="utf-8") as file:
        return {
            (row["workload"], row[policy], row["seed"]): float(row[AT])
            for row in csv.DictReader(file)
        }


def cell(published: Runs, reproduced: Runs, workload: str, policy: str) -> str:
    """Published mean / reproduced mean, over the runs that were reproduced."""
    keys = [key for key in reproduced if key[:2] == (workload, policy)]
    if not keys:
        return ""
    wanted, found = (fmean(runs[key] for key in keys) for runs in (published, reproduced))
    return f"{wanted:.2f} / {found:.2f}"


def main(path: str) -> None:
    """Print the table, and how many runs are equal."""
    published = read(FOLDER / "published_runs.csv", "policy")
    reproduced = read(Path(path), "configuration")
    print(f"| workload | {' | '.join(POLICIES)} |")
    print(f"|---|{'---|' * len(POLICIES)}")
    for workload in dict.fromkeys(key[0] for key in reproduced):
        cells = (cell(published, reproduced, workload, policy) for policy in POLICIES)
        print(f"| {workload} | {' | '.join(cells)} |")
    repeatable = [key for key in reproduced if key[1] != NOT_REPEATABLE]
    equal = sum(reproduced[key] == published[key] for key in repeatable)
    print(
        f"\n{equal} of {len(repeatable)} runs of deterministic policies are equal to two decimals."
    )


if __name__ == "__main__":
    main(sys.argv[1])
