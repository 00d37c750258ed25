"""The decisions of a running scheduler as they were made, derived from the history it records."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Final

from podium.errors import PodiumError
from podium.past.format.reading import History
from podium.past.replay.seeking import decisions_about, derive

if TYPE_CHECKING:
    from pathlib import Path

    from podium.past.recorder.recorder import HistoryRecorder
    from podium.past.replay.replay import RulesOf
    from podium.past.replay.seeking import Derived


#: How many derived decisions are kept; a page asks for the same ones again and again.
_KEPT: Final = 4


class PastDecisions:
    """Derives decisions within the recorded span, one at a time and beside the scheduler."""

    def __init__(
        self,
        recorder: HistoryRecorder,
        folder: str | Path,
        rules_of: RulesOf,
        reading: asyncio.Lock | None = None,
    ) -> None:
        """Derive from the history in *folder*; *reading* is held while a replay runs."""
        self._recorder, self._folder, self._rules_of = recorder, folder, rules_of
        self._deriving = reading or asyncio.Lock()
        #: The last ones that were derived, the newest last.
        self._kept: dict[tuple[str, str, int | None], Derived] = {}

    async def decision(self, pod: str, uid: str = "", attempt: int | None = None) -> Derived | None:
        """An attempt at a pod, or the last one, with all verdicts and scores.

        None if it is not recorded, took answers of extenders, or follows otherwise: then what is
        derived is not what was decided.
        """
        asked = (pod, uid, attempt)
        async with self._deriving:
            if attempt is not None and asked in self._kept:
                return self._kept[asked]
            self._recorder.flush()
            found = await asyncio.to_thread(self._derived, pod, uid, attempt, inf)
            if found is not None:
                self._kept[asked] = found
                while len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]
            return found

    async def decision_at(self, pod: str, at: float) -> Derived | None:
        """The last attempt at a pod up to a time; None under the same conditions."""
        async with self._deriving:
            self._recorder.flush()
            return await asyncio.to_thread(self._derived, pod, "", None, at)

    def _derived(self, pod: str, uid: str, attempt: int | None, until: float) -> Derived | None:
        try:
            history = History(self._folder)
            places = decisions_about(history, pod, attempt)
            places = [
                place
                for place in places
                if uid in ("", place.entry.uid) and place.entry.time <= until
            ]
            if not places:
                return None
            found = derive(history, places[-1], self._rules_of)
        except PodiumError:
            return None
        return found if found.difference is None else None
