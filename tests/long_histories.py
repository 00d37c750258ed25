"""Long random histories of a cluster in which every decision is made twice and compared.

A simulation lives through the whole history and keeps answers between decisions. It verifies each
of them: node, ties, the verdict of every row, the total of every feasible row, victims and messages
must be those of a decision that asks all rules about all nodes. A history is a function of its seed
and its plan.

There are enough nodes and classes of pods for every way of bringing answers up to date to be taken:
one changed row, a few, many, all of them; nodes that come, change and go; classes that are asked in
turn, or one for a long time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import msgspec

from builders import ZONE as OLD_ZONE
from builders import (
    claim,
    claim_volume,
    expression,
    node,
    node_term,
    objects,
    pod,
    replica_set,
    selector,
    service,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from builders_v1_36 import (
    HARD,
    HOST,
    SOFT,
    ZONE,
    configured,
    default_profile,
    device_slice,
    owned,
    spec_with,
    spread,
    with_args,
)
from podium.cluster.simulation import Simulation
from podium.cluster.verification import Verification
from podium.engine.framework.profile import Profile
from podium.engine.framework.tuning import Tuning
from podium.engine.state.catalog import Catalog
from podium.generations.known import GENERATIONS
from podium.objects.kinds.devices import DeviceClass, ResourceClaim
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, PodResourceClaim
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from user_rules import MILD, extended

#: A configuration whose scores of resources are those of no other profile here.
OTHER_SCORES: dict[str, Any] = {
    "pluginConfig": [
        with_args(
            "NodeResourcesFit",
            scoringStrategy={
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
                "requestedToCapacityRatio": {
                    "shape": [
                        {"utilization": 0, "score": 0},
                        {"utilization": 60, "score": 10},
                        {"utilization": 100, "score": 4},
                    ]
                },
            },
        ),
        with_args(
            "PodTopologySpread",
            defaultingType="List",
            defaultConstraints=[
                {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
            ],
        ),
        with_args("InterPodAffinity", hardPodAffinityWeight=50),
    ]
}


def _of_release(name: str, **options: Any) -> Profile:
    """The default profile of a release."""
    [found] = from_config(default_config(generation=GENERATIONS[name]), Options(**options))
    return found


PROFILES: dict[str, Profile] = {
    "v1.34": _of_release("v1.34"),
    "v1.35": _of_release("v1.35", ties="kube-scheduler"),
    "v1.37": _of_release("v1.37"),
    "v1.37 sampling": _of_release("v1.37", ties="kube-scheduler", percentage_of_nodes_to_score=30),
    "v1.37 random": _of_release("v1.37", ties="random:7"),
    "v1.36": default_profile(),
    "v1.36 other scores": configured(OTHER_SCORES)[0],
    "v1.36 round robin": default_profile(ties="round-robin"),
    "v1.36 user rules": extended(default_profile(), *MILD),
    "v1.13": from_provider("DefaultProvider", Options()),
    "v1.13 packing": from_provider("ClusterAutoscalerProvider", Options(ties="random:7")),
    "v1.13 sampling": from_provider("DefaultProvider", Options(percentage_of_nodes_to_score=30)),
    "v1.13 user rules": extended(from_provider("DefaultProvider", Options()), *MILD),
}
#: The ways of a long-lived cache differ by these; the first is what users have.
TUNINGS: tuple[Tuning, ...] = (
    Tuning(),
    Tuning(one_by_one=2, steady_decisions=2, min_reduction=1, min_batch_rows=2, steady_rounds=0),
    Tuning(one_by_one=0, steady_decisions=1, min_reduction=2, journal_limit=8, steady_rounds=99),
    Tuning(one_by_one=99, steady_decisions=3, min_reduction=1, few_changes=99, steady_rounds=1),
)
APPS = ("a", "b", "c")


class DifferenceError(AssertionError):
    """A decision with kept answers is not the plain decision."""


@dataclass(frozen=True)
class Plan:
    """What a history is like, besides its seed."""

    profile: str = "v1.36"
    tuning: Tuning = TUNINGS[0]
    nodes: int = 20
    classes: int = 6
    #: Whether some pods want more than resources: spreading, affinity, ports, volumes.
    features: bool = False
    #: Whether some nodes have taints: then scores depend on all feasible nodes.
    taints: bool = False
    #: Whether pods may take the place of others.
    preemption: bool = False
    #: Whether nodes stop to say how much they have of a resource.
    losses: bool = False


def random_plan(dice: Random) -> Plan:
    """A plan for one history; most of them are as plain as ordinary clusters are."""
    features = dice.random() < 0.5
    return Plan(
        profile=dice.choice(sorted(PROFILES)),
        tuning=dice.choice(TUNINGS),
        nodes=dice.choice([3, 5, 7, 20, 40, 80]),
        classes=dice.choice([2, 6, 15, 40]),
        features=features,
        taints=dice.random() < 0.3,
        preemption=dice.random() < 0.3,
    )


class LongHistory:
    """A cluster with pods that come and go, in which each decision is verified."""

    def __init__(self, seed: int, plan: Plan) -> None:
        self.plan = plan
        self.dice = Random(seed)  # noqa: S311 - the same history for the same seed
        profile = replace(PROFILES[plan.profile], tuning=plan.tuning)
        if not plan.preemption:
            profile = replace(profile, post_filters=())
        self._verification = Verification(every=1)
        self.simulation = self._simulation(profile)
        #: Whether the release has plugins: spread constraints and devices.
        self._has_plugins = not plan.profile.startswith("v1.13")
        self._pods = 0
        self._nodes: dict[str, Node] = {}
        self._placed: list[str] = []
        #: So many pods come or go between two decisions, at most; an index that is dropped too
        #: often is not made again for a long time, so that some histories are calm throughout.
        self._churns = self.dice.choice([[0, 1, 3, 6, 12], [0, 1, 2], [1, 2, 3]])
        self._kinds = [self._kind(number) for number in range(plan.classes)]
        self.simulation.load(objects(*_others()))
        for _ in range(plan.nodes):
            self.add_node()

    def _simulation(self, profile: Profile) -> Simulation:
        """The simulation that lives through the history, with nothing in it."""
        return Simulation(profile, verification=self._verification)

    @property
    def decisions(self) -> int:
        """How many decisions were compared."""
        return self._verification.compared

    # What pods are like ---------------------------------------------------------------------------

    def _kind(self, number: int) -> Mapping[str, Any]:
        """What the pods of a class are like."""
        dice = self.dice
        cpu = dice.choice([100, 250, 500, 1000, 1500, 2000, 4000, 8000, 30_000])
        memory = dice.choice([64, 128, 500, 1024, 2048, 4096, 9000])
        kind: dict[str, Any] = {
            "requests": {"cpu": f"{cpu + number}m", "memory": f"{memory + number}Mi"},
        }
        if self.plan.preemption:
            kind["priority"] = dice.choice([0, 0, 0, 5, 9])
        if not self.plan.features or dice.random() < 0.4:
            return kind
        app = dice.choice(APPS)
        kind["labels"] = {"app": app}
        zone = ZONE if self._has_plugins else OLD_ZONE
        key = dice.choice([zone, HOST])
        kind |= dice.choice(
            [
                {"anti": [term({"app": app}, key)]},
                {"affinity": [term({"app": app}, zone)]},
                {"prefers": [(7, term({"app": app}, key))]},
                {"avoids": [(3, term({"app": app}, key))]},
                {"ports": [dice.choice([80, 81])]},
                {"node_selector": {"disk": "ssd"}},
                {"prefers_nodes": [(4, node_term(expression("disk", "In", "ssd")))]},
                {"tolerations": [tolerates("t", "Exists")]},
                {"volumes": [claim_volume(dice.choice(["bound", "late"]))]},
                {"image": "app:1"},
                {"requests": kind["requests"] | {"example.com/gpu": 1}},
                {"owner": ("ReplicaSet", app)},
                {"more": {"topology_spread_constraints": [self._constraint(app)]}},
                {"more": {"topology_spread_constraints": [self._constraint(app)]}},
                {"devices": dice.choice([1, 2])},
            ]
        )
        return kind

    def _constraint(self, app: str) -> Any:
        dice = self.dice
        chosen = selector({"app": app})
        when = SOFT if dice.random() < 0.6 else HARD
        return spread(dice.choice([ZONE, HOST]), dice.choice([1, 2]), chosen, when=when)

    def _pod(self, kind: Mapping[str, Any], **more: Any) -> Pod:
        fields = {**kind, **more}
        spec = fields.pop("more", {})
        owner = fields.pop("owner", None)
        devices = fields.pop("devices", 0)
        self._pods += 1
        made = pod(f"p{self._pods}", **fields)
        if devices and not made.spec.node_name:
            self._claim(made.name, devices)
            spec = {"resource_claims": [PodResourceClaim(name="c", resource_claim_name=made.name)]}
        if owner is not None:
            made = owned(made, *owner)
        return spec_with(made, **spec) if spec else made

    def _claim(self, name: str, devices: int) -> None:
        """A claim for some devices, of the name of its pod."""
        wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": devices}
        made = {
            "metadata": {"name": name, "namespace": "default", "uid": f"claim {name}"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}},
        }
        self._catalog.resource_claims.put(msgspec.convert(made, ResourceClaim))

    @property
    def _catalog(self) -> Catalog:
        return self.simulation.cache.columns.catalog

    # What happens ---------------------------------------------------------------------------------

    def add_node(self) -> None:
        """A node comes."""
        # A rule of users reads the number.
        self._put(f"n{len(self._nodes)}{self.dice.randrange(1000):03}")

    def _put(self, name: str) -> None:
        dice = self.dice
        labels = {
            HOST: name,
            ZONE: dice.choice(["east", "west", "south"]),
            OLD_ZONE: dice.choice(["east", "west"]),
            "disk": dice.choice(["ssd", "hdd"]),
        }
        taints = [dice.choice([taint("t"), taint("u", effect="PreferNoSchedule")])]
        made = node(
            name,
            cpu=dice.choice(["8", "16", "32"]),
            memory=dice.choice(["8Gi", "16Gi", "64Gi"]),
            pods=dice.choice([4, 20, 110]),
            resources={"example.com/gpu": 2} if dice.random() < 0.2 else None,
            labels=labels,
            taints=taints if self.plan.taints and dice.random() < 0.2 else (),
            unschedulable=dice.random() < 0.03,
            images={"app:1": 600 * 1024 * 1024} if dice.random() < 0.3 else None,
        )
        self._nodes[name] = made
        self.simulation.cache.put_node(made)
        if self.plan.features and self._has_plugins:
            self._put_devices(name)

    def _put_devices(self, node_name: str) -> None:
        """The driver of a node says which devices it has."""
        count = self.dice.choice([0, 1, 3])
        devices = [{"name": f"d{number}"} for number in range(count)]
        self._catalog.resource_slices.put(device_slice(node_name, *devices))

    def change_node(self) -> None:
        """A node gets another label, loses a resource, or gets another of everything."""
        if not self._nodes:
            return
        name = self.dice.choice(sorted(self._nodes))
        if self.dice.random() < 0.3:
            self._put(name)
            return
        before = self._nodes[name]
        if self.plan.losses and self.dice.random() < 0.2:
            made = node_without(before, self.dice.choice(["cpu", "memory", "pods"]))
        else:
            labels = dict(before.metadata.labels or {}) | {"turn": str(self.dice.randrange(9))}
            made = node_with_labels(before, labels)
        self._nodes[name] = made
        self.simulation.cache.put_node(made)

    def drop_node(self) -> None:
        """A node goes; its pods mostly go with it."""
        if len(self._nodes) < 2:
            return
        name = self.dice.choice(sorted(self._nodes))
        gone = self._nodes.pop(name)
        if self.dice.random() < 0.9:
            columns = self.simulation.cache.columns
            row = columns.nodes.row_of[name]
            for uid in [each.uid for each in columns.pods.residents[row]]:
                self._remove(uid)
        self.simulation.cache.drop_node(gone)

    def remove_pod(self) -> None:
        """A placed pod goes."""
        if self._placed:
            self._remove(self.dice.choice(self._placed))

    def _remove(self, uid: str) -> None:
        if uid in self._placed:
            self._placed.remove(uid)
        self.simulation.remove(uid)
        self._drop_claim(uid.removeprefix("default/"))

    def _drop_claim(self, name: str) -> None:
        claims = self._catalog.resource_claims
        if (made := claims.get(name)) is not None:
            claims.drop(made)

    def place_pod(self) -> None:
        """Another scheduler places a pod, on a full node or not."""
        kind = self.dice.choice(self._kinds)
        there = self._pod(kind, node=self.dice.choice([*self._nodes]))
        self._placed.append(there.uid)
        self.simulation.load(objects(there))

    def decide(self, kind: Mapping[str, Any], *, carry_out: bool = True) -> None:
        """Decide about a pod, and mostly place it, or evict its victims."""
        wanted = self._pod(kind)
        if "devices" in kind and carry_out:
            # Claims are written, as a scheduler does before it binds.
            decision = [step.decision for step in self.simulation.run([wanted])][-1]
        else:
            decision = self.simulation.attempt(wanted)
        if self._verification.found:
            raise DifferenceError(str(self._verification.found[0]))
        if "devices" in kind:
            self._forget_victims()
            if carry_out and decision.node is not None:
                self._placed.append(wanted.uid)
            else:
                self._drop_claim(wanted.name)
            return
        if not carry_out:
            return
        preemption = decision.preemption
        if decision.node is not None:
            self.simulation.place(wanted, decision)
            self._placed.append(wanted.uid)
        elif preemption is not None and preemption.node is not None:
            for uid in preemption.candidates[preemption.node].uids:
                self._remove(uid)

    def _forget_victims(self) -> None:
        """The simulation has evicted some pods itself."""
        left = self.simulation.cache.columns.pods.by_uid
        for uid in [uid for uid in self._placed if uid not in left]:
            self._placed.remove(uid)
            self._drop_claim(uid.removeprefix("default/"))

    def phase(self) -> None:
        """Some decisions about some classes in turn, with as many changes between them."""
        dice = self.dice
        count = dice.choice([1, 2, 3, len(self._kinds), len(self._kinds)])
        chosen = dice.sample(self._kinds, min(count, len(self._kinds)))
        churn = dice.choice(self._churns)
        node_changes = dice.choice([0.0, 0.05, 0.3])
        in_turn = dice.random() < 0.5
        carried_out = dice.choice([0.9, 0.9, 0.1])
        for number in range(dice.choice([4, 12, 40, 200])):
            kind = chosen[number % len(chosen)] if in_turn else dice.choice(chosen)
            self.decide(kind, carry_out=dice.random() < carried_out)
            changes = dice.randint(0, churn)
            goes = 0.5 if len(self._placed) < 6 * self.plan.nodes else 0.8
            for _ in range(changes):
                if dice.random() < goes:
                    self.remove_pod()
                else:
                    self.place_pod()
            if dice.random() < node_changes:
                self.change_node()
        if dice.random() < 0.2:
            self.add_node()
        if dice.random() < 0.2 and len(self._nodes) > max(2, self.plan.nodes // 2):
            self.drop_node()

    def run(self, decisions: int) -> None:
        """Live until so many decisions were compared."""
        while self.decisions < decisions:
            self.phase()


def node_with_labels(before: Node, labels: Mapping[str, str]) -> Node:
    """The node with other labels."""
    meta = msgspec.structs.replace(before.metadata, labels=dict(labels))
    return msgspec.structs.replace(before, metadata=meta)


def node_without(node: Node, resource: str) -> Node:
    """The node, which does not say that it has any of the resource."""
    allocatable = dict(node.status.allocatable or {})
    allocatable.pop(resource, None)
    status = msgspec.structs.replace(node.status, allocatable=allocatable)
    return msgspec.structs.replace(node, status=status)


def _others() -> list[Any]:
    """The objects that rules look up."""
    return [
        service("a", {"app": "a"}),
        replica_set("b", selector({"app": "b"})),
        storage_class("late"),
        claim("bound", volume="v"),
        volume("v", claimed_by="bound"),
        claim("late", storage_class="late"),
        msgspec.convert({"metadata": {"name": "gpu"}}, DeviceClass),
    ]
