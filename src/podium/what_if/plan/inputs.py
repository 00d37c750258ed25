"""The cluster that a plan starts from, with all fields of its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME
from podium.lab.contents.documents import Document, documents
from podium.library.reading import Paths, parsed_contents, path_list
from podium.objects.reading.garbage import without_gc
from podium.objects.reading.validate import forbidden_notes

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject

_SNAPSHOT: Final = ("podium/v1", "Snapshot")


@dataclass(slots=True)
class ClusterDocuments:
    """The objects of a cluster as they were written."""

    documents: list[Document] = field(default_factory=list)
    #: What a snapshot says about itself and about its profile.
    snapshot: JsonObject | None = None
    #: Kinds that no controller and no scheduler reads, with how often.
    skipped: Counter[str] = field(default_factory=Counter)
    #: Resources of the cluster that the user may not list.
    forbidden: set[str] = field(default_factory=set)
    #: When a live cluster was read, in seconds since 1970.
    read_at: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are all objects of a cluster: a snapshot, or a live one."""
        if self.snapshot is not None:
            return not self.snapshot.get("ofHistory") and not self.forbidden
        return self.read_at is not None and not self.forbidden

    def notes(self) -> Iterator[str]:
        """What was left out, as sentences."""
        for kind, count in sorted(self.skipped.items()):
            yield f"{count} of kind {kind} left out: nothing in a plan depends on them"
        yield from forbidden_notes(self.forbidden)


def cluster_documents(paths: Paths, *, workers: int = 1) -> ClusterDocuments:
    """The objects of all *paths*: manifests, lists, dumps, or a snapshot; at least one node.

    With several *workers* much YAML is parsed in so many copies of this process.
    """
    found = ClusterDocuments()
    names = path_list(paths)
    with without_gc(lasting=True):
        for where, data, parse_yaml in parsed_contents(names, workers):
            for document in documents(data, where, parse_yaml):
                _sort_in(found, document)
    if not any(each.kind == "Node" for each in found.documents):
        hint = "a plan needs the nodes of a cluster"
        raise InputError("holds no node", where=", ".join(names), hint=hint)
    return found


def _sort_in(found: ClusterDocuments, document: Document) -> None:
    kind = document.kind
    if (document.api_version, kind) == _SNAPSHOT:
        found.snapshot = document.item
        found.forbidden |= {*(document.item.get("notRead") or ())}
    elif kind in BY_NAME:
        found.documents.append(document)
    else:
        found.skipped[kind] += 1
