"""The contract of a rule: what a predicate, a priority or a plugin is to the engine.

A rule is pure: it reads the pod and some rows of the view, and answers. `FilterRule` says which
rows a pod must not run on, `ScoreRule` how good rows are, `ReserveRule` what is set aside on the
chosen row; one class may be several of them. The base classes hold the defaults, so that a rule
states only what differs from them:

- once per pod class, what its answers depend on (`scope`): the cache follows from that;
- once per decision, whether it has anything to say now (`activity`, `everywhere`).

Laws that the engine relies on, and that tests hold every rule to:

- An answer depends on nothing beyond the scope. Two pods of one class get the same answer.
- A filter reports errors through `at.fail` or `at.fail_where`, and only with scope `CLUSTER` or
  `OBJECTS`: answers of smaller scopes are kept, and an error is never kept.
- A score that cannot be computed raises `AttemptError`; this needs scope `CLUSTER` or `OBJECTS`.
- `filter` and `score` hold for every form of rows alike (see `engine.rows.rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from podium.engine.rows.rows import K
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from podium.engine.framework.causes import Cause, ScoreNumber
    from podium.engine.rows.resource_block import BlockFilter, BlockScore
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.rows.rows import Flags, Ints, ManyRows, OneRow, Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Tally
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod


#: What rules keep while the causes of one explanation are looked for; each has its own keys.
Memo = dict["Hashable", Any]


class Scope(IntEnum):
    """What the answer of a rule for one row depends on, besides the class of the pod."""

    #: Nothing: the rule rejects no row, or gives every row the same score.
    NONE = 0
    #: The node object: labels, taints, conditions, images.
    NODE = 1
    #: The resource numbers of the row alone: allocatable, requested, number of pods.
    RESOURCES = 2
    #: The node and the pods on it: host ports, disks.
    PODS = 3
    #: Objects of the catalogue (claims, volumes), or the pod itself; never other pods.
    OBJECTS = 4
    #: Anything in the cluster, pods on other nodes included.
    CLUSTER = 5

    @property
    def of_row(self) -> bool:
        """Whether an answer stays true until the node or the pods on it change."""
        return self <= Scope.PODS

    @property
    def ignores_pods(self) -> bool:
        """Whether pods that are added or removed do not change the answer."""
        return self <= Scope.NODE or self is Scope.OBJECTS


class Activity(IntEnum):
    """Whether a filter has anything to say about a pod, as the cluster is now."""

    #: It takes no part in the attempt, nor in the trials of preemption (PreFilter answers Skip).
    SKIPPED = 0
    #: It rejects no row; with pods added or removed it might.
    IDLE = 1
    #: What it says of a row depends on the node and the pods on that row alone, as long as its
    #: `row_context` stays the same.
    OWN_ROW = 2
    #: What it says of a row may depend on anything in its scope.
    ACTIVE = 3


class Watched(IntFlag):
    """What `activity`, `everywhere` and `group_keys` read besides the class of the pod.

    While nothing of it changes, a rule is not asked again.
    """

    NOTHING = 0
    #: The nodes.
    NODES = 1
    #: Services and controllers, which select pods.
    SELECTORS = 2
    #: The affinity terms of placed pods that select the pod, and the labels of namespaces.
    TERMS = 4
    #: Whether there are placed pods that the pod's own affinity terms select.
    SELECTED_PODS = 8
    #: Anything else: the rule is asked at every decision.
    ANYTHING = 16


class AttemptError(Exception):
    """The attempt fails with an error of the real program; no node was found unfit.

    The arguments are the texts of all errors; several are shown as a list. *plugin* is the plugin
    that failed, *nodes* the nodes on which it did, with the text of each.
    """

    def __init__(
        self, *texts: str, plugin: str = "", nodes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(*texts)
        self.plugin = plugin
        self.nodes = nodes or {}

    def __str__(self) -> str:
        return self.args[0] if len(self.args) == 1 else f"[{', '.join(sorted(self.args))}]"


@dataclass(frozen=True, slots=True)
class Refused:
    """A rule refuses the pod on every node, before any node is looked at."""

    plugin: str
    reason: str
    #: Whether evicting pods could make the reason go away.
    curable: bool = False
    #: Every plugin that took part: this one, or those that leave no node together.
    plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """A refusal by one plugin is of that plugin alone."""
        if self.plugin and not self.plugins:
            object.__setattr__(self, "plugins", (self.plugin,))


@dataclass(frozen=True, slots=True)
class OnlyNodes:
    """A rule names the only nodes that may be looked at."""

    names: frozenset[str]


class BatchTrials(NamedTuple):
    """On which rows trials (pods added or removed) may be evaluated for many rows at a time."""

    rows: np.ndarray
    #: Whether the answers on these rows stay the same, whatever pods are removed or added again.
    constant: bool


class Everywhere(NamedTuple):
    """The final score that every row gets."""

    score: int
    #: Whether the score is shown as a column; a rule that answers Skip to PreScore shows none.
    shown: bool = True


#: The rule scores nothing in this attempt (PreScore answers Skip).
SKIPPED = Everywhere(0, shown=False)


class Positioned(NamedTuple):
    """A filter rule and its position in the order of the profile."""

    position: int
    rule: FilterRule


#: The kinds of a rule that does not say which ones it looks up.
ALL_KINDS: Final = ("*",)


class Rule:
    """What all rules have in common."""

    #: The name by which users configure it.
    name: str
    #: Kinds of objects that it looks up in the catalogue; the scheduler watches these.
    kinds: tuple[str, ...] = ()
    #: The scope when it is the same for every pod class.
    always: Scope = Scope.NODE
    #: Whether one row costs it about as much as many rows in one array.
    by_columns: bool = False
    #: Whether `row_key` is the same for all classes of one form that name no node.
    keyed_by_form: bool = False

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002 - the same for every class
        """What the answers for pods of this class depend on.

        This, `watched` and `may_refuse` may differ by the form of the class only (`PodForm`).
        """
        return self.always

    def row_key(self, cls: PodClass) -> Hashable:
        """What a rule of single rows reads of the class: with equal keys, equal answers.

        Asked where the scope is that of a row. By default no two classes get the same answers.
        """
        return cls.id

    def watched(self, cls: PodClass) -> Watched:  # noqa: ARG002 - the same for every class
        """What it looks at to say whether it has anything to say about pods of this class."""
        return Watched.ANYTHING

    def answer_key(self, pod: Incoming, view: View) -> Hashable:  # noqa: ARG002
        """While this and the nodes stay the same, so do the answers; None when it cannot tell."""
        return None


class FilterRule(Rule):
    """Says which rows a pod must not run on: a predicate, or a filter plugin."""

    def may_refuse(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Whether `pre_filter` may refuse a pod of this class, name nodes or fail."""
        return False

    def pre_filter(self, pod: Incoming, view: View) -> Refused | OnlyNodes | None:  # noqa: ARG002
        """Look at the pod once, before any node: refuse it, or name the only nodes."""
        return None

    def activity(self, pod: Incoming, view: View) -> Activity:  # noqa: ARG002
        """Whether it has anything to say about the pod, as the cluster is now."""
        scope = self.scope(pod.cls)
        if scope is Scope.NONE:
            return Activity.SKIPPED
        return Activity.OWN_ROW if scope.of_row else Activity.ACTIVE

    def row_context(self, pod: Incoming, view: View) -> Hashable:  # noqa: ARG002
        """What verdicts depend on besides the row, where its activity is `OWN_ROW`; None: nothing.

        In trials the verdict on a row may depend on more, where this is not None.
        """
        return None

    def domain_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:  # noqa: ARG002
        """Label keys: rows with equal values of all of them get equal verdicts. Empty: no such."""
        return ()

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A verdict code per row, 0 where the pod fits. Errors are reported through `at.fail`."""
        raise NotImplementedError

    def of_block(self, pod: Incoming, view: View) -> BlockFilter | None:  # noqa: ARG002
        """The same answers from a block of resource numbers, where the scope is `RESOURCES`.

        It must hold for the class of the pod until the journal starts a new epoch, or other
        resources are served by devices. None where there is no such way.
        """
        return None

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterable[Cause]:  # noqa: ARG002
        """What led to the reasons that `filter` gives on a row which it rejects.

        Called only when an explanation is asked for, after the decision; it changes nothing. `memo`
        is empty at first and shared by all rows of one explanation. Causes whose reason is not in
        the verdict of the row are dropped, so a rule may give all that it finds.
        """
        return ()

    def cause_parts(self, cls: PodClass) -> Sequence[FilterRule]:  # noqa: ARG002
        """The rules that are asked for the causes; a rule that combines others names these."""
        return (self,)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> Sequence[Hashable] | None:  # noqa: ARG002
        """What the causes on each row depend on: rows with equal keys have equal causes.

        Then `causes` is asked about one of them. None: it is asked about every row.
        """
        return None

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """Where trials of many rows may be evaluated together."""
        scope = self.scope(pod.cls)
        together = scope.ignores_pods or scope is Scope.RESOURCES
        return BatchTrials(np.full(len(at), together), constant=scope.ignores_pods)


class BitFilter(FilterRule):
    """A filter whose reasons add up: bit i of `bits` stands for reason i."""

    #: The reasons there may be, in the order they are reported.
    reasons: tuple[Reason, ...] = ()

    def reasons_of(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """The reasons there may be for this pod, where they depend on it."""
        return self.reasons

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """Which of the reasons apply, per row."""
        raise NotImplementedError

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The verdict codes of the reasons that apply."""
        bits = self.bits(pod, at)
        if not at.any(bits):
            return at.full(FITS)
        return at.codes(self.name, bits, self.reasons_of(pod, at.view))


class ScoreRule(Rule):
    """Says how good rows are: a priority, or a score plugin."""

    #: Whether final scores depend on all feasible rows together.
    normalizes: bool = False
    #: How the score is computed, in one line of words; for explanations.
    formula: str = ""

    def pre_score(self, pod: Incoming, view: View) -> str:  # noqa: ARG002
        """Why pods of the form of this one cannot be scored at all; empty if they can."""
        return ""

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """The final score if every row gets the same; None if rows must be scored."""
        return None

    def group_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:  # noqa: ARG002
        """Label keys: rows with equal values of all of them get equal scores. Empty: no groups."""
        return ()

    def group_tallies(self, pod: Incoming, view: View) -> tuple[Tally, ...]:  # noqa: ARG002
        """Tallies that must count equally many pods on rows, too, for these to get equal scores.

        Where there are any, `group_keys` may be empty, and only `of_few` scores such groups.
        """
        return ()

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A raw score per row."""
        raise NotImplementedError

    def of_few(
        self,
        pod: Incoming,  # noqa: ARG002
        groups: RowGroups,  # noqa: ARG002
        count: int,  # noqa: ARG002
    ) -> list[int] | None:
        """The final scores of a few groups of rows in plain numbers; None: `score` must be asked.

        *count* is how many feasible rows the groups have.
        """
        return None

    def of_block(self, pod: Incoming, view: View) -> BlockScore | None:  # noqa: ARG002
        """The same scores from a block of resource numbers, as for `FilterRule.of_block`."""
        return None

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The final scores of all feasible rows together."""
        return raw

    def numbers(self, pod: Incoming, at: OneRow) -> Iterable[ScoreNumber]:  # noqa: ARG002
        """The numbers behind the raw score of a row; called for explanations only."""
        return ()


class ReserveRule(Rule):
    """Sets something aside on the chosen row: volumes, devices."""

    #: The annotation of the pod in which the scheduler keeps what was reserved; empty for none.
    annotation: str = ""
    #: Whether the scheduler must do anything before it binds the pod.
    has_pre_bind: bool = False

    def reserve(self, pod: Incoming, at: OneRow) -> object | None:
        """What the pod takes on this row besides its requests; None for nothing.

        Called once the node is chosen; changes nothing. The answer is kept with the assumed pod,
        where later decisions see it (`view.pods.reservations`). Raising `AttemptError` fails the
        attempt.
        """
        raise NotImplementedError

    def restore(self, pod: Pod) -> object | None:  # noqa: ARG002
        """What was reserved for a pod that is on a node already, as far as the pod says so."""
        return None

    def pre_bind(self, pod: str, node: str, reserved: object) -> None:
        """Carry the reservation out before the pod (namespace/name) is bound.

        Called by the scheduler, never by the engine; it may take time. Raising fails the binding.
        """

    def unreserve(self, pod: str, node: str, reserved: object) -> None:
        """Take note that the reservation is over: the pod was not bound, or has left the node."""


class Permission(NamedTuple):
    """Whether a pod may be bound to its node."""

    allowed: bool
    reason: str = ""
    #: If not allowed: for how long the pod may wait to be; 0 rejects it at once.
    wait_seconds: float = 0.0


#: The pod may be bound.
ALLOWED = Permission(allowed=True)


class PermitRule(Rule):
    """May reject or delay a pod after its node was chosen and everything is reserved."""

    def permit(self, pod: Incoming, at: OneRow) -> Permission:
        """Whether the pod may be bound to this row now; a pod that waits is asked about again."""
        raise NotImplementedError


def scaled_to(highest: int, at: ManyRows, raw: np.ndarray, *, reverse: bool = False) -> np.ndarray:
    """Scores scaled so that the largest becomes `highest`; `reverse` turns them upside down."""
    largest = at.highest(raw)
    if largest == 0:
        return np.full(len(raw), highest) if reverse else raw
    scaled: np.ndarray = at.divide(raw * highest, largest)
    return highest - scaled if reverse else scaled


def all_rows(at: ManyRows, *, constant: bool = False) -> BatchTrials:
    """Trials may be evaluated together on every row."""
    return BatchTrials(np.ones(len(at), np.bool_), constant)


def no_rows(at: ManyRows) -> BatchTrials:
    """Trials are evaluated row by row."""
    return BatchTrials(np.zeros(len(at), np.bool_), constant=False)


def negated(flags: Flags[K]) -> Flags[K]:
    """The opposite on every row."""
    return flags ^ True
