"""What the benchmark scripts share: profiles, repetition, and figures as JSON on stdout."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = [
    "SOURCES",
    "Result",
    "SizeOverrides",
    "best",
    "figures",
    "load_workloads",
    "profiles",
    "run_workload",
    "script",
    "select_workloads",
]

SOURCES = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SOURCES))

from podium.engine.framework.profile import Profile  # noqa: E402
from podium.library.profiles import default_profile  # noqa: E402
from podium.releases import DEFAULT_RELEASE, RELEASES  # noqa: E402
from podium_research.bench.measurement import Result  # noqa: E402
from podium_research.bench.runner import run_workload  # noqa: E402
from podium_research.bench.workload_selection import SizeOverrides, load_workloads, select_workloads  # noqa: E402  the path comes first

#: The environment variable with the path of upstream's `test/integration/scheduler_perf`.
UPSTREAM_FOLDER = "PODIUM_SCHEDULER_PERF"


def profiles() -> dict[str, Profile]:
    """The default profiles of the oldest generation and of the default one, all nodes scored."""
    return {each.name: default_profile(each.name) for each in (RELEASES[0], DEFAULT_RELEASE)}


def best(
    case: str, sizes: SizeOverrides, profile: Profile, *, fast: bool = True, repeats: int = 3
) -> Result | None:
    """The run that took the least processor time; None where the profile lacks the rule."""
    [workload] = select_workloads(load_workloads(), [case], sizes)
    found = []
    for _ in range(repeats):
        [result] = run_workload(workload, profile, fast=fast)
        if result.skipped:
            return None
        assert result.placed == result.pods, f"{result.workload}: {result.placed} placed"
        found.append(result)
    return min(found, key=lambda result: result.cpu_seconds)


def figures(result: Result | None) -> dict[str, Any] | None:
    """Without the points of the chart."""
    if result is None:
        return None
    data = result.as_dict()
    del data["throughput"]
    return data


def script(measure: Callable[[bool], Any]) -> None:
    """Run as a script: figures on stdout, as JSON; `--quick` for small numbers."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    json.dump(measure(parser.parse_args().quick), sys.stdout, indent=2)
    sys.stdout.write("\n")
