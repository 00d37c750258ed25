"""The decisions of a running scheduler as they were made, derived from the history it records."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING

from podium.daemon.hindsight.seeking import decisions_about, derive
from podium.errors import PodiumError
from podium.history.reading import History

if TYPE_CHECKING:
    from pathlib import Path

    from podium.daemon.hindsight.recorder import HistoryRecorder
    from podium.daemon.hindsight.replay import RulesOf
    from podium.daemon.hindsight.seeking import Derived


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
        self._last: tuple[tuple[str, str, int | None], Derived] | None = None

    async def decision(self, pod: str, uid: str = "", attempt: int | None = None) -> Derived | None:
        """An attempt at a pod, or the last one, with all verdicts and scores.

        None if it is not recorded, took answers of extenders, or follows otherwise: then what is
        derived is not what was decided.
        """
        asked = (pod, uid, attempt)
        async with self._deriving:
            if attempt is not None and self._last is not None and self._last[0] == asked:
                return self._last[1]
            self._recorder.flush()
            found = await asyncio.to_thread(self._derived, pod, uid, attempt, inf)
            if found is not None:
                self._last = (asked, found)
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
