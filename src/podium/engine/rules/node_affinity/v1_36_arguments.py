"""Arguments of NodeAffinity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.objects.field_errors import child
from podium.objects.go_types import INT32, STRING, Slice, named, record
from podium.objects.kinds.meta import LabelSelectorRequirement
from podium.objects.kinds.pod import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from podium.objects.selectors.faults import node_term_faults


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    """Node affinity that every pod gets on top of its own."""

    added_affinity: NodeAffinity | None = None


def _check(found: NodeAffinityArgs, path: str, _: FeatureGates) -> Errors:
    affinity, where = found.added_affinity, child(path, "addedAffinity")
    if affinity is None:
        return
    if affinity.required is not None:
        here = f"{where}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        for index, term in enumerate(affinity.required.node_selector_terms or ()):
            yield from node_term_faults(term, f"{here}[{index}]")
    here = f"{where}.preferredDuringSchedulingIgnoredDuringExecution"
    for index, preferred in enumerate(affinity.preferred or ()):
        # Terms of weight 0 are not checked.
        if preferred.weight:
            yield from node_term_faults(preferred.preference, f"{here}[{index}]")


_REQUIREMENT = record(
    "v1.NodeSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.NodeSelectorOperator"),
    values=Slice(STRING, list),
)
_TERM = record(
    "v1.NodeSelectorTerm",
    NodeSelectorTerm,
    match_expressions=Slice(_REQUIREMENT, list),
    match_fields=Slice(_REQUIREMENT, list),
)
_SELECTOR = record("v1.NodeSelector", NodeSelector, node_selector_terms=Slice(_TERM, list))
_PREFERRED = record(
    "v1.PreferredSchedulingTerm", PreferredSchedulingTerm, weight=INT32, preference=_TERM
)
_AFFINITY = record(
    "v1.NodeAffinity",
    NodeAffinity,
    required=("requiredDuringSchedulingIgnoredDuringExecution", _SELECTOR),
    preferred=("preferredDuringSchedulingIgnoredDuringExecution", Slice(_PREFERRED, list)),
)
NODE_AFFINITY_ARGUMENTS: Final = Arguments(
    arguments_record(NodeAffinityArgs, added_affinity=_AFFINITY), _check
)
