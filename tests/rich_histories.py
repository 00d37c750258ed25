"""Long random histories in which the objects around pods and nodes change as well.

The histories of `long_histories`, and in them: pods with claims of devices and of volumes of their
own, slices of devices that come, change and go, limits of volumes, services and budgets that come
and go, pods that terminate, pods that are nominated after a preemption and tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace as with_options
from random import Random
from typing import Any

from msgspec.structs import replace

from builders import ZONE as OLD_ZONE
from builders import (
    budget,
    claim,
    claim_volume,
    ebs,
    expression,
    node_term,
    replica_set,
    selector,
    service,
    storage_class,
    term,
    volume,
)
from builders_v1_36 import HARD, SOFT, ZONE, attachment, csi_node, spread
from long_histories import APPS, DifferenceError, LongHistory, Plan, node_with_labels, random_plan
from podium.cluster.claims import ClaimWriter
from podium.cluster.simulation import DEFER, RETRY, TERMINATE
from podium.objects.kinds.devices import (
    ClaimMeta,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceTaint,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from podium.objects.kinds.meta import Object, ObjectMeta
from podium.objects.kinds.pod import Pod, PodResourceClaim

DRIVER = "gpu.example.com"
GPU = "example.com/gpu"
DISKS = "disks.example.com"
#: Claims of volumes that pods of several classes share.
SHARED_CLAIMS = 6


class RichHistory(LongHistory):
    """A cluster in which everything that rules look up comes, changes and goes."""

    def __init__(self, seed: int, plan: Plan) -> None:
        self._slices: dict[str, ResourceSlice] = {}
        self._known: dict[tuple[str, str], Object] = {}
        self._claimants: dict[str, Pod] = {}
        self._claim_number = 0
        #: Whether most pods care for zones, so that answers are kept by zone for a long time.
        self._is_about_zones = seed % 3 == 0
        super().__init__(seed, plan)
        catalog = self.simulation.cache.columns.catalog
        self.simulation.after_preemption = self.dice.choice([RETRY, DEFER, TERMINATE])
        self._writer = ClaimWriter(catalog.resource_claims)
        # The extended resource that some nodes have by themselves is served by devices elsewhere.
        extended = GPU if self.dice.random() < 0.5 else None
        kind = DeviceClassSpec(extended_resource_name=extended)
        self._put_object(
            DeviceClass(kind="DeviceClass", metadata=ObjectMeta(name="gpu"), spec=kind)
        )
        self._put_object(storage_class("made", provisioner="made.example.com"))
        for number in range(SHARED_CLAIMS):
            self._put_object(claim(f"shared-{number}", volume=f"disk-{number}"))
            self._put_object(self._disk(number))

    def _shelf(self, kind: str) -> Any:
        return self.simulation.cache.columns.catalog.shelf(kind)

    def _put_object(self, item: Object) -> None:
        self._known[item.kind, item.key] = item
        self._shelf(item.kind).put(item)

    def _drop_object(self, kind: str, key: str) -> bool:
        found = self._known.pop((kind, key), None)
        if found is not None:
            self._shelf(kind).drop(found)
        return found is not None

    # What pods are like ---------------------------------------------------------------------------

    def _kind(self, number: int) -> Mapping[str, Any]:
        kind = dict(super()._kind(number))
        dice = self.dice
        if self._is_about_zones and dice.random() < 0.7:
            return self._about_zones(kind)
        if dice.random() < 0.5:
            return kind
        wishes: list[dict[str, Any]] = [
            {"volumes": [claim_volume(f"shared-{dice.randrange(SHARED_CLAIMS)}")]},
            {"volumes": [ebs(dice.choice("xyz"))]},
            {"own_claim": dice.choice(["late", "made"])},
        ]
        if self._has_plugins:
            wishes += [{"devices": dice.choice([1, 1, 2])}, {"devices": 1, "shares": True}]
        return kind | dice.choice(wishes)

    def _about_zones(self, kind: Mapping[str, Any]) -> Mapping[str, Any]:
        """A class that is small, and that scores or filters look at by zone."""
        dice = self.dice
        app, zone = dice.choice(APPS), ZONE if self._has_plugins else OLD_ZONE
        other = dice.choice(APPS)
        wishes: list[dict[str, Any]] = [
            {"anti": [term({"app": other}, zone)]},
            {"affinity": [term({"app": other}, zone)]},
            {"prefers": [(7, term({"app": other}, zone))]},
            {"avoids": [(3, term({"app": other}, zone))]},
        ]
        if self._has_plugins:
            for when in (SOFT, HARD, SOFT):
                constraint = spread(zone, 1, selector({"app": other}), when=when)
                wishes.append({"more": {"topology_spread_constraints": [constraint]}})
        small = {"requests": {"cpu": "100m"}, "labels": {"app": app}}
        return small | {"priority": kind.get("priority", 0)} | dice.choice(wishes)

    def _pod(self, kind: Mapping[str, Any], **more: Any) -> Pod:
        fields = dict(kind)
        devices, shares = fields.pop("devices", 0), fields.pop("shares", False)
        own = fields.pop("own_claim", None)
        if own is not None:
            self._claim_number += 1
            name = f"own-{self._claim_number}"
            self._put_object(claim(name, storage_class=own))
            fields["volumes"] = [claim_volume(name)]
        made = super()._pod(fields, **more)
        if devices and not more.get("node"):
            made = self._with_devices(made, devices, shares=shares)
        return made

    def _with_devices(self, made: Pod, count: int, *, shares: bool) -> Pod:
        """The pod with a claim of devices, its own or one that several pods share."""
        name = f"shared-by-{self.dice.randrange(3)}" if shares else f"claim-of-{made.name}"
        if self._shelf("ResourceClaim").get(name, made.namespace) is None:
            exactly = ExactDeviceRequest("gpu", allocation_mode="ExactCount", count=count)
            spec = ResourceClaimSpec(DeviceClaim([DeviceRequest("r", exactly=exactly)]))
            metadata = ClaimMeta(name=name, namespace=made.namespace, uid=name)
            self._shelf("ResourceClaim").put(
                ResourceClaim(kind="ResourceClaim", metadata=metadata, spec=spec)
            )
        wanted = [PodResourceClaim("gpu", resource_claim_name=name)]
        return replace(made, spec=replace(made.spec, resource_claims=wanted))

    # What happens ---------------------------------------------------------------------------------

    def _put(self, name: str) -> None:
        super()._put(name)
        if self.dice.random() < 0.4:
            self._change_slice(name)

    def _change_slice(self, name: str) -> None:
        """The driver of a node reports other devices, or none any more."""
        dice = self.dice
        known = self._slices.get(name)
        if known is not None and dice.random() < 0.3:
            del self._slices[name]
            self._shelf("ResourceSlice").drop(known)
            return
        devices = [
            Device(
                f"d{number}",
                attributes={"model": DeviceAttribute(string_value=dice.choice("ab"))},
                taints=[DeviceTaint("broken", effect="NoSchedule")]
                if dice.random() < 0.1
                else None,
            )
            for number in range(dice.choice([1, 2, 4]))
        ]
        generation = known.spec.pool.generation + 1 if known is not None else 1
        pool = ResourcePool(name, generation, 1)
        where: dict[str, Any] = {"node_name": name}
        if dice.random() < 0.1:
            where = {"all_nodes": True}
        spec = ResourceSliceSpec(DRIVER, pool, devices=devices, **where)
        made = ResourceSlice(kind="ResourceSlice", metadata=ObjectMeta(name=name), spec=spec)
        self._slices[name] = made
        self._shelf("ResourceSlice").put(made)

    def _disk(self, number: int) -> Any:
        """A volume that is bound, reachable from everywhere or from some nodes."""
        dice = self.dice
        where = [node_term(expression("disk", "In", dice.choice(["ssd", "hdd"])))]
        return volume(
            f"disk-{number}",
            claimed_by=f"shared-{number}",
            reachable=where if dice.random() < 0.5 else None,
            csi=(DISKS, f"h{number}"),
        )

    def change_objects(self) -> None:
        """Something that rules look up comes, changes or goes."""
        dice = self.dice
        acts: list[Callable[[], object]] = [
            self._change_service,
            self._change_budget,
            self._change_volumes,
            self._change_limits,
            self._terminate_pod,
        ]
        if self._nodes:
            acts.append(lambda: self._change_slice(dice.choice(sorted(self._nodes))))
        dice.choice(acts)()

    def _change_service(self) -> None:
        app = self.dice.choice(APPS)
        if not self._drop_object("Service", f"default/s-{app}"):
            self._put_object(service(f"s-{app}", {"app": app}))
        if not self._drop_object("ReplicaSet", f"default/r-{app}"):
            self._put_object(replica_set(f"r-{app}", selector({"app": app})))

    def _change_budget(self) -> None:
        app = self.dice.choice(APPS)
        if not self._drop_object("PodDisruptionBudget", f"default/b-{app}"):
            allowed = self.dice.choice([0, 0, 1])
            self._put_object(budget(f"b-{app}", selector({"app": app}), allowed=allowed))

    def _change_volumes(self) -> None:
        """A volume is reachable from other nodes, or a new one is there to be bound."""
        dice = self.dice
        if dice.random() < 0.5:
            self._put_object(self._disk(dice.randrange(SHARED_CLAIMS)))
            return
        name = f"free-{dice.randrange(8)}"
        if not self._drop_object("PersistentVolume", name):
            where = [node_term(expression("disk", "In", dice.choice(["ssd", "hdd"])))]
            self._put_object(volume(name, storage_class="late", reachable=where))

    def _change_limits(self) -> None:
        """A node takes another number of volumes, or one is attached by somebody else."""
        if not self._has_plugins or not self._nodes:
            return
        dice = self.dice
        name = dice.choice(sorted(self._nodes))
        if dice.random() < 0.6:
            self._put_object(csi_node(name, **{DISKS: dice.choice([0, 1, 2, 9])}))
            return
        key = f"a-{dice.randrange(6)}"
        if not self._drop_object("VolumeAttachment", key):
            self._put_object(attachment(key, name, DISKS, f"disk-{dice.randrange(SHARED_CLAIMS)}"))

    def _terminate_pod(self) -> None:
        if self._placed:
            self.simulation.cache.columns.mark_terminating(self.dice.choice(self._placed))

    def _remove(self, uid: str) -> None:
        claimant = self._claimants.pop(uid, None)
        super()._remove(uid)
        if claimant is not None:
            self._writer.gone(claimant)

    def change_node(self) -> None:
        """A node changes; now and then it moves to another zone, and nothing else of it changes."""
        if not self._nodes or self.dice.random() < 0.6:
            super().change_node()
            return
        name = self.dice.choice(sorted(self._nodes))
        before = self._nodes[name]
        zone = self.dice.choice(["east", "west", "south"])
        labels = dict(before.metadata.labels or {}) | {ZONE: zone, OLD_ZONE: zone}
        self._nodes[name] = node_with_labels(before, labels)
        self.simulation.cache.put_node(self._nodes[name])

    def phase(self) -> None:
        """Some decisions; now and then about one class, while almost nothing changes."""
        if self.dice.random() < 0.6:
            super().phase()
            return
        kind = self.dice.choice(self._kinds)
        for _ in range(self.dice.choice([2, 4])):
            for _ in range(self.dice.choice([3, 6, 14])):
                self.decide(kind, carry_out=False)
            change = [self.change_objects, self.remove_pod, self.place_pod]
            self.dice.choice([*change, *[self.change_node] * 3])()

    def decide(self, kind: Mapping[str, Any], *, carry_out: bool = True) -> None:
        """Decide about a pod, carry that out, and try it again after a preemption."""
        wanted = self._pod(kind)
        steps = self.simulation.run([wanted]) if carry_out else ()
        if not carry_out:
            self.simulation.attempt(wanted)
        for step in steps:
            if step.decision.node is not None:
                self._placed.append(wanted.uid)
                if wanted.spec.resource_claims:
                    self._claimants[wanted.uid] = wanted
        if self._verification.found:
            raise DifferenceError(str(self._verification.found[0]))
        self._forget_victims()
        if carry_out and self.dice.random() < 0.1:
            self.change_objects()

    def _forget_victims(self) -> None:
        """Release the claims of pods that were evicted."""
        present = self.simulation.cache.columns.pods.by_uid
        gone = [uid for uid in self._placed if uid not in present]
        for uid in gone:
            self._placed.remove(uid)
            claimant = self._claimants.pop(uid, None)
            if claimant is not None:
                self._writer.gone(claimant)


def rich_plan(dice: Random) -> Plan:
    """A plan with pods that want more than resources."""
    return with_options(random_plan(dice), features=True, preemption=dice.random() < 0.6)
