"""The speed table: 5,000 nodes, 1,000 pods one after the other, fast path against plain path.

Existing pods of the same kind come first, so what is measured is a warm scheduler. The plain path
asks every rule about every node for each pod; both paths are measured in the same run.
"""

from __future__ import annotations

from typing import Any

from measuring import Sizes, best, figures, profiles, script

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
    """Case -> generation -> fast and plain."""
    fast = Sizes(100, 20, 40) if quick else Sizes(5000, 1000, 1000)
    plain = Sizes(100, 20, 10) if quick else Sizes(5000, 200, 100)
    repeats = 1 if quick else 5
    return {
        case: {
            name: {
                "fast": figures(best(case, fast, profile, repeats=repeats)),
                "plain": figures(best(case, plain, profile, fast=False, repeats=1)),
            }
            for name, profile in profiles().items()
        }
        for case in ROWS
    }


if __name__ == "__main__":
    script(measure)
