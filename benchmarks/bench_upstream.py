"""Upstream's own workloads, each beside its threshold, if their folder is given.

The environment variable PODIUM_SCHEDULER_PERF is the path of `test/integration/scheduler_perf` of
Kubernetes. Of each workload with a threshold the first size that has one is run, by the
rules of the default release. A threshold is what upstream expects of its whole system on its
machine; figures here are of deciding and assuming, in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from measuring import (
    UPSTREAM_FOLDER,
    SizeOverrides,
    load_workloads,
    run_workload,
    script,
    select_workloads,
)

from podium.errors import PodiumError
from podium.library.profile_source import ProfileSource
from podium.releases import DEFAULT_RELEASE
from podium_research.bench.workload_selection import profile_for


def thresholds(path: Path) -> Iterator[tuple[str, float]]:
    """Case and size of the first workload of each case that has a threshold, and the threshold."""
    for case in yaml.safe_load(path.read_text("utf-8")) or ():
        for size in case.get("workloads") or ():
            limit = size.get("threshold")
            if isinstance(limit, int | float) and limit:
                yield f"{case['name']}/{size['name']}", float(limit)
                break


def measure(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001  the one switch there is
    """A line for each workload: pods/s, or why it was not run; nothing without the folder."""
    folder = os.environ.get(UPSTREAM_FOLDER, "")
    if not folder:
        return []
    source = ProfileSource(profile=DEFAULT_RELEASE.name, environment={})
    sizes = SizeOverrides(50, 20, 20) if quick else SizeOverrides()
    lines: list[dict[str, Any]] = []
    for path in sorted(Path(folder).glob("*/performance-config.yaml")):
        for name, limit in thresholds(path):
            line: dict[str, Any] = {"file": path.parent.name, "workload": name, "threshold": limit}
            try:
                [workload] = select_workloads(load_workloads(path), [name], sizes)
                profile = profile_for(workload, source)
                found = [each for each in run_workload(workload, profile) if each.pods]
                if found:
                    line["podsPerSecond"] = round(found[0].pods_per_second)
                    line["cpuMsPerPod"] = round(found[0].cpu_ms_per_pod, 4)
            except (PodiumError, ValueError) as error:
                line["skipped"] = str(error)
            lines.append(line)
    return lines


if __name__ == "__main__":
    script(measure)
