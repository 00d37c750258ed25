"""The speed table: 5,000 nodes, 1,000 pods one after the other, fast path against plain path.

Existing pods of the same kind come first, so what is measured is a warm scheduler. The plain path
asks every rule about every node for each pod; both paths are measured in the same run.
"""

from __future__ import annotations

from typing import Any

from measuring import Result, SizeOverrides, best, figures, profiles, script

#: Case, and what the row is called.
ROWS = {
    "SchedulingBasic": "basic (100m, 500Mi)",
    "SchedulingPodAntiAffinity": "required anti-affinity by hostname",
    "SchedulingPreferredPodAffinity": "preferred pod affinity by zone",
    "TopologySpreading": "topology spread by zone",
    "SchedulingSpread": "pods of one ReplicaSet behind a Service",
    "SchedulingOwnClass": "every pod its own class, basic",
}


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Case -> generation -> fast and plain, the best of several rounds.

    Each round measures everything once: what disturbs a machine comes and goes in minutes.
    """
    fast = SizeOverrides(100, 20, 40) if quick else SizeOverrides(5000, 1000, 1000)
    plain = SizeOverrides(100, 20, 10) if quick else SizeOverrides(5000, 200, 100)
    rounds = [
        {
            (case, name): (
                best(case, fast, profile, repeats=1),
                best(case, plain, profile, fast=False, repeats=1),
            )
            for case in ROWS
            for name, profile in profiles().items()
        }
        for _ in range(1 if quick else 6)
    ]
    return {
        case: {
            name: {
                "fast": figures(_least([each[case, name][0] for each in rounds])),
                "plain": figures(_least([each[case, name][1] for each in rounds])),
            }
            for name in profiles()
        }
        for case in ROWS
    }


def _least(found: list[Result | None]) -> Result | None:
    measured = [each for each in found if each is not None]
    return min(measured, key=lambda each: each.cpu_ms_per_pod, default=None)


if __name__ == "__main__":
    script(measure)
