"""Priorities on the node alone: affinity, taints, labels, images, nodes that avoid pods."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.rule import AttemptError
from podium.engine.rows.node_match import selects
from podium.engine.rules.priorities import MAX_SCORE, NodePriority, normalized
from podium.objects.selectors.selectors import Selector, SelectorError, from_node_requirements
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import FactColumn, ImageState, View
    from podium.objects.kinds.node import Taint

MEBIBYTE = 1024 * 1024
MIN_IMAGE_BYTES = 23 * MEBIBYTE
MAX_IMAGE_BYTES = 1000 * MEBIBYTE


class EqualPriority(NodePriority):
    """All nodes are as good."""

    name = "EqualPriority"

    def uniform(self, pod: Incoming, view: View) -> int | None:  # noqa: ARG002
        """Always 1."""
        return 1

    def score(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """Always 1."""
        return at.full(1)


class NodeLabelPriority(NodePriority):
    """Prefers nodes that have a label key, or that lack it."""

    def __init__(self, label: str, *, presence: bool, name: str) -> None:
        self.label = label
        self.presence = presence
        self.name = name

    def score(self, pod: Incoming, at: Rows) -> Ints:  # noqa: ARG002
        """All or nothing."""
        return (at.has_label(self.label) == self.presence) * MAX_SCORE


class NodeAffinityPriority(NodePriority):
    """The weights of the preferences a node meets; only matchExpressions are looked at."""

    name = "NodeAffinityPriority"
    reduces = True

    def uniform(self, pod: Incoming, view: View) -> int | None:  # noqa: ARG002
        """No preferences, no difference."""
        return None if _preferences(pod.cls) else 0

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """An invalid preference fails the attempt, once per node."""
        total = at.full(0)
        for weight, selector in _preferences(pod.cls):
            if isinstance(selector, str):
                raise AttemptError(*[selector] * len(at))
            total = total + selects(at, selector) * weight
        return total

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:  # noqa: ARG002
        """Scaled to the best."""
        return normalized(at, raw)


Preferences = tuple[tuple[int, Selector | str], ...]


def _preferences(cls: PodClass) -> Preferences:
    """Weight and selector of each preference; an error text where there is no selector."""
    return cls.once("preferred node", lambda: _compile(cls))


def _compile(cls: PodClass) -> Preferences:
    affinity = cls.spec.affinity and cls.spec.affinity.node_affinity
    compiled: list[tuple[int, Selector | str]] = []
    for term in (affinity.preferred if affinity else None) or ():
        if term.weight == 0:
            continue
        try:
            compiled.append(
                (term.weight, from_node_requirements(term.preference.match_expressions))
            )
        except SelectorError as error:
            compiled.append((term.weight, str(error)))
    return tuple(compiled)


def same_everywhere(
    cls: PodClass, column: FactColumn, answer: Callable[[Any], int], key: str
) -> bool:
    """Whether every distinct value of a fact gets the answer 0; asked once per value."""
    seen, same = cls.memo.get(key, (0, True))
    if seen < len(column.values):
        same = same and not any(map(answer, column.values[seen:]))
        cls.memo[key] = (len(column.values), same)
    return bool(same)


class TaintTolerationPriority(NodePriority):
    """Prefers nodes with few taints of the preferring kind that the pod does not tolerate."""

    name = "TaintTolerationPriority"
    reduces = True

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """No such taint anywhere."""
        column = view.facts.taints
        same = same_everywhere(pod.cls, column, lambda t: intolerable(pod.cls, t), "soft taints")
        return MAX_SCORE if same else None

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """How many there are."""
        return at.fact(at.view.facts.taints, lambda taints: intolerable(pod.cls, taints))

    def reduce(self, pod: Incoming, at: Rows, raw: Ints) -> Ints:  # noqa: ARG002
        """The fewer the better."""
        return normalized(at, raw, reverse=True)


def intolerable(cls: PodClass, taints: tuple[Taint, ...]) -> int:
    """How many soft taints the pod does not tolerate."""
    kept = [t for t in cls.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    return sum(t.effect == "PreferNoSchedule" and not tolerated(kept, t) for t in taints)


class _Controller(msgspec.Struct):
    kind: str = ""
    uid: str = ""
    name: str = ""
    apiversion: str = ""


class _Signature(msgspec.Struct):
    podcontroller: _Controller | None = None


class _Avoided(msgspec.Struct):
    podsignature: _Signature = msgspec.field(default_factory=_Signature)
    reason: str = ""
    message: str = ""


class _Avoiding(msgspec.Struct):
    preferavoidpods: list[_Avoided] | None = None


class NodePreferAvoidPodsPriority(NodePriority):
    """Nodes that ask, by an annotation, to be spared the pods of a controller get 0."""

    name = "NodePreferAvoidPodsPriority"

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """Only pods of replication controllers and replica sets can be meant."""
        owner = pod.cls.owner
        if owner is None or owner.kind not in {"ReplicationController", "ReplicaSet"}:
            return MAX_SCORE
        column = view.facts.avoid
        same = same_everywhere(pod.cls, column, lambda a: int(_avoids(pod.cls, a)), self.name)
        return MAX_SCORE if same else None

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """All or nothing."""
        if self.uniform(pod, at.view) is not None:
            return at.full(MAX_SCORE)
        return at.fact(at.view.facts.avoid, lambda a: 0 if _avoids(pod.cls, a) else MAX_SCORE)


def _avoids(cls: PodClass, annotation: str) -> bool:
    """Whether the node names the pod's controller. An unreadable annotation avoids nobody."""
    if not annotation or cls.owner is None:
        return False
    try:
        avoided = msgspec.convert(_folded(msgspec.json.decode(annotation)), _Avoiding)
    except (msgspec.MsgspecError, RecursionError):
        return False
    controllers = [entry.podsignature.podcontroller for entry in avoided.preferavoidpods or ()]
    wanted = (cls.owner.kind, cls.owner.uid)
    return any(c is not None and (c.kind, c.uid) == wanted for c in controllers)


def _folded(value: Any) -> Any:
    """The same with all keys in lower case: the annotation is read without regard to it."""
    if isinstance(value, dict):
        return {key.lower(): _folded(each) for key, each in value.items() if each is not None}
    return [_folded(each) for each in value] if isinstance(value, list) else value


class ImageLocalityPriority(NodePriority):
    """Prefers nodes that hold the pod's images; the wider spread an image, the more it counts."""

    name = "ImageLocalityPriority"

    def uniform(self, pod: Incoming, view: View) -> int | None:
        """Nobody has any of the images."""
        return None if any(name in view.images for name in _images(pod.cls)) else 0

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """Bytes present, weighted by their spread, on a scale from 23 MiB to 1000 MiB."""
        total = len(at.view.row_of)
        present = at.full(0)
        for name in _images(pod.cls):
            present = present + at.image(name, partial(_spread_bytes, at, total))
        present = at.where(present < MIN_IMAGE_BYTES, MIN_IMAGE_BYTES, present)
        present = at.where(present > MAX_IMAGE_BYTES, MAX_IMAGE_BYTES, present)
        span = MAX_IMAGE_BYTES - MIN_IMAGE_BYTES
        return at.divide(MAX_SCORE * (present - MIN_IMAGE_BYTES), span)


def _spread_bytes(at: Rows, total: int, state: ImageState) -> Ints:
    return at.truncate(state.size * (state.nodes / total))


def _images(cls: PodClass) -> tuple[str, ...]:
    """The images of the regular containers, each with a tag."""
    return cls.once("images", lambda: tuple(tagged(c.image) for c in cls.spec.containers or ()))


def tagged(image: str) -> str:
    """The name with `:latest` where it has neither tag nor digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
