"""The JSON of the extender protocol: requests and replies, written and read.

kube-scheduler writes requests with the names of its Go fields (`Pod`, `NodeNames`), sends unused
fields as null, and ignores the case of keys in replies. Older schedulers and extenders in other
languages write the lower-case names of the v1 package. Both forms are read; a reply is written in
the form of its request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from podium.engine.framework.extenders import AcceptedVictims, Filtered, Scored
from podium.objects.kinds.meta import Object
from podium.objects.kinds.quantities import quantities_of
from podium.objects.quantity import QuantityError, nano

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.engine.framework.extenders import Extender
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

#: msgspec's message about text after the first JSON value, which kube-scheduler ignores.
_TRAILING = re.compile(r"JSON is malformed: trailing characters \(byte (\d+)\)")
_FORMAT = re.compile(r"%([-+# 0]*)(\*|\d+)?(\.(?:\*|\d*))?(.)?", re.DOTALL)
_INT64 = range(-(1 << 63), 1 << 63)
_Object = TypeVar("_Object", bound=Object)


class WireError(Exception):
    """A request or a reply that cannot be read."""


# Requests of a scheduler --------------------------------------------------------------------------


def nodes_request(
    pod: Pod, nodes: Iterable[Node | msgspec.Raw] | None, names: Iterable[str]
) -> bytes:
    """The request for `filter` and `prioritize`; without *nodes* only names are sent."""
    items = None if nodes is None else {"metadata": {}, "items": list(nodes)}
    return msgspec.json.encode(
        {"Pod": pod, "Nodes": items, "NodeNames": list(names) if nodes is None else None}
    )


def victims_request(
    pod: Pod,
    victims: Mapping[str, tuple[Iterable[Pod], int]] | None,
    uids: Mapping[str, tuple[Iterable[str], int]] | None,
) -> bytes:
    """The request for `preempt`: victims by node, as whole pods or as uids.

    With the victims of a node goes the number of disruption budgets that they violate.
    """
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
    """The request for `bind`."""
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
    """The reply to `filter`; None for an absent list of nodes or names."""

    nodes: tuple[str, ...] | None
    names: tuple[str, ...] | None
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)
    error: str = ""


def filter_reply(body: bytes) -> FilterReply:
    """Read the reply to `filter`."""
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
    """Read the reply to `prioritize`."""
    scores = []
    for each in _list(_value(body), "a list of host priorities"):
        entry = _mapping(each, "a host priority")
        score = entry.get("score") or 0
        if type(score) is not int or score not in _INT64:
            raise WireError(f"score is {score!r}, expected a whole number")
        scores.append((_text(entry.get("host"), "host"), score))
    return Scored(tuple(scores))


def victims_reply(body: bytes) -> AcceptedVictims:
    """Read the reply to `preempt`."""
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
    return AcceptedVictims(victims)


def bind_reply(body: bytes) -> str:
    """Read the reply to `bind`: its error, empty on success."""
    return _text(_mapping(_value(body), "a binding result").get("error"), "error")


def go_format(text: str) -> str:
    """The text as Go prints it when used as a format without arguments.

    Older schedulers do this with errors: `100% bad` becomes `100%!b(MISSING)ad`.
    """

    def missing(match: re.Match[str]) -> str:
        _, width, precision, verb = match.groups()
        bad = "%!(BADWIDTH)" if width == "*" else ""
        bad += "%!(BADPREC)" if precision == ".*" else ""
        if verb is None:
            return f"{bad}%!(NOVERB)"
        return f"{bad}%" if verb == "%" else f"{bad}%!{verb}(MISSING)"

    return _FORMAT.sub(missing, text)


def filtered(reply: FilterReply, extender: Extender) -> Filtered:
    """The answer to the engine's question; the v1.13 protocol has no unresolvable nodes."""
    names_count = extender.node_cache_capable and reply.names is not None
    left = reply.names if names_count else reply.nodes
    unresolvable = reply.unresolvable if extender.protocol.has_unresolvable_nodes else {}
    return Filtered(left or (), reply.failed, unresolvable)


# Requests to an extender --------------------------------------------------------------------------


@dataclass(slots=True)
class ExtenderRequest:
    """A request whose parts are not decoded yet; *lower* means that its keys are lower-case."""

    lower: bool
    parts: dict[str, msgspec.Raw]

    def part(self, *names: str) -> msgspec.Raw | None:
        """The first part with one of these names, in any case; None when absent or null."""
        for name in names:
            found = self.parts.get(name.lower())
            if found is not None and bytes(found).strip() != b"null":
                return found
        return None


def read_request(body: bytes) -> ExtenderRequest:
    """Read the keys of a request and leave its parts encoded."""
    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise WireError(f"the request is not readable: {error}") from None
    lower = not any(key[:1].isupper() for key in parts)
    return ExtenderRequest(lower, {key.lower(): value for key, value in parts.items()})


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Items(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


def nodes_by_name(raw: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """The encoded nodes of a NodeList by name."""
    items = _decoded(raw, _Items).items or []
    return {_decoded(item, _Named).metadata.name: item for item in items}


def decode_names(raw: msgspec.Raw) -> list[str]:
    """Decode the names of nodes in a request."""
    found: list[str] = _decoded(raw, list[str])
    return found


def decode_victims(raw: msgspec.Raw | None, *, whole: bool) -> dict[str, tuple[list[str], int]]:
    """The uids of victims by node, each with the number of violated disruption budgets.

    *whole* means that the request holds pods and not just their uids.
    """
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


def decode_part(raw: msgspec.Raw | None, kind: Any, what: str) -> Any:
    """Decode one part of a request; an absent part is an error that names it as *what*."""
    if raw is None:
        raise WireError(f"the request has no {what}")
    return _decoded(raw, kind)


def decode_object(raw: msgspec.Raw | None, kind: type[_Object], what: str) -> _Object:
    """Decode an object of a request, and refuse quantities that no rule can read."""
    found: _Object = decode_part(raw, kind, what)
    for path, quantity in quantities_of(found):
        try:
            nano(quantity)
        except QuantityError as error:
            raise WireError(f"the request is not readable: {what}: {path}: {error}") from None
    return found


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


def encode_reply(value: Any, *, lower: bool) -> bytes:
    """Encode a reply with keys in the form of its request."""
    return msgspec.json.encode(_lowered(value) if lower else value)


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(each) for each in value]
    if isinstance(value, dict):
        return {_LOWER.get(key, key): _lowered(each) for key, each in value.items()}
    return value


# Reading ------------------------------------------------------------------------------------------


def _value(body: bytes) -> Any:
    """The first JSON value of a body."""
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
    """A JSON object with lower-case keys; null is an empty one."""
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
    # Go's decoder ignores the case of keys in API objects, too.
    return _text(
        _mapping(_mapping(value, "a node").get("metadata"), "metadata").get("name"), "name"
    )
