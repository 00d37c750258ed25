"""Traces of SimKube (msgpack, version 2): workloads as they were applied and deleted over time.

A trace has the objects that own pods, not the pods. Each owner stands for the pods that its
controller would make: more of them arrive when it is scaled up or created, the newest leave when it
is scaled down, all when it is deleted or when its template changes. Where the trace has the
lifecycles of pods, these say how long pods run; pods of a CronJob arrive when theirs begin. Nodes
are not part of this trace, and are given as a second file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from podium.errors import InputError
from podium.objects.completing.daemons import bound_to, tolerating, wanted_on
from podium.objects.kinds.pod import Pod
from podium_research.traces.trace import Trace, TraceNode, TracePod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.objects.kinds.meta import JsonObject

VERSION = 2


class _Metadata(msgspec.Struct):
    name: str
    namespace: str | None = None


class _Item(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: _Metadata
    spec: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    ts: int | float
    applied_objs: list[_Item] | None = None
    deleted_objs: list[_Item] | None = None


class _Tracked(msgspec.Struct, rename="camel"):
    pod_spec_template_path: str | None = None
    pod_spec_template_paths: list[str] | None = None


class _Config(msgspec.Struct, rename="camel"):
    tracked_objects: dict[str, _Tracked | None] | None = None


class _Document(msgspec.Struct):
    """The fields of a trace that are read; a trace with other types is refused."""

    events: list[_Event]
    config: _Config | None = None
    pod_lifecycles: (
        dict[tuple[str, str], dict[Any, list[str | dict[str, float | tuple[float, float]]]]] | None
    ) = None


_TEMPLATES = {
    "Pod": "",
    "CronJob": "/spec/jobTemplate/spec/template",
}
_DEFAULT_TEMPLATE = "/spec/template"


@dataclass(slots=True)
class _Made:
    """A pod that an owner stands for, from its arrival on."""

    pod: Pod
    arrives: float
    seconds: float | None
    leaves: float | None = None


@dataclass(slots=True)
class _Owner:
    """An object that owns pods, and the pods that are there now."""

    template: JsonObject = field(default_factory=dict)
    pods: list[_Made] = field(default_factory=list)
    #: How many pods it ever had.
    made: int = 0


def read_simkube(name: str, where: str, content: bytes, nodes: Iterable[TraceNode]) -> Trace:
    """The trace in a file of SimKube, on these nodes."""
    document = _document(where, content)
    reader = _Reader(where, document, tuple(nodes))
    for event in document["events"]:
        reader.follow(event)
    found = sorted(reader.everything, key=lambda made: made.arrives)
    pods = tuple(TracePod(m.pod, m.arrives, m.seconds, m.leaves) for m in found)
    return Trace(name, reader.nodes, pods, start=reader.start)


def _document(where: str, content: bytes) -> JsonObject:
    try:
        document = msgspec.msgpack.decode(content)
    except msgspec.DecodeError as error:
        what = f"is no trace of SimKube: {error}"
        raise InputError(what, where=where, hint="`skctl export` writes one") from None
    if not isinstance(document, dict) or not isinstance(document.get("events"), list):
        raise InputError("is no trace of SimKube: it has no events", where=where)
    if document.get("version") != VERSION:
        what = f"is of version {document.get('version')} of SimKube's traces"
        raise InputError(what, where=where, hint=f"version {VERSION} can be read")
    try:
        msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise InputError(f"is no trace of SimKube: {error}", where=where) from None
    return document


class _Reader:
    """Follows the events of a trace."""

    def __init__(self, where: str, document: JsonObject, nodes: tuple[TraceNode, ...]) -> None:
        self._where = where
        self.nodes = nodes
        events = document["events"]
        #: The time of the first event, in seconds since 1970.
        self.start = float(events[0]["ts"]) if events else 0.0
        self._tracked: JsonObject = (document.get("config") or {}).get("trackedObjects") or {}
        self._lifecycles: dict[Any, Any] = document.get("pod_lifecycles") or {}
        self._owners: dict[tuple[str, str], _Owner] = {}
        self.everything: list[_Made] = []

    def follow(self, event: JsonObject) -> None:
        """Take note of what was applied and deleted at some time."""
        time = float(event["ts"]) - self.start
        for item in event.get("applied_objs") or ():
            self._apply(time, item)
        for item in event.get("deleted_objs") or ():
            owner = self._owners.pop(_identity(item), _Owner())
            self._shrink(owner, 0, time)

    def _apply(self, time: float, item: JsonObject) -> None:
        owner = self._owners.setdefault(_identity(item), _Owner())
        template = self._template(item)
        if template is None:
            return
        if item["kind"] == "CronJob":
            self._add_lifecycles(owner, item, template)
            return
        if owner.template != template:
            self._shrink(owner, 0, time)
            owner.template = template
        if item["kind"] == "DaemonSet":
            if not owner.pods:
                self._add_daemons(owner, item, time)
            return
        wanted = self._replicas(item)
        self._shrink(owner, wanted, time)
        while len(owner.pods) < wanted:
            seconds = self._seconds(item, owner.made)
            self._add(owner, _Made(self._pod(owner, item, template), time, seconds))

    def _template(self, item: JsonObject) -> JsonObject | None:
        """The template of the pods, as the configuration of the tracer says where it is."""
        tracked = self._tracked.get(_gvk(item)) or {}
        paths = tracked.get("podSpecTemplatePaths") or [tracked.get("podSpecTemplatePath")]
        path = paths[0]
        if path is None:
            path = _TEMPLATES.get(item["kind"], _DEFAULT_TEMPLATE)
        found: Any = item
        for part in path.strip("/").split("/") if path else ():
            found = found.get(part) if isinstance(found, dict) else None
        return found if isinstance(found, dict) and "spec" in found else None

    def _add(self, owner: _Owner, made: _Made) -> None:
        owner.made += 1
        owner.pods.append(made)
        self.everything.append(made)

    def _shrink(self, owner: _Owner, wanted: int, time: float) -> None:
        """Let the newest pods leave."""
        while len(owner.pods) > wanted:
            owner.pods.pop().leaves = time

    def _add_lifecycles(self, owner: _Owner, item: JsonObject, template: JsonObject) -> None:
        """The pods of a CronJob, each from the beginning of its lifecycle."""
        for began, ended in self._known(item)[owner.made :]:
            seconds = None if ended is None else ended - began
            made = _Made(self._pod(owner, item, template), began - self.start, seconds)
            self._add(owner, made)

    def _add_daemons(self, owner: _Owner, item: JsonObject, time: float) -> None:
        for each in self.nodes:
            pod = self._pod(owner, item, owner.template)
            spec = tolerating(pod.spec)
            if wanted_on(spec, each.node):
                placed = msgspec.structs.replace(pod, spec=bound_to(spec, each.node))
                self._add(owner, _Made(placed, max(time, each.arrives), None))

    def _seconds(self, item: JsonObject, number: int) -> float | None:
        """How long the pod of this number ran; None where the trace does not say so."""
        known = self._known(item)
        if not known:
            return None
        began, ended = known[number % len(known)]
        return None if ended is None else ended - began

    def _known(self, item: JsonObject) -> list[tuple[float, float | None]]:
        """Beginning and end of the pods of an owner, as far as the trace has them."""
        about = item["metadata"]
        key = (_gvk(item), f"{about.get('namespace', '')}/{about['name']}")
        found: list[tuple[float, float | None]] = []
        for lifecycles in (self._lifecycles.get(key) or {}).values():
            for each in lifecycles:
                if isinstance(each, dict) and "Finished" in each:
                    found.append((float(each["Finished"][0]), float(each["Finished"][1])))
                elif isinstance(each, dict) and "Running" in each:
                    found.append((float(each["Running"]), None))
        return sorted(found, key=lambda pair: pair[0])

    def _replicas(self, item: JsonObject) -> int:
        """How many pods an owner wants at a time."""
        if item["kind"] == "Pod":
            return 1
        if item["kind"] != "Job":
            return self._count(item, "replicas")
        parallel = self._count(item, "parallelism")
        completions = (item.get("spec") or {}).get("completions")
        return parallel if completions is None else min(parallel, self._count(item, "completions"))

    def _count(self, item: JsonObject, name: str) -> int:
        """A number of the specification; 1 where there is none."""
        found = (item.get("spec") or {}).get(name)
        if found is None:
            return 1
        if not isinstance(found, int):
            about = item["metadata"]
            what = f"{item['kind']} {about.get('namespace') or 'default'}/{about['name']}"
            path = f"spec.{name}"
            raise InputError("is no whole number", where=self._where, object=what, path=path)
        return found

    def _pod(self, owner: _Owner, item: JsonObject, template: JsonObject) -> Pod:
        about, own = item["metadata"], template.get("metadata") or {}
        is_pod = item["kind"] == "Pod"
        name = about["name"] if is_pod and not owner.made else f"{about['name']}-{owner.made}"
        namespace = about.get("namespace") or "default"
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
            "labels": own.get("labels") or {},
        }
        spec = {key: value for key, value in template["spec"].items() if key != "nodeName"}
        try:
            return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)
        except msgspec.ValidationError as error:
            what = f"{item['kind']} {namespace}/{about['name']}"
            raise InputError(str(error), where=self._where, object=what) from None


def _gvk(item: JsonObject) -> str:
    return f"{item['apiVersion']}.{item['kind']}"


def _identity(item: JsonObject) -> tuple[str, str]:
    about = item["metadata"]
    return _gvk(item), f"{about.get('namespace', '')}/{about['name']}"
