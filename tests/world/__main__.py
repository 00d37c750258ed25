"""Repeat seeds of the simulated world, and make a failing one smaller.

PYTHONPATH=src:tests python -m world --seed 17            one seed: what does not hold, and a page
                                                          with its history
PYTHONPATH=src:tests python -m world --seed 17 --shrink   the fewest changes and faults that show it
PYTHONPATH=src:tests python -m world --seed 17 --page F   the page is written to F
PYTHONPATH=src:tests python -m world --first 0 --seeds 500 many seeds, with the faults they held
PYTHONPATH=src:tests python -m world --mutants --seeds 500 the first seed that finds each mutant
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TextIO

import msgspec

from world.mutants import MUTANTS
from world.page import page_of
from world.plan import Plan, make_plan
from world.run import Outcome, run_seeds
from world.shrink import shrunk


def show(text: str, stream: TextIO | None = None) -> None:
    print(text, file=stream, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat this seed")
    parser.add_argument("--plan", help="carry out the plan in this file")
    parser.add_argument("--shrink", action="store_true", help="make a failing plan smaller")
    parser.add_argument("--page", metavar="FILE", help="where the page with the history goes")
    parser.add_argument("--first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds")
    parser.add_argument("--mutants", action="store_true", help="look for seeds that find mutants")
    given = parser.parse_args()
    if given.plan:
        plan = msgspec.json.decode(Path(given.plan).read_bytes(), type=Plan)
        return one(plan, given.shrink, given.page)
    if given.seed is not None:
        return one(make_plan(given.seed), given.shrink, given.page)
    seeds = range(given.first, given.first + given.seeds)
    return of_mutants(seeds) if given.mutants else many(seeds)


def one(plan: Plan, shrink: bool, page: str | None = None) -> int:
    text, outcome = page_of(plan)
    show(summary(outcome))
    if shrink and outcome.findings:
        plan = shrunk(plan, progress=lambda text: show(text, sys.stderr))
        text, outcome = page_of(plan)
        show(msgspec.json.format(msgspec.json.encode(plan)).decode())
        show(summary(outcome))
    file = Path(page or Path(tempfile.gettempdir(), f"world-seed-{plan.seed}.html")).resolve()
    file.write_text(text, "utf-8")
    show(f"its history: {file.as_uri()}")
    return 1 if outcome.findings else 0


def summary(outcome: Outcome) -> str:
    plan = outcome.plan
    head = (
        f"seed {plan.seed}: {plan.generation}, {len(plan.rates)} replicas, "
        f"{len(plan.changes)} changes, {sum(outcome.injected.values())} faults, "
        f"{outcome.requests} requests, {outcome.bound} bindings"
    )
    if not outcome.findings:
        return head
    repeat = f"PYTHONPATH=src:tests python -m world --seed {plan.seed} --shrink"
    return "\n".join([head, *(f"  {each}" for each in outcome.findings), f"  {repeat}"])


def of_mutants(seeds: range) -> int:
    """Print the first seed that finds each mutant, and what it finds."""
    unfound = 0
    for mutant in MUTANTS:
        with mutant.put():
            found = next((each for each in run_seeds(seeds) if each.findings), None)
        unfound += found is None
        show(f"{mutant.name}: {found and (found.plan.seed, found.findings[:3])}")
    return 1 if unfound else 0


def many(seeds: range) -> int:
    injected: Counter[str] = Counter()
    failed, bound = [], 0
    began = time.process_time()
    try:
        for outcome in run_seeds(seeds):
            seed = outcome.plan.seed
            injected += outcome.injected
            bound += outcome.bound
            if outcome.findings:
                failed.append(seed)
                show(summary(outcome))
    except KeyboardInterrupt:
        seeds = range(seeds.start, seed)
    seconds = time.process_time() - began
    show(f"{len(seeds)} seeds in {seconds:.0f} s of CPU, {bound} bindings, {len(failed)} failed")
    for what, count in sorted(injected.items()):
        show(f"  {what}: {count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
