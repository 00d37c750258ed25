"""What a post-filter is: a step that runs when no node fits a pod, or too few pods of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from podium.engine.framework.decision import ClaimRelease, Decision, Preemption
    from podium.engine.framework.extenders import Extender
    from podium.engine.framework.group_decision import GroupAttempt, GroupPreemption
    from podium.engine.framework.rule import Positioned, Refused
    from podium.engine.state.pod_class import Incoming, Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.pod_group import PodGroup


class FailedSearch(msgspec.Struct):
    """A pod for which no node was found, and what is known of it."""

    pod: Incoming
    view: View
    #: The filter rules that take part in this attempt.
    rules: Sequence[Positioned]
    #: Rows on which the pod may fit once pods are evicted, in node order.
    potential: np.ndarray
    #: The rule that refused the pod before any node was looked at.
    refused: Refused | None = None
    #: The rows that were filtered, and the verdict code of each.
    rows: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    codes: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(0, np.int32))
    #: Names of the plugins whose pre-filter saw the pod.
    prepared: frozenset[str] = frozenset()
    extenders: tuple[Extender, ...] = ()
    #: Rows with pods removed are filtered in a batch if there are at least so many.
    min_batch_rows: int = 8
    #: Whether what is found on rows may be kept for later pods of the class, and used.
    may_keep: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """What a post-filter achieved."""

    #: `Success`, `UnschedulableAndUnresolvable` and `Error` end the stage; after `Unschedulable`
    #: the next post-filter runs. Empty in v1.13, where the stage ends and reports no status.
    code: str
    reason: str = ""
    preemption: Preemption | None = None
    #: The claim of the pod that is given back, or deleted, so that the pod gets other devices.
    released: ClaimRelease | None = None


class PostFilter(Protocol):
    """A step that runs when no node fits the pod."""

    @property
    def name(self) -> str:
        """The name by which it is configured."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of objects that it looks up in the catalogue."""

    @property
    def evicts_pods(self) -> bool:
        """Whether it may evict pods of lower priority."""

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """Try to help the pod; questions to extenders are yielded and their replies sent back."""


class TrialPlacement(msgspec.Struct, frozen=True):
    """A pod of a group on the node that a trial found for it."""

    pod: Incoming
    row: int
    decision: Decision
    #: The filter rules that took part when the node was found.
    rules: Sequence[Positioned]


class GroupTrial(Protocol):
    """The cluster, changed for a while. Everything is as before when the trial ends."""

    def remove(self, pod: Resident) -> None:
        """Take a pod off its node."""

    def put_back(self, pod: Resident) -> None:
        """Put a pod that was removed on its node again."""

    def schedule(self) -> Generator[Any, Any, tuple[GroupAttempt, Sequence[TrialPlacement]]]:
        """Try the pods of the group; the nodes that were found. Nothing stays assumed."""

    def assume(self, placement: TrialPlacement) -> None:
        """Count a pod of the group on its node, with what is reserved for it."""

    def forget(self, placement: TrialPlacement) -> None:
        """Count it no more."""


class FailedGroup(msgspec.Struct):
    """A pod group of which too few pods fit, and what is known of it."""

    group: PodGroup
    #: The pods without a node, in the order in which they are tried.
    pods: Sequence[Incoming]
    view: View
    #: The rows of all nodes, in the order of the list of nodes.
    rows: np.ndarray
    #: Uid of a pod -> names of the plugins whose pre-filter saw it; pods that were tried.
    prepared: Mapping[str, frozenset[str]]
    #: The claims that pods give back, so that they get other devices.
    released: Sequence[ClaimRelease]
    #: Begins a trial.
    trial: Callable[[], AbstractContextManager[GroupTrial]]


class GroupOutcome(msgspec.Struct, frozen=True):
    """What a post-filter achieved for a group; codes are those of `Outcome`."""

    code: str
    reason: str = ""
    preemption: GroupPreemption | None = None
    #: The run without the possible victims, if there was one.
    trial: GroupAttempt | None = None


class GroupPostFilter(Protocol):
    """A step that runs when too few pods of a group fit."""

    @property
    def name(self) -> str:
        """The name by which it is configured."""

    @property
    def evicts_pods(self) -> bool:
        """Whether it may evict pods of lower priority."""

    def run_for_group(self, failed: FailedGroup) -> Generator[Any, Any, GroupOutcome]:
        """Try to help the group; questions to extenders are yielded and their replies sent back."""
