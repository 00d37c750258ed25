"""Published and reproduced figures side by side, as Markdown.

python examples/openb/compare.py openb/results.csv
python examples/openb/compare.py openb/results.csv chart.svg    draws both, too
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from statistics import fmean

from podium_research.sweeps.cells import CellOutcome
from podium_research.sweeps.charts import svg
from podium_research.sweeps.results import summary

FOLDER = Path(__file__).parent
POLICIES = ("Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD")
#: Its published runs cannot be repeated one by one.
NOT_REPEATABLE = "Random"
AT = "at130"
#: So many seeds make a mean.
SEEDS = 10

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


def draw(published: Runs, reproduced: Runs, path: Path) -> None:
    """Draw means and spread of the same runs: each policy as published, and below as reproduced."""
    outcomes = [
        CellOutcome("", key[0], f"{key[1]} {kind}", int(key[2]), {AT: runs[key]}, 0.0)
        for key in sorted(reproduced, key=lambda key: POLICIES.index(key[1]))
        for kind, runs in (("published", published), ("reproduced", reproduced))
    ]
    order = list(dict.fromkeys(key[0] for key in published))
    outcomes.sort(key=lambda each: order.index(each.workload))
    path.write_text(svg(summary(outcomes), AT), encoding="utf-8")


def farthest_mean(published: Runs, reproduced: Runs) -> str:
    """How far the mean of a workload of Random is from the published one, at most."""
    apart = {}
    for workload in dict.fromkeys(key[0] for key in reproduced):
        keys = [key for key in reproduced if key[:2] == (workload, NOT_REPEATABLE)]
        if len(keys) == SEEDS:
            wanted, found = (fmean(runs[key] for key in keys) for runs in (published, reproduced))
            apart[workload] = abs(found - wanted)
    if not apart:
        return ""
    most = max(apart, key=lambda workload: apart[workload])
    return f"Means of {NOT_REPEATABLE}: {len(apart)}, at most {apart[most]:.2f} apart ({most})."


def main(path: str, chart: str = "") -> None:
    """Print the table, and how many runs are equal."""
    published = read(FOLDER / "published_runs.csv", "policy")
    reproduced = read(Path(path), "configuration")
    print(f"| workload | {' | '.join(POLICIES)} |")
    print(f"|---|{'---|' * len(POLICIES)}")
    for workload in dict.fromkeys(key[0] for key in reproduced):
        cells = (cell(published, reproduced, workload, policy) for policy in POLICIES)
        print(f"| {workload} | {' | '.join(cells)} |")
    if chart:
        draw(published, reproduced, Path(chart))
    repeatable = [key for key in reproduced if key[1] != NOT_REPEATABLE]
    equal = sum(reproduced[key] == published[key] for key in repeatable)
    print(
        f"\n{equal} of {len(repeatable)} runs of deterministic policies are equal to two decimals."
    )
    print(farthest_mean(published, reproduced))


if __name__ == "__main__":
    main(*sys.argv[1:])
