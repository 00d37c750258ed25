"""Why a rule gave a reason, as values: the numbers, labels, taints, pods and volumes behind it.

A cause belongs to one reason of one rule on one node. Rules find causes when an explanation is
asked for (`FilterRule.causes`, `ScoreRule.numbers`); a decision alone never does. The fields in
JSON are those of these classes in camel case, with the class as `kind`; the wording for people is
up to `render`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Resident

#: How many pods or domains one cause names; further ones are only counted.
MOST_NAMED = 20


class Cause(msgspec.Struct, frozen=True, rename="camel", tag_field="kind", omit_defaults=True):
    """What made a rule give a reason on a node."""

    #: The reason that it belongs to, as kube-scheduler words it.
    reason: str


class PodAmount(msgspec.Struct, frozen=True, rename="camel"):
    """A pod and how much of a resource it requests."""

    pod: str
    amount: int


class PodOnNode(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod and its node; a nominated pod is only promised to the node."""

    pod: str
    node: str
    nominated: bool = False


def placed_pod(resident: Resident, at: OneRow) -> PodOnNode:
    """The pod with its node; a pod that is nominated to the row has no row of its own."""
    nominated = resident.row < 0
    node = at.name if nominated else at.view.nodes.names[resident.row]
    return PodOnNode(resident.key, node, nominated)


class DomainCount(msgspec.Struct, frozen=True, rename="camel"):
    """A topology domain (the value of a label) and how many pods count there."""

    value: str
    count: int


class Room(Cause, tag="room", frozen=True):
    """Too little of a resource is left; `pods` stands for the number of pods.

    Amounts of cpu are thousandths. `used` leaves out the nominated pods, which are listed.
    """

    resource: str
    wanted: int
    allocatable: int
    used: int
    nominated: tuple[PodAmount, ...] = ()


class Expression(Cause, tag="expression", frozen=True):
    """A requirement of a selector that the node does not meet; `field` if it is a matchField."""

    #: Where the requirement stands, such as `nodeSelector` or `nodeSelectorTerms[0]`.
    where: str
    key: str
    operator: str
    values: tuple[str, ...] = ()
    #: The node's value; None if it has none.
    value: str | None = None
    field: bool = False


class NoTerms(Cause, tag="noTerms", frozen=True):
    """A node selector, or one term of it, that matches no node: it is empty or not valid."""

    where: str
    #: Whether it asks for something, in a way that Kubernetes refuses; and the text of the refusal.
    invalid: bool = False
    why: str = ""


class UntoleratedTaint(Cause, tag="taint", frozen=True):
    """A taint of the node that no toleration of the pod covers."""

    key: str
    value: str
    effect: str


class Cordoned(Cause, tag="cordoned", frozen=True):
    """The node has `spec.unschedulable`, and the pod does not tolerate that."""


class Condition(Cause, tag="condition", frozen=True):
    """A condition that the node reports."""

    type: str
    status: str


class OtherNode(Cause, tag="otherNode", frozen=True):
    """The pod names another node."""

    wanted: str


class LabelPresence(Cause, tag="label", frozen=True):
    """A label key that must be on the node and is missing, or must not be there and is."""

    key: str
    #: Whether it must be there.
    required: bool
    value: str | None = None


class MissingFeatures(Cause, tag="features", frozen=True):
    """Features that the pod needs and the node does not declare."""

    features: tuple[str, ...]


class PortInUse(Cause, tag="port", frozen=True):
    """A host port that another pod holds."""

    protocol: str
    port: int
    #: The addresses that the pod wants and that the other one holds.
    wanted_ip: str
    ip: str
    holder: PodOnNode


class DiskInUse(Cause, tag="disk", frozen=True):
    """A disk of the pod that another pod uses in a way that excludes it."""

    volume: str
    disk: str
    holder: PodOnNode


class ClaimInUse(Cause, tag="claimInUse", frozen=True):
    """A ReadWriteOncePod claim that another pod uses."""

    claim: str
    holders: tuple[PodOnNode, ...]


class VolumeElsewhere(Cause, tag="volumeZone", frozen=True):
    """A volume with a zone label that the node does not match."""

    claim: str
    volume: str
    key: str
    zones: tuple[str, ...]
    value: str | None = None


class VolumeLimit(Cause, tag="volumeLimit", frozen=True):
    """The node has no room for the volumes of the pod: attached and new ones exceed the limit."""

    #: The limit: a resource name (v1.13) or a CSI driver (v1.36).
    limit_of: str
    limit: int
    attached: int
    new: int


class VolumeUnreachable(Cause, tag="volumeAffinity", frozen=True):
    """The volume of a bound claim cannot be reached from the node: these requirements fail."""

    claim: str
    volume: str
    failed: tuple[Expression, ...] = ()


class VolumeLost(Cause, tag="volumeLost", frozen=True):
    """The volume of a bound claim does not exist."""

    claim: str
    volume: str


class ClaimUnserved(Cause, tag="claim", frozen=True):
    """A claim that waits for its first consumer gets no volume on the node."""

    claim: str
    storage_class: str
    #: `noVolume` (nothing suitable, and the class does not provision), `topology` (the class does
    #: not provision for this node), `otherNode` (it is being provisioned for another node) or
    #: `capacity` (the driver reports too little free storage).
    why: str
    provisioner: str = ""
    #: The node that a volume is being provisioned for.
    node: str = ""
    #: What the claim requests, as it is written.
    requested: str = ""


class BlockingPods(Cause, tag="blockingPods", frozen=True):
    """Pods in a topology domain that anti-affinity keeps apart from this one.

    `carried` if the term is one of these pods; otherwise it is a term of the pod itself.
    """

    term: str
    topology_key: str
    value: str
    count: int
    pods: tuple[PodOnNode, ...]
    carried: bool = False


class MissingPods(Cause, tag="missingPods", frozen=True):
    """Required affinity: no pod that matches the terms is in the node's domain.

    `domains` are those with matching pods; `value` is None if the node lacks the label.
    """

    term: str
    topology_key: str
    value: str | None
    matching: int
    domains: tuple[DomainCount, ...] = ()


class Skew(Cause, tag="skew", frozen=True):
    """The pod would make its domain exceed maxSkew."""

    topology_key: str
    value: str
    selector: str
    #: Matching pods in the node's domain before the pod comes, and 1 if the pod matches itself.
    count: int
    self_match: int
    #: The count that the domain is compared with: the fewest of any domain, or 0.
    minimum: int
    max_skew: int
    #: How many domains there are, and how many minDomains asks for.
    domain_count: int
    min_domains: int
    #: The domains with the fewest pods, and that of the node.
    domains: tuple[DomainCount, ...] = ()


class MissingTopologyLabel(Cause, tag="topologyLabel", frozen=True):
    """The node lacks the topology key of a spread constraint."""

    topology_key: str


class ServiceLabel(Cause, tag="serviceLabel", frozen=True):
    """The pods of a service stay on nodes with equal labels, and the node has another value.

    `pod` and `node` say who set the value; both are empty if the nodeSelector of the pod did.
    """

    label: str
    wanted: str
    value: str | None
    pod: str = ""
    node: str = ""


class DeviceTurnedDown(msgspec.Struct, frozen=True, rename="camel"):
    """A device that was considered for a request, and why it cannot be used."""

    driver: str
    device: str
    why: str


class DevicesLacking(Cause, tag="devices", frozen=True):
    """A request of a claim gets fewer devices on the node than it needs."""

    claim: str
    request: str
    #: How many it needs, None for all there are; and how many it got at most.
    wanted: int | None
    found: int
    #: The devices that were turned down, in the order of the search.
    devices: tuple[DeviceTurnedDown, ...] = ()
    #: How many more were.
    others: int = 0


class PoolInvalid(Cause, tag="pool", frozen=True):
    """A pool of devices that contradicts itself; nothing is taken from it."""

    pool: str
    why: str


class ClaimElsewhere(Cause, tag="resourceClaim", frozen=True):
    """An allocated claim that cannot be used from the node.

    `why` is `elsewhere` (its devices are reachable from other nodes), `notReady` (they could not be
    prepared) or `stale` (it was made for the pod by an earlier attempt).
    """

    claim: str
    why: str


class ResourceUnknown(Cause, tag="resource", frozen=True):
    """Neither the node nor a class of devices offers an extended resource."""

    resource: str


class RefusedEverywhere(Cause, tag="refused", frozen=True):
    """The pod is refused for what it is, on every node alike; the reason says why."""


class RuleAnswer(Cause, tag="rule", frozen=True):
    """A rule of a user answered this; what led to it is in its code."""

    rule: str


AnyCause = (
    Room
    | Expression
    | NoTerms
    | UntoleratedTaint
    | Cordoned
    | Condition
    | OtherNode
    | LabelPresence
    | MissingFeatures
    | PortInUse
    | DiskInUse
    | ClaimInUse
    | VolumeElsewhere
    | VolumeLimit
    | VolumeUnreachable
    | VolumeLost
    | ClaimUnserved
    | BlockingPods
    | MissingPods
    | Skew
    | MissingTopologyLabel
    | ServiceLabel
    | DevicesLacking
    | PoolInvalid
    | ClaimElsewhere
    | ResourceUnknown
    | RefusedEverywhere
    | RuleAnswer
)


class ScoreNumber(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A number that a score is computed from, such as 1500 of 4000 cpu."""

    name: str
    value: int
    #: The capacity that it is a part of, if it is.
    of: int | None = None
    #: The resource whose unit both have; empty for plain numbers.
    resource: str = ""


class NodeNumbers(msgspec.Struct, frozen=True, rename="camel"):
    """The numbers behind the score that a rule gave to a node."""

    node: str
    numbers: tuple[ScoreNumber, ...]


class ScoreCause(msgspec.Struct, frozen=True, rename="camel"):
    """How a rule scores, in words, and the numbers behind the scores of some nodes."""

    priority: str
    formula: str
    nodes: tuple[NodeNumbers, ...]


class RuleCause(msgspec.Struct, frozen=True, rename="camel"):
    """A cause and the rule that it belongs to."""

    predicate: str
    cause: AnyCause


class NotReprieved(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A victim: why the pod does not fit with it back on the node, and the budgets it violates."""

    pod: str
    priority: int
    reasons: tuple[str, ...]
    causes: tuple[RuleCause, ...] = ()
    budgets: tuple[str, ...] = ()
    #: Kind and name of its owner; empty if it has none.
    workload: str = ""


class CandidateVictims(msgspec.Struct, frozen=True, rename="camel"):
    """The victims of one candidate, in the order in which they were put back and did not fit."""

    node: str
    victims: tuple[NotReprieved, ...]


class NoCandidate(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes where evicting pods does not help, for one and the same cause."""

    #: `notHelpful` (a reason that evictions do not cure), `noLowerPriority` (nothing to evict),
    #: `stillRejected` (not even without all pods of lower priority) or `notTried` (an explanation
    #: repeats the search on some nodes only).
    why: str
    reasons: tuple[str, ...]
    nodes: tuple[str, ...]
    causes: tuple[RuleCause, ...] = ()


class PreemptionCauses(msgspec.Struct, frozen=True, rename="camel"):
    """Why nodes are no candidates of preemption, and why victims were not reprieved."""

    no_candidates: tuple[NoCandidate, ...]
    candidates: tuple[CandidateVictims, ...]


class CausedRejection(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes that a rule rejected for one and the same cause."""

    predicate: str
    cause: AnyCause
    nodes: tuple[str, ...]
