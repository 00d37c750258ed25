"""The faults that seeds of the simulated world held, summed over the runs.

    python benchmarks/world_faults.py FILE...

Each file has what `python -m world --first N --seeds M` printed, with PYTHONPATH=src:tests.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

#: How figures of tests begin that count faults of one kind.
PREFIX = "fault "
#: What connections are refused for while the API server is down, whatever the request.
_SERVER_DOWN = "server down"
#: How a run of many seeds begins its figures, and one of its faults.
_RUN = re.compile(r"(\d+) seeds in (\d+) s of CPU, (\d+) bindings, (\d+) failed")
_FAULT = re.compile(r"  (\S.*): (\d+)")


def faults_of(figures: Iterable[tuple[str, Any]]) -> Counter[str]:
    """The faults among the figures of a test, by verb and kind."""
    counts: Counter[str] = Counter()
    for name, value in figures:
        if name.startswith(PREFIX):
            counts[name.removeprefix(PREFIX)] += int(value)
    return counts


def lines(faults: Mapping[str, int]) -> Iterator[str]:
    """A table with a row for each kind of requests, and a sentence about everything else."""
    by_verb: dict[str, dict[str, int]] = defaultdict(dict)
    besides: dict[str, int] = {}
    for name, count in sorted(faults.items()):
        verb, space, kind = name.partition(" ")
        if space and name != _SERVER_DOWN:
            by_verb[verb][kind] = count
        elif name != _SERVER_DOWN:
            besides[name] = count
    down = faults.get(_SERVER_DOWN, 0)
    yield f"These seeds held {sum(map(sum, map(dict.values, by_verb.values()))) + down:,} faults:"
    yield ""
    yield "| requests | faults | of which |"
    yield "|---|---|---|"
    for verb, kinds in by_verb.items():
        parts = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        yield f"| {verb} | {sum(kinds.values())} | {parts} |"
    yield f"| (any) | {down} | connections refused while the API server was down |"
    yield ""
    yield "Besides: " + ", ".join(f"{name} {count:,}" for name, count in besides.items()) + "."


def main(files: Iterable[str]) -> None:
    """Print the sums over the files."""
    sums, faults = [0, 0, 0, 0], Counter[str]()
    for file in files:
        for line in Path(file).read_text("utf-8").splitlines():
            if found := _RUN.fullmatch(line):
                sums = [old + int(new) for old, new in zip(sums, found.groups(), strict=True)]
            elif found := _FAULT.fullmatch(line):
                faults[found[1]] += int(found[2])
    seeds, seconds, bindings, failed = sums
    print(f"{seeds:,} seeds in {seconds:,} s of CPU, {bindings:,} bindings, {failed} failed")
    print()
    print("\n".join(lines(faults)))


if __name__ == "__main__":
    main(sys.argv[1:])
