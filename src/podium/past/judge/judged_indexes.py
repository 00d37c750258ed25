"""The indexes that informers write to in shadow mode: every change goes to the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.past.format.reading import ObjectChange
from podium.scheduler.state.object_index import LivePods, ObjectIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.objects.kinds.meta import Object
    from podium.past.judge.judge import Judge


class JudgedIndexes:
    """Objects as last reported; what changes is fed to a judge, which follows when it can."""

    def __init__(
        self, judge: Judge, clock: Callable[[], float], on_change: Callable[[], None]
    ) -> None:
        """*on_change* is called after every change."""
        self._judge, self._clock, self._on_change = judge, clock, on_change
        self._indexes: dict[str, ObjectIndex[Any]] = {}

    def index(self, kind: str) -> ObjectIndex[Any]:
        """The index of a kind."""
        found = self._indexes.get(kind)
        if found is None:

            def changed(old: Object | None, new: Object | None) -> None:
                self._judge.feed(ObjectChange(self._clock(), kind, old, new))
                self._on_change()

            found = LivePods(changed) if kind == "Pod" else ObjectIndex(changed)
            self._indexes[kind] = found
        return found
