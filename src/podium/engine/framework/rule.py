"""What a predicate and a priority are.

A rule is pure: it reads the pod and some rows of the view and answers. It holds for many rows at
once and for one row alike (see `rows`), and says through its scope what its answer depends on;
the cycle decides from that what must be computed again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View


class Scope(IntEnum):
    """What the answer of a rule for one row depends on, besides the pod's class."""

    #: Nothing: it rejects no row, or scores every row the same.
    NONE = 0
    #: The node alone: labels, taints, conditions, images.
    NODE = 1
    #: The node and the pods on it: resources, ports, disks.
    PODS = 2
    #: Anything in the cluster: pods on other nodes, services, volumes, the pod itself.
    CLUSTER = 3


class Reach(IntEnum):
    """How far away pods are that a cluster-wide predicate looks at, as things are now."""

    #: It has nothing to say, and no pod without terms of its own can change that.
    NOWHERE = 0
    #: On the very same row.
    ROW = 1
    ANYWHERE = 2


class Predicate(Protocol):
    """Says which rows a pod must not run on."""

    @property
    def name(self) -> str:
        """The name users configure it by."""

    def scope(self, cls: PodClass) -> Scope:
        """What the answer for pods of this class depends on."""

    def reject(self, pod: Incoming, at: Rows) -> Ints:
        """A verdict code per row, 0 where the pod fits. Errors go to `at.errors`."""


class AttemptError(Exception):
    """The attempt fails: an error of the real program, not a misfit.

    The arguments are the texts of all errors; several are shown as a list.
    """

    def __str__(self) -> str:
        return self.args[0] if len(self.args) == 1 else f"[{', '.join(sorted(self.args))}]"


@runtime_checkable
class Priority(Protocol):
    """Says how much better some rows are than others."""

    #: Whether the final scores depend on all feasible rows together.
    reduces: bool

    @property
    def name(self) -> str:
        """The name users configure it by."""

    def scope(self, cls: PodClass) -> Scope:
        """What the raw score for pods of this class depends on."""

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """The final score when it is the same for every row whatever the rows, else None."""

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """A raw score per row."""

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:
        """The final scores, seen together; `raw` itself when there is no such step."""
