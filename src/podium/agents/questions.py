"""The questions of an on-call engineer, answered in lines of text by the engine.

The cluster is that of some files, which are read once, or a live one. Every answer starts with the
conclusion. Nothing is written anywhere, and no value of a Secret, an environment variable or an
annotation is part of an answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.host.history_rules import recorded_rules
from podium.library.explanation import Explanation, explain
from podium.library.lookup import pod_key, pod_named
from podium.library.pending_pods import pending
from podium.library.reading import read
from podium.library.snapshots.writing import read_cluster
from podium.past.format.reading import History
from podium.past.replay.past_decisions import decisions_about, derive
from podium.render.decision.analysis import rejection_groups
from podium.render.decision.causes import cause_lines, causes_of_groups
from podium.render.decision.sentences import (
    compare_with_actual,
    headline,
    node_sentences,
    reason_for_choice,
    times,
    why_no_preemption,
)
from podium.render.plain import counted, listed
from podium.render.reports.comparison import comparison_lines
from podium.render.reports.fit import capacity_lines, fix_lines
from podium.render.reports.plan import report as plan_lines
from podium.what_if.capacity.capacity import capacity, kinds_named
from podium.what_if.compare.comparison import NAMED, compare, configuration
from podium.what_if.fix.fix import fix
from podium.what_if.plan.changes import CHANGE_FLAGS
from podium.what_if.plan.cluster_copy import CopyOptions
from podium.what_if.plan.inputs import cluster_documents, live_documents
from podium.what_if.plan.page_plans import check_added_nodes, page_changes
from podium.what_if.plan.plan import plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.decision import Decision
    from podium.kube.access import Access
    from podium.library.notices import Notify
    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.what_if.plan.inputs import ClusterDocuments

#: A live cluster is read again when the last answer is older.
_FRESH_SECONDS: Final = 10.0


class FileCluster:
    """The cluster in some files."""

    def __init__(self, files: Sequence[str], *, workers: int) -> None:
        self._files, self._workers = files, workers
        self._objects: Objects | None = None

    def objects(self) -> Objects:
        """What scheduling reads, parsed once."""
        if self._objects is None:
            self._objects = read(self._files, workers=self._workers)
        return self._objects

    def documents(self) -> ClusterDocuments:
        """The objects with all their fields; a plan changes them, so they are read each time."""
        return cluster_documents(self._files, workers=self._workers)


class LiveCluster:
    """The cluster behind an API server, as it is now."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._objects: Objects | None = None
        self._read_at = 0.0

    def objects(self) -> Objects:
        """What scheduling reads, at most some seconds old."""
        now = time.monotonic()
        if self._objects is None or now - self._read_at > _FRESH_SECONDS:
            self._objects, self._read_at = read_cluster(self._access), now
        return self._objects

    def documents(self) -> ClusterDocuments:
        """The objects with all their fields."""
        return live_documents(self._access)


Cluster = FileCluster | LiveCluster

#: How many causes, nodes and fixes an answer names.
_MOST_CAUSES: Final = 8
_MOST_NODES: Final = 8
_MOST_FIXES: Final = 3
_MOST_PODS: Final = 200
_FEWEST_COMPARED: Final = 2


class Questions:
    """Answers questions about one cluster, and about its history if there is one."""

    def __init__(
        self,
        cluster: Cluster,
        flags: ProfileSource,
        *,
        history: str | None = None,
        notify: Notify = lambda _: None,
    ) -> None:
        """Sentences that are no part of an answer go to *notify*."""
        self._cluster, self._flags, self._history = cluster, flags, history
        self._notify = notify

    # The cluster ------------------------------------------------------------------------------

    def _read(self) -> tuple[Objects, ChosenProfiles]:
        objects = self._cluster.objects()
        return objects, self._flags.choose(objects.snapshot)

    def node_names(self) -> list[str]:
        """The names of all nodes."""
        return [node.name for node in self._cluster.objects().nodes]

    def pod_names(self) -> list[str]:
        """Namespace and name of all pods."""
        return [pod.key for pod in self._cluster.objects().pods]

    def pending_pods(self) -> list[str]:
        """Namespace and name of the pods that wait, in the order in which they are tried."""
        objects, chosen = self._read()
        return [pod.key for pod in pending(objects, chosen.schedulers)]

    # Questions --------------------------------------------------------------------------------

    def why_pending(self, pod: str | None = None) -> Iterator[str]:
        """Why a pod waits, with numbers and the smallest fix; or all that wait, a line each."""
        objects, chosen = self._read()
        if pod is None:
            yield from self._all_pending(objects, chosen)
            return
        wanted = pod_named(objects, pod)
        if wanted.spec.node_name:
            yield f"{wanted.key} is not pending: it runs on {wanted.spec.node_name}"
            return
        found = self._explained(objects, wanted, chosen)
        decision = found.decision
        yield headline(decision)
        yield from self._foreign(wanted, chosen)
        if decision.node is not None:
            yield f"  {reason_for_choice(decision, found.ties)}"
            yield "  a scheduler that decides by these rules would bind it now"
            return
        yield f"  {decision.message}"
        yield from _causes(decision)
        yield f"preemption: {_preemption(found)}"
        yield ""
        yield from self._fixes(objects, wanted, chosen, _MOST_FIXES)

    def _all_pending(self, objects: Objects, chosen: ChosenProfiles) -> Iterator[str]:
        waiting = pending(objects, chosen.schedulers)
        yield f"{len(waiting)} pods are pending"
        by_message: dict[str, list[str]] = {}
        for each in waiting[:_MOST_PODS]:
            decision = self._explained(objects, each, chosen).decision
            fits = f"would be placed on {decision.node}" if decision.node else decision.message
            by_message.setdefault(fits, []).append(each.key)
        for message, pods in sorted(by_message.items(), key=lambda each: -len(each[1])):
            yield f"{counted(len(pods), 'pod')}: {message}"
            yield f"    {listed(pods, _MOST_NODES)}"
        if len(waiting) > _MOST_PODS:
            yield f"{len(waiting) - _MOST_PODS} more were not decided about"

    def explain_placement(self, pod: str, node: str | None = None) -> Iterator[str]:
        """Why a pod goes where it goes, and what became of one node."""
        objects, chosen = self._read()
        wanted = pod_named(objects, pod)
        found = self._explained(objects, wanted, chosen, node)
        decision = found.decision
        yield headline(decision)
        yield from self._foreign(wanted, chosen)
        yield f"  {reason_for_choice(decision, found.ties)}"
        if found.actual is not None:
            yield f"  {compare_with_actual(decision, found.actual)}"
        if found.asked is not None:
            yield f"{found.asked.node}:"
            yield from (f"  {sentence}" for sentence in node_sentences(decision, found.asked))
        yield from _totals(decision)
        yield from _causes(decision)

    def what_if(self, changes: Sequence[str]) -> Iterator[str]:
        """What follows from changes: pods that move, wait, are evicted; what blocks.

        No change may read a file.
        """
        wanted = page_changes([_split_change(each) for each in changes])
        if not wanted:
            raise InputError("there is no change", hint='"drain NODE" would be one')
        check_added_nodes(wanted, self.node_names())
        found = self._cluster.documents()
        chosen = self._flags.choose(found.snapshot)
        options = CopyOptions(now=found.read_at, is_whole=found.is_whole)
        answer = plan(found.documents, wanted, chosen, options)
        yield from (line for line, _ in plan_lines(answer))
        yield from (f"note: {text}" for text in (*found.notes(), *answer.notes))

    def fix(self, pod: str, most: int = 10) -> Iterator[str]:
        """The smallest changes that would give a pending pod a node."""
        objects, chosen = self._read()
        yield from self._fixes(objects, pod_named(objects, pod), chosen, most)

    def capacity(self, pod: str, most: int = 100_000) -> Iterator[str]:
        """How many more pods like one of the cluster fit, and what runs out first."""
        objects, chosen = self._read()
        kinds = kinds_named(pod, objects)
        found = capacity(objects, kinds, chosen.profiles, most=most, notify=self._notify)
        yield from (line for line, _ in capacity_lines(found))

    def compare(self, configurations: Sequence[str], most: int = 10) -> Iterator[str]:
        """The pods of the cluster placed anew by several configurations."""
        chosen = {}
        known = f"the names are {', '.join(NAMED)}"
        for name in configurations:
            found = configuration(name, (), self._notify) if name in NAMED else None
            if found is None:
                raise InputError(f"{name!r} is no configuration", hint=known)
            chosen[name] = found.profiles
        if len(chosen) < _FEWEST_COMPARED:
            raise InputError("a comparison needs two configurations", hint=known)
        result = compare(self._cluster.objects(), chosen, seeds=0, notify=self._notify)
        yield from (line for line, _ in comparison_lines(result, most))

    def past_decision(self, pod: str, attempt: int | None = None) -> Iterator[str]:
        """The decision about a pod as it was made, from the history of the scheduler."""
        if self._history is None:
            hint = "start the server with --history FOLDER"
            raise InputError("there is no history to look into", hint=hint)
        history = History(self._history)
        key = "/".join(pod_key(pod) or (pod,))
        places = decisions_about(history, key, attempt)
        if not places:
            raise InputError(f"has no decision about pod {key}", where=self._history)
        rules_of = recorded_rules(self._flags)
        found = derive(history, places[-1], rules_of)
        rules = rules_of(history.header)
        profile = rules.profiles.get(found.entry.scheduler) or next(iter(rules.profiles.values()))
        decision = found.decision
        yield f"attempt {found.entry.attempt} of {len(places)} recorded: {headline(decision)}"
        yield f"  {reason_for_choice(decision, profile.ties)}"
        if found.difference is not None:
            yield f"  the recorded decision was another one: {found.difference.what}"
        yield from _totals(decision)
        yield from _causes(decision)

    # Parts of answers -------------------------------------------------------------------------

    def _explained(
        self, objects: Objects, pod: Pod, chosen: ChosenProfiles, node: str | None = None
    ) -> Explanation:
        return explain(objects, pod, chosen.profile_of(pod), node=node, notify=self._notify)

    def _fixes(
        self, objects: Objects, pod: Pod, chosen: ChosenProfiles, most: int
    ) -> Iterator[str]:
        found = fix(objects, pod, chosen.profile_of(pod), notify=self._notify)
        yield from (line for line, _ in fix_lines(found, most))

    @staticmethod
    def _foreign(pod: Pod, chosen: ChosenProfiles) -> Iterator[str]:
        if pod.spec.scheduler_name not in chosen.schedulers:
            yield f"  {pod.key} belongs to the scheduler {pod.spec.scheduler_name}"


def _split_change(text: str) -> tuple[str, str]:
    """`drain node-1` as flag and value."""
    verb, _, value = text.strip().partition(" ")
    verb = verb.removeprefix("--")
    if verb not in CHANGE_FLAGS or not value.strip():
        hint = f"it is VERB VALUE with one of {', '.join(CHANGE_FLAGS)}"
        raise InputError(f"{text!r} is no change", hint=hint)
    return verb, value.strip()


def _preemption(found: Explanation) -> str:
    """The pods that the scheduler evicts for the pod, or why it evicts none."""
    preemption = found.decision.preemption
    if preemption is None or preemption.node is None:
        return why_no_preemption(found.decision, never=found.never_preempts)
    victims = listed(preemption.candidates[preemption.node].pods, _MOST_NODES)
    return f"the scheduler evicts {victims} from {preemption.node}"


def _causes(decision: Decision) -> Iterator[str]:
    """What led to the reasons for which nodes were rejected."""
    groups = rejection_groups(decision)
    found = [each for group in causes_of_groups(decision, groups) for each in group]
    for line in cause_lines(found, _MOST_CAUSES):
        yield f"  {line.text} ({listed(line.nodes, 3)})"


def _totals(decision: Decision) -> Iterator[str]:
    """The best nodes with their totals and the scores that they are made of."""
    if decision.totals is None:
        return
    totals = decision.totals.tolist()
    order = sorted(range(len(totals)), key=lambda at: -totals[at])
    yield f"totals of the best of {decision.feasible_count} nodes that fit:"
    for at in order[:_MOST_NODES]:
        parts = ", ".join(
            f"{column.name} {int(column.score[at])}{times(column.weight)}"
            for column in decision.scores
            if column.weight and not column.uniform
        )
        yield f"  {decision.feasible[at]}: {totals[at]} ({parts})"
