"""A history as a cluster: its objects as they were at its end, in the form of a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.objects.kinds.meta import Object
    from podium.past.format.reading import History

#: Segments of a history end in it.
_SUFFIX: Final = ".history"
#: The last segment may have been cut before its cluster was written whole.
_LAST_SEGMENTS: Final = 2


def is_history(path: str) -> bool:
    """Whether *path* is a history: a folder with segments, or one segment."""
    found = Path(path)
    if found.is_dir():
        return any(each.suffix == _SUFFIX for each in found.iterdir())
    return found.suffix == _SUFFIX


def cluster_of_history(path: str) -> bytes:
    """The cluster at the end of the history, as JSON of a snapshot with the profile in use."""
    from podium.past.format.reading import History  # noqa: PLC0415  few inputs are histories

    history = History(path)
    end = _End()
    end.follow(history, max(len(history.segments) - _LAST_SEGMENTS, 0))
    if not end.objects:
        end.follow(history, 0)
    if not end.objects:
        raise InputError("holds no whole cluster", where=path, hint="record it again")
    header = {
        "apiVersion": "podium/v1",
        "kind": "Snapshot",
        "profile": end.profile,
        # A history has the kinds that scheduling reads, and no others.
        "ofHistory": True,
    }
    parts = [msgspec.json.encode(header), *end.written()]
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + b",\n".join(parts) + b"\n]}\n"


class _End:
    """What is left when everything in a history has happened."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        #: The uid of a pod -> the node that was decided, until its own object names it.
        self._decided: dict[str, str] = {}
        self.profile: Any = None

    def follow(self, history: History, first: int) -> None:
        """Follow the history from segment *first* on."""
        from podium.past.format.reading import ObjectChange, SegmentStart, Torn  # noqa: PLC0415
        from podium.past.format.records import Decided, Forgotten, Profiles  # noqa: PLC0415

        for entry in history.entries(first):
            if isinstance(entry, SegmentStart):
                self.objects.clear()
                self._decided.clear()
                self.profile = entry.header.get("profile")
            elif isinstance(entry, Torn):
                if entry.damaged:
                    raise InputError(f"its end is not known: {entry}", where=str(history.path))
            elif isinstance(entry, ObjectChange):
                if entry.new is None:
                    del self.objects[entry.kind, entry.key]
                else:
                    self.objects[entry.kind, entry.key] = entry.new
            elif isinstance(entry, Profiles):
                self.profile = entry.profile
            elif isinstance(entry, Decided) and entry.node is not None:
                self._decided[entry.uid] = entry.node
            elif isinstance(entry, Forgotten):
                self._decided.pop(entry.uid, None)

    def written(self) -> Iterator[bytes]:
        """The objects as JSON, without pods that have finished."""
        for (kind, _), found in self.objects.items():
            item = found
            if isinstance(item, Pod):
                if item.finished:
                    continue
                item = self._placed(item)
            version = item.api_version or KINDS[kind].api_versions[0]
            yield msgspec.json.encode(replace(item, api_version=version, kind=kind))

    def _placed(self, pod: Pod) -> Pod:
        """The pod on its node; one that is not bound yet counts where it was decided."""
        node = self._decided.get(pod.uid)
        if node is None or pod.spec.node_name:
            return pod
        return replace(pod, spec=replace(pod.spec, node_name=node))
