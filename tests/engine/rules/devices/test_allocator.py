"""Laws of allocations, on random small cases, and a search by brute force beside the allocator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.engine.framework.choices import DeviceChoices
from podium.engine.rules.devices.allocator import AllocationError, Allocator, Solution
from podium.engine.rules.devices.features import DeviceFeatures
from podium.engine.rules.devices.pools import PoolBuilder
from podium.engine.state.devices import DeviceClasses, DeviceId, ResourceClaims, ResourceSlices
from podium.generations.v1_34 import V1_34
from podium.generations.v1_35 import V1_35
from podium.generations.v1_36 import V1_36
from podium.objects.kinds.devices import (
    AllocatedDevice,
    Allocation,
    CapacityRequirements,
    CelSelector,
    ClaimMeta,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceAllocation,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from podium.objects.kinds.devices import (
    Counter as SharedCounter,
)
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.quantity import nano

DRIVER, POOL, NODE = "gpu.example.com", "pool", "n1"
SLICES = 4


class World:
    """Some devices, those in use, and claims to allocate."""

    def __init__(self, devices: list[Device], taken: set[str], claims: list[ResourceClaim]) -> None:
        self.devices, self.taken, self.claims = devices, taken, claims
        self.slices, self.in_use = ResourceSlices(), ResourceClaims()
        self.classes = DeviceClasses()
        self.classes.put(DeviceClass(metadata=ObjectMeta(name="any")))
        pool = ResourcePool(POOL, 1, 2)
        sets = [CounterSet("card", {"slices": SharedCounter(SLICES)})]
        offered = ResourceSliceSpec(DRIVER, pool, node_name=NODE, devices=devices)
        counters = ResourceSliceSpec(DRIVER, pool, node_name=NODE, shared_counters=sets)
        for name, spec in (("a", offered), ("b", counters)):
            self.slices.put(ResourceSlice(metadata=ObjectMeta(name=name), spec=spec))
        for name in sorted(taken):
            self.in_use.put(allocated(f"before-{name}", [name]))

    def allocate(self) -> Solution | None:
        pools = PoolBuilder(self.slices).seen_from(NODE, {})
        return Allocator(
            NODE, {}, pools, self.claims, classes=self.classes, in_use=self.in_use
        ).allocate()


def allocated(name: str, devices: list[str]) -> ResourceClaim:
    results = [AllocatedDevice("r", DRIVER, POOL, device) for device in devices]
    status = ResourceClaimStatus(Allocation(DeviceAllocation(results)))
    return ResourceClaim(metadata=ClaimMeta(name=name), status=status)


@st.composite
def worlds(draw: st.DrawFn, *, shared: bool = False) -> World:
    devices = []
    for number in range(draw(st.integers(1, 5))):
        consumed = draw(st.integers(0, 2))
        devices.append(
            Device(
                f"d{number}",
                {"numa": DeviceAttribute(int_value=draw(st.integers(0, 2)))},
                {"memory": DeviceCapacity(draw(st.sampled_from(["2", "4"])))},
                [CounterConsumption("card", {"slices": SharedCounter(consumed)})]
                if consumed
                else None,
                taints=[DeviceTaint("sick", effect="NoSchedule")]
                if draw(st.integers(0, 4)) == 0
                else None,
                allow_multiple_allocations=True if shared and draw(st.booleans()) else None,
            )
        )
    whole = [each.name for each in devices if not each.allow_multiple_allocations]
    taken = draw(st.sets(st.sampled_from(whole), max_size=2)) if whole else set()
    return World(devices, taken, draw(claims(shared=shared)))


@st.composite
def claims(draw: st.DrawFn, *, shared: bool) -> list[ResourceClaim]:
    found = []
    for number in range(draw(st.integers(1, 2))):
        requests = [
            DeviceRequest(
                f"r{place}",
                ExactDeviceRequest(
                    "any",
                    allocation_mode="ExactCount",
                    count=draw(st.integers(1, 2)),
                    tolerations=[DeviceToleration("sick", "Exists")]
                    if draw(st.booleans())
                    else None,
                    capacity=CapacityRequirements({"memory": "1"}) if shared else None,
                ),
            )
            for place in range(draw(st.integers(1, 2)))
        ]
        constraints = (
            [DeviceConstraint(match_attribute=f"{DRIVER}/numa")] if draw(st.booleans()) else None
        )
        spec = ResourceClaimSpec(DeviceClaim(requests, constraints))
        found.append(ResourceClaim(metadata=ClaimMeta(name=f"c{number}"), spec=spec))
    return found


def chosen(solution: Solution) -> list[AllocatedDevice]:
    return [r for each in solution.allocations for r in each.devices.results or ()]


def counters_of(world: World, names: Iterator[str]) -> int:
    of = {each.name: each for each in world.devices}
    return sum(
        nano(counter.value)
        for name in names
        for consumed in of[name].consumes_counters or ()
        for counter in (consumed.counters or {}).values()
    )


@given(world=worlds(shared=True))
@settings(max_examples=150)
def test_no_device_is_used_twice_and_nothing_is_exceeded(world: World) -> None:
    solution = world.allocate()
    if solution is None:
        return
    of = {each.name: each for each in world.devices}
    counted = Counter(result.device for result in chosen(solution))

    for name, number in counted.items():
        if not of[name].allow_multiple_allocations:
            assert number == 1
            assert name not in world.taken
    consumed: Counter[str] = Counter()
    for result in chosen(solution):
        amounts = result.consumed_capacity or {}
        assert (result.share_id is not None) == bool(of[result.device].allow_multiple_allocations)
        consumed[result.device] += nano(amounts.get("memory", 0))
    for name, amount in consumed.items():
        assert amount <= nano((of[name].capacity or {})["memory"].value)
    used = counters_of(world, iter({*counted, *world.taken}))
    before = counters_of(world, iter(world.taken))
    assert used <= nano(SLICES) or used == before


@given(world=worlds())
@settings(max_examples=150)
def test_a_solution_is_found_exactly_when_there_is_one(world: World) -> None:
    solution = world.allocate()

    assert (solution is not None) == any(True for _ in solutions(world))
    if solution is not None:
        names = [[r.device for r in a.devices.results or ()] for a in solution.allocations]
        assert names == next(solutions(world)), "the first one in order"


def solutions(world: World) -> Iterator[list[list[str]]]:
    """Every way to give the claims devices, in order, by trying all combinations."""
    wanted = [
        (number, request)
        for number, claim in enumerate(world.claims)
        for request in claim.spec.devices.requests or ()
    ]
    yield from _given(world, wanted, [[] for _ in world.claims])


def _given(
    world: World, wanted: list[tuple[int, DeviceRequest]], so_far: list[list[str]]
) -> Iterator[list[list[str]]]:
    if not wanted:
        yield [list(each) for each in so_far]
        return
    (number, request), *rest = wanted
    assert request.exactly is not None
    names = [each.name for each in world.devices]
    for group in combinations(names, request.exactly.count):
        if not _allowed(world, so_far, number, request.exactly, group):
            continue
        now = [list(each) for each in so_far]
        now[number] += group
        yield from _given(world, rest, now)


def _allowed(
    world: World,
    so_far: list[list[str]],
    number: int,
    request: ExactDeviceRequest,
    group: tuple[str, ...],
) -> bool:
    of = {each.name: each for each in world.devices}
    before = {name for each in so_far for name in each}
    if before & {*group} or world.taken & {*group}:
        return False
    if any(of[name].taints for name in group) and not request.tolerations:
        return False
    if world.claims[number].spec.devices.constraints:
        together = [*so_far[number], *group]
        if len({(of[n].attributes or {})["numa"].int_value for n in together}) > 1:
            return False
    if not any(of[name].consumes_counters for name in group):
        return True
    everything = {*before, *group, *world.taken}
    return counters_of(world, iter(everything)) <= nano(SLICES)


def test_a_device_that_two_claims_hold_is_free_once_one_of_them_gives_it_back() -> None:
    claims = ResourceClaims()
    one, two = allocated("one", ["d0"]), allocated("two", ["d0"])
    claims.put(one)
    claims.put(two)

    claims.drop(one)

    assert not claims.is_taken(DeviceId(DRIVER, POOL, "d0"))


def test_an_allocation_in_flight_counts_until_it_is_released() -> None:
    claims, device = ResourceClaims(), DeviceId(DRIVER, POOL, "d0")
    allocation = allocated("one", ["d0"]).status.allocation
    assert allocation is not None

    claims.reserve("uid", allocation)
    assert claims.is_taken(device)
    claims.release("uid")

    assert not claims.is_taken(device)


def expensive_world(devices: int) -> World:
    """Devices that a selector refuses, each after an evaluation that costs much."""
    loop = "lists.range(25).all(a, lists.range(25).all(b, lists.range(25).all(c, a+b+c >= 0)))"
    selector = DeviceSelector(CelSelector(f"!({loop})"))
    request = DeviceRequest("r", ExactDeviceRequest("any", [selector], "ExactCount", 1))
    claim = ResourceClaim(
        metadata=ClaimMeta(name="c"), spec=ResourceClaimSpec(DeviceClaim([request]))
    )
    return World([Device(f"d{number:02}") for number in range(devices)], set(), [claim])


@pytest.mark.parametrize("repeat", [1, 2])
def test_expensive_selectors_count_as_steps_of_the_search(repeat: int) -> None:
    """What `filterTimeout` limits is counted, not timed, and does not depend on kept answers."""
    world = expensive_world(4)
    pools = PoolBuilder(world.slices).seen_from(NODE, {})

    def allocate(max_steps: int) -> Solution | None:
        return Allocator(
            NODE, {}, pools, world.claims,
            classes=world.classes, in_use=world.in_use, max_steps=max_steps,
        ).allocate()  # fmt: skip

    for _ in range(repeat):
        assert allocate(100_000) is None
    with pytest.raises(AllocationError) as error:
        allocate(20_000)

    assert str(error.value) == f"node {NODE}: timed out trying to allocate devices"


#: The alternative before asks for two devices of one NUMA node, of which there is one.
@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        (V1_36.choices.devices, [("r/all", "d0"), ("r/all", "d1")]),
        (V1_35.choices.devices, [("r/all", "d0"), ("r/two", "d1")]),
        (V1_34.choices.devices, [("r/all", "d0"), ("r/two", "d1")]),
    ],
    ids=["v1.36", "v1.35", "v1.34"],
)
def test_all_devices_as_a_later_alternative(
    choices: DeviceChoices, expected: list[tuple[str, str]]
) -> None:
    near = DeviceSelector(CelSelector(f'device.attributes["{DRIVER}"].numa == 1'))
    alternatives = [
        DeviceSubRequest("two", "any", [near], "ExactCount", 2),
        DeviceSubRequest("all", "any", None, "All"),
    ]
    request = DeviceRequest("r", first_available=alternatives)
    claim = ResourceClaim(
        metadata=ClaimMeta(name="c"), spec=ResourceClaimSpec(DeviceClaim([request]))
    )
    devices = [Device(f"d{n}", {"numa": DeviceAttribute(int_value=n)}) for n in range(2)]
    world = World(devices, set(), [claim])
    pools = PoolBuilder(world.slices).seen_from(NODE, {})

    found = Allocator(
        NODE, {}, pools, [claim],
        classes=world.classes, in_use=world.in_use, features=DeviceFeatures(choices),
    ).allocate()  # fmt: skip

    assert found is not None
    results = found.allocations[0].devices.results or []
    assert [(each.request, each.device) for each in results] == expected
