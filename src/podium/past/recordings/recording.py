"""Podium's own decisions, written down in the form of recordings of kube-scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.cluster.simulation import Simulation
from podium.errors import InputError
from podium.library.notices import Notify, log_warning
from podium.library.pending_pods import pending, seen_by
from podium.past.recordings.replay import recorded_simulation
from podium.profiles.policy.configured_predicates import with_registered_names
from podium.profiles.policy.feature_gates import PolicyGates
from podium.render.recording import v1_13, v1_36

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.cluster.simulation import Step
    from podium.engine.framework.profile import Profile
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

    #: Passes steps on, and may show how many of them there are.
    Progress = Callable[[Iterator[Step], int], Iterator[Step]]


@dataclass(frozen=True, slots=True)
class Recording:
    """A cluster, its pending pods and what was decided about them."""

    #: One line of a recording: plain data that `replay` takes.
    scenario: JsonObject
    steps: Sequence[Step]


def _unwatched(steps: Iterator[Step], _: int) -> Iterator[Step]:
    return steps


def record(
    objects: Objects,
    chosen: ChosenProfiles,
    *,
    progress: Progress = _unwatched,
    notify: Notify = log_warning,
) -> Recording:
    """Place the pending pods and write down every attempt.

    The Node objects of the scenario are in the order in which pods look at the nodes, because
    replaying looks at them in the order of the scenario. What the format has no room for is
    refused: extenders, user rules, another choice among equal nodes than the generation's own.
    """
    check_recordable(chosen)
    waiting = pending(objects, chosen.schedulers, by_priority=chosen.profile.by_priority)
    seen = seen_by(objects, chosen.schedulers, without=waiting)
    order = _node_order(objects, chosen.profile)
    seen.nodes = sorted(objects.nodes, key=lambda node: order[node.name])
    if chosen.profile.percentage_of_nodes_to_score < 100 <= len(seen.nodes):
        notify("in a recording every pod looks at the nodes from the first one on")
    simulation = (
        Simulation(chosen.profile, listed_order=True)
        if chosen.generation.uses_policies
        else recorded_simulation(chosen.profiles)
    )
    simulation.load(seen, just_listed=True)
    steps = list(progress(simulation.run(waiting, recording=True), len(waiting)))
    return Recording(_scenario(seen, waiting, steps, chosen), steps)


def check_recordable(chosen: ChosenProfiles) -> None:
    """Refuse what the format of recordings has no room for."""
    profile = chosen.profile
    if profile.extenders:
        urls = ", ".join(extender.url_prefix for extender in profile.extenders)
        raise InputError(
            f"{profile.name} asks extenders ({urls}), whose answers a recording cannot hold",
            hint="take the extenders out",
        )
    usual = "round-robin" if chosen.generation.uses_policies else "first"
    if profile.ties != usual:
        what = f"a recording cannot hold the tie rule {profile.ties}"
        raise InputError(what, hint=f"{usual} is what recordings of this generation go by")
    if chosen.options.rules:
        raise InputError("a recording cannot hold user rules", hint="leave them out")


def _node_order(objects: Objects, profile: Profile) -> dict[str, int]:
    """Node -> its place in the order in which the first pod looks at the nodes."""
    probe = Simulation(profile)
    probe.load(objects, just_listed=True)
    names = probe.cache.columns.nodes.names
    return {names[row]: place for place, row in enumerate(probe.cache.order().tolist())}


def _scenario(
    objects: Objects, waiting: Sequence[Pod], steps: Sequence[Step], chosen: ChosenProfiles
) -> JsonObject:
    if not chosen.generation.uses_policies:
        made = v1_36.scenario(objects, waiting, steps) | {"release": chosen.generation.name}
        return made if chosen.config is None else made | {"config": chosen.config}
    made = v1_13.scenario(objects, waiting, steps, chosen.profile)
    made["options"] = _options(chosen)
    if chosen.policy is not None:
        gates = PolicyGates(chosen.options.feature_gates)
        return made | {"policy": with_registered_names(chosen.policy, gates)}
    return made | {"provider": chosen.provider}


def _options(chosen: ChosenProfiles) -> dict[str, Any]:
    """The options in the form that recordings of v1.13 have."""
    given = chosen.options
    found: dict[str, Any] = {
        "percentageOfNodesToScore": chosen.profile.percentage_of_nodes_to_score,
        "hardPodAffinitySymmetricWeight": given.hard_pod_affinity_symmetric_weight,
    }
    if given.disable_preemption:
        found["disablePreemption"] = True
    if given.feature_gates:
        found["featureGates"] = dict(given.feature_gates)
    if given.max_pd_volumes is not None:
        found["env"] = {"KUBE_MAX_PD_VOLS": given.max_pd_volumes}
    return found
