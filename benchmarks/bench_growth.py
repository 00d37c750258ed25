"""How the cost of a decision grows with the cluster: SchedulingBasic with pods of one class."""

from __future__ import annotations

from typing import Any

from measuring import SizeOverrides, best, figures, profiles, script


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Generation -> number of nodes -> figures."""
    counts = (50, 500) if quick else (5_000, 10_000, 20_000, 50_000)
    repeats = 1 if quick else 3
    return {
        name: {
            nodes: figures(
                best("SchedulingBasic", SizeOverrides(nodes, 100, 1000), profile, repeats=repeats)
            )
            for nodes in counts
        }
        for name, profile in profiles().items()
    }


if __name__ == "__main__":
    script(measure)
