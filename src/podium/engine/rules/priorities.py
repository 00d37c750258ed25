"""The range of scores and the algorithm providers of v1.13."""

from __future__ import annotations

HIGHEST_PRIORITY = 10

DEFAULT_PROVIDER = "DefaultProvider"
AUTOSCALER_PROVIDER = "ClusterAutoscalerProvider"
BOTH_PROVIDERS = (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER)
