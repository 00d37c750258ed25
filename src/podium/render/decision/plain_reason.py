"""Why a pod has no node, in one plain sentence: what it wants, and what the nodes have.

A sentence is made from the causes of all rejections. "No node" and "every node" are said of all
nodes of the cluster only; of fewer nodes their number is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework import causes
from podium.render.decision.analysis import rejection_groups
from podium.render.decision.causes import cause_text
from podium.render.plain import counted, format_amount

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision

#: How many obstacles a sentence names.
_MOST: Final = 3
_NATIVE: Final = {
    "cpu": "CPU",
    "memory": "of memory",
    "ephemeral-storage": "of ephemeral storage",
}


@dataclass(slots=True)
class _Obstacle:
    """Causes of one kind, and the nodes that they keep the pod from."""

    causes: list[Any] = field(default_factory=list)
    nodes: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Nodes:
    """How many nodes of the cluster a part of the sentence is about."""

    count: int
    total: int

    @property
    def all(self) -> bool:
        """Whether it is every node."""
        return self.count >= self.total

    def words(self, one: str, many: str) -> str:
        """The number of nodes with a verb: `3 of 5 nodes have`; `every node has`."""
        if self.all:
            return f"{'the only node' if self.total == 1 else 'every node'} {one}"
        return f"{self.count} of {counted(self.total, 'node')} {one if self.count == 1 else many}"


def plain_reason(decision: Decision) -> str:
    """What keeps the pod from all nodes; empty if it has a node or the attempt failed."""
    if decision.node is not None or decision.error:
        return ""
    if decision.held is not None:
        return f"waits: {decision.held.reason}"
    if decision.group_message and decision.feasible_count:
        return "fits, but too few pods of its group do"
    if decision.group_message and not decision.histogram and decision.refused is None:
        return "was not tried: too few pods of its group fit"
    if decision.refused is not None and not decision.causes:
        return f"is refused on every node: {decision.refused.reason}"
    parts = _parts(decision)
    named = [text for _, text in parts[:_MOST]]
    left = sum(count for count, _ in parts[_MOST:])
    if left:
        named.append(f"{counted(len(parts) - _MOST, 'other obstacle')} on {counted(left, 'node')}")
    return "; ".join(named)


def _parts(decision: Decision) -> list[tuple[int, str]]:
    """The obstacles in words, those of most nodes first, each with its number of nodes."""
    found: dict[Any, _Obstacle] = {}
    for each in decision.causes:
        obstacle = found.setdefault(_key(each.cause), _Obstacle())
        obstacle.causes.append(each.cause)
        obstacle.nodes.update(each.nodes)
    told = [
        (len(each.nodes), _words(each, _Nodes(len(each.nodes), decision.nodes)))
        for each in found.values()
    ]
    explained = {name for each in found.values() for name in each.nodes}
    for group in rejection_groups(decision):
        left = [name for name in group.nodes if name not in explained]
        count = len(left) if group.nodes else group.count
        if count:
            nodes = _Nodes(count, decision.nodes)
            told.append((count, f"{nodes.words('says', 'say')}: {', '.join(group.reasons)}"))
    return sorted(told, key=lambda part: (-part[0], not part[1].startswith("wants")))


def _key(cause: causes.AnyCause) -> Any:
    """Causes with one key make one part of the sentence."""
    told = _KEYS.get(type(cause))
    return cause_text(cause) if told is None else (_WORDS[type(cause)], told(cause))


def _selector_key(cause: causes.Expression | causes.NoTerms) -> str:
    """The terms of a node affinity make one part, each label of a nodeSelector one of its own."""
    return "" if "nodeSelectorTerms" in cause.where else getattr(cause, "key", "")


def _words(obstacle: _Obstacle, nodes: _Nodes) -> str:
    first = obstacle.causes[0]
    told = _WORDS.get(type(first))
    return told(obstacle, nodes) if told else _other(obstacle, nodes)


def amount_text(resource: str, amount: int) -> str:
    """An amount with the name of its resource: `8 GPUs (nvidia.com/gpu)`, `2 CPUs`."""
    value = format_amount(resource, amount)
    if resource == "cpu":
        return f"{value} of CPU" if value.endswith("m") else f"{value} CPU{'s' * (amount != 1000)}"
    if resource in _NATIVE:
        return f"{value} {_NATIVE[resource]}"
    if resource.rpartition("/")[2] == "gpu" and "/" in resource:
        return f"{value} GPU{'s' * (amount != 1)} ({resource})"
    return f"{value} {resource}"


def _room(obstacle: _Obstacle, nodes: _Nodes) -> str:
    rooms: list[causes.Room] = obstacle.causes
    resource, wanted = rooms[0].resource, rooms[0].wanted
    if resource == "pods":
        return f"{nodes.words('runs', 'run')} as many pods as allowed"
    most = max(each.allocatable for each in rooms)
    free = max(
        each.allocatable - each.used - sum(one.amount for one in each.nominated) for each in rooms
    )
    too_small = most < wanted
    amount = max(most if too_small else free, 0)
    end = "" if too_small else " free"
    wants = f"wants {amount_text(resource, wanted)}"
    value = format_amount(resource, amount)
    if nodes.all:
        whom = "the only node has" if nodes.total == 1 else "no node has"
        if nodes.total == 1:
            return f"{wants}; {whom} {value if amount else 'none'}{end}"
        return f"{wants}; {whom} {f'more than {value}' if amount else 'any'}{end}"
    whom = nodes.words("has", "have")
    limit = "" if nodes.count == 1 else "at most "
    return f"{wants}; {whom} {f'{limit}{value}' if amount else 'none'}{end}"


def _taint(obstacle: _Obstacle, nodes: _Nodes) -> str:
    taint: causes.UntoleratedTaint = obstacle.causes[0]
    value = f"={taint.value}" if taint.value else ""
    has = nodes.words("has", "have")
    return f"{has} the taint {taint.key}{value}:{taint.effect}, which it does not tolerate"


def _selector(obstacle: _Obstacle, nodes: _Nodes) -> str:
    """The label that is asked for; of several terms of which one would do, their number."""
    is_not = nodes.words("is not such a node", "are not such nodes")
    if nodes.all and nodes.total > 1:
        is_not = "no node is one"
    places = {cause.where for cause in obstacle.causes}
    if len(places) > 1 or not all(isinstance(each, causes.Expression) for each in obstacle.causes):
        terms = counted(len(places), "term")
        return f"wants a node that its node affinity ({terms}) matches; {is_not}"
    wanted = dict.fromkeys(_expression(each) for each in obstacle.causes)
    return f"wants a node with {' and '.join(wanted)}; {is_not}"


def _expression(cause: causes.Expression) -> str:
    values = ", ".join(cause.values)
    match cause.operator:
        case "In" | "Equals" | "=" if len(cause.values) == 1:
            return f"{cause.key}={values}"
        case "Exists":
            return f"the label {cause.key}"
        case "DoesNotExist":
            return f"no label {cause.key}"
        case "Gt" | "Lt":
            return f"{cause.key} {'above' if cause.operator == 'Gt' else 'below'} {values}"
        case "NotIn":
            return f"{cause.key} not in ({values})"
        case _:
            return f"{cause.key} in ({values})"


def _port(obstacle: _Obstacle, nodes: _Nodes) -> str:
    port: causes.PortInUse = obstacle.causes[0]
    where = "on every node" if nodes.all else f"on {nodes.count} of {counted(nodes.total, 'node')}"
    return f"wants host port {port.port}/{port.protocol}, which is taken {where}"


def _skew(obstacle: _Obstacle, nodes: _Nodes) -> str:
    skew: causes.Skew = obstacle.causes[0]
    wants = f"wants pods spread by {skew.topology_key} with a skew of at most {skew.max_skew}"
    return f"{wants}; {nodes.words('exceeds', 'exceed')} that"


def _apart(obstacle: _Obstacle, nodes: _Nodes) -> str:
    blocking: causes.BlockingPods = obstacle.causes[0]
    key = blocking.topology_key
    if blocking.carried:
        there = nodes.words("is", "are")
        return f"{there} in a {key} of pods whose anti-affinity keeps it away ({blocking.term})"
    there = nodes.words("is in one", "are in one")
    return f"must not share a {key} with pods of {blocking.term}; {there} that has them"


def _together(obstacle: _Obstacle, nodes: _Nodes) -> str:
    missing: causes.MissingPods = obstacle.causes[0]
    wants = f"must share a {missing.topology_key} with pods of {missing.term}"
    if not missing.matching:
        return f"{wants}; there are none"
    return f"{wants}; {nodes.words('is in one', 'are in one')} without them"


def _volume(obstacle: _Obstacle, nodes: _Nodes) -> str:
    claim = obstacle.causes[0].claim
    return f"its claim {claim} has a volume that {nodes.words('does', 'do')} not reach"


def _limit(obstacle: _Obstacle, nodes: _Nodes) -> str:
    limit: causes.VolumeLimit = obstacle.causes[0]
    return f"{nodes.words('attaches', 'attach')} no further volume of {limit.limit_of}"


def _devices(obstacle: _Obstacle, nodes: _Nodes) -> str:
    lacking: list[causes.DevicesLacking] = obstacle.causes
    first = lacking[0]
    if first.wanted is None:
        return f"wants all devices of {first.request}; {nodes.words('lacks', 'lack')} some"
    wants = f"wants {counted(first.wanted, 'device')} (claim {first.claim})"
    most = max(each.found for each in lacking)
    if nodes.all and nodes.total > 1:
        return f"{wants}; no node has {f'more than {most}' if most else 'any'} that suit"
    return f"{wants}; {nodes.words('has', 'have')} {most or 'none'} that suit"


def _other(obstacle: _Obstacle, nodes: _Nodes) -> str:
    text = cause_text(obstacle.causes[0])
    if nodes.all:
        return text if nodes.total == 1 else f"{text}, on every node"
    return f"{text}, on {nodes.count} of {counted(nodes.total, 'node')}"


_WORDS: Final[dict[type[causes.Cause], Callable[[_Obstacle, _Nodes], str]]] = {
    causes.Room: _room,
    causes.UntoleratedTaint: _taint,
    causes.Expression: _selector,
    causes.NoTerms: _selector,
    causes.Cordoned: lambda _, nodes: nodes.words("is cordoned", "are cordoned"),
    causes.Condition: lambda obstacle, nodes: (
        f"{nodes.words('has', 'have')} the condition "
        f"{obstacle.causes[0].type}={obstacle.causes[0].status}"
    ),
    causes.OtherNode: lambda obstacle, _: f"names the node {obstacle.causes[0].wanted}",
    causes.PortInUse: _port,
    causes.Skew: _skew,
    causes.BlockingPods: _apart,
    causes.MissingPods: _together,
    causes.VolumeElsewhere: _volume,
    causes.VolumeUnreachable: _volume,
    causes.VolumeLimit: _limit,
    causes.DevicesLacking: _devices,
}
#: What tells two causes of one kind apart in a sentence.
_KEYS: Final[dict[type[causes.Cause], Callable[[Any], Any]]] = {
    causes.Room: lambda cause: cause.resource,
    causes.UntoleratedTaint: lambda cause: (cause.key, cause.value, cause.effect),
    causes.Expression: _selector_key,
    causes.NoTerms: _selector_key,
    causes.PortInUse: lambda cause: (cause.protocol, cause.port),
    causes.Skew: lambda cause: (cause.topology_key, cause.selector),
    causes.BlockingPods: lambda cause: (cause.term, cause.topology_key, cause.carried),
    causes.MissingPods: lambda cause: (cause.term, cause.topology_key),
    causes.VolumeElsewhere: lambda cause: cause.claim,
    causes.VolumeUnreachable: lambda cause: cause.claim,
    causes.VolumeLimit: lambda cause: cause.limit_of,
    causes.DevicesLacking: lambda cause: (cause.claim, cause.request),
}
