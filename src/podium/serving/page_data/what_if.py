"""What-if questions of the pages, answered on a copy of the cluster in another thread.

The questions: which placements change with other profiles, how configurations compare, how many
more pods fit, and what would make a pending pod fit. Nothing is placed or changed.

A replay compares two runs. Both start with the same nodes and pods and place the same pods in the
same order, so every difference comes from the profiles. The real placements may differ from both
runs, since nodes have changed meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.cluster.simulation import Simulation
from podium.errors import ConfigError, InputError
from podium.library.explained_causes import add_causes
from podium.objects.reading.decoding import decode
from podium.serving.page_data.decision_data import DRY_RUN, decision_data
from podium.what_if.capacity.capacity import CapacitySearch, kinds_of
from podium.what_if.compare.comparison import CompareSearch
from podium.what_if.fix.fix import apply_fix, fix
from podium.what_if.fix.results import Edit, Fix

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.scheduler.state.cluster_copy import LiveCopy
    from podium.what_if.compare.results import Comparison, ConfigurationOutcome

Data = dict[str, Any]

#: How many changed placements are listed.
MOST_TOLD: Final = 1000
_REASON: Final = 300


class ReplayComparison:
    """Two replays of a cluster, run by a thread; `done` of `total` is its progress."""

    def __init__(
        self, cluster: LiveCopy, before: Sequence[Profile], after: Sequence[Profile]
    ) -> None:
        for profile in (*before, *after):
            if profile.extenders:
                raise ConfigError(
                    f"{profile.name} asks extenders, which are not asked just to compare",
                    hint="take the extenders out of the text to compare the rest",
                )
        self._cluster = cluster
        self._profiles = (before, after)
        self.total = 2 * (len(cluster.replayed) + len(cluster.waiting))
        self.done = 0
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make `run` end early, because its result is not needed any more."""
        self._stopped.set()

    def run(self) -> Data | None:
        """The differences; None when stopped."""
        before, after = (self._replay(profiles) for profiles in self._profiles)
        return None if self._stopped.is_set() else self._compared(before, after)

    def _replay(self, profiles: Sequence[Profile]) -> dict[str, tuple[str | None, str]]:
        """Pod -> its node, or none and the reason."""
        found: dict[str, tuple[str | None, str]] = {}
        if self._stopped.is_set():
            return found
        now = self._cluster.decided_at
        simulation = Simulation(profiles[0], others=profiles[1:], now=now)
        simulation.load(self._cluster.objects())
        keys = {each.uid: each.key for each in self._cluster.replayed}
        for step in simulation.run(self._cluster.pods()):
            if self._stopped.is_set():
                break
            decision = step.decision
            found[step.pod.key] = (decision.node, decision.message[:_REASON])
            preemption = decision.preemption
            if preemption is not None and preemption.node is not None:
                for uid in preemption.candidates[preemption.node].uids:
                    if uid in keys:
                        found[keys[uid]] = (None, f"evicted for {step.pod.key}")
            self.done += step.attempt == 1
        return found

    def _compared(
        self,
        before: dict[str, tuple[str | None, str]],
        after: dict[str, tuple[str | None, str]],
    ) -> Data:
        actual = {each.key: each.node for each in self._cluster.replayed}
        changes = list(_changes(before, after, actual))
        kinds = ["moved", "placed", "lost"]
        counts = {kind: sum(each["kind"] == kind for each in changes) for kind in kinds}
        as_now = sum(before[key][0] == node for key, node in actual.items() if key in before)
        return {
            "pods": len(after),
            "unchanged": len(after) - len(changes),
            **counts,
            "fixed": len(self._cluster.fixed),
            "leftOut": self._cluster.left_out,
            "asNow": as_now,
            "replayed": len(actual),
            "changes": changes[:MOST_TOLD],
            "nodes": _per_node(before, after),
        }


def _changes(
    before: dict[str, tuple[str | None, str]],
    after: dict[str, tuple[str | None, str]],
    actual: dict[str, str],
) -> Iterator[Data]:
    for key, (new, reason) in after.items():
        old, old_reason = before.get(key, (None, ""))
        if new == old:
            continue
        kind = "moved" if old and new else "placed" if new else "lost"
        yield {
            "pod": key,
            "kind": kind,
            "before": old,
            "after": new,
            "reason": old_reason if new else reason,
            "actual": actual.get(key),
        }


def _per_node(
    before: dict[str, tuple[str | None, str]], after: dict[str, tuple[str | None, str]]
) -> list[Data]:
    """The nodes with the largest change in their number of pods."""
    counts: dict[str, list[int]] = {}
    for index, placements in enumerate((before, after)):
        for node, _ in placements.values():
            if node is not None:
                counts.setdefault(node, [0, 0])[index] += 1
    changed = [(name, old, new) for name, (old, new) in counts.items() if old != new]
    changed.sort(key=lambda each: (-abs(each[2] - each[1]), each[0]))
    return [{"node": name, "before": old, "after": new} for name, old, new in changed[:20]]


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
        "nodes": msgspec.to_builtins(outcome.nodes),
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


class _PostedEdit(msgspec.Struct):
    """An edit as a page sends it back."""

    action: str
    kind: str
    names: list[str]
    patch: list[dict[str, Any]]
    like: str = ""


def found_fixes(objects: Objects, pod: Pod, profile: Profile) -> Data:
    """The fixes for a pending pod of the objects."""
    found = fix(objects, pod, profile)
    data = found.as_json()
    for fixed, each in zip(found.fixes, data["fixes"], strict=True):
        for edit, written in zip(fixed.edits, each["edits"], strict=True):
            written |= {"kind": edit.kind, "names": list(edit.names), "like": edit.like}
    return data


def read_fix(request: Mapping[str, Any]) -> Fix:
    """The fix that a page sends back."""
    try:
        edits = msgspec.convert(request.get("edits"), list[_PostedEdit])
    except msgspec.ValidationError as error:
        hint = "send one of the fixes as it was given"
        raise InputError(f"edits cannot be read: {error}", hint=hint) from None
    return Fix(
        tuple(
            Edit(e.action, "", e.kind, tuple(e.names), tuple(e.patch), "", 0.0, e.like)
            for e in edits
        ),
        "",
    )


def tried_fix(objects: Objects, pod: Pod, profile: Profile, posted: Fix) -> Data:
    """The decision about the pod after the edits of a fix."""
    try:
        after = apply_fix(objects, posted)
    except (msgspec.ValidationError, LookupError, ValueError, TypeError) as error:
        raise InputError(f"an edit cannot be made: {error}") from None
    wanted = next((each for each in after.pods if each.key == pod.key), None)
    if wanted is None:
        raise InputError(f"the edits remove the pod {pod.key} itself")
    after.pods = [each for each in after.pods if each.key != pod.key]
    simulation = Simulation(profile)
    simulation.load(after)
    decision = simulation.attempt(wanted, recording=True)
    add_causes(simulation.cache.columns, wanted, profile, decision)
    return decision_data(
        decision,
        source=DRY_RUN,
        ties=profile.ties,
        max_score=profile.max_score,
        never=wanted.spec.preemption_policy == "Never",
    )
