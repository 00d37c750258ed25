"""The objects of one input, in the order in which they were read.

An object has neither its file nor the fields that scheduling does not read; the collection keeps
both, in little memory, for error messages and for writing pods back.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

import msgspec

from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import JsonObject, Object
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS, NODE, POD

T = TypeVar("T", bound=Object)

#: Metadata that a controller, or the generated name, decides.
_KNOWN_METADATA = ("name", "namespace", "labels", "ownerReferences")


@dataclass(slots=True, repr=False)
class Objects:
    """Everything read, one list per kind, each in the order of the input."""

    #: Kind -> its objects; a kind without objects may be absent.
    lists: dict[str, list[Any]] = field(default_factory=dict)
    #: What the snapshot that they were read from says about itself and about its profile.
    snapshot: JsonObject | None = None
    #: Kinds that were skipped, with how often.
    unknown_kinds: Counter[str] = field(default_factory=Counter)
    #: Sentences about fields that do not exist.
    misspelt: list[str] = field(default_factory=list)
    #: Files without a single object.
    empty_files: list[str] = field(default_factory=list)
    #: JSON of what was written, for objects that may be written back: pods without a node by
    #: `namespace/name`, workloads without a uid by `Kind namespace/name`.
    sources: dict[str, bytes] = field(default_factory=dict)
    #: Per kind, the indexes in its list where the objects of another file begin.
    files: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """How many objects of each kind there are."""
        counts = (f"{len(found)} {kind}" for kind, found in self.lists.items() if found)
        return f"<Objects: {', '.join(counts) or 'none'}>"

    @property
    def nodes(self) -> list[Node]:
        """The nodes, in the order of the input."""
        return self.of(NODE)

    @nodes.setter
    def nodes(self, nodes: list[Node]) -> None:
        self.lists[NODE.name] = nodes

    @property
    def pods(self) -> list[Pod]:
        """The pods, in the order of the input."""
        return self.of(POD)

    @pods.setter
    def pods(self, pods: list[Pod]) -> None:
        self.lists[POD.name] = pods

    @overload
    def of(self, kind: Kind[T]) -> list[T]: ...
    @overload
    def of(self, kind: str) -> list[Any]: ...
    def of(self, kind: Kind[Any] | str) -> list[Any]:
        """The objects of one kind."""
        return self.lists.setdefault(_name(kind), [])

    def add(self, kind: Kind[Any] | str, item: Object, where: str = "") -> None:
        """Append *item*, read from the file *where*."""
        items = self.of(_name(kind))
        runs = self.files.setdefault(_name(kind), [])
        if not runs or runs[-1][1] != where:
            runs.append((len(items), where))
        items.append(item)

    def copied(self) -> Objects:
        """A collection of the same objects that can be added to on its own."""
        return dataclasses.replace(
            self,
            lists={kind: list(items) for kind, items in self.lists.items()},
            unknown_kinds=self.unknown_kinds.copy(),
            misspelt=list(self.misspelt),
            empty_files=list(self.empty_files),
            sources=dict(self.sources),
            files={kind: list(runs) for kind, runs in self.files.items()},
        )

    def where(self, kind: Kind[Any] | str, index: int) -> str:
        """The file from which the object at *index* of its list was read; empty if none."""
        runs = self.files.get(_name(kind), [])
        place = bisect(runs, index, key=lambda run: run[0]) - 1
        return runs[place][1] if place >= 0 else ""

    def everything(self) -> Iterator[tuple[str, int, Object]]:
        """Kind, index in its list and object, kind by kind."""
        for kind in KINDS:
            for index, item in enumerate(self.of(kind)):
                yield kind, index, item

    def manifest(self, pod: Pod) -> JsonObject:
        """The whole pod as it was written, with the name that it has now.

        What a controller adds to its template (claims, tolerations, a node) is there as well, but
        no owner: the uid of one that never met an API server is made up, and a cluster would
        delete a pod whose owner does not exist.
        """
        typed: JsonObject = msgspec.to_builtins(pod)
        source = self.sources.get(pod.key)
        if source is None:
            return {"apiVersion": "v1", "kind": "Pod"} | typed
        written: JsonObject = msgspec.json.decode(source)
        metadata = typed["metadata"]
        known = {part: metadata[part] for part in _KNOWN_METADATA if part in metadata}
        written["metadata"] = (written.get("metadata") or {}) | known
        if "kind" not in written:  # a template
            written["spec"] = _instance(written.get("spec") or {}, typed["spec"])
            written["metadata"].pop("ownerReferences", None)
        return {"apiVersion": "v1", "kind": "Pod"} | written


def _instance(template: JsonObject, spec: JsonObject) -> JsonObject:
    """The template with what its controller put into it."""
    added: JsonObject = {}
    if "nodeAffinity" in spec.get("affinity", ()):
        node_affinity = spec["affinity"]["nodeAffinity"]
        added["affinity"] = (template.get("affinity") or {}) | {"nodeAffinity": node_affinity}
    tolerations = template.get("tolerations") or []
    if len(spec.get("tolerations", ())) > len(tolerations):
        added["tolerations"] = tolerations + spec["tolerations"][len(tolerations) :]
    if "volumes" in spec:
        written = {each.get("name"): each for each in template.get("volumes") or () if each}
        added["volumes"] = [
            each if "persistentVolumeClaim" in each else written.get(each.get("name"), each)
            for each in spec["volumes"]
        ]
    return template | added


def _name(kind: Kind[Any] | str) -> str:
    return kind if isinstance(kind, str) else kind.name


def label(kind: str, namespace: str | None, name: str) -> str:
    """How an object is called in messages: `Pod default/web-0`, `Node n1`."""
    known = KINDS.get(kind)
    if known and known.namespaced and name:
        return f"{kind} {namespace or 'default'}/{name}"
    return f"{kind} {name}".strip()
