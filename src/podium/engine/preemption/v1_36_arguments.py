"""Arguments of DefaultPreemption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.engine.rules.v1_36_arguments import range_errors
from podium.objects.field_errors import child, invalid
from podium.objects.go_types import INT32


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    """On how many nodes preemption is tried."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


def _check(found: DefaultPreemptionArgs, path: str, _: FeatureGates) -> Errors:
    percentage, absolute = found.min_candidate_nodes_percentage, found.min_candidate_nodes_absolute
    of_percentage = child(path, "minCandidateNodesPercentage")
    of_absolute = child(path, "minCandidateNodesAbsolute")
    yield from range_errors(percentage, path, "minCandidateNodesPercentage")
    if absolute < 0:
        yield invalid(of_absolute, str(absolute), "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield invalid(
            of_percentage, "0", "cannot be zero at the same time as minCandidateNodesAbsolute"
        )
        yield invalid(
            of_absolute, "0", "cannot be zero at the same time as minCandidateNodesPercentage"
        )


DEFAULT_PREEMPTION_ARGUMENTS: Final = Arguments(
    arguments_record(
        DefaultPreemptionArgs,
        min_candidate_nodes_percentage=INT32,
        min_candidate_nodes_absolute=INT32,
    ),
    _check,
)
