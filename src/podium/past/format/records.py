"""The records of a history. Each is written as a list: a number that says which, then its fields.

Fields may be added at the end, with a default: older files then still read. Times are seconds since
1970. Pods are named `namespace/name`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.past.format.deltas import Delta


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something that happened, at a time."""

    time: float

    def record(self) -> Record:
        """Itself: what `writing.Unwritten.record` makes."""
        return self


class Put(Record, frozen=True, array_like=True, tag=1):
    """An object was added, or replaced by another one of its name. The object is whole."""

    kind: str
    #: The object as msgpack; when a record is made to be written, the object itself.
    object: msgspec.Raw


class Changed(Record, frozen=True, array_like=True, tag=2):
    """An object changed."""

    kind: str
    key: str
    delta: Delta


class FieldsChanged(Record, frozen=True, array_like=True, tag=12):
    """Fields of an object changed. They are whole."""

    kind: str
    key: str
    #: The name of each field -> its value as msgpack; before it is written, the value itself.
    fields: dict[str, msgspec.Raw]


class Dropped(Record, frozen=True, array_like=True, tag=3):
    """An object was deleted, or a pod has finished."""

    kind: str
    key: str


class Decided(Record, frozen=True, array_like=True, tag=4):
    """A decision about a pod. With a node, the pod counts there from now on."""

    pod: str
    uid: str
    #: Which attempt it is for this pod, from 1.
    attempt: int
    scheduler: str
    #: The chosen node; None when there is none.
    node: str | None
    #: The same for equal decisions: outcome, reasons by number of nodes, preemption.
    digest: int
    #: The same for equal verdicts and scores of all nodes; None where they were not computed.
    matrix: int | None = None
    nodes: int = 0
    feasible: int = 0
    #: How many nodes shared the best total, and the cursor that chose among them.
    tied: int = 0
    cursor: int = 0
    #: How many nodes were taken from the node order, and whether the last one did not count.
    consumed: int = 0
    dropped: bool = False
    #: Whether reserve rules set something aside: what it was follows from deciding again.
    reserves: bool = False
    #: Whether extenders took part, so that the decision does not follow from the inputs alone.
    extenders: bool = False
    #: How long deciding took, and when the pod entered the queue.
    seconds: float = 0.0
    queued_at: float = 0.0
    #: Pods in the active queue, in backoff, unschedulable and gated, after the pod was taken.
    queues: tuple[int, int, int, int] = (0, 0, 0, 0)
    #: The node nominated to the pod when it was decided, where its last version says otherwise.
    nominated: str | None = None
    #: The pod as it was decided about, where that is not its last version in other ways. It is read
    #: as plain values, because msgspec reads no `Raw` that may be missing.
    object: dict[str, Any] | None = None
    #: The node where pods are to be evicted for it, and these pods.
    preempts: str = ""
    victims: tuple[str, ...] = ()
    #: The time for which the decision was made; 0 in older histories.
    decided_at: float = 0.0
    #: What kept answers gave otherwise, where the decision was verified and they did.
    differences: tuple[str, ...] = ()
    #: The pod group (`namespace/name`) in whose cycle it was made. A `GroupDecided` has it then.
    group: str = ""

    @property
    def made_at(self) -> float:
        """The time for which the decision was made; in older histories, when it began."""
        return self.decided_at or self.time - self.seconds


class GroupDecided(Record, frozen=True, array_like=True, tag=13):
    """A cycle of a pod group. Readers tell it first, then the decision about each of its pods."""

    group: str
    uid: str
    #: Which attempt it is for this group, from 1.
    attempt: int
    code: str
    #: The same for equal cycles: outcome, texts, what was undone, preemption.
    digest: int
    #: The decision about each pod, in the order in which the pods were tried.
    members: tuple[Decided, ...]
    #: For each search for a node, those for preemption included, what it moved: the number of tied
    #: nodes, the nodes taken from the node order, and whether the last one did not count.
    searches: tuple[tuple[int, int, bool], ...] = ()
    extenders: bool = False
    #: The time for which the decisions were made.
    decided_at: float = 0.0


class Nominated(Record, frozen=True, array_like=True, tag=5):
    """The nominated pods of some nodes from now on, in order; an empty list ends all of a node."""

    #: Node -> namespace/name and uid of each pod.
    pods: dict[str, list[tuple[str, str]]]
    #: All nodes that pods are nominated to, in order, where a list of their changes is not enough.
    order: tuple[str, ...] | None = None


class Forgotten(Record, frozen=True, array_like=True, tag=6):
    """A pod that counted on a node does not any more: it was not bound."""

    pod: str
    uid: str


class ClaimMade(Record, frozen=True, array_like=True, tag=14):
    """A claim was made for the extended resources of a pod, and has their devices from now on."""

    pod: str
    pod_uid: str
    uid: str


class ClaimWritten(Record, frozen=True, array_like=True, tag=15):
    """A claim was written with its devices. They count until this version of it is reported.

    An empty version says that it was deleted.
    """

    claim: str
    uid: str
    version: str


class Evicting(Record, frozen=True, array_like=True, tag=7):
    """Pods count as terminating from now on: they are about to be deleted in favour of a pod."""

    pod: str
    victims: tuple[str, ...]
    #: The pod group in whose favour it is; the pod is empty then.
    group: str = ""


class Kept(Record, frozen=True, array_like=True, tag=8):
    """Pods that were to be evicted could not be, and count as running again."""

    pods: tuple[str, ...]


class Bound(Record, frozen=True, array_like=True, tag=9):
    """The API server accepted a binding, or refused it with an error."""

    pod: str
    uid: str
    node: str
    error: str = ""


class Profiles(Record, frozen=True, array_like=True, tag=10):
    """The scheduler decides by these profiles from now on, as a snapshot keeps them."""

    profile: dict[str, Any]


class Checkpoint(Record, frozen=True, array_like=True, tag=11):
    """The objects before it in this file are the whole cluster; facts that do not follow from them.

    It is the end of the first part of a file that does not begin with an empty cluster.
    """

    #: What the cache knows of the past, see `cluster.cache.past`.
    past: msgspec.Raw
    #: Pods in the order of their nodes: node, then for each pod its name.
    placed: list[tuple[str, list[str]]]
    #: Pods that count on a node and are not bound yet.
    assumed: dict[str, str]
    #: Placed pods that the cache knows otherwise than their last version: start time, terminating,
    #: evicted.
    variants: dict[str, tuple[str | None, bool, bool]]
    nominated: list[tuple[str, list[tuple[str, str]]]]
    #: The cursor or the state of the rule that breaks ties.
    ties: list[Any]


AnyRecord = (
    Put
    | Changed
    | FieldsChanged
    | Dropped
    | Decided
    | GroupDecided
    | Nominated
    | Forgotten
    | ClaimMade
    | ClaimWritten
    | Evicting
    | Kept
    | Bound
    | Profiles
    | Checkpoint
)
