"""The faults that the seeds of the simulated world held, summed over the tests that ran them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#: How figures of tests begin that count faults of one kind.
PREFIX = "fault "
#: What connections are refused for while the API server is down, whatever the request.
_SERVER_DOWN = "server down"


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
