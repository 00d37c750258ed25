"""Claims, slices and device classes in the catalogue, with what rules find by other things.

`ResourceClaims` keeps which devices are in use, `ResourceSlices` finds slices by node and by pool,
`DeviceClasses` finds the class that serves an extended resource. Each notes the pools that a change
concerns, so that what was derived for other nodes stays true.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go and
staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache, Kubernetes v1.36.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from podium.engine.state.journal import ChangeLog
from podium.engine.state.shelf import CHANGES_LIMIT, Shelf
from podium.objects.kinds.devices import (
    EXTENDED_RESOURCE_CLAIM,
    IMPLICIT_RESOURCE_PREFIX,
    Allocation,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from podium.objects.quantity import nano

if TYPE_CHECKING:
    from podium.objects.kinds.devices import AllocatedDevice


class PoolId(NamedTuple):
    """The pool of a driver."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device, found by driver, pool and name."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class DevicesInUse:
    """The devices that allocations hold: whole, as shares, and how much of their capacity."""

    __slots__ = ("consumed", "shares", "taken")

    def __init__(self) -> None:
        #: A set, as in kube-scheduler: of two claims with one device, the first that gives it back
        #: frees it.
        self.taken: set[DeviceId] = set()
        self.shares: defaultdict[DeviceId, set[str]] = defaultdict(set)
        #: Billionths of each capacity; no entry once nothing is consumed any more.
        self.consumed: dict[DeviceId, dict[str, int]] = {}

    def add(self, allocation: Allocation) -> Iterable[PoolId]:
        """Take the devices of an allocation; the pools concerned."""
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            if result.share_id is None:
                self.taken.add(device)
            else:
                self.shares[device].add(result.share_id)
                if result.consumed_capacity is not None:
                    self._consume(device, result, 1)
            yield PoolId(result.driver, result.pool)

    def remove(self, allocation: Allocation) -> Iterable[PoolId]:
        """Give back the devices of an allocation; the pools concerned."""
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            device = DeviceId(result.driver, result.pool, result.device)
            if result.share_id is None:
                self.taken.discard(device)
            else:
                self.shares[device].discard(result.share_id)
                if not self.shares[device]:
                    del self.shares[device]
                if result.consumed_capacity is not None and device in self.consumed:
                    self._consume(device, result, -1)
                    if not any(self.consumed[device].values()):
                        del self.consumed[device]
            yield PoolId(result.driver, result.pool)

    def _consume(self, device: DeviceId, result: AllocatedDevice, sign: int) -> None:
        amounts = self.consumed.setdefault(device, {})
        for name, amount in (result.consumed_capacity or {}).items():
            if sign > 0 or name in amounts:
                amounts[name] = amounts.get(name, 0) + sign * nano(amount)


def _is_since(claim: ResourceClaim, version: str) -> bool:
    """Whether a claim is of this version, or of a later one."""
    known = claim.metadata.resource_version
    return known.isdecimal() and version.isdecimal() and int(known) >= int(version)


class ResourceClaims(Shelf[ResourceClaim]):
    """Resource claims, and the devices that are in use because of them."""

    __slots__ = (
        "_extended",
        "_renamed",
        "_written",
        "in_flight",
        "in_flight_use",
        "in_use",
        "pools",
    )

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        super().__init__(changes_limit)
        self.in_use = DevicesInUse()
        #: Allocations that were reserved and are not written yet, by the uid of the claim.
        self.in_flight: dict[str, Allocation] = {}
        self.in_flight_use = DevicesInUse()
        #: The version of the claim with which each of them was written that is not reported yet.
        self._written: dict[str, str] = {}
        #: The uid of a claim that was made, by the one under which its devices were reserved.
        self._renamed: dict[str, str] = {}
        #: The pools in which something was taken or given back.
        self.pools: ChangeLog[PoolId] = ChangeLog(changes_limit)
        #: Claims made for the extended resources of a pod, by its uid.
        self._extended: dict[str, dict[str, ResourceClaim]] = defaultdict(dict)

    def put(self, item: ResourceClaim) -> None:
        """Add or replace a claim; its devices count from when it is first seen allocated."""
        before = self.get(item.name, item.namespace)
        was = None if before is None else before.status.allocation
        now = item.status.allocation
        if was is None and now is not None:
            self._note_pools(self.in_use.add(now))
        elif was is not None and now is None:
            self._note_pools(self.in_use.remove(was))
        if item.uid in self.in_flight and (
            # Without devices, they were given back since they were written.
            now is not None or _is_since(item, self._written.get(item.uid, ""))
        ):
            self._land(item.uid)
        self._index(before, item)
        super().put(item)

    def drop(self, item: ResourceClaim) -> None:
        """Remove a claim; its devices are free."""
        before = self.get(item.name, item.namespace)
        if before is not None and before.status.allocation is not None:
            self._note_pools(self.in_use.remove(before.status.allocation))
        if item.uid in self.in_flight:
            self._land(item.uid)
        self._index(before, None)
        super().drop(item)

    def reserve(self, claim_uid: str, allocation: Allocation) -> None:
        """Count the devices of an allocation that is not written yet."""
        self.release(claim_uid)
        self.in_flight[claim_uid] = allocation
        self._note_pools(self.in_flight_use.add(allocation))
        self.version += 1

    def release(self, claim_uid: str) -> None:
        """Count such an allocation no more; once it is written, its claim has the devices."""
        claim_uid = self._renamed.pop(claim_uid, claim_uid)
        if claim_uid in self.in_flight and claim_uid not in self._written:
            self._land(claim_uid)

    def note_written(self, key: str, uid: str, version: str) -> None:
        """Count an allocation until its claim is reported, whatever becomes of the pod.

        *version* is in the answer of the API server, which may be reported before it is noted here.
        An empty one says that the claim was deleted.
        """
        if uid not in self.in_flight:
            return
        if not version:
            self._land(uid)
            return
        namespace, _, name = key.partition("/")
        known = self.get(name, namespace)
        self._written[uid] = version
        if known is not None and known.uid == uid and _is_since(known, version):
            self._land(uid)

    def rename_in_flight(self, before: str, now: str) -> None:
        """Note the uid of a claim that did not exist when its devices were reserved."""
        allocation = self.in_flight.get(before)
        if allocation is not None:
            self._land(before)
            self.reserve(now, allocation)
            self._renamed[before] = now

    def _land(self, claim_uid: str) -> None:
        allocation = self.in_flight.pop(claim_uid)
        self._written.pop(claim_uid, None)
        self._note_pools(self.in_flight_use.remove(allocation))
        self.version += 1

    def is_taken(self, device: DeviceId) -> bool:
        """Whether the whole device is in use."""
        return device in self.in_use.taken or device in self.in_flight_use.taken

    def is_shared(self, device: DeviceId) -> bool:
        """Whether a share of the device is in use."""
        return device in self.in_use.shares or device in self.in_flight_use.shares

    def is_used(self, device: DeviceId) -> bool:
        """Whether the device, or a share of it, is in use."""
        return any(
            device in use.taken or device in use.shares or device in use.consumed
            for use in (self.in_use, self.in_flight_use)
        )

    def consumed(self, device: DeviceId) -> Mapping[str, int] | None:
        """How much of the capacity of a device its shares use up; None if nothing is noted."""
        one, two = self.in_use.consumed.get(device), self.in_flight_use.consumed.get(device)
        if one is None or two is None:
            return one if two is None else two
        return {name: one.get(name, 0) + two.get(name, 0) for name in one.keys() | two.keys()}

    def made_for(self, pod_uid: str, pod_name: str) -> ResourceClaim | None:
        """The claim that was made for the extended resources of a pod."""
        for claim in self._extended.get(pod_uid, {}).values():
            for owner in claim.metadata.owner_references or ():
                if owner.controller and (owner.name, owner.uid) == (pod_name, pod_uid):
                    return claim
        return None

    def _note_pools(self, pools: Iterable[PoolId]) -> None:
        for pool in pools:
            self.pools.add(pool)

    def _index(self, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        for claim in (before, after):
            if claim is None:
                continue
            if (claim.metadata.annotations or {}).get(EXTENDED_RESOURCE_CLAIM) != "true":
                continue
            for owner in claim.metadata.owner_references or ():
                known = self._extended[owner.uid]
                if claim is after:
                    known[claim.key] = claim
                else:
                    known.pop(claim.key, None)
                if not known:
                    del self._extended[owner.uid]


class ResourceSlices(Shelf[ResourceSlice]):
    """Resource slices, by the node they are for and by pool."""

    __slots__ = ("_by_node", "_by_pool", "elsewhere", "pools")

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        super().__init__(changes_limit)
        self._by_node: dict[str, dict[str, ResourceSlice]] = defaultdict(dict)
        self._by_pool: dict[PoolId, dict[str, ResourceSlice]] = defaultdict(dict)
        #: Slices that may concern several nodes: those without a node, and shared counters.
        self.elsewhere: dict[str, ResourceSlice] = {}
        #: The pools whose slices changed.
        self.pools: ChangeLog[PoolId] = ChangeLog(changes_limit)

    def put(self, item: ResourceSlice) -> None:
        """Add or replace a slice."""
        self._leave(self.get(item.name, item.namespace))
        pool = pool_of(item)
        if is_local(item):
            self._by_node[item.spec.node_name or ""][item.name] = item
        else:
            self.elsewhere[item.name] = item
        self._by_pool[pool][item.name] = item
        self.pools.add(pool)
        super().put(item)

    def drop(self, item: ResourceSlice) -> None:
        """Remove a slice."""
        self._leave(self.get(item.name, item.namespace))
        super().drop(item)

    def _leave(self, item: ResourceSlice | None) -> None:
        if item is None:
            return
        pool = pool_of(item)
        self.pools.add(pool)
        self._by_pool[pool].pop(item.name, None)
        if is_local(item):
            self._by_node[item.spec.node_name or ""].pop(item.name, None)
        else:
            self.elsewhere.pop(item.name, None)

    def on_node(self, name: str) -> Iterable[ResourceSlice]:
        """The slices for one node alone."""
        return self._by_node[name].values() if name in self._by_node else ()

    def in_pool(self, pool: PoolId) -> Iterable[ResourceSlice]:
        """All slices of a pool."""
        return self._by_pool[pool].values() if pool in self._by_pool else ()


def pool_of(item: ResourceSlice) -> PoolId:
    """The pool that a slice belongs to."""
    return PoolId(item.spec.driver, item.spec.pool.name)


def is_local(item: ResourceSlice) -> bool:
    """Whether a slice concerns one node alone."""
    return bool(item.spec.node_name) and not item.spec.shared_counters


class DeviceClasses(Shelf[DeviceClass]):
    """Device classes, also by the extended resources that they serve."""

    __slots__ = ("_by_resource",)

    def __init__(self, changes_limit: int = CHANGES_LIMIT) -> None:
        super().__init__(changes_limit)
        self._by_resource: dict[str, DeviceClass] = {}

    @property
    def served(self) -> Mapping[str, DeviceClass]:
        """Extended resource -> the class that serves it."""
        return self._by_resource

    def put(self, item: DeviceClass) -> None:
        """Add or replace a class; of two with one resource name, the newer one serves it."""
        self._serve(self.get(item.name, item.namespace), item)
        super().put(item)

    def _serve(self, before: DeviceClass | None, item: DeviceClass) -> None:
        explicit = item.spec.extended_resource_name
        rival = self._by_resource.get(explicit) if explicit is not None else None
        if rival is not None:
            one, other = _created(item), _created(rival)
            # A class that loses is not noted at all, its implicit name included, as upstream.
            if one < other or (one == other and item.name >= rival.name):
                return
        if before is not None:
            self._by_resource.pop(f"{IMPLICIT_RESOURCE_PREFIX}{before.name}", None)
            if before.spec.extended_resource_name is not None:
                self._by_resource.pop(before.spec.extended_resource_name, None)
        if explicit is not None:
            self._by_resource[explicit] = item
        self._by_resource[f"{IMPLICIT_RESOURCE_PREFIX}{item.name}"] = item

    def drop(self, item: DeviceClass) -> None:
        """Remove a class and the resources under its names."""
        self._by_resource.pop(f"{IMPLICIT_RESOURCE_PREFIX}{item.name}", None)
        if item.spec.extended_resource_name is not None:
            self._by_resource.pop(item.spec.extended_resource_name, None)
        super().drop(item)


def _created(item: DeviceClass) -> float:
    text = item.metadata.creation_timestamp
    try:
        return datetime.fromisoformat(text).timestamp() if text else float("-inf")
    except ValueError:
        return float("-inf")
