"""Pods with claims: 5,000 nodes with eight devices each, and upstream's workloads about devices.

The environment variable PODIUM_SCHEDULER_PERF is the path of `test/integration/scheduler_perf` of
Kubernetes; without it only the first is run. Of upstream's workloads those with a threshold are
run, which are the largest; variants that differ in feature gates alone are one workload, with the
higher threshold.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from measuring import (
    UPSTREAM_FOLDER,
    SizeOverrides,
    load_workloads,
    profiles,
    run_workload,
    script,
    select_workloads,
)

from podium.errors import PodiumError
from podium.releases import DEFAULT_RELEASE

_VARIANT = "_QueueingHintsEnabled"


def thresholds(path: Path) -> dict[str, float]:
    """The threshold of each workload that has one."""
    found: dict[str, float] = {}
    for case in yaml.safe_load(path.read_text("utf-8")) or ():
        for size in case.get("workloads") or ():
            limit = (size.get("threshold") or {}).get("dra")
            if limit:
                name = f"{case['name']}/{size['name'].removesuffix(_VARIANT)}"
                found[name] = max(float(limit), found.get(name, 0.0))
    return found


def measure(quick: bool) -> list[dict[str, Any]]:  # noqa: FBT001  the one switch there is
    """A line for each workload."""
    lines = [_line(None, "SchedulingClaims/5000Nodes", None, quick=quick)]
    folder = os.environ.get(UPSTREAM_FOLDER, "")
    if folder:
        path = Path(folder, "dra", "performance-config.yaml")
        for name, limit in thresholds(path).items():
            try:
                lines.append(_line(str(path), name, limit, quick=quick))
            except PodiumError as error:  # of a newer upstream than is known here
                lines.append({"workload": name, "skipped": str(error), "threshold": limit})
    return lines


def _line(file: str | None, name: str, threshold: float | None, *, quick: bool) -> dict[str, Any]:
    sizes = SizeOverrides(50, 20, 20) if quick else SizeOverrides()
    [workload] = select_workloads(load_workloads(file), [name], sizes)
    if quick and "duration" in workload.params:
        workload = workload.with_params({"duration": "1s"})
    result = run_workload(workload, profiles()[DEFAULT_RELEASE.name])[-1]
    assert result.placed == result.pods, f"{name}: {result.placed} of {result.pods} placed"
    return {
        "workload": name,
        "nodes": result.nodes,
        "pods": result.pods,
        "podsPerSecond": round(result.pods_per_second),
        "cpuMsPerPod": round(result.cpu_ms_per_pod, 4),
        "threshold": threshold,
    }


if __name__ == "__main__":
    script(measure)
