"""The range of scores and the algorithm providers of v1.13."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import scaled_to

if TYPE_CHECKING:
    import numpy as np

    from podium.engine.rows.rows import ManyRows

MAX_SCORE = 10

DEFAULT_PROVIDER = "DefaultProvider"
AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
BOTH_PROVIDERS = (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER)


def normalized(at: ManyRows, raw: np.ndarray, *, reverse: bool = False) -> np.ndarray:
    """Scores scaled so that the largest becomes 10; `reverse` makes it the smallest."""
    return scaled_to(MAX_SCORE, at, raw, reverse=reverse)
