"""Replay all recordings, and write what came of it to `docs/parity.md`.

The recordings are those in `tests/golden`; `podium history verify` replays and compares them.
The exit code is 1 if there is a difference, and the page is written all the same.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
DOCS = ROOT / "docs"
PAGE = DOCS / "parity.md"
_RECORDED = re.compile(r"recorded from kube-scheduler (v[\d.]*\d)")
_PASSED = re.compile(r"^## (\w+)\n\n[^|#]*? (\d+) of (\d+) passed on (\S+)\.$", re.MULTILINE)

HEAD = """# Parity: what was compared with what

`make parity` replays every recording in `tests/golden` with `podium history verify`.
Written by that command on {date}.

A recording holds clusters, pods, and what the real kube-scheduler answered. A scenario is one
cluster with pods to schedule, a step is one attempt. Every step is compared whole: reasons per
node, the score of each plugin for each node, totals, the best nodes, the message, victims,
nominations, volumes and devices. No recording is filtered.

| release | recorded from kube-scheduler | scenarios | steps | of these, ties | differences |
|---|---|---:|---:|---:|---:|
"""
REST = """
## What differs, and why

In recordings: {found} Placements beside running schedulers are under "Other comparisons".

The real program leaves some answers to chance. They are compared as sets, or not recorded:

- **Ties of v1.34.** Among the nodes with the best total it draws one. The whole set is compared; it
  has several nodes in {tied} steps of v1.34. The recordings go on with the first of them.
- **Ties from v1.35 on.** The winner follows from the order in which nodes are found, and several
  workers race for that order. The whole set is compared here, too.
- **Pools of v1.34 and v1.35.** Which device comes from a pool of several slices is chance there.
  Such scenarios were not recorded; commands say so where they meet such slices.

Ties of v1.13 follow a counter, and the node itself is compared.

## Other comparisons

| what | with what | result |
|---|---|---|
{suites}{bursts}| decisions of `podium run` | the same decision without kept answers | {inside} |

## What recordings do not cover

- Extenders: their answers are not in a recording.
- Sampling: all nodes were looked at in every recording (`percentageOfNodesToScore` of 100).
- Pod groups: placement by topology and composite groups, which are refused.
- DeviceTaintRules of v1.37: [random scenarios](recordings.md#beyond-the-recordings) have them.
- Attributes of devices that are lists and node allocatable resources, which are refused.
- Time limits of the search for devices.
- In v1.13 the equivalence cache and BalanceAttachedNodeVolumes.
- Failures of Reserve, Permit and Bind, wake-ups of waiting pods, and time.
- The final v1.37: its recordings are of a release candidate.
"""
_BURSTS = re.compile(
    r"gave ([\d,]+) placements beside (kube-scheduler [\d.]*\d):[^.]*?, none different", re.DOTALL
)
#: A row of the table there: release, workers, placements, those different, and when.
_SAMPLED = re.compile(
    r"^\| kube-scheduler (v[^|]+) \| (\w+) \| ([\d,]+) \|.* \| ([\d,]+) \| ([\d-]+) \|$",
    re.MULTILINE,
)
#: The same of random scenarios: what was compared with which release, steps, those different, when.
_RANDOM = re.compile(
    r"^\| ([\w ]+) \| kube-scheduler (v\S+) \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \| ([\d-]+) \|$",
    re.MULTILINE,
)
_JUDGED = "`podium history judge`"
_SHADOWED = f"{_JUDGED} and the shadow, on a real API server"
_BEYOND = "recordings.md#beyond-the-recordings"
_INSIDE = "[checked as it runs](reliability.md)"


class Figures(NamedTuple):
    """What one file of recordings came to."""

    #: The folder and the file in it, without what follows its name.
    folder: str
    name: str
    scenarios: int
    steps: int
    differences: int

    @property
    def release(self) -> str:
        """The release whose decisions are recorded: `v1.37` of `v1.37-devices`."""
        return self.folder.partition("-")[0]


def verified(folder: Path = GOLDEN) -> list[Figures]:
    """Replay all recordings of a folder with the command."""
    command = [sys.executable, "-m", "podium", "history", "verify", str(folder), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode not in {0, 1}:
        raise SystemExit(done.stderr)
    return [
        _figures(Path(each["file"]), each["scenarios"], each["steps"], each["differences"])
        for each in json.loads(done.stdout)["files"]
    ]


def recorded(folder: Path = GOLDEN) -> list[Figures]:
    """Count what is recorded in a folder, without replaying it; no file has a difference."""
    return [
        _figures(path, len(found), sum(map(_attempts, found)), 0)
        for path in _files(folder)
        for found in [list(_scenarios(path))]
    ]


def _figures(path: Path, *counts: int) -> Figures:
    return Figures(path.parent.name, path.name.partition(".")[0], *counts)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jsonl*"))


def _scenarios(path: Path) -> Iterator[Mapping[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    yield from map(json.loads, text.splitlines())


def _attempts(scenario: Mapping[str, Any]) -> int:
    """The number of decisions about pods, and of cycles about groups of pods."""
    return len(_steps(scenario)) + len(scenario["expected"].get("cycles") or ())


def _steps(scenario: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return scenario["expected"].get("steps") or []


class Source(NamedTuple):
    """Where the recordings of a release come from, and how many steps have several best nodes."""

    versions: tuple[str, ...]
    tied: int


def sources() -> dict[str, Source]:
    """Release -> what its recordings say about themselves."""
    versions: defaultdict[str, set[str]] = defaultdict(set)
    tied: defaultdict[str, int] = defaultdict(int)
    for path in _files(GOLDEN):
        release = path.parent.name.partition("-")[0]
        about = path.parent / "README.md"
        named = _RECORDED.findall(about.read_text("utf-8")) if about.exists() else []
        for scenario in _scenarios(path):
            versions[release].update([scenario["release"]] if "release" in scenario else named)
            tied[release] += sum(_is_tied(step) for step in _steps(scenario))
    return {release: Source(tuple(sorted(versions[release])), tied[release]) for release in tied}


def _is_tied(step: Mapping[str, Any]) -> bool:
    """Whether several nodes have the best total; older recordings have the totals alone."""
    if "best" in step:
        return len(step["best"]) > 1
    totals, feasible = step.get("total") or {}, step.get("feasible") or ()
    values = [totals.get(node, totals.get("*", 0)) for node in feasible]
    return bool(totals) and values.count(max(values)) > 1


def page(figures: Iterable[Figures], about: Mapping[str, Source], date: str) -> str:
    """The text of the page."""
    by_release: defaultdict[str, list[Figures]] = defaultdict(list)
    for each in sorted(figures):
        by_release[each.release].append(each)
    releases = sorted(by_release, key=lambda name: [int(part) for part in name[1:].split(".")])
    everything = [each for found in by_release.values() for each in found]
    lines = [
        _row(release, ", ".join(about[release].versions), by_release[release], about[release].tied)
        for release in releases
    ]
    lines.append(_row("all", "", everything, sum(each.tied for each in about.values())))
    different = sum(each.differences for each in everything)
    found = f"{different:,} differences were found." if different else "No difference was found."
    text = HEAD.format(date=date) + "".join(lines)
    text += REST.format(
        found=found,
        tied=about["v1.34"].tied,
        suites="".join(_suites()),
        bursts=_bursts() + "".join(_random()),
        inside=_INSIDE,
    )
    for release in releases:
        text += f"\n## Recordings of {release}\n\n"
        text += "| recordings | scenarios | steps | differences |\n|---|---:|---:|---:|\n"
        for each in by_release[release]:
            counts = f"{each.scenarios:,} | {each.steps:,} | {each.differences:,}"
            text += f"| {each.folder}, {each.name} | {counts} |\n"
    return text


def _row(name: str, versions: str, found: list[Figures], tied: int) -> str:
    scenarios, steps = sum(each.scenarios for each in found), sum(each.steps for each in found)
    differences = sum(each.differences for each in found)
    return f"| {name} | {versions} | {scenarios:,} | {steps:,} | {tied:,} | {differences:,} |\n"


def _bursts() -> str:
    """Rows about what was judged beside real schedulers, as the page about judging has it."""
    text = (DOCS / "history.md").read_text("utf-8")
    found, sampled = _BURSTS.search(text), _SAMPLED.findall(text)
    if found is None or not sampled:
        raise SystemExit("docs/history.md does not say what came of a burst")
    result = f"placements of {found[2]} | [none of {found[1]} is different](history.md)"
    rows = [f"{_SHADOWED} | {result}"]
    for version, workers, placements, different, date in sampled:
        named = "worker" if workers == "one" else "workers"
        other = f"kube-scheduler {version}, {workers} {named}, the default share of nodes"
        rows.append(
            f"{_JUDGED} | placements of {other} | "
            f"[{different} of {placements} different](history.md) on {date}"
        )
    return "".join(f"| {row} |\n" for row in rows)


def _random() -> Iterator[str]:
    """Rows about random scenarios, as the page about recordings has them."""
    found = _RANDOM.findall((DOCS / "recordings.md").read_text("utf-8"))
    if not found:
        raise SystemExit("docs/recordings.md does not say what came of random scenarios")
    for what, version, steps, different, date in found:
        result = f"[{different} of {steps} different]({_BEYOND}) on {date}"
        yield f"| random scenarios: {what} | decisions of kube-scheduler {version} | {result} |\n"


def _suites() -> Iterator[str]:
    """Rows about upstream's end-to-end tests, as their page has them."""
    found = _PASSED.findall((DOCS / "conformance.md").read_text("utf-8"))
    if not found:
        raise SystemExit("docs/conformance.md does not say how many tests passed, and when")
    for what, passed, tests, date in found:
        result = f"[{passed} of {tests} passed](conformance.md#{what.lower()}) on {date}"
        yield f"| the lab | upstream's end-to-end tests about {what.lower()} | {result} |\n"


def main() -> int:
    """Replay, and write the page."""
    found = verified()
    PAGE.write_text(page(found, sources(), f"{datetime.now(UTC):%Y-%m-%d}"), "utf-8")
    different = sum(each.differences for each in found)
    steps = sum(each.steps for each in found)
    print(f"{PAGE.relative_to(ROOT)}: {steps:,} steps, {different:,} differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
