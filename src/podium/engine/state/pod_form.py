"""Which pod classes are of one form: rules that concern one of them concern all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.engine.state.affinity_terms import terms_fault
from podium.engine.state.pod_class import encoded
from podium.objects.kinds.pod import ClaimVolume, Volume

if TYPE_CHECKING:
    from podium.engine.state.pod_class import PodClass, RequestFacts

FormKey = tuple["RequestFacts", bytes]
ANY_CLAIM = Volume(persistent_volume_claim=ClaimVolume())


def form_key(cls: PodClass) -> FormKey:
    """Equal for classes of one form, as long as what follows from their containers is kept."""
    spec, affinity = cls.spec, cls.spec.affinity
    terms: object = None
    if affinity is not None:
        near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
        kinds = [None if part is None else bool(part.preferred) for part in (near, apart)]
        terms = (affinity.node_affinity, kinds, terms_fault(cls))
    rest = (
        bool(cls.host),
        [_of_any_claim(volume) for volume in cls.volumes],
        spec.node_selector,
        terms,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.preemption_policy,
        spec.host_network,
        spec.host_users,
        spec.resource_claims,
    )
    return cls.requests, encoded(rest)


def _of_any_claim(volume: Volume) -> Volume:
    """A volume of a claim without its own name and that of the claim; others as they are."""
    claim = volume.persistent_volume_claim
    if claim is None:
        return volume
    if volume == Volume(volume.name, ClaimVolume(claim.claim_name)):
        return ANY_CLAIM  # there is nothing else to it
    unnamed = msgspec.structs.replace(claim, claim_name="")
    return msgspec.structs.replace(volume, name="", persistent_volume_claim=unnamed)
