"""The range of scores and the algorithm providers of v1.13."""

from __future__ import annotations

MAX_SCORE = 10

DEFAULT_PROVIDER = "DefaultProvider"
AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
BOTH_PROVIDERS = (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER)
