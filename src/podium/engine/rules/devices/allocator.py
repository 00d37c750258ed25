"""The search for devices: a depth-first search for the first complete solution on one node.

Claims, requests and devices are tried in order. Of a request for several devices, each is sought
after the one before it, so that every combination is tried once; the next request begins with the
first device again. Alternatives are tried in order, each with everything that follows it. A choice
that leads nowhere is undone, and the search goes on with the next device.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
allocator_incubating.go, Kubernetes v1.36: the same search, in the same order, with the same quirks.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from podium.cel.errors import CelError, CompileError
from podium.engine.rules.devices.capacity import (
    Arithmetic,
    CapacityError,
    consumed_by,
    shortage,
)
from podium.engine.rules.devices.constraints import constraint_of
from podium.engine.rules.devices.features import DEFAULT_FEATURES, DeviceFeatures
from podium.engine.rules.devices.pools import DevicePool, OfferedDevice, node_matches
from podium.objects.kinds.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    AllocatedDevice,
    Allocation,
    DeviceAllocation,
    DeviceConfig,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from podium.objects.kinds.meta import LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelector, NodeSelectorTerm
from podium.objects.quantity import nano

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from podium.engine.rules.devices.constraints import ChoiceConstraint
    from podium.engine.state.devices import DeviceClasses, DeviceId, PoolId, ResourceClaims
    from podium.objects.kinds.devices import DeviceClass, DeviceSelector, DeviceTaint, ResourceClaim

#: The number of devices that a claim can get.
MAX_RESULTS: Final = 32
#: The effort of an evaluation that takes about as long as a step of the search.
EFFORT_PER_STEP: Final = 10
TIMED_OUT: Final = "timed out trying to allocate devices"
_HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


class AllocationError(Exception):
    """The allocation fails with an error of kube-scheduler, on this node and for this attempt."""


class SearchTimeoutError(AllocationError):
    """The search took too many steps."""


class SearchNotes(Protocol):
    """Takes note of what the search considers, for explanations."""

    def turned_down(self, claim: int, request: str, device: OfferedDevice, why: str) -> None:
        """A device was considered for a request and cannot be used."""

    def chosen(self, claim: int, request: str, device: OfferedDevice) -> None:
        """A device was chosen, for now."""

    def given_up(self, claim: int, request: str, device: OfferedDevice) -> None:
        """A device that was chosen did not lead to a solution."""


class RequestKey(NamedTuple):
    """A request, or one of its alternatives."""

    claim: int
    request: int
    sub: int = 0


class _Wanted(msgspec.Struct):
    """What a request, or one of its alternatives, needs."""

    request: ExactDeviceRequest | DeviceSubRequest
    #: The name of the request; of an alternative, the name of its own is in `sub`.
    name: str
    sub: str
    device_class: DeviceClass
    count: int = 0
    #: With the mode All: every device that must be taken.
    all_devices: list[_Candidate] | None = None

    @property
    def full_name(self) -> str:
        """The name in results."""
        return f"{self.name}/{self.sub}" if self.sub else self.name

    @property
    def own_name(self) -> str:
        """The name in errors: of an alternative, its own."""
        return self.sub or self.name

    @property
    def admin_access(self) -> bool:
        """Whether devices that are in use will do."""
        return isinstance(self.request, ExactDeviceRequest) and bool(self.request.admin_access)


class _Candidate(NamedTuple):
    """A device with the pool through which this node sees it."""

    device: OfferedDevice
    pool: DevicePool


class _Choice(msgspec.Struct):
    """A device chosen for a request, with everything needed to undo the choice."""

    candidate: _Candidate
    wanted: _Wanted
    counted: bool = False
    constraints: int = 0
    consumed: dict[str, str] | None = None
    #: Whether a share of the device was chosen before.
    was_shared: bool = False


class _TooMany:
    """The outcome of a branch that would exceed the number of devices of a claim."""


_TOO_MANY: Final = _TooMany()
_Outcome = bool | _TooMany
_Search = Generator["_Search", "_Outcome", "_Outcome"]


class Solution(msgspec.Struct):
    """The allocation of each claim, in order, and the alternative that each request got."""

    allocations: list[Allocation]
    alternatives: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)


class Allocator:
    """The search for devices for some claims on one node."""

    def __init__(
        self,
        node: str,
        labels: Mapping[str, str],
        pools: Sequence[DevicePool],
        claims: Sequence[ResourceClaim],
        *,
        classes: DeviceClasses,
        in_use: ResourceClaims,
        available: CounterCache | None = None,
        max_steps: int = 0,
        notes: SearchNotes | None = None,
        features: DeviceFeatures = DEFAULT_FEATURES,
    ) -> None:
        """*max_steps* bounds the search; 0 does not."""
        self._features, self._choices = features, features.choices
        self._arithmetic = Arithmetic(features.fractions, self._choices.refuses_capacities)
        self._node, self._labels = node, labels
        self._pools, self._claims = pools, claims
        self._classes, self._in_use = classes, in_use
        self._available = CounterCache(in_use) if available is None else available
        self._max_steps, self._steps = max_steps, 0
        self._notes = notes
        self._candidates = list(self._in_order(pools))
        self._wanted: dict[RequestKey, _Wanted] = {}
        self._constraints: list[list[ChoiceConstraint]] = []
        self._selected: dict[tuple[RequestKey, DeviceId], bool] = {}
        self._chosen: list[list[_Choice]] = [[] for _ in claims]
        #: The claims for which each device was chosen in this search.
        self._taken: defaultdict[DeviceId, set[int]] = defaultdict(set)
        #: Billionths of each capacity that chosen shares consume.
        self._shared: dict[DeviceId, dict[str, int]] = {}
        #: Billionths of each counter that chosen devices consume.
        self._counted: dict[PoolId, dict[str, dict[str, int]]] = {}
        self._alternatives: dict[tuple[int, int], int] = {}

    def _in_order(self, pools: Sequence[DevicePool]) -> Iterator[_Candidate | DevicePool]:
        """The devices that are tried, in order; an invalid pool stands for an error."""
        for pool in pools:
            if pool.invalid:
                if self._choices.fails_on_invalid_pools:
                    yield pool
            elif not pool.is_incomplete or self._choices.uses_incomplete_pools:
                yield from (_Candidate(device, pool) for device in pool.devices)

    def allocate(self) -> Solution | None:
        """The first solution; None if there is none."""
        self._check()
        # What was found while checking is found again in the search, as upstream.
        self._selected.clear()
        if _run(self._claim(0)) is not True:
            return None
        allocations = [self._allocation(index) for index in range(len(self._claims))]
        return Solution(allocations, self._alternatives)

    # Before the search ----------------------------------------------------------------------------

    def _check(self) -> None:
        """Everything that can be said about the claims before devices are tried."""
        for index, claim in enumerate(self._claims):
            least = 0
            for number, request in enumerate(claim.spec.devices.requests or ()):
                least += self._check_request(RequestKey(index, number), request)
            if least > MAX_RESULTS:
                raise AllocationError(
                    f"claim {claim.key}: number of requested devices {least} "
                    f"exceeds the claim limit of {MAX_RESULTS}"
                )
            constraints = []
            for number, written in enumerate(claim.spec.devices.constraints or ()):
                constraint = constraint_of(written, self._choices.distinct)
                if constraint is None:
                    raise AllocationError(
                        f"claim {claim.key}, constraint #{number}: "
                        "empty constraint (unsupported constraint type?)"
                    )
                constraints.append(constraint)
            self._constraints.append(constraints)

    def _check_request(self, key: RequestKey, request: DeviceRequest) -> int:
        """The least number of devices that a request needs."""
        if request.first_available:
            counts = [
                self._check_one(
                    key._replace(sub=place),
                    each,
                    request.name,
                    each.name,
                    checked_as=self._checked_as(place),
                )
                for place, each in enumerate(request.first_available)
            ]
            return min(counts)
        return self._check_one(key, request.exactly or ExactDeviceRequest(), request.name, "")

    def _checked_as(self, place: int) -> int:
        """The alternative under which the answers of selectors are kept during the checks."""
        return max(place - 1, 0) if self._choices.mixes_up_alternatives else place

    def _check_one(
        self,
        key: RequestKey,
        request: ExactDeviceRequest | DeviceSubRequest,
        name: str,
        sub: str,
        checked_as: int = 0,
    ) -> int:
        claim = self._claims[key.claim]
        where = f"claim {claim.key}, request {sub or name}"
        for number, selector in enumerate(request.selectors or ()):
            if selector.cel is None:
                raise AllocationError(
                    f"{where}, selector #{number}: CEL expression empty "
                    "(unsupported selector type?)"
                )
        if not request.device_class_name:
            raise AllocationError(f"{where}: missing device class name (unsupported request type?)")
        found = self._classes.get(request.device_class_name)
        if found is None:
            missing = f'deviceclass.resource.k8s.io "{request.device_class_name}" not found'
            raise AllocationError(
                f"{where}: could not retrieve device class {request.device_class_name}: {missing}"
            )
        wanted = self._wanted[key] = _Wanted(request, name, sub, found)
        if request.allocation_mode == EXACT_COUNT:
            wanted.count = request.count
        elif request.allocation_mode == ALL_DEVICES:
            checked = key._replace(sub=checked_as)
            wanted.all_devices = self._all_devices(checked, wanted, where)
            wanted.count = len(wanted.all_devices)
        else:
            raise AllocationError(f"{where}: unsupported count mode {request.allocation_mode}")
        return wanted.count

    def _all_devices(self, key: RequestKey, wanted: _Wanted, where: str) -> list[_Candidate]:
        """Every device that a request for all devices means; in use or not."""
        found = []
        for pool in self._pools:
            state = "being updated" if pool.is_incomplete else "invalid" if pool.invalid else ""
            if state:
                raise AllocationError(
                    f"{where}: asks for all devices, but resource pool {pool.id} "
                    f"is currently {state}"
                )
            found += [
                _Candidate(device, pool)
                for device in pool.devices
                if self._check_selectors(key, wanted, device)
                and not self._lacking_at_all(wanted, device, where)
            ]
        return found

    def _lacking_at_all(self, wanted: _Wanted, device: OfferedDevice, where: str) -> str:
        """What a device lacks for a request for all devices."""
        if not self._choices.all_includes_used_up:
            return self._lacking(wanted, device)
        try:
            return self._shortage(wanted, device, None, None)
        except CapacityError as error:
            what = f"checking capacity for device {device.id.device}: {error}"
            raise AllocationError(f"{where}: {what}") from None

    # The search -----------------------------------------------------------------------------------

    def _claim(self, index: int) -> _Search:
        """Allocate a claim and all that follow it."""
        if index >= len(self._claims):
            return True
        return (yield self._request(RequestKey(index, 0)))

    def _request(self, key: RequestKey) -> _Search:
        """Allocate a request of a claim and everything that follows it."""
        requests = self._claims[key.claim].spec.devices.requests or ()
        if key.request >= len(requests):
            outcome = yield self._claim(key.claim + 1)
            # Another choice before this claim may need fewer devices in the next one.
            return False if isinstance(outcome, _TooMany) else outcome
        if requests[key.request].first_available:
            return (yield self._first_available(key))
        return (yield self._devices(key, 0, 0))

    def _first_available(self, key: RequestKey) -> _Search:
        """The first alternative with which everything that follows can be allocated."""
        exceeded = True
        for sub in range(len(self._request_of(key).first_available or ())):
            outcome = yield self._devices(key._replace(sub=sub), 0, 0)
            if isinstance(outcome, _TooMany):
                continue
            exceeded = False
            if outcome:
                self._alternatives[key.claim, key.request] = sub
                return True
        return _TOO_MANY if exceeded else False

    def _devices(self, key: RequestKey, number: int, start: int) -> _Search:
        """Choose device *number* of a request, from position *start* on, and all that follows."""
        self._step()
        wanted = self._wanted[key]
        if wanted.all_devices is not None and not wanted.all_devices:
            return False
        if number >= wanted.count:
            return (yield self._request(RequestKey(key.claim, key.request + 1)))
        if len(self._chosen[key.claim]) + wanted.count - number > MAX_RESULTS:
            return _TOO_MANY
        if wanted.all_devices is not None:
            return (yield self._next_of_all(key, wanted.all_devices, number))
        return (yield self._next_counted(key, wanted, number, start))

    def _next_of_all(self, key: RequestKey, devices: list[_Candidate], number: int) -> _Search:
        """Of all devices there is only one next one to try."""
        if not self._choose(key, self._wanted[key], devices[number], must=True):
            return False
        following = key._replace(sub=0) if self._choices.mixes_up_alternatives else key
        outcome = yield self._devices(following, number + 1, 0)
        if outcome is not True:
            self._undo(key)
        return outcome

    def _next_counted(self, key: RequestKey, wanted: _Wanted, number: int, start: int) -> _Search:
        """The first device from *start* on with which everything that follows works out."""
        for place in range(start, len(self._candidates)):
            candidate = self._candidates[place]
            if isinstance(candidate, DevicePool):
                raise AllocationError(f"pool {candidate.id.pool} is invalid: {candidate.invalid}")
            if not self._check_device(key, wanted, candidate.device):
                continue
            if not self._choose(key, wanted, candidate, must=False):
                continue
            outcome = yield self._devices(key, number + 1, place + 1)
            if outcome is True:
                return True
            self._undo(key)
            if isinstance(outcome, _TooMany):
                return outcome
        return False

    def _evaluated(self, effort: int) -> None:
        """Count an evaluation as steps, whether or not its answer was kept."""
        self._step(effort // EFFORT_PER_STEP)

    def _step(self, steps: int = 1) -> None:
        self._steps += steps
        if self._max_steps and self._steps > self._max_steps:
            raise SearchTimeoutError(f"node {self._node}: {TIMED_OUT}")

    def _request_of(self, key: RequestKey) -> DeviceRequest:
        requests = self._claims[key.claim].spec.devices.requests or ()
        return requests[key.request]

    def _check_device(self, key: RequestKey, wanted: _Wanted, device: OfferedDevice) -> bool:
        """Check a device before it is chosen: use, selectors, capacity. What is wrong is noted."""
        if wanted.admin_access:
            if key.claim in self._taken[device.id]:
                self._note(key, wanted, device, "already chosen for this claim")
                return False
        elif not self._check_use(key, wanted, device):
            return False
        if not self._check_selectors(key, wanted, device):
            return False
        if lacking := self._lacking(wanted, device):
            self._note(key, wanted, device, lacking)
            return False
        return True

    def _check_use(self, key: RequestKey, wanted: _Wanted, device: OfferedDevice) -> bool:
        if self._in_use.is_taken(device.id):
            self._note(key, wanted, device, "in use")
            return False
        if self._taken[device.id]:
            self._note(key, wanted, device, "already chosen")
            return False
        return True

    def _check_selectors(self, key: RequestKey, wanted: _Wanted, device: OfferedDevice) -> bool:
        """Check that the selectors of class and request match, and that it is for this node."""
        if device.device.binding_conditions and not self._features.binding_conditions:
            self._note(key, wanted, device, "has binding conditions, which are not supported")
            return False
        known = self._selected.get((key, device.id))
        if known is None:
            known = self._selected[key, device.id] = self._select(key, wanted, device)
        return known

    def _select(self, key: RequestKey, wanted: _Wanted, device: OfferedDevice) -> bool:
        claim = f"claim {self._claims[key.claim].key}"
        own = f"class {wanted.device_class.name}"
        for where, selectors in (
            (own, wanted.device_class.spec.selectors),
            (claim, wanted.request.selectors),
        ):
            number = first_mismatch(
                where,
                selectors,
                device,
                self._evaluated,
                names_device=self._choices.names_device_in_errors,
            )
            if number is not None:
                whose = own if where is own else "the request"
                text = _shown((selectors or ())[number])
                self._note(key, wanted, device, f"selector of {whose} does not match: {text}")
                return False
        if device.slice.spec.per_device_node_selection and not node_matches(
            self._node, self._labels, device.device
        ):
            self._note(key, wanted, device, "not for this node")
            return False
        return True

    def _lacking(self, wanted: _Wanted, device: OfferedDevice, verb: str = "checking") -> str:
        """What a device lacks for a request, given what is in use and chosen."""
        used, chosen = self._in_use.consumed(device.id), self._shared.get(device.id)
        try:
            return self._shortage(wanted, device, used, chosen)
        except CapacityError as error:
            claim = next(c for c, w in self._wanted.items() if w is wanted).claim
            where = f"claim {self._claims[claim].key}, request {wanted.own_name}"
            what = f"{verb} capacity for device {device.id}: {error}"
            raise AllocationError(f"{where}: {what}") from None

    def _shortage(
        self,
        wanted: _Wanted,
        device: OfferedDevice,
        used: Mapping[str, int] | None,
        chosen: Mapping[str, int] | None,
    ) -> str:
        if not self._features.shares:
            return ""
        capacity = wanted.request.capacity
        requested = (capacity.requests if capacity is not None else None) or {}
        return shortage(device.device, requested, used, chosen, self._arithmetic)

    def _is_shareable(self, device: OfferedDevice) -> bool:
        return device.is_shareable and self._features.shares

    def _choose(
        self, key: RequestKey, wanted: _Wanted, candidate: _Candidate, *, must: bool
    ) -> bool:
        """Take a device for a request, if counters, taints and constraints allow it.

        *must*: no other device will do, so that a violated constraint is an error.
        """
        device = candidate.device
        if must and not self._check_chosen(key, wanted, device):
            return False
        choice = _Choice(candidate, wanted)
        counts = device.consumes and self._features.partitions
        if counts and not (self._is_shareable(device) and self._has_capacity_in_use(device)):
            if lacking := self._count(candidate):
                self._note(key, wanted, device, lacking)
                return False
            choice.counted = True
        if self._features.taints and (taint := _untolerated(wanted, device)):
            self._note(key, wanted, device, f"has the taint {taint}")
            self._roll_back(key, choice)
            return False
        if violated := self._add_to_constraints(key, choice):
            self._note(key, wanted, device, violated)
            self._roll_back(key, choice)
            if must:
                claim = self._claims[key.claim].key
                raise AllocationError(
                    f"claim {claim}, request {wanted.own_name}: cannot add device {device.id} "
                    "because a claim constraint would not be satisfied"
                )
            return False
        if not self._is_shareable(device):
            self._taken[device.id].add(key.claim)
        elif lacking := self._lacking(wanted, device, "rechecking"):
            self._note(key, wanted, device, lacking)
            self._roll_back(key, choice)
            return False
        else:
            self._share(wanted, choice)
        self._chosen[key.claim].append(choice)
        if self._notes is not None:
            self._notes.chosen(key.claim, wanted.full_name, device)
        return True

    def _add_to_constraints(self, key: RequestKey, choice: _Choice) -> str:
        """Take a device into the constraints of its claim; the first that it violates."""
        wanted, device = choice.wanted, choice.candidate.device
        for constraint in self._constraints[key.claim]:
            if not constraint.add(wanted.name, wanted.sub, device):
                return f"violates {constraint.text}"
            choice.constraints += 1
        return ""

    def _check_chosen(self, key: RequestKey, wanted: _Wanted, device: OfferedDevice) -> bool:
        if not wanted.admin_access:
            return self._check_use(key, wanted, device)
        if not self._is_shareable(device) and key.claim in self._taken[device.id]:
            self._note(key, wanted, device, "already chosen for this claim")
            return False
        return True

    def _has_capacity_in_use(self, device: OfferedDevice) -> bool:
        if device.id in self._shared or self._in_use.consumed(device.id) is not None:
            return True
        return self._choices.counts_empty_shares and self._in_use.is_shared(device.id)

    def _share(self, wanted: _Wanted, choice: _Choice) -> None:
        """Take a share of a device: no other claim is kept from it."""
        device = choice.candidate.device
        capacity = wanted.request.capacity
        requested = (capacity.requests if capacity is not None else None) or {}
        choice.consumed = consumed_by(device.device, requested, self._arithmetic)
        choice.was_shared = device.id in self._shared
        shared = self._shared.setdefault(device.id, {})
        for name, amount in choice.consumed.items():
            shared[name] = shared.get(name, 0) + nano(amount)

    def _undo(self, key: RequestKey) -> None:
        """Give back the device that was chosen last for a claim."""
        choice = self._chosen[key.claim].pop()
        device = choice.candidate.device
        if choice.consumed is not None:
            shared = self._shared[device.id]
            for name, amount in choice.consumed.items():
                shared[name] -= nano(amount)
            if not any(shared.values()):
                if choice.was_shared:
                    self._shared[device.id] = {}
                else:
                    del self._shared[device.id]
        if not self._is_shareable(device):
            self._taken[device.id].discard(key.claim)
        self._roll_back(key, choice)
        if self._notes is not None:
            self._notes.given_up(key.claim, choice.wanted.full_name, device)

    def _roll_back(self, key: RequestKey, choice: _Choice) -> None:
        wanted = choice.wanted
        for constraint in reversed(self._constraints[key.claim][: choice.constraints]):
            constraint.remove(wanted.name, wanted.sub)
        if choice.counted:
            self._consume(choice.candidate, -1)

    # Counters -------------------------------------------------------------------------------------

    def _count(self, candidate: _Candidate) -> str:
        """Consume the counters of a device; if that is too much, consume nothing and say so."""
        self._consume(candidate, 1)
        consumed = self._counted[candidate.pool.id]
        for name, amounts in self._available.of(candidate.pool).items():
            own = consumed.get(name, {})
            for counter, amount in amounts.items():
                if amount < own.get(counter, 0):
                    self._consume(candidate, -1)
                    return f"needs more of the counter {counter} of {name} than is left"
        return ""

    def _consume(self, candidate: _Candidate, sign: int) -> None:
        consumed = self._counted.setdefault(candidate.pool.id, {})
        for name, amounts in candidate.device.consumes:
            own = consumed.setdefault(name, {})
            for counter, amount in amounts.items():
                own[counter] = own.get(counter, 0) + sign * amount

    def _note(self, key: RequestKey, wanted: _Wanted, device: OfferedDevice, why: str) -> None:
        if self._notes is not None:
            self._notes.turned_down(key.claim, wanted.full_name, device, why)

    # Results --------------------------------------------------------------------------------------

    def _allocation(self, index: int) -> Allocation:
        claim, choices = self._claims[index], self._chosen[index]
        results = [
            AllocatedDevice(
                request=choice.wanted.full_name,
                driver=choice.candidate.device.id.driver,
                pool=choice.candidate.device.id.pool,
                device=choice.candidate.device.id.device,
                admin_access=True if choice.wanted.admin_access else None,
                tolerations=(
                    choice.wanted.request.tolerations if self._choices.writes_tolerations else None
                ),
                binding_conditions=choice.candidate.device.device.binding_conditions,
                binding_failure_conditions=(
                    choice.candidate.device.device.binding_failure_conditions
                ),
                share_id=None if choice.consumed is None else _share_id(claim, place, choice),
                consumed_capacity=dict(choice.consumed) if choice.consumed else None,
            )
            for place, choice in enumerate(choices)
        ]
        devices = DeviceAllocation(results or None, self._config(index) or None)
        return Allocation(devices, node_selector_of(choices, self._node))

    def _config(self, index: int) -> list[DeviceConfig]:
        """Parameters of the classes, each class once, then those of the claim."""
        claim = self._claims[index]
        found: list[DeviceConfig] = []
        names: dict[str, list[str]] = {}
        requests = claim.spec.devices.requests or ()
        for number in range(len(requests)):
            sub = self._alternatives.get((index, number), 0)
            wanted = self._wanted[RequestKey(index, number, sub)]
            known = names.get(wanted.device_class.name)
            if known is not None:
                known.append(wanted.full_name)
                continue
            shared = names[wanted.device_class.name] = [wanted.full_name]
            found += [
                DeviceConfig("FromClass", shared, each.opaque)
                for each in wanted.device_class.spec.config or ()
            ]
        for each in claim.spec.devices.config or ():
            written = DeviceConfig("FromClaim", each.requests, each.opaque)
            if not each.requests:
                found.append(written)
                continue
            # Up to v1.36 once for each request that it names.
            named = [
                self._is_named(index, number, each.requests) for number in range(len(requests))
            ]
            found += [written] * (any(named) if self._choices.merges_settings else sum(named))
        if self._choices.merges_settings:
            found = [self._for_all(index, each) for each in found]
        return found

    def _is_named(self, index: int, number: int, names: Sequence[str]) -> bool:
        """Whether names of requests mean a request, or the alternative that it got."""
        request = (self._claims[index].spec.devices.requests or ())[number]
        sub = self._alternatives.get((index, number), 0)
        full = self._wanted[RequestKey(index, number, sub)].full_name
        return request.name in names or bool(request.first_available and full in names)

    def _for_all(self, index: int, written: DeviceConfig) -> DeviceConfig:
        """Settings for all requests name none of them."""
        requests = self._claims[index].spec.devices.requests or ()
        if written.requests and all(
            self._is_named(index, number, written.requests) for number in range(len(requests))
        ):
            return DeviceConfig(written.source, None, written.opaque)
        return written


class CounterCache:
    """What is left of the counters of pools, given the devices in use."""

    def __init__(self, in_use: ResourceClaims) -> None:
        self._in_use = in_use
        self._left: dict[DevicePool, dict[str, dict[str, int]]] = {}

    def forget(self) -> None:
        """Devices were taken or given back: compute again what is left."""
        self._left.clear()

    def of(self, pool: DevicePool) -> Mapping[str, Mapping[str, int]]:
        """Billionths of each counter that are left, less than nothing if too much is in use."""
        known = self._left.get(pool)
        if known is None:
            known = self._left[pool] = self._compute(pool)
        return known

    def _compute(self, pool: DevicePool) -> dict[str, dict[str, int]]:
        left = {name: dict(amounts) for name, amounts in pool.counters.items()}
        for device in (*pool.devices, *pool.elsewhere):
            if device.consumes and self._in_use.is_used(device.id):
                for name, amounts in device.consumes:
                    own = left.get(name, {})
                    for counter, amount in amounts.items():
                        if counter in own:
                            own[counter] -= amount
        return left


#: What errors about an attribute or capacity that a device does not have end in, from v1.37 on.
_ADVICE: Final = (
    "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with "
    "has() for optional fields"
)


def first_mismatch(
    where: str,
    selectors: Sequence[DeviceSelector] | None,
    device: OfferedDevice,
    evaluated: Callable[[int], None] | None = None,
    *,
    names_device: bool = False,
) -> int | None:
    """The first selector that does not match a device; errors name *where* the selector is.

    *evaluated* gets the effort of each evaluation. *names_device*: runtime errors name the
    device and say what would help.
    """
    for number, selector in enumerate(selectors or ()):
        expression = selector.cel.expression if selector.cel is not None else ""
        answer, effort = device.answer(expression)
        if evaluated is not None:
            evaluated(effort)
        if isinstance(answer, CompileError):
            raise AllocationError(f"{where}: selector #{number}: CEL compile error: {answer}")
        if isinstance(answer, CelError):
            on = f" on device {device.id}" if names_device else ""
            advice = f". {_ADVICE}" if names_device and "no such key:" in str(answer) else ""
            what = f"CEL runtime error: {answer}{advice}"
            raise AllocationError(f"{where}: selector #{number}{on}: {what}")
        if not answer:
            return number
    return None


#: Of an expression, a note shows this much.
_SHOWN: Final = 100


def _shown(selector: DeviceSelector) -> str:
    text = " ".join((selector.cel.expression if selector.cel is not None else "").split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _run(search: _Search) -> _Outcome:
    """Run a search that is written as generators: as deep as it likes, without recursion."""
    stack: list[_Search] = [search]
    outcome: _Outcome | None = None
    while stack:
        try:
            stack.append(stack[-1].send(outcome))  # type: ignore[arg-type]
            outcome = None
        except StopIteration as done:
            stack.pop()
            outcome = done.value
    assert outcome is not None
    return outcome


def _untolerated(wanted: _Wanted, device: OfferedDevice) -> str:
    """A taint that keeps the request from the device; empty if there is none."""
    for taint in device.device.taints or ():
        if taint.effect in _HARD_EFFECTS and not _is_tolerated(wanted, taint):
            return f"{taint.key}={taint.value}:{taint.effect}"
    return ""


def _is_tolerated(wanted: _Wanted, taint: DeviceTaint) -> bool:
    return any(
        each.effect in {"", taint.effect}
        and each.key in {"", taint.key}
        and (
            each.operator == "Exists"
            or (each.operator in {"", "Equal"} and each.value == taint.value)
        )
        for each in wanted.request.tolerations or ()
    )


def _share_id(claim: ResourceClaim, place: int, choice: _Choice) -> str:
    """A uid for a share; random in kube-scheduler, here derived from what it is a share of."""
    text = f"{claim.uid} {place} {choice.wanted.full_name} {choice.candidate.device.id}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def node_selector_of(choices: Sequence[_Choice], node: str) -> NodeSelector | None:
    """The nodes from which the chosen devices can be used; None: from all."""
    fields: list[LabelSelectorRequirement] = []
    expressions: list[LabelSelectorRequirement] = []
    for choice in choices:
        offered = choice.candidate.device
        spec, device = offered.slice.spec, offered.device
        where = device if spec.per_device_node_selection else spec
        if where.node_name is not None or device.binds_to_node:
            here = LabelSelectorRequirement("metadata.name", "In", [node])
            return NodeSelector([NodeSelectorTerm(match_fields=[here])])
        terms = (where.node_selector.node_selector_terms or ()) if where.node_selector else ()
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_expressions=expressions or None, match_fields=fields or None)
    return NodeSelector([term])


def _add_new(
    known: list[LabelSelectorRequirement], more: Sequence[LabelSelectorRequirement] | None
) -> None:
    for each in more or ():
        values = set(each.values or ())
        if not any(
            (each.key, each.operator) == (other.key, other.operator)
            and values == set(other.values or ())
            for other in known
        ):
            known.append(each)
