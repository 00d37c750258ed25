"""The contract of a rule: what a predicate, a priority or a plugin is to the engine.

A rule is pure: it reads the pod and some rows of the view, and answers. `FilterRule` says which
rows a pod must not run on, `ScoreRule` how good rows are, `ReserveRule` what is set aside on the
chosen row; one class may be several of them. The base classes hold the defaults, so that a rule
states only what differs from them:

- once per pod class, what its answers depend on (`scope`): the cache follows from that;
- once per decision, whether it has anything to say now (`activity`, `everywhere`).

These fourteen members are the contract: `name`, `kinds`, `scope`, `answer_key`; `pre_filter`,
`activity`, `filter`; `pre_score`, `everywhere`, `score`, `normalize`; `reserve`, `restore`;
`permit`. `always` and `normalizes` are constant forms of `scope` and `normalize`. What makes a rule
faster is in `shortcuts`, what explains its answers in `explanation`: no decision depends on either.

Laws that the engine relies on, and that tests hold every rule to:

- An answer depends on nothing beyond the scope. Two pods of one class get the same answer.
- A filter reports errors through `at.fail` or `at.fail_where`, and only with scope `CLUSTER` or
  `OBJECTS`: answers of smaller scopes are kept, and an error is never kept.
- A score that cannot be computed raises `AttemptError`; this needs scope `CLUSTER` or `OBJECTS`.
- `filter` and `score` hold for every form of rows alike (see `engine.rows.rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from podium.engine.framework.dependencies import Scope, Watched
from podium.engine.framework.explanation import ExplainedFilter, ExplainedScore, Memo
from podium.engine.framework.shortcuts import (
    BatchTrials,
    FilterShortcuts,
    RuleShortcuts,
    ScoreShortcuts,
    all_rows,
    no_rows,
)
from podium.engine.rows.rows import K
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from podium.engine.rows.rows import Flags, Ints, ManyRows, OneRow, Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.reservation import Reservation
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View
    from podium.objects.kinds.pod import Pod

__all__ = [
    "ALLOWED",
    "ALL_KINDS",
    "SKIPPED",
    "Activity",
    "AttemptError",
    "BatchTrials",
    "BitFilter",
    "Everywhere",
    "FilterRule",
    "Gate",
    "Memo",
    "OnlyNodes",
    "Permission",
    "PermitRule",
    "Positioned",
    "Refused",
    "ReserveRule",
    "Rule",
    "Scope",
    "ScoreRule",
    "Watched",
    "all_rows",
    "negated",
    "no_rows",
    "scope_with",
]


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


class Rule(RuleShortcuts):
    """What all rules have in common."""

    #: The name by which users configure it.
    name: str
    #: Kinds of objects that it looks up in the catalogue; the scheduler watches these.
    kinds: tuple[str, ...] = ()
    #: The scope, where it is the same for all classes.
    always: Scope = Scope.NODE

    def scope(self, cls: PodClass, /) -> Scope:  # noqa: ARG002 - the same for every class
        """What the answers for pods of this class depend on; `NONE` where it does not concern them.

        This may differ by the form of the class only (`PodForm`).
        """
        return self.always

    def answer_key(self, pod: Incoming, view: View) -> Hashable:  # noqa: ARG002
        """While this and the nodes stay the same, so do the answers; None when it cannot tell.

        Where the scope is that of a row: what answers depend on besides the row; None: nothing.
        """
        return None


def scope_with(field: str, scope: Scope) -> Callable[[Rule, PodClass], Scope]:
    """The `scope` of a rule that concerns the classes with this field of `PodClass` alone."""

    def scope_of(_rule: Rule, cls: PodClass) -> Scope:
        return scope if getattr(cls, field) else Scope.NONE

    return scope_of


class FilterRule(Rule, FilterShortcuts, ExplainedFilter):
    """Says which rows a pod must not run on: a predicate, or a filter plugin."""

    def pre_filter(self, pod: Incoming, view: View) -> Refused | OnlyNodes | None:  # noqa: ARG002
        """Look at the pod once, before any node: refuse it, or name the only nodes."""
        return None

    def activity(self, pod: Incoming, view: View) -> Activity:  # noqa: ARG002
        """Whether it has anything to say about the pod, as the cluster is now."""
        scope = self.scope(pod.cls)
        if scope is Scope.NONE:
            return Activity.SKIPPED
        return Activity.OWN_ROW if scope.of_row else Activity.ACTIVE

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A verdict code per row, 0 where the pod fits. Errors are reported through `at.fail`."""
        raise NotImplementedError


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


class ScoreRule(Rule, ScoreShortcuts, ExplainedScore):
    """Says how good rows are: a priority, or a score plugin."""

    #: Whether final scores depend on all feasible rows together.
    normalizes: bool = False

    def pre_score(self, pod: Incoming, view: View) -> str:  # noqa: ARG002
        """Why pods of the form of this one cannot be scored at all; empty if they can."""
        return ""

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:  # noqa: ARG002
        """The final score if every row gets the same; None if rows must be scored."""
        return None

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """A raw score per row."""
        raise NotImplementedError

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """The final scores of all feasible rows together."""
        return raw


class ReserveRule(Rule):
    """Sets something aside on the chosen row: volumes, devices."""

    def reserve(self, pod: Incoming, at: OneRow) -> Reservation | None:
        """What the pod takes on this row besides its requests; None for nothing.

        Called once the node is chosen; changes nothing. The answer is kept with the assumed pod,
        where later decisions see it (`view.pods.reservations`). Raising `AttemptError` fails the
        attempt.
        """
        raise NotImplementedError

    def restore(self, pod: Pod) -> Reservation | None:  # noqa: ARG002
        """What was reserved for a pod that is on a node already, as far as the pod says so."""
        return None


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


def negated(flags: Flags[K]) -> Flags[K]:
    """The opposite on every row."""
    return flags ^ True


class Gate(Protocol):
    """Something that keeps a pod from being tried."""

    def hold(self, pod: Incoming, view: View) -> Refused | None:
        """Why the pod must wait, if it must."""
