"""Arguments of InterPodAffinity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.engine.rules.v1_36_arguments import range_errors
from podium.objects.go_types import BOOL, INT32


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    """How terms of placed pods count in the scores of others."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def _check(found: InterPodAffinityArgs, path: str, _: FeatureGates) -> Errors:
    yield from range_errors(found.hard_pod_affinity_weight, path, "hardPodAffinityWeight")


INTER_POD_AFFINITY_ARGUMENTS: Final = Arguments(
    arguments_record(
        InterPodAffinityArgs,
        hard_pod_affinity_weight=INT32,
        ignore_preferred_terms_of_existing_pods=BOOL,
    ),
    _check,
)
