"""The extender protocol on the wire.

kube-scheduler writes requests with the names of its Go fields (`Pod`, `NodeNames`), sends what is
not used as null, and reads replies without regard to the case of keys. Older programs and those in
other languages write the lower-case names of the v1 package. Both are read here; what is written
is in the form that the other side uses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.extenders import Filtered, Kept, Scored

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

#: The first JSON value of a text; what follows it is not looked at.
_TRAILING = re.compile(r"JSON is malformed: trailing characters \(byte (\d+)\)")
_FORMAT = re.compile(r"%([-+# 0]*)(\*|\d+)?(\.(?:\*|\d*))?(.)?", re.DOTALL)
_INT64 = range(-(1 << 63), 1 << 63)


class WireError(Exception):
    """A message that cannot be read; the sentence says why."""


# Requests of a scheduler --------------------------------------------------------------------------


def nodes_request(
    pod: Pod, nodes: Iterable[Node | msgspec.Raw] | None, names: Iterable[str]
) -> bytes:
    """`filter` and `prioritize`: whole nodes, or None for names only."""
    items = None if nodes is None else {"metadata": {}, "items": list(nodes)}
    return msgspec.json.encode(
        {"Pod": pod, "Nodes": items, "NodeNames": list(names) if nodes is None else None}
    )


def victims_request(
    pod: Pod,
    victims: Mapping[str, tuple[Iterable[Pod], int]] | None,
    uids: Mapping[str, tuple[Iterable[str], int]] | None,
) -> bytes:
    """`preempt`: node -> whole pods, or uids, and the budgets that are violated."""
    whole = {
        node: {"Pods": list(pods), "NumPDBViolations": violations}
        for node, (pods, violations) in (victims or {}).items()
    }
    meta = {
        node: {"Pods": [{"UID": uid} for uid in pods], "NumPDBViolations": violations}
        for node, (pods, violations) in (uids or {}).items()
    }
    return msgspec.json.encode(
        {"Pod": pod, "NodeNameToVictims": whole or None, "NodeNameToMetaVictims": meta or None}
    )


def bind_request(pod: Pod, node: str) -> bytes:
    """`bind`."""
    return msgspec.json.encode(
        {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.metadata.uid,
            "Node": node,
        }
    )


# Replies of an extender ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FilterReply:
    """What an extender said about nodes; None where it said nothing."""

    nodes: tuple[str, ...] | None
    names: tuple[str, ...] | None
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    error: str = ""


def filter_reply(body: bytes) -> FilterReply:
    """The reply to `filter`."""
    found = _mapping(_value(body), "a filter result")
    nodes = found.get("nodes")
    items = None if nodes is None else _mapping(nodes, "nodes").get("items")
    return FilterReply(
        None if nodes is None else tuple(map(_node_name, _list(items, "nodes.items"))),
        _names(found.get("nodenames")),
        _texts(found.get("failednodes"), "failedNodes"),
        _texts(found.get("failedandunresolvablenodes"), "failedAndUnresolvableNodes"),
        _text(found.get("error"), "error"),
    )


def scores_reply(body: bytes) -> Scored:
    """The reply to `prioritize`."""
    scores = []
    for each in _list(_value(body), "a list of host priorities"):
        entry = _mapping(each, "a host priority")
        score = entry.get("score") or 0
        if type(score) is not int or score not in _INT64:
            raise WireError(f"score is {score!r}, expected a whole number")
        scores.append((_text(entry.get("host"), "host"), score))
    return Scored(tuple(scores))


def victims_reply(body: bytes) -> Kept:
    """The reply to `preempt`."""
    found = _mapping(_value(body), "a preemption result")
    victims = {}
    given = found.get("nodenametometavictims")
    if given is not None and not isinstance(given, dict):
        raise WireError(f"nodeNameToMetaVictims is {_kind(given)}, expected a mapping")
    for node, each in (given or {}).items():
        entry = _mapping(each, f"victims of {node}")
        pods = [_mapping(pod, "a victim") for pod in _list(entry.get("pods"), "pods")]
        violations = entry.get("numpdbviolations") or 0
        if type(violations) is not int:
            raise WireError(f"numPDBViolations is {violations!r}, expected a whole number")
        victims[node] = (tuple(_text(pod.get("uid"), "uid") for pod in pods), violations)
    return Kept(victims)


def bind_reply(body: bytes) -> str:
    """The reply to `bind`: an error, or nothing."""
    return _text(_mapping(_value(body), "a binding result").get("error"), "error")


def formatted(text: str) -> str:
    """A text that was used as a format without arguments: `100% bad` is `100%!b(MISSING)ad`."""

    def missing(match: re.Match[str]) -> str:
        _, width, precision, verb = match.groups()
        bad = "%!(BADWIDTH)" if width == "*" else ""
        bad += "%!(BADPREC)" if precision == ".*" else ""
        if verb is None:
            return f"{bad}%!(NOVERB)"
        return f"{bad}%" if verb == "%" else f"{bad}%!{verb}(MISSING)"

    return _FORMAT.sub(missing, text)


def filtered(reply: FilterReply, *, names_count: bool, current: bool) -> Filtered:
    """What the reply means for the decision."""
    left = reply.names if names_count and reply.names is not None else reply.nodes
    return Filtered(left or (), reply.failed, reply.unresolvable if current else {})


# Requests to an extender --------------------------------------------------------------------------


@dataclass(slots=True)
class Asked:
    """A request as an extender reads it; `lower` is the form of its keys."""

    lower: bool
    parts: dict[str, msgspec.Raw]

    def raw(self, *names: str) -> msgspec.Raw | None:
        """The part of this name, whatever the case; None when absent or null."""
        for name in names:
            found = self.parts.get(name.lower())
            if found is not None and bytes(found).strip() != b"null":
                return found
        return None


def asked(body: bytes) -> Asked:
    """The parts of a request, still unread."""
    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(f"the request is not readable: {error}") from None
    lower = not any(key[:1].isupper() for key in parts)
    return Asked(lower, {key.lower(): value for key, value in parts.items()})


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Items(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


def listed_nodes(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The nodes of a NodeList by name, each still unread."""
    items = _decoded(raw, _Items).items or []
    return {_decoded(item, _Named).metadata.name: item for item in items}


def decoded_names(raw: msgspec.Raw) -> list[str]:
    """A list of names."""
    found: list[str] = _decoded(raw, list[str])
    return found


def asked_victims(raw: msgspec.Raw | None, *, whole: bool) -> dict[str, tuple[list[str], int]]:
    """Node -> uids of its victims, and the budgets violated; *whole*: pods and not just uids."""
    found = {}
    for node, entry in _mapping_of(raw).items():
        given = _mapping(entry, f"victims of {node}")
        pods = [_mapping(pod, "a victim") for pod in _list(given.get("pods"), "pods")]
        if whole:
            pods = [_mapping(pod.get("metadata"), "metadata") for pod in pods]
        violations = given.get("numpdbviolations") or 0
        found[node] = ([_text(pod.get("uid"), "uid") for pod in pods], violations)
    return found


def _mapping_of(raw: msgspec.Raw | None) -> dict[str, Any]:
    found: dict[str, Any] = {} if raw is None else _decoded(raw, dict[str, Any])
    return found


def _decoded(raw: msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(f"the request is not readable: {error}") from None


def decoded(raw: msgspec.Raw | None, kind: Any, what: str) -> Any:
    """An object of a request."""
    if raw is None:
        raise WireError(f"the request has no {what}")
    return _decoded(raw, kind)


# Replies to a scheduler ---------------------------------------------------------------------------

_LOWER = {
    "Nodes": "nodes",
    "NodeNames": "nodenames",
    "FailedNodes": "failedNodes",
    "FailedAndUnresolvableNodes": "failedAndUnresolvableNodes",
    "Error": "error",
    "Host": "host",
    "Score": "score",
    "NodeNameToMetaVictims": "nodeNameToMetaVictims",
    "Pods": "pods",
    "UID": "uid",
    "NumPDBViolations": "numPDBViolations",
}


def written(value: Any, *, lower: bool) -> bytes:
    """A reply, its keys in the form of the request."""
    return msgspec.json.encode(_lowered(value) if lower else value)


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(each) for each in value]
    if isinstance(value, dict):
        return {_LOWER.get(key, key): _lowered(each) for key, each in value.items()}
    return value


# Reading ------------------------------------------------------------------------------------------


def _value(body: bytes) -> Any:
    """The first JSON value, keys of structures left as they are."""
    text = body.strip()
    if not text:
        raise WireError("EOF")
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        match = _TRAILING.fullmatch(str(error))
        if match is None:
            raise WireError(str(error)) from None
        return msgspec.json.decode(text[: int(match[1]) - 1])


def _kind(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "a mapping")


def _mapping(value: Any, what: str) -> dict[str, Any]:
    """A structure, with its keys in lower case; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WireError(f"{what}: expected a mapping, got {_kind(value)}")
    return {key.lower(): each for key, each in value.items()}


def _list(value: Any, what: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise WireError(f"{what}: expected a list, got {_kind(value)}")
    return value


def _text(value: Any, what: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise WireError(f"{what}: expected a string, got {_kind(value)}")
    return value


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    return tuple(_text(each, "nodeNames") for each in _list(value, "nodeNames"))


def _texts(value: Any, what: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WireError(f"{what}: expected a mapping, got {_kind(value)}")
    return {key: _text(each, what) for key, each in value.items()}


def _node_name(value: Any) -> str:
    # The standard decoder of Go, which ignores case in objects of the API too.
    return _text(
        _mapping(_mapping(value, "a node").get("metadata"), "metadata").get("name"), "name"
    )
