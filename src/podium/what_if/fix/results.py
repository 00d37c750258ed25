"""What would make a pod fit: the result of `podium fix`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podium.library.decision_json import API_VERSION
from podium.library.frames import TabularAnswer


@dataclass(frozen=True, slots=True)
class Edit:
    """One change to one object, or the eviction of pods, or a new node."""

    #: What kind of edit it is: `request`, `toleration`, `label`, `uncordon`, `selector`,
    #: `node affinity`, `pod affinity`, `spread`, `port`, `gate`, `evict`, `add node`.
    action: str
    #: What it does, in words.
    sentence: str
    #: Kind and key of the objects that it changes.
    kind: str
    names: tuple[str, ...]
    #: The JSON patch (RFC 6902) of each of the objects; for a pod with an owner, of the pod itself.
    patch: tuple[dict[str, Any], ...]
    #: A command that carries it out; for a pod of a workload it changes the workload. Empty for a
    #: new node, which no command of kubectl adds.
    command: str
    cost: float
    #: The node that a new node is like.
    like: str = ""
    #: What else follows, one sentence each.
    effects: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The edit as plain data."""
        return {
            "action": self.action,
            "sentence": self.sentence,
            "object": {"kind": self.kind, "names": list(self.names)},
            "patch": list(self.patch),
            "command": self.command,
            "cost": self.cost,
            "effects": list(self.effects),
        }


@dataclass(frozen=True, slots=True)
class Fix:
    """One edit, or two that help together only, and the node that the pod gets then."""

    edits: tuple[Edit, ...]
    node: str

    @property
    def cost(self) -> float:
        """The sum of the costs of its edits."""
        return round(sum(edit.cost for edit in self.edits), 2)

    @property
    def sentence(self) -> str:
        """What to do, in one sentence."""
        text = ", and ".join(edit.sentence for edit in self.edits)
        return f"{text[:1].upper()}{text[1:]}."

    def as_json(self) -> dict[str, Any]:
        """The fix as plain data."""
        return {
            "sentence": self.sentence,
            "cost": self.cost,
            "node": self.node,
            "edits": [edit.as_json() for edit in self.edits],
        }


@dataclass(slots=True, repr=False)
class Fixes(TabularAnswer):
    """The changes that would give a pod a node: single edits first, each kind by its cost."""

    pod: str
    profile: str
    #: Why it has no node now.
    message: str
    #: The same in a plain sentence.
    plain: str = ""
    #: What a reader has to know beside the answer, one sentence each.
    notes: tuple[str, ...] = ()
    #: The node that it gets without any change.
    node: str | None = None
    #: The pods that the scheduler itself would evict for it, and from where.
    preempts: tuple[str, ...] = ()
    preempts_on: str = ""
    fixes: list[Fix] = field(default_factory=list)
    #: Whether everything was looked at; a large cluster or an interrupt ends the search early.
    complete: bool = True
    #: What was not tried, one sentence each.
    untried: tuple[str, ...] = ()
    #: What the pod needs of volumes and devices, one sentence each, where no edit helps.
    advice: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """How many fixes there are, and the first of them."""
        if self.node is not None:
            return f"<Fixes: {self.pod} fits on {self.node} now>"
        first = f": {self.fixes[0].sentence}" if self.fixes else ""
        return f"<Fixes: {len(self.fixes)} for {self.pod}{first}>"

    def __getitem__(self, node: str) -> list[Fix]:
        """The fixes by which the pod gets a node."""
        found = [each for each in self.fixes if each.node == node]
        if not found:
            raise KeyError(f"no fix leads to {node}")
        return found

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str | float | None, ...]]]:
        """The names of columns, and a row for each fix."""
        return ("sentence", "cost", "node"), [(f.sentence, f.cost, f.node) for f in self.fixes]

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Fixes",
            "pod": self.pod,
            "profile": self.profile,
            "node": self.node,
            "message": self.message,
            "plain": self.plain,
            "notes": list(self.notes),
            "preempts": {"node": self.preempts_on, "pods": list(self.preempts)}
            if self.preempts_on
            else None,
            "complete": self.complete,
            "untried": list(self.untried),
            "advice": list(self.advice),
            "fixes": [fix.as_json() for fix in self.fixes],
        }
