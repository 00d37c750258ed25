"""The data of the web pages: plain values about a scheduler, read while it runs.

Reading happens between two decisions, in the scheduler's own thread, and is quick. What takes
longer, such as finding the causes of a decision, works on a copy in another thread.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from podium.errors import ConfigError
from podium.library.notices import log_warning
from podium.library.pending_pods import is_pending
from podium.library.pod_notes import condition_notes, owner_notes
from podium.objects.kinds.registry import PRIORITY_CLASS
from podium.objects.selectors.selectors import SelectorError, parse_selector
from podium.past.decisions.causes_now import causes_of, decided_on
from podium.profiles.policy.build import Options
from podium.releases import RELEASES
from podium.render.decision.analysis import NOMINATED
from podium.render.decision.story import StoryAttempt, is_story, story
from podium.scheduler.state.cluster_copy import (
    ClusterCopies,
    CopiedScheduler,
    LiveCopy,
    all_objects,
    beside_decisions,
    until_few_are_left,
)
from podium.serving.page_data.cluster_map import (
    ClusterMap,
    cluster_at,
    node_details,
    totals,
    workload,
)
from podium.serving.page_data.decision_data import (
    DRY_RUN,
    HISTORY,
    NOW,
    RECORDED,
    decision_data,
    group_data,
)
from podium.serving.page_data.manifest import pod_in
from podium.serving.page_data.profile_data import (
    ProfileText,
    form,
    read_profiles,
    reweighted,
    written,
)
from podium.serving.page_data.waiting import waiting_data
from podium.serving.page_data.what_if import (
    ConfigurationComparison,
    ReplayComparison,
    found_capacity,
    found_fixes,
    read_fix,
    seeds_in,
    tried_fix,
)
from podium.what_if.compare.comparison import NAMED, configuration

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping

    from podium.cluster.queue.queue import SchedulingQueue
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.pod_class import Resident
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.workloads import PriorityClass
    from podium.objects.reading.collection import Objects
    from podium.past.decisions.decision_log import DecisionLog, LoggedAttempt
    from podium.past.replay.recorded_past import Moment, RecordedPast
    from podium.scheduler.state.options import SchedulerOptions
    from podium.serving.page_data.activity import ActivityObserver

Data = dict[str, Any]

#: How many pods are placed again to compare profiles, how long lists are, and search results.
REPLAYED: Final = 20_000
LISTED: Final = 500
FOUND: Final = 50
#: How many attempts at a pod a story has.
TOLD: Final = 50
_PROGRESS_SECONDS: Final = 0.2


class ObservedScheduler(CopiedScheduler, Protocol):
    """The parts of a scheduler that the pages read, and its only change."""

    @property
    def queue(self) -> SchedulingQueue:
        """Pending pods."""

    @property
    def profiles(self) -> Mapping[str, Profile]:
        """The profiles it decides by, by the name of the scheduler."""

    @property
    def options(self) -> SchedulerOptions:
        """How it works, apart from its decisions."""

    def pods(self) -> Iterable[Pod]:
        """The newest version of every pod."""

    def look(self, pod: Pod, profile: Profile) -> Decision:
        """Decide about a pod, with everything that led to the decision, and change nothing."""

    async def reconfigure(self, profiles: Sequence[Profile], options: SchedulerOptions) -> None:
        """Decide by other profiles from now on."""


class Planner(Protocol):
    """Makes plans of changes, on a copy of the cluster and without delaying the scheduler."""

    async def __call__(
        self, profiles: Sequence[Profile], text: str | None, changes: Sequence[tuple[str, str]], /
    ) -> Data:
        """What follows from the changes, each a flag of `podium plan` and its text.

        *text* is what the profiles were made from; None for those that the scheduler was started
        with.
        """


class PodFilter:
    """Pods of a namespace, if one is given, that match a label selector; what happened to them.

    Of what happened, the kinds in *what* are chosen where *query* is in the pod or the text.
    """

    def __init__(self, namespace: str, labels: str, query: str = "", what: str = "") -> None:
        try:
            self._selector = parse_selector(labels)
        except SelectorError as error:
            raise ConfigError(
                f"labels: {error}", hint="app=web or app in (a, b) would do"
            ) from None
        self._namespace, self._query = namespace, query
        self._kinds = set(filter(None, what.split(",")))

    def chooses(self, pod: str, labels: Mapping[str, str], kind: str, text: str) -> bool:
        """Whether something that happened to a pod is chosen."""
        if self._kinds and kind not in self._kinds:
            return False
        return (self._query in pod or self._query in text) and self.matches(pod, labels)

    def matches(self, key: str, labels: Mapping[str, str]) -> bool:
        """Whether the pod `namespace/name` with these labels is chosen."""
        if self._namespace and not key.startswith(f"{self._namespace}/"):
            return False
        return self._selector.matches(labels)


class PageData:
    """Reads a scheduler whose observers are *activity* and, if there is one, the decision *log*."""

    def __init__(
        self,
        scheduler: ObservedScheduler,
        activity: ActivityObserver,
        *,
        log: DecisionLog | None = None,
        options: Options | None = None,
        text: str | None = None,
        priority_classes: Callable[[], Iterable[PriorityClass]] = tuple,
        planner: Planner | None = None,
        copies: ClusterCopies | None = None,
    ) -> None:
        """*text* is the Policy or configuration that the scheduler was started with, if any.

        *planner* makes plans of changes; without one, none can be made from the pages. *copies*
        are those of the scheduler that others read as well.
        """
        self._planner, self._planning = planner, asyncio.Lock()
        self._scheduler = scheduler
        self._log = log
        self._options = options or Options()
        self._priority_classes = priority_classes
        self._activity = activity
        activity.schedulers = self._schedulers
        self._map = ClusterMap()
        self._current = self._first = self._initial(text)
        self._copies = copies or ClusterCopies(scheduler)
        #: One comparison at a time, since each holds a copy of the cluster.
        self._comparing = asyncio.Lock()
        #: What is recorded in a history; None without one.
        self.past: RecordedPast | None = None
        #: Called with the kind and the text of other profiles once the scheduler decides by them.
        self.on_other_profiles: Callable[[str, str], None] = lambda _kind, _text: None

    def _initial(self, text: str | None) -> ProfileText:
        profiles = tuple(self._scheduler.profiles.values())
        text = text if text is not None else written(profiles, self._options)
        return replace(read_profiles(text, self._options), profiles=profiles)

    def _schedulers(self) -> set[str]:
        return set(self._scheduler.profiles)

    # The cluster --------------------------------------------------------------------------------

    async def cluster(self, cursor: str = "") -> Data:
        """Zones, nodes, loads and pods, or what changed since a cursor."""
        await until_few_are_left(lambda most: self._map.read(self._scheduler.cache.columns, most))
        return self._map.since(self._scheduler.cache.columns, cursor)

    def node(self, name: str) -> Data | None:
        """One node with its pods."""
        return node_details(self._scheduler.cache.columns, name)

    def find_pods(self, query: str) -> list[Data]:
        """Pods whose `namespace/name` contains the text, pending ones first."""
        found: list[Data] = [
            {"pod": key, "node": None, **_workload(waiting.pod)}
            for key, waiting in self._activity.waiting.items()
            if query in key
        ][:FOUND]
        columns = self._scheduler.cache.columns
        for row in columns.nodes.order.tolist():
            for resident in columns.pods.residents[row]:
                if len(found) >= FOUND:
                    return found
                if query in resident.key:
                    node = columns.nodes.names[row]
                    owner = _workload(resident.cls.sample)
                    found.append({"pod": resident.key, "node": node, **owner})
        return found

    def summary(self) -> Data:
        """The numbers that every page shows."""
        self._activity.tick()
        columns = self._scheduler.cache.columns
        return {
            **self._activity.counts(),
            **totals(columns),
            "version": f"{columns.journal.epoch}-{columns.journal.changes}",
            "pools": {str(pool): n for pool, n in self._scheduler.queue.counts().items()},
            "profile": self._current.profiles[0].name,
        }

    def revision(self) -> tuple[int, int, int]:
        """Changes whenever the summary may have changed."""
        columns = self._scheduler.cache.columns
        return self._activity.revision, columns.journal.epoch, columns.journal.changes

    def history(self) -> list[list[int]]:
        """Second, decisions in it, pending pods at its end."""
        return self._activity.history()

    # The recorded past --------------------------------------------------------------------------

    async def past_chart(self) -> Data:
        """Queue length, decisions and evictions of the recorded time; `recorded` says if any."""
        if self.past is None:
            return {"recorded": False}
        return {"recorded": True, **await self.past.chart()}

    async def cluster_at(self, at: float) -> Data:
        """The map of the cluster at a moment, and how many pods waited."""
        return await self._recorded().at(at, cluster_at)

    async def node_at(self, at: float, name: str) -> Data | None:
        """One node with its pods at a moment."""

        def details(moment: Moment) -> Data | None:
            return None if moment.view is None else node_details(moment.view, name)

        return await self._recorded().at(at, details)

    async def timeline_at(
        self, at: float, query: str, namespace: str, labels: str, what: str
    ) -> Data:
        """What happened to pods up to a moment, the newest first."""
        chosen = PodFilter(namespace, labels, query, what)
        return await self._recorded().happened(at, chosen.chooses)

    async def decision_at(self, at: float, namespace: str, name: str) -> Data | None:
        """The last decision about a pod up to a moment, as it was made; None if there is none."""
        key = f"{namespace}/{name}"
        derived = None if self.past is None else await self.past.decision_at(key, at)
        if derived is None:
            return None
        decision, entry = derived.decision, derived.entry
        profile = self._scheduler.profiles.get(entry.scheduler) or self._current.profiles[0]
        found = decision_data(
            decision,
            source=HISTORY,
            ties=profile.ties,
            max_score=self._max_score(decision.profile),
        )
        return found | {"attempt": entry.attempt, "at": entry.time}

    def _recorded(self) -> RecordedPast:
        if self.past is None:
            hint = "start with --record FOLDER to keep the past"
            raise ConfigError("nothing is recorded here", hint=hint)
        return self.past

    # Pending pods -------------------------------------------------------------------------------

    def timeline(self, query: str, namespace: str, labels: str, what: str) -> Data:
        """What happened to pods, the newest first, of a namespace and by labels and kinds."""
        chosen = PodFilter(namespace, labels, query, what)
        matching = [
            each
            for each in reversed(self._activity.timeline)
            if chosen.chooses(each.pod, each.labels, each.what, each.text)
        ]
        found = [msgspec.structs.asdict(each) for each in matching[:LISTED]]
        for each in found:
            del each["labels"]
        return {"entries": found, "matching": len(matching), "namespaces": self._namespaces()}

    def _namespaces(self) -> list[str]:
        """The namespaces of the pods in the timeline and of those that wait."""
        keys = [entry.pod for entry in self._activity.timeline]
        return sorted({key.partition("/")[0] for key in (*keys, *self._activity.waiting)})

    def pending(self, query: str = "", namespace: str = "", labels: str = "") -> Data:
        """The pending pods with their reasons; those that were attempted come first."""
        chosen = PodFilter(namespace, labels)
        matching = [
            waiting
            for key, waiting in self._activity.waiting.items()
            if (query in key or query in waiting.reason)
            and chosen.matches(key, waiting.pod.metadata.labels or {})
        ]
        first = heapq.nsmallest(
            LISTED, matching, key=lambda each: (not each.reason, -each.pod.priority, each.since)
        )
        queue = self._scheduler.queue
        rows = []
        for waiting in first:
            pool = queue.pool_of(waiting.pod)
            rows.append(
                {
                    "pod": waiting.pod.key,
                    **_workload(waiting.pod),
                    "reason": waiting.reason,
                    "pool": str(pool) if pool else "in flight",
                    "attempts": waiting.attempts,
                    "since": waiting.since,
                    "triedAt": waiting.tried_at,
                    "group": waiting.pod.group,
                    "priority": waiting.pod.priority,
                    "nominated": waiting.pod.status.nominated_node_name
                    or queue.nominated_node(waiting.pod),
                    "waiting": waiting_data(queue, waiting.pod.key),
                }
            )
        counts = {str(pool): number for pool, number in queue.counts().items()}
        return {
            "total": len(self._activity.waiting),
            "matching": len(matching),
            "pods": rows,
            "pools": counts,
            "namespaces": self._namespaces(),
        }

    def group(self, namespace: str, name: str) -> Data | None:
        """A pod group with its pods and its last cycle; None if neither it nor a pod is there."""
        key, scheduler = f"{namespace}/{name}", self._scheduler
        waiting = [each for each in self._activity.waiting.values() if each.pod.group == key]
        cycle = self._activity.cycles.get(key)
        return group_data(scheduler.cache.columns, scheduler.queue, key, waiting, cycle)

    # Decisions ----------------------------------------------------------------------------------

    async def decision(self, namespace: str, name: str, attempt: int = 0) -> Data | None:
        """The decision about a pod, as it was made or made again; None for an unknown pod.

        *attempt* is the `id` of an attempt in the decision log; 0 is the last one.
        """
        key = f"{namespace}/{name}"
        waiting = self._activity.waiting.get(key)
        resident = self._resident(key)
        attempts = self._log.of(namespace, name) if self._log is not None else []
        if waiting is None and resident is None and not attempts:
            return await self._of_another_scheduler(key)
        actual = self._scheduler.cache.columns.nodes.names[resident.row] if resident else None
        history = {
            "attempts": [
                {
                    "id": each.sequence,
                    "number": each.number,
                    "at": each.began,
                    "outcome": each.outcome,
                }
                for each in attempts[:LISTED]
            ],
            "waiting": waiting_data(self._scheduler.queue, key),
            "group": waiting.pod.group if waiting else resident.group if resident else "",
            "story": await self._story(key, attempts[:TOLD]),
        }
        if attempts:
            kept = next((each for each in attempts if each.sequence == attempt), attempts[0])
            decision = await beside_decisions(kept.decision)
            derived = None
            if self.past is not None:
                derived = await self.past.decision(key, kept.uid, kept.number)
                decision = decision if derived is None else derived.decision
            settled = attempt == kept.sequence or (waiting is None and resident is None)
            kept_whole = len(decision.examined) or derived is not None
            if kept_whole or decision.error or decision.held or settled:
                known = derived is not None or bool(decision.causes)
                if len(decision.examined) and not known and not attempt:
                    await self._find_causes(key, waiting.pod if waiting else None, decision)
                never = waiting is not None and _never(waiting.pod)
                found = await beside_decisions(
                    decision_data,
                    decision,
                    source=RECORDED,
                    ties=kept.ties,
                    max_score=self._max_score(decision.profile),
                    never=never,
                    actual=actual,
                )
                at = {"attempt": kept.number, "at": kept.began, "id": kept.sequence}
                return found | history | at
        if waiting is not None:
            return await self._explained(waiting.pod, NOW) | history
        kept_longer = await self.decision_at(inf, namespace, name)
        if kept_longer is not None:
            return kept_longer | history
        again = await self._again(key)
        return None if again is None else again | history

    async def _story(self, key: str, attempts: Sequence[LoggedAttempt]) -> list[Data]:
        """The story of the attempts at a pod; the last eviction for it names its victims."""
        told, explained = [], False
        kept = await beside_decisions(lambda: [each.decision() for each in attempts])
        for each, decision in zip(attempts, kept, strict=True):  # the newest first
            if not explained and self.past is not None and each.outcome == NOMINATED:
                explained = True
                derived = await self.past.decision(key, each.uid, each.number)
                decision = decision if derived is None else derived.decision  # noqa: PLW2901
            failure = each.binding if isinstance(each.binding, str) else ""
            told.append(StoryAttempt(each.number, each.began, decision, failure))
        if not is_story(told):
            return []
        ended = {e.pod: e.at for e in self._activity.timeline if e.what == "deleted"}
        return [line.as_json() for line in story(told, ended)]

    def _max_score(self, profile: str) -> int:
        known = {each.name: each.max_score for each in self._scheduler.profiles.values()}
        return known.get(profile) or self._current.profiles[0].max_score

    async def _explained(self, pod: Pod, source: str, notes: Sequence[str] = ()) -> Data:
        """The decision about a pod as of now, with its causes; nothing is changed."""
        rules, profile = self._rules(), self._profile_of(pod)
        told = list(owner_notes(pod, self._schedulers()))

        def explained(decision: Decision, cluster: LiveCopy) -> Data:
            causes_of(cluster, pod.key, pod, rules(), decision).add_to(decision)
            told.extend([*condition_notes(pod, decision), *notes])
            return _told(decision, profile, pod, source=source, notes=told)

        async with self._copies.ready() as copied:
            decision = _owned(self._scheduler.look(pod, profile))
            return await beside_decisions(explained, decision, copied())

    async def _of_another_scheduler(self, key: str) -> Data | None:
        """What would be decided about a pod that waits for another scheduler; None if none does."""
        others = (pod for pod in self._scheduler.pods() if pod.key == key)
        pod = next((each for each in others if is_pending(each, {each.spec.scheduler_name})), None)
        return None if pod is None else await self._explained(pod, NOW)

    def _resident(self, key: str) -> Resident | None:
        pods = self._scheduler.cache.columns.pods.by_uid.values()
        return next((each for each in pods if each.key == key), None)

    def _rules(self) -> Callable[[], tuple[Profile, ...]]:
        """A function for another thread: the rules of now, made anew, without extenders."""
        text, options = self._current.text, self._options

        def made() -> tuple[Profile, ...]:
            profiles = read_profiles(text, options).profiles
            return tuple(replace(profile, extenders=()) for profile in profiles)

        return made

    async def _find_causes(self, key: str, waiting: Pod | None, decision: Decision) -> None:
        """Add the causes of a recorded decision, as far as the cluster still is as it was."""
        rules = self._rules()

        def found(cluster: LiveCopy) -> None:
            causes_of(cluster, key, waiting, rules(), decision).add_to(decision)

        async with self._copies.ready() as copied:
            await beside_decisions(found, copied())

    async def _again(self, key: str) -> Data | None:
        """A placed pod, decided once more on a copy of the cluster without it."""
        rules, schedulers = self._rules(), self._schedulers()

        def decided(cluster: LiveCopy) -> Data | None:
            placed = cluster.take(key)
            if placed is None:
                return None  # it was deleted while other pods were decided again
            pod = placed.pod()
            decision, profile = decided_on(cluster, pod, rules())
            notes = list(owner_notes(pod, schedulers))
            return _told(decision, profile, pod, source=NOW, notes=notes, actual=placed.node)

        async with self._copies.ready() as copied:
            return await beside_decisions(decided, copied())

    async def explain(self, manifest: bytes) -> Data:
        """The decision about the pod of a manifest as of now; nothing is created."""
        columns = self._scheduler.cache.columns
        nodes = [columns.nodes.objects[row] for row in columns.nodes.order.tolist()]
        known, classes = (n for n in nodes if n is not None), list(self._priority_classes())
        tried = await beside_decisions(pod_in, manifest, known, classes)
        notes = list(tried.notes)
        if self._profile_of(tried.pod).extenders:
            notes.append("extenders were not asked")
        return await self._explained(tried.pod, DRY_RUN, notes)

    def _profile_of(self, pod: Pod) -> Profile:
        profiles = self._scheduler.profiles
        return profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))

    # What would make a pending pod fit ------------------------------------------------------------

    async def fixes(self, namespace: str, name: str) -> Data | None:
        """The smallest changes that would give a pending pod a node; None if it is not pending."""
        return await self._about_pending(namespace, name, found_fixes)

    async def try_fix(self, namespace: str, name: str, request: Mapping[str, Any]) -> Data | None:
        """The decision about a pending pod after the edits of a fix; nothing is changed."""
        posted = read_fix(request)

        def tried(objects: Objects, pod: Pod, profile: Profile) -> Data:
            return tried_fix(objects, pod, profile, posted)

        return await self._about_pending(namespace, name, tried)

    async def _about_pending(
        self, namespace: str, name: str, answer: Callable[[Objects, Pod, Profile], Data]
    ) -> Data | None:
        """Answer a question about a pending pod on a copy of the cluster, in another thread."""
        waiting = self._activity.waiting.get(f"{namespace}/{name}")
        if waiting is None:
            return None
        pod, rules = waiting.pod, self._rules()

        def answered(cluster: LiveCopy) -> Data:
            objects, profiles = cluster.objects(), rules()
            objects.pods.append(pod)
            wanted = pod.spec.scheduler_name
            profile = next((p for p in profiles if p.scheduler_name == wanted), profiles[0])
            return answer(objects, pod, profile)

        async with self._copies.ready() as copied:
            return await beside_decisions(answered, copied())

    # The profiles -------------------------------------------------------------------------------

    def profile(self) -> Data:
        """The profiles the scheduler decides by, their text, and names to compare them with."""
        releases = [{"name": each.name, "release": each.name} for each in reversed(RELEASES)]
        # The first provider of a release is its default.
        providers = [
            {"name": name, "release": each.name} for each in RELEASES for name in each.providers[1:]
        ]
        return {**form(self._current, self._options), "named": [*releases, *providers]}

    def _wished(self, wish: Mapping[str, Any]) -> ProfileText:
        """The profiles that a form asks for: a new text, or other weights in the current one."""
        text, weights = wish.get("text"), wish.get("weights")
        if isinstance(text, str):
            return read_profiles(text, self._options)
        if not isinstance(weights, dict) or not all(
            isinstance(weight, int) and not isinstance(weight, bool) for weight in weights.values()
        ):
            raise ConfigError(
                "expected new rules", hint='give {"text": "…"} or {"weights": {"name": number}}'
            )
        scheduler = str(wish.get("scheduler") or self._current.profiles[0].scheduler_name)
        text = reweighted(self._current, weights, scheduler, self._options)
        return read_profiles(text, self._options)

    async def what_if(self, wish: Mapping[str, Any]) -> AsyncIterator[Data]:
        """Compare with other profiles: the progress, and at the end the changed placements."""
        after = self._wished(wish)
        if self._comparing.locked():
            raise ConfigError("another comparison is running", hint="try again in a moment")
        async with self._comparing:
            before = read_profiles(self._current.text, self._options).profiles
            async with self._copies.ready() as copied:
                cluster = copied()
            waiting = [each.pod for each in self._activity.waiting.values()]
            bound, foreign = dict(self._activity.bound_order), set(self._activity.foreign)
            await beside_decisions(cluster.place_again, REPLAYED, bound, waiting, foreign)
            comparison = ReplayComparison(cluster, before, after.profiles)
            found = None
            async with aclosing(_run_in_thread(comparison)) as steps:
                async for step in steps:
                    found = step.get("result")
                    if found is None:
                        yield step
        yield {"result": found, "text": after.text, "profile": form(after, self._options)}

    async def compare(self, wish: Mapping[str, Any]) -> AsyncIterator[Data]:
        """Compare with another configuration: the progress, and at the end what differs.

        All pods but those of DaemonSets are placed from scratch by both, as by `podium compare`.
        """
        other, seeds = self._other_configuration(wish), seeds_in(wish)
        if self._comparing.locked():
            raise ConfigError("another comparison is running", hint="try again in a moment")
        async with self._comparing:
            today = read_profiles(self._current.text, self._options).profiles
            cache = self._scheduler.cache
            objects = all_objects(cache.columns, self._scheduler.pods(), cache.assumed)
            comparison = await beside_decisions(
                lambda: ConfigurationComparison(objects(), today, other, seeds)
            )
            async with aclosing(_run_in_thread(comparison)) as steps:
                async for step in steps:
                    yield step

    def _other_configuration(self, wish: Mapping[str, Any]) -> Sequence[Profile]:
        """The profiles of the text or of the name that a form gives."""
        text, name = wish.get("text"), wish.get("name")
        if isinstance(text, str):
            return read_profiles(text, self._options).profiles
        if name not in NAMED:
            hint = f'give {{"text": "…"}} or {{"name": "…"}}; names are {", ".join(NAMED)}'
            raise ConfigError("expected another configuration", hint=hint)
        found = configuration(name, (), log_warning)
        assert found is not None
        return found.profiles

    async def capacity(self, wish: Mapping[str, Any]) -> Data:
        """How many more pods of a manifest fit; nothing is created."""
        manifest = wish.get("manifest")
        if not isinstance(manifest, str) or not manifest.strip():
            raise ConfigError("expected a manifest", hint='give {"manifest": "…"}')
        classes, rules = list(self._priority_classes()), self._rules()

        def found(cluster: LiveCopy) -> Data:
            objects = cluster.objects()
            objects.of(PRIORITY_CLASS).extend(classes)
            return found_capacity(objects, rules(), manifest)

        async with self._copies.ready() as copied:
            return await beside_decisions(found, copied())

    async def plan(self, wish: Mapping[str, Any]) -> Data:
        """What follows from changes, which are made to a copy of the cluster."""
        changes = wish.get("changes")
        if not isinstance(changes, list) or not changes or not all(map(_is_change, changes)):
            hint = 'give {"changes": [["drain", "NODE"]]}'
            raise ConfigError("expected a list of changes", hint=hint)
        if self._planner is None:
            raise ConfigError("plans are not made here", hint="podium plan makes them")
        if self._planning.locked():
            raise ConfigError("another plan is being made", hint="try again in a moment")
        async with self._planning:
            profiles = [replace(each, extenders=()) for each in self._current.profiles]
            text = None if self._current is self._first else self._current.text
            return await self._planner(profiles, text, [(flag, what) for flag, what in changes])

    async def apply(self, wish: Mapping[str, Any]) -> Data:
        """Make the scheduler decide by other profiles from now on."""
        wished = self._wished(wish)
        if any(profile.extenders for profile in (*self._current.profiles, *wished.profiles)):
            raise ConfigError(
                "rules that ask extenders are not changed while the scheduler runs",
                hint="start it again with this text",
            )
        options = replace(self._scheduler.options, behaviour=wished.behaviour)
        await self._scheduler.reconfigure(wished.profiles, options)
        self._current = wished
        self.on_other_profiles(wished.kind, wished.text)
        return self.profile()


class _ThreadWork(Protocol):
    """Work for a thread that says how far it has come, and can be stopped."""

    done: int
    total: int

    def run(self) -> Data | None:
        """Do it; None when stopped."""

    def stop(self) -> None:
        """Make `run` end early."""


async def _run_in_thread(work: _ThreadWork) -> AsyncGenerator[Data]:
    """The progress of the work, and at the end its result; it is stopped when this is closed."""
    running = asyncio.ensure_future(beside_decisions(work.run))
    try:
        while not running.done():
            yield {"done": work.done, "total": work.total}
            await asyncio.wait([running], timeout=_PROGRESS_SECONDS)
        yield {"result": running.result()}
    finally:
        work.stop()
        if not running.done():
            await asyncio.wait([running])


def _is_change(value: object) -> bool:
    """Whether a value of a form is a change: a flag and its text."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)


def _workload(pod: Pod) -> Data:
    """Kind and name of the workload that a pod belongs to."""
    _, kind, name = workload(pod)
    return {"kind": kind, "workload": name}


def _never(pod: Pod) -> bool:
    return pod.spec.preemption_policy == "Never"


def _owned(decision: Decision) -> Decision:
    """The decision with numbers of its own, for another thread: the rules may use theirs again."""
    decision.codes = decision.codes.copy()
    decision.scores = tuple(
        msgspec.structs.replace(each, raw=each.raw.copy(), score=each.score.copy())
        for each in decision.scores
    )
    return decision


def _told(
    decision: Decision,
    profile: Profile,
    pod: Pod,
    *,
    source: str,
    notes: list[str],
    actual: str | None = None,
) -> Data:
    return decision_data(
        decision,
        source=source,
        ties=profile.ties,
        max_score=profile.max_score,
        never=_never(pod),
        actual=actual,
        notes=notes,
    )
