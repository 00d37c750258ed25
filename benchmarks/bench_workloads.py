"""Every workload that comes with the program, at 5,000 nodes."""

from __future__ import annotations

from typing import Any

from measuring import (
    SizeOverrides,
    figures,
    load_workloads,
    profiles,
    run_workload,
    script,
    select_workloads,
)


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Generation -> figures per workload."""
    if quick:
        found = select_workloads(load_workloads(), ["Scheduling*"], SizeOverrides(50, 20, 20))
    else:
        found = select_workloads(load_workloads(), ["*/5000Nodes"], SizeOverrides())
    return {
        name: [
            figures(each)
            for workload in found
            for each in run_workload(workload, profile)
            if each.pods
        ]
        for name, profile in profiles().items()
    }


if __name__ == "__main__":
    script(measure)
