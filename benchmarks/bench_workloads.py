"""Every workload that comes with the program, at 5,000 nodes."""

from __future__ import annotations

from typing import Any

from measuring import Sizes, chosen, figures, profiles, run, script, workloads


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Generation -> figures per workload."""
    if quick:
        found = chosen(workloads(), ["Scheduling*"], Sizes(50, 20, 20))
    else:
        found = chosen(workloads(), ["*/5000Nodes"], Sizes())
    return {
        name: [figures(each) for workload in found for each in run(workload, profile) if each.pods]
        for name, profile in profiles().items()
    }


if __name__ == "__main__":
    script(measure)
