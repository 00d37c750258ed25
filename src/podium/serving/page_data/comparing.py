"""Other configurations compared with the one that runs, and how many more pods fit, for the pages.

Both work on a copy of the cluster, in another thread; nothing is placed or changed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from podium.errors import ConfigError
from podium.objects.reading.decode import decode
from podium.what_if.capacity.capacity import CapacitySearch, kinds_of
from podium.what_if.compare.compare import CompareSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.reading.collection import Objects
    from podium.what_if.compare.results import Comparison, ConfigurationOutcome

Data = dict[str, Any]

#: The names of both configurations in an answer.
TODAY, OTHER = "today's rules", "the other rules"
#: The most orders of arrival that a page may ask for.
MOST_SEEDS: Final = 20
#: How many placements that differ, and pods left over, are listed.
_MOST_LISTED: Final = 500
_MANIFEST: Final = "the manifest"


def seeds_in(request: Mapping[str, Any]) -> int:
    """How many orders of arrival a form asks for."""
    seeds = request.get("seeds", 0)
    if not isinstance(seeds, int) or isinstance(seeds, bool) or not 0 <= seeds <= MOST_SEEDS:
        hint = f"a whole number from 0 to {MOST_SEEDS} would do"
        raise ConfigError(f"seeds: {seeds!r} is no number of orders of arrival", hint=hint)
    return seeds


class ConfigurationComparison:
    """The pods of a cluster placed anew by two configurations, run by a thread.

    `done` of `total` is its progress.
    """

    def __init__(
        self, objects: Objects, today: Sequence[Profile], other: Sequence[Profile], seeds: int
    ) -> None:
        asked = any(profile.extenders for profile in (*today, *other))
        self._notes = ["extenders were not asked"] if asked else []
        given = {TODAY: _bare(today), OTHER: _bare(other)}
        self._search = CompareSearch(objects, given, seeds=seeds)
        self.total, self.done = self._search.total, 0
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make `run` end after the step at hand, because its result is not needed any more."""
        self._stopped.set()

    def run(self) -> Data | None:
        """The comparison as the page shows it; None when stopped."""
        for _ in self._search.steps():
            self.done += 1
            if self._stopped.is_set():
                return None
        return _shown(self._search.result) | {"notes": self._notes}


def _bare(profiles: Sequence[Profile]) -> list[Profile]:
    return [replace(profile, extenders=()) for profile in profiles]


def _shown(found: Comparison) -> Data:
    differences = found.differences()
    return {
        "nodes": found.nodes,
        "pods": found.pods,
        "summary": found.summary(),
        "hopeless": list(found.hopeless),
        "measures": [list(row) for row in found.measures()],
        "configurations": [_outcome(each) for each in found.done()],
        "changedNodes": sorted(found.changed_nodes()),
        "differing": len(differences),
        "differences": [
            {"pod": pod, "nodes": list(nodes)} for pod, nodes in differences[:_MOST_LISTED]
        ],
    }


def _outcome(outcome: ConfigurationOutcome) -> Data:
    return {
        "name": outcome.name,
        "profile": outcome.profile,
        "leftOver": outcome.left_over[:_MOST_LISTED],
        "nodes": [node.as_json() for node in outcome.nodes],
    }


def found_capacity(objects: Objects, profiles: Sequence[Profile], manifest: str) -> Data:
    """How many more pods of a manifest fit, where, and what runs out."""
    cluster, kinds = kinds_of(decode(manifest.encode(), _MANIFEST), objects, _MANIFEST)
    search = CapacitySearch(cluster, kinds, _bare(profiles))
    for _ in search.steps():
        pass
    found = search.result
    names = [node.name for node in objects.nodes]
    return found.as_json() | {"sentence": found.sentence(), "names": names}
