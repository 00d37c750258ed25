"""Long random histories in the states that few clusters reach.

The histories of `rich_histories`, and in them: several profiles in one scheduler, an extender, a
rule of a user that prepares for each pod, memory for few answers, namespaces that get other labels,
placed pods that are relabelled or resized in place, pods on nodes that do not exist, pods that are
nominated from outside, nodes of which one field changes, disks that CSI drivers take over, classes
of storage and devices that change, clusters of no node and of more than a hundred. Now and then the
cluster is built anew from its objects alone: a decision in it must be that of the cluster that
lived through the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace as with_options
from random import Random
from typing import Any

from msgspec.structs import replace

from builders import ZONE as OLD_ZONE
from builders import claim, selector, storage_class, taint, term
from builders import pod as bare_pod
from builders_v1_36 import HOST, ZONE, csi_capacity, csi_node, in_spaces, namespace
from engine.fast.twins import outcome
from long_histories import (
    APPS,
    PROFILES,
    TUNINGS,
    DifferenceError,
    Plan,
)
from podium.cluster.cache.cache import Cache
from podium.cluster.decider import Decider, always
from podium.cluster.simulation import Simulation
from podium.engine.framework.extenders import Extender, Filtered
from podium.engine.framework.profile import Profile
from podium.engine.state.catalog import Catalog
from podium.objects.kinds.devices import DeviceClass, DeviceClassSpec
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import AwsElasticBlockStore, Container, Pod, ResourceRequirements
from podium.objects.kinds.storage import EBS, HANDED_OVER
from podium.rules import predicate
from rich_histories import GPU, RichHistory
from user_rules import extended

SPACES = ("default", "red", "blue")
EBS_DRIVER = "ebs.csi.aws.com"
SECOND = "second-scheduler"
SIZES = (0, 1, 2, 7, 8, 9, 30, 120)


@predicate("AvoidsCrowds", prepare=lambda _, nodes: sum(node.pod_count for node in nodes))
def avoids_crowds(pod: Any, node: Any) -> bool | str:
    """Compares a node with all of them."""
    return 2 * node.pod_count <= pod.prepared + 3 or "node(s) were crowded"


def picky(question: Any) -> Filtered:
    """An extender that drops the last of several nodes."""
    nodes = tuple(question.nodes)
    return Filtered(nodes[:-1] if len(nodes) > 2 else nodes)


class WildHistory(RichHistory):
    """A cluster in which anything may change."""

    def __init__(self, seed: int, plan: Plan) -> None:
        #: The pods that wait or are placed, as the API server has them.
        self._made: dict[str, Pod] = {}
        self._extended = seed % 5 == 0
        self._prepares, self._has_little_memory = seed % 7 == 0, seed % 4 == 1
        #: How many decisions were compared with those of a cluster that was built anew.
        self.built_anew = 0
        super().__init__(seed, plan)
        self._wildness = self.dice.choice([0.02, 0.1, 0.2])
        #: What happens in this history; where all of it does, few answers are kept for long.
        self._wild = self.dice.sample(self._acts(), self.dice.choice([1, 2, 7]))
        for name in SPACES:
            self._put_object(namespace(name, {"team": self.dice.choice("xy")}))

    def _simulation(self, profile: Profile) -> Simulation:
        """Two schedulers, the second of which has other rules; perhaps with an extender."""
        extenders = (Extender("http://x", filter_verb="filter"),) if self._extended else ()
        others = sorted(name for name in PROFILES if name[:5] == self.plan.profile[:5])
        other = PROFILES[others[self.dice.randrange(len(others))]]
        if not self.plan.preemption:
            other = with_options(other, post_filters=())
        second = with_options(
            other, scheduler_name=SECOND, tuning=profile.tuning, extenders=extenders
        )
        if self._prepares:
            profile = extended(profile, avoids_crowds)
        simulation = Simulation(
            with_options(profile, extenders=extenders),
            others=(second,) if second.accounting == profile.accounting else (),
            verification=self._verification,
            answer=picky,
        )
        if self._has_little_memory:
            decider = simulation.decider
            simulation.decider = Decider(
                simulation.cache,
                decider.profiles,
                clock=always(0.0),
                nominations=decider.nominations,
                verification=self._verification,
                kept_bytes=1,
            )
        return simulation

    # What pods are like ---------------------------------------------------------------------------

    def _kind(self, number: int) -> Mapping[str, Any]:
        kind = dict(super()._kind(number))
        dice = self.dice
        if dice.random() < 0.3 and "own_claim" not in kind and "devices" not in kind:
            kind["namespace"] = dice.choice(SPACES)
            kind.pop("volumes", None)
        if dice.random() < 0.2:
            spaces = selector({"team": dice.choice("xy")})
            zone = ZONE if self._has_plugins else OLD_ZONE
            near = in_spaces(selector({"app": dice.choice(APPS)}), dice.choice([zone, HOST]))
            near = replace(near, namespace_selector=spaces)
            kind[dice.choice(["affinity", "anti"])] = [near]
            kind.setdefault("labels", {"app": dice.choice(APPS)})
        if dice.random() < 0.2:
            near = term({"app": dice.choice(APPS)}, HOST)
            kind[dice.choice(["prefers", "avoids"])] = [(5, near)]
        kind["scheduler"] = dice.choice(["default-scheduler", SECOND])
        return kind

    def _pod(self, kind: Mapping[str, Any], **more: Any) -> Pod:
        fields = dict(kind)
        scheduler = fields.pop("scheduler", "default-scheduler")
        made = super()._pod(fields, **more)
        made = replace(made, spec=replace(made.spec, scheduler_name=scheduler))
        self._made[made.uid] = made
        return made

    # What happens ---------------------------------------------------------------------------------

    def _changed_node(self, change: Callable[[Node], Node]) -> None:
        if self._nodes:
            name = self.dice.choice(sorted(self._nodes))
            self._nodes[name] = change(self._nodes[name])
            self.simulation.cache.put_node(self._nodes[name])

    def _change_one_field(self) -> None:
        """One field of a node changes."""
        dice = self.dice

        def changed(node: Node) -> Node:
            spec, status = node.spec, node.status
            allocatable = dict(status.allocatable or {})
            what = dice.randrange(6)
            if what == 0:
                key, amount = dice.choice([("cpu", "2"), ("memory", "4Gi"), ("pods", 3), (GPU, 1)])
                status = replace(status, allocatable=allocatable | {key: amount})
            elif what == 1:
                effect = dice.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"])
                taints = [taint(dice.choice("tu"), effect=effect)] if dice.random() < 0.5 else None
                spec = replace(spec, taints=taints)
            elif what == 2:
                spec = replace(spec, unschedulable=not spec.unschedulable)
            elif what == 3:
                status = replace(status, images=None)
            elif what == 4:
                allocatable.pop(GPU, None)
                status = replace(status, allocatable=allocatable)
            else:
                labels = {k: v for k, v in (node.metadata.labels or {}).items() if k != ZONE}
                return replace(node, metadata=replace(node.metadata, labels=labels))
            return replace(node, spec=spec, status=status)

        self._changed_node(changed)

    def _update_pod(self) -> None:
        """A placed pod gets other labels, or other requests, in place."""
        if not self._placed:
            return
        dice, cache = self.dice, self.simulation.cache
        uid = dice.choice(self._placed)
        resident = cache.columns.pods.by_uid[uid]
        there = cache.columns.nodes.names[resident.row]
        pod = self._made[uid]
        before = replace(pod, spec=replace(pod.spec, node_name=there))
        if cache.is_assumed(uid):
            cache.add_pod(before)
        if dice.random() < 0.5:
            labels = {"app": dice.choice(APPS)}
            after = replace(before, metadata=replace(before.metadata, labels=labels))
        else:
            requests: dict[str, str | int | float] = {
                "cpu": f"{dice.randrange(1, 3000)}m",
                "memory": "1Gi",
            }
            one = Container(resources=ResourceRequirements(requests=requests))
            after = replace(before, spec=replace(before.spec, containers=[one]))
        cache.update_pod(before, after)
        self._made[uid] = after

    def _nominate_pod(self) -> None:
        """A pod that waits is nominated to a node, or some nomination is withdrawn."""
        dice = self.dice
        number = dice.randrange(4)
        waiting = bare_pod(
            f"nominated-{number}",
            requests={"cpu": dice.choice(["1", "6"])},
            labels={"app": dice.choice(APPS)},
            priority=dice.choice([0, 7, 20]),
            ports=[80] if number == 0 else (),
        )
        where = dice.choice(["", *sorted(self._nodes)])
        self.simulation.nominate(waiting, where)

    def _place_nowhere(self) -> None:
        """A pod is on a node that does not exist; it goes soon."""
        there = self._pod(self.dice.choice(self._kinds), node=f"gone-{self.dice.randrange(2)}")
        self._placed.append(there.uid)
        self.simulation.cache.add_pod(there)
        if self.dice.random() < 0.7:
            for uid in [uid for uid in self._placed if self._node_of(uid)[:5] == "gone-"]:
                self._remove(uid)

    def _relabel_namespace(self) -> None:
        self._put_object(namespace(self.dice.choice(SPACES), {"team": self.dice.choice("xyz")}))

    def _change_classes(self) -> None:
        """Classes of storage and devices, capacities and shared claims change."""
        dice = self.dice
        what = dice.randrange(5)
        if what == 0:
            # Which of two classes serves one resource depends on the past, as in kube-scheduler.
            name, resource = dice.choice([("gpu", GPU), ("other", "example.com/other")])
            spec = DeviceClassSpec(extended_resource_name=dice.choice([resource, None]))
            metadata = ObjectMeta(name=name)
            self._put_object(DeviceClass(kind="DeviceClass", metadata=metadata, spec=spec))
        elif what == 1:
            mode = dice.choice(["WaitForFirstConsumer", "Immediate"])
            self._put_object(storage_class("made", mode=mode, provisioner="made.example.com"))
        elif what == 2:
            where = selector({"disk": dice.choice(["ssd", "hdd"])})
            size = dice.choice(["1Mi", "9Gi"])
            self._put_object(csi_capacity(f"c-{dice.randrange(3)}", "made", size, where))
        elif what == 3:
            self._hand_over_disks()
        else:
            number = dice.randrange(6)
            name = f"shared-{number}"
            if not self._drop_object("PersistentVolumeClaim", f"default/{name}"):
                self._put_object(claim(name, volume=f"disk-{number}"))

    def _hand_over_disks(self) -> None:
        """A node hands its EBS disks over to the CSI driver, or takes them back."""
        if not self._nodes or not self._has_plugins:
            return
        name = self.dice.choice(sorted(self._nodes))
        made = csi_node(name, **{EBS_DRIVER: self.dice.choice([0, 1, 9])})
        plugins = self.dice.choice([EBS, ""])
        metadata = ObjectMeta(name=name, annotations={HANDED_OVER: plugins})
        self._put_object(replace(made, metadata=metadata))

    def _disk(self, number: int) -> Any:
        """A volume that is bound; some are of the older kind that CSI drivers take over."""
        made = super()._disk(number)
        if self.dice.random() < 0.7:
            return made
        disk = AwsElasticBlockStore(f"disk-{number}")
        zoned = {ZONE: self.dice.choice(["east", "west"])}
        metadata = replace(made.metadata, labels=zoned)
        spec = replace(made.spec, csi=None, aws_elastic_block_store=disk)
        return replace(made, metadata=metadata, spec=spec)

    def _acts(self) -> list[Callable[[], None]]:
        return [
            self._change_one_field,
            self._update_pod,
            self._nominate_pod,
            self._place_nowhere,
            self._relabel_namespace,
            self._change_classes,
            self.change_objects,
        ]

    def drop_node(self) -> None:
        """A node goes, perhaps the last one."""
        if len(self._nodes) == 1 and self.plan.nodes < 3:
            [(name, gone)] = self._nodes.items()
            for uid in [uid for uid in self._placed if self._node_of(uid) == name]:
                self._remove(uid)
            del self._nodes[name]
            self.simulation.cache.drop_node(gone)
            return
        super().drop_node()

    def _node_of(self, uid: str) -> str:
        columns = self.simulation.cache.columns
        return columns.nodes.names[columns.pods.by_uid[uid].row]

    def place_pod(self) -> None:
        """Another scheduler places a pod, on a full node or not."""
        if self._nodes:
            there = self._pod(self.dice.choice(self._kinds), node=self.dice.choice([*self._nodes]))
            self._placed.append(there.uid)
            self.simulation.cache.add_pod(there)

    def decide(self, kind: Mapping[str, Any], *, carry_out: bool = True) -> None:
        """Decide about a pod; now and then in a cluster that is built anew as well."""
        super().decide(kind, carry_out=carry_out)
        present = self.simulation.cache.columns.pods.by_uid
        self._made = {uid: pod for uid, pod in self._made.items() if uid in present}
        if self.dice.random() < self._wildness:
            self.dice.choice(self._wild)()
        if not self._nodes and self.dice.random() < 0.2:
            self.add_node()
        if self.dice.random() < 0.05:
            self._compare_with_new(kind)

    def _compare_with_new(self, kind: Mapping[str, Any]) -> None:
        """A decision in a cluster that is built from the same objects is the same."""
        simulation = self.simulation
        if self._extended:
            return
        wanted = self._pod(kind)
        profile = simulation.profile_of(wanted)
        cache = self._rebuilt()
        decider = Decider(cache, {profile.scheduler_name: profile}, clock=always(0.0))
        decider.ties = simulation.ties
        nominations = simulation.decider.nominations
        assert nominations is not None
        cache.columns.set_nominated({name: nominations.on(name) for name in nominations.nodes()})
        kept = outcome(simulation.decider.look(wanted, profile, recording=False))
        new = outcome(decider.look(wanted, profile, recording=False))
        self.built_anew += 1
        if kept != new:
            fields = {key: (kept[key], new[key]) for key in kept if kept[key] != new[key]}
            raise DifferenceError(f"built anew: {fields}")

    def _rebuilt(self) -> Cache:
        """The same cluster, made of its objects and of what is left of its past."""
        old, profile = self.simulation.cache, self.simulation.profile
        columns = old.columns
        catalog = Catalog()
        for kind, shelf in columns.catalog.shelves():
            for item in shelf:
                catalog.shelf(kind).put(item)
        catalog.promised_volumes = dict(columns.catalog.promised_volumes)
        catalog.provisioning = dict(columns.catalog.provisioning)
        new = Cache(profile.accounting, catalog=catalog, node_order=profile.node_order)
        for row in columns.nodes.order.tolist():
            new.put_node(self._nodes[columns.nodes.names[row]])
        for row, residents in enumerate(columns.pods.residents):
            for resident in residents:
                new.columns.add_pod(self._made[resident.uid], columns.nodes.names[row])
                if resident.terminating:
                    new.columns.mark_terminating(resident.uid)
        for uid, reservations in columns.pods.reservations.items():
            new.columns.pods.reserve(uid, reservations)
        new.restore_past(old.past())
        return new


def wild_plan(dice: Random) -> Plan:
    """A plan for a cluster of an odd size."""
    return Plan(
        profile=dice.choice(sorted(PROFILES)),
        tuning=dice.choice(TUNINGS),
        nodes=dice.choice(SIZES),
        classes=dice.choice([2, 6, 15]),
        features=True,
        taints=dice.random() < 0.5,
        preemption=dice.random() < 0.6,
        losses=dice.random() < 0.3,
    )
