"""The writes that an API server has carried out, in order, with their virtual times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from podium.lab.controllers.framework.controller import changed
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject


@dataclass(frozen=True, slots=True)
class LoggedWrite:
    """One write. The objects are those of the API server and must not be changed."""

    #: Virtual seconds since the simulation began.
    time: float
    kind: str
    #: ADDED, MODIFIED or DELETED.
    type: str
    #: The object before and after the write; None where there is none.
    before: JsonObject | None
    after: JsonObject | None

    @property
    def object(self) -> JsonObject:
        """The object after the write, or its last state if it was deleted."""
        return changed(self.before, self.after)

    @property
    def key(self) -> str:
        """The `namespace/name` of the object; the name alone for objects of the cluster."""
        metadata = self.object["metadata"]
        namespace = metadata.get("namespace", "")
        return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


class WriteLog:
    """Records every write to some kinds from now on, until it is closed."""

    def __init__(self, registry: Registry, time: Callable[[], float], kinds: Iterable[str]) -> None:
        self._time = time
        self.writes: list[LoggedWrite] = []
        self._ends = [registry.subscribe([kind], partial(self._record, kind)) for kind in kinds]

    def __len__(self) -> int:
        return len(self.writes)

    def __iter__(self) -> Iterator[LoggedWrite]:
        return iter(self.writes)

    def close(self) -> None:
        """Record no further writes."""
        for end in self._ends:
            end()
        self._ends.clear()

    def _record(
        self, kind: str, event: str, old: JsonObject | None, new: JsonObject | None
    ) -> None:
        self.writes.append(LoggedWrite(self._time(), kind, event, old, new))
