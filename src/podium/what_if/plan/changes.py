"""The changes that a plan can make to a cluster, and how a command line names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from podium.errors import InputError

#: More than any cluster has; a plan creates each of them.
MOST_REPLICAS: Final = 1_000_000
MOST_NODES: Final = 100_000
#: Effects of taints.
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Nodes by name, or by the value of a label."""

    name: str = ""
    label: str = ""
    value: str = ""

    def __str__(self) -> str:
        return self.name or f"{self.label}={self.value}"


@dataclass(frozen=True, slots=True)
class ObjectName:
    """An object by kind and name; without a namespace it is looked for in all of them."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        space = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind}/{space}{self.name}"


@dataclass(frozen=True, slots=True)
class _OfNodes:
    """A change of some nodes; its text is the verb and the nodes."""

    nodes: NodeSelection
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.nodes}"


@dataclass(frozen=True, slots=True)
class _OfObject:
    """A change of one object; its text is the verb and the object."""

    target: ObjectName
    verb: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.verb} {self.target}"


class Drain(_OfNodes):
    """Cordon nodes and evict their pods, as `kubectl drain` does."""

    verb = "drain"


class Lose(_OfNodes):
    """Delete nodes at once, with everything that runs on them."""

    verb = "lose"


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Add nodes like the one in a file, or like a node of the cluster."""

    count: int
    like: str

    def __str__(self) -> str:
        return f"add {self.count}:{self.like}"


@dataclass(frozen=True, slots=True)
class Cordon:
    """Mark nodes as unschedulable, or as schedulable again."""

    nodes: NodeSelection
    unschedulable: bool = True

    def __str__(self) -> str:
        return f"{'cordon' if self.unschedulable else 'uncordon'} {self.nodes}"


@dataclass(frozen=True, slots=True)
class SetTaint:
    """Add a taint to nodes, or remove it."""

    nodes: NodeSelection
    key: str
    value: str = ""
    effect: str = ""
    remove: bool = False

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        effect = f":{self.effect}" if self.effect else ""
        return f"taint {self.nodes}:{self.key}{value}{effect}{'-' if self.remove else ''}"


@dataclass(frozen=True, slots=True)
class Scale:
    """Set the number of replicas of a workload."""

    target: ObjectName
    replicas: int

    def __str__(self) -> str:
        return f"scale {self.target}={self.replicas}"


@dataclass(frozen=True, slots=True)
class Apply:
    """Create or change the objects of a file or folder, as `kubectl apply` does."""

    path: str

    def __str__(self) -> str:
        return f"apply {self.path}"


class Delete(_OfObject):
    """Delete an object and what it owns."""

    verb = "delete"


class Rollout(_OfObject):
    """Restart the pods of a workload, as `kubectl rollout restart` does."""

    verb = "rollout"


@dataclass(frozen=True, slots=True)
class SetRequests(_OfObject):
    """Set requests of the containers of a workload; its controller replaces the pods."""

    verb = "set requests of"
    #: Container -> resources with their amounts.
    requests: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclass(frozen=True, slots=True)
class ReplaceNodes:
    """Replace nodes by new ones of the same shape, so many at a time."""

    nodes: NodeSelection
    surge: int = 1

    def __str__(self) -> str:
        return f"replace {self.nodes}{f' --surge {self.surge}' if self.surge > 1 else ''}"


Change = (
    Drain
    | Lose
    | AddNodes
    | Cordon
    | SetTaint
    | Scale
    | Apply
    | Delete
    | Rollout
    | SetRequests
    | ReplaceNodes
)


def files_of(change: Change) -> tuple[str, ...]:
    """The files that a change may read."""
    if isinstance(change, Apply):
        return (change.path,)
    return (change.like,) if isinstance(change, AddNodes) else ()


def node_selection(text: str) -> NodeSelection:
    """The nodes that NODE or LABEL=VALUE names."""
    label, equals, value = text.partition("=")
    if not equals:
        if not text:
            raise InputError("names no node", hint="give the name of a node, or LABEL=VALUE")
        return NodeSelection(name=text)
    if not label:
        raise InputError("names no label", hint="LABEL=VALUE would be one")
    return NodeSelection(label=label, value=value)


def object_name(text: str, namespace: str = "") -> ObjectName:
    """The object that KIND/NAME or KIND/NAMESPACE/NAME names."""
    parts = text.split("/")
    if len(parts) not in {2, 3} or not all(parts):
        hint = "KIND/NAME would be one, such as deployment/web"
        raise InputError("names no object", hint=hint)
    return ObjectName(parts[0], parts[-1], parts[1] if len(parts) == 3 else namespace)


def _add_nodes(text: str) -> AddNodes:
    count, colon, like = text.partition(":")
    if not colon or not like or not count.isascii() or not count.isdigit() or int(count) < 1:
        hint = "COUNT:FILE or COUNT:NODE would be one, such as 3:worker-1"
        raise InputError("does not say which nodes to add", hint=hint)
    if int(count) > MOST_NODES:
        raise InputError("asks for too many nodes", hint=f"a plan adds at most {MOST_NODES:,}")
    return AddNodes(int(count), like)


def _scale(text: str, namespace: str) -> Scale:
    target, equals, count = text.rpartition("=")
    if not equals or not count.isascii() or not count.isdigit():
        hint = "KIND/NAME=N would be one, such as deployment/web=5"
        raise InputError("does not say how many replicas", hint=hint)
    if int(count) > MOST_REPLICAS:
        raise InputError("asks for too many replicas", hint=f"a plan has at most {MOST_REPLICAS:,}")
    return Scale(object_name(target, namespace), int(count))


def _taint(text: str) -> SetTaint:
    """NODE:KEY[=VALUE]:EFFECT, or NODE:KEY[=VALUE][:EFFECT]- to remove it."""
    nodes, colon, taint = text.partition(":")
    hint = "NODE:KEY=VALUE:EFFECT would be one; a - at the end removes the taint"
    if not colon or not taint:
        raise InputError("names no taint", hint=hint)
    remove = taint.endswith("-")
    body, _, effect = taint.removesuffix("-").rpartition(":")
    if not body:
        body, effect = effect, ""
    key, _, value = body.partition("=")
    if (effect and effect not in _EFFECTS) or (not effect and not remove) or not key:
        effects = ", ".join(_EFFECTS)
        raise InputError("has no effect of a taint", hint=f"{hint}; the effects are {effects}")
    return SetTaint(node_selection(nodes), key, value, effect, remove)


#: Flag -> the change that its text and the namespace of named objects ask for.
_PARSERS: Final[dict[str, Callable[[str, str], Change]]] = {
    "drain": lambda text, _: Drain(node_selection(text)),
    "lose": lambda text, _: Lose(node_selection(text)),
    "add": lambda text, _: _add_nodes(text),
    "cordon": lambda text, _: Cordon(node_selection(text)),
    "uncordon": lambda text, _: Cordon(node_selection(text), unschedulable=False),
    "taint": lambda text, _: _taint(text),
    "scale": _scale,
    "apply": lambda text, _: Apply(text),
    "delete": lambda text, namespace: Delete(object_name(text, namespace)),
    "rollout": lambda text, namespace: Rollout(object_name(text, namespace)),
    "replace": lambda text, _: ReplaceNodes(node_selection(text)),
}
CHANGE_FLAGS: Final = tuple(_PARSERS)


def parse_change(flag: str, text: str, *, namespace: str = "") -> Change:
    """The change that `--FLAG TEXT` asks for; *namespace* is that of named objects."""
    if flag not in _PARSERS:
        raise InputError(f"there is no change {flag!r}", hint=f"known: {', '.join(_PARSERS)}")
    try:
        return _PARSERS[flag](text, namespace)
    except InputError as error:
        raise error.located(where=f"--{flag} {text}") from None
