"""One decision step by step, as values: what was prepared, asked, scored, taken off and put back.

A trace is found after the decision (`engine.cycle.trace`), for explanations only. The fields in
JSON are those of these classes in camel case.
"""

from __future__ import annotations

import msgspec


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a trace."""


class Prepared(_Part, frozen=True, omit_defaults=True):
    """Something that a rule finds out about the pod once, for all nodes.

    A value in words, or an amount of a resource.
    """

    rule: str
    name: str
    value: str = ""
    resource: str = ""
    amount: int = 0


class FilterStep(_Part, frozen=True):
    """What one filter rule did to the nodes that were asked about."""

    rule: str
    #: Whether it had anything to check for this pod, and how many nodes it was asked about.
    checks: bool
    asked: int
    #: How many nodes it rejected, and how many no rule had rejected after it.
    rejected: int
    left: int
    #: The reasons, and on how many nodes each was given.
    reasons: tuple[tuple[str, int], ...] = ()
    #: The nodes that it rejected, in node order.
    nodes: tuple[str, ...] = ()


class FilterAnswer(_Part, frozen=True):
    """What one filter rule said about one node."""

    rule: str
    #: Whether the node passes; None if the rule was not asked.
    fits: bool | None
    reasons: tuple[str, ...] = ()


class NominatedPod(_Part, frozen=True):
    """A pod that is nominated to a node, and its priority."""

    pod: str
    priority: int


class NodePasses(_Part, frozen=True):
    """A node that is asked about twice: with the pods nominated to it, then without."""

    node: str
    nominated: tuple[NominatedPod, ...]
    first: tuple[FilterAnswer, ...]
    #: Empty where the node failed the first pass.
    second: tuple[FilterAnswer, ...] = ()
    #: Whether the nominated pods count for the pod's own affinity terms in the first pass.
    own_affinity: bool = True


class Working(_Part, frozen=True):
    """How a rule came to its score of one node: the arithmetic of Map and of Reduce as texts."""

    node: str
    map: str
    raw: int
    reduce: str
    score: int


class ScoreStep(_Part, frozen=True):
    """What one score rule gave to the nodes that fit."""

    rule: str
    weight: int
    formula: str
    #: Whether it gave all nodes the same score without a look at them.
    uniform: bool
    #: Whether it has a Reduce.
    reduces: bool
    nodes: tuple[Working, ...]


class NodeSum(_Part, frozen=True):
    """The total of one node: scores times weights, and the points of extenders."""

    node: str
    text: str
    total: int


class Selection(_Part, frozen=True):
    """How one of the nodes with the best total was taken."""

    total: int | None
    #: The nodes with the best total: how many, and their names in node order.
    tied: int
    nodes: tuple[str, ...]
    ties: str
    cursor: int
    chosen: str


class TriedPod(_Part, frozen=True):
    """A pod of lower priority that was put back onto a node, and whether it may stay."""

    pod: str
    priority: int
    stays: bool
    reasons: tuple[str, ...] = ()
    budgets: tuple[str, ...] = ()


class EvictionWalk(_Part, frozen=True):
    """The search for victims on one node: all are taken off, then put back one by one."""

    node: str
    taken_off: tuple[str, ...]
    #: Empty if the pod fits without them; otherwise why not even then.
    still: tuple[str, ...]
    put_back: tuple[TriedPod, ...]


class CriterionStep(_Part, frozen=True):
    """A criterion of preemption: the cost of the candidates before it, and those that are left."""

    name: str
    costs: tuple[tuple[str, float], ...]
    left: tuple[str, ...]


class DecisionTrace(_Part, frozen=True):
    """A decision step by step."""

    prepared: tuple[Prepared, ...] = ()
    filters: tuple[FilterStep, ...] = ()
    #: How many nodes were asked about.
    asked: int = 0
    #: Whether later rules are asked about a node that was rejected.
    asks_all: bool = False
    passes: tuple[NodePasses, ...] = ()
    #: What each rule said about the node in question, where one is.
    node: str = ""
    answers: tuple[FilterAnswer, ...] = ()
    scores: tuple[ScoreStep, ...] = ()
    sums: tuple[NodeSum, ...] = ()
    selection: Selection | None = None
    evictions: tuple[EvictionWalk, ...] = ()
    criteria: tuple[CriterionStep, ...] = ()
