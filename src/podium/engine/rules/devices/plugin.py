"""DynamicResources: the devices that a pod claims.

A pod waits until its claims exist. On each node, the claims without an allocation are allocated
together (`allocator`), and those with one must be usable from there. The devices found on the
chosen node are reserved; before the pod is bound they are written into the claims.

Upstream: pkg/scheduler/framework/plugins/dynamicresources, Kubernetes v1.36, with feature gates at
their defaults.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.engine.framework.causes import Cause, ClaimElsewhere, PoolInvalid, ResourceUnknown
from podium.engine.framework.decision import ClaimRelease
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    EventContext,
    Events,
    FeatureGates,
    PluginContext,
    PluginDeclaration,
    arguments_record,
)
from podium.engine.framework.post_filter import FailedGroup, FailedSearch, GroupOutcome, Outcome
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    AttemptError,
    Everywhere,
    FilterRule,
    Refused,
    ReserveRule,
    Scope,
    Watched,
)
from podium.engine.rows.node_match import selects_any
from podium.engine.rows.rows import Ints, K, ManyRows, OneRow, Rows
from podium.engine.rules.devices.allocator import (
    TIMED_OUT,
    AllocationError,
    Allocator,
    SearchTimeoutError,
)
from podium.engine.rules.devices.claims import (
    SPECIAL_NAME,
    BindingFailure,
    ClaimProblem,
    PodClaims,
    claims_of,
    is_late,
    is_ready,
)
from podium.engine.rules.devices.considered import ConsideredDevices
from podium.engine.rules.devices.device_counts import DEVICE_KINDS
from podium.engine.rules.devices.device_ledger import DeviceLedger, RowAnswer, ledger_of
from podium.engine.rules.devices.extended_resources import (
    extended_requests,
    requests_and_mappings,
    special_claim,
)
from podium.engine.rules.devices.features import (
    DEFAULT_FEATURES,
    DeviceFeatures,
    features_of,
)
from podium.engine.rules.devices.pools import PoolError, selector_fault
from podium.engine.rules.plugins import MAX_SCORE, always, is_self
from podium.engine.rules.scaled_score import ScaledScore
from podium.engine.state.reservation import ClaimPlan, DevicePlan
from podium.engine.state.verdicts import FITS, Reason
from podium.objects.field_errors import child, forbidden, invalid
from podium.objects.go_types import DURATION_POINTER, go_json
from podium.objects.selectors.selectors import node_terms
from podium.objects.times import SECOND, text_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from podium.engine.framework.declaration import Events
    from podium.engine.framework.rule import Memo
    from podium.engine.rules.devices.allocator import SearchNotes, Solution
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View
    from podium.objects.kinds.devices import Allocation, ResourceClaim
    from podium.objects.kinds.pod import ContainerExtendedResource, Pod

NAME: Final = "DynamicResources"
CANNOT_ALLOCATE = Reason("cannot allocate all claims", curable=False)
INVALID_POOLS = Reason("invalid resource pools were encountered", curable=False)
#: For a pod group, also where there are no claims and nothing was done.
GROUP_CLAIMS_RELEASED = "deallocation and deletion of ResourceClaims completed"
NOT_AVAILABLE = Reason("resourceclaim not available on the node", curable=False)
STALE_CLAIM = Reason("cannot schedule extended resource claim", curable=False)
SEARCH_TIMED_OUT = Reason(TIMED_OUT, curable=False)
CANNOT_FIT = Reason("cannot fit resource", curable=False)

#: A search of this many steps takes about a second in Python; kube-scheduler limits its time.
STEPS_PER_SECOND = 200_000
#: The best alternative of a request scores this much, each later one less by one.
FIRST_ALTERNATIVE = 8

_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """How long filtering and the preparation of devices may take, in nanoseconds."""

    filter_timeout: int | None = None
    binding_timeout: int | None = None


def _complete(found: DynamicResourcesArgs, gates: FeatureGates) -> DynamicResourcesArgs:
    """Ten seconds and ten minutes, where the feature gates allow such timeouts."""
    if found.filter_timeout is None and gates["DRASchedulerFilterTimeout"]:
        found = dataclasses.replace(found, filter_timeout=10 * SECOND)
    if found.binding_timeout is None and _has_binding_conditions(gates):
        found = dataclasses.replace(found, binding_timeout=600 * SECOND)
    return found


def _has_binding_conditions(gates: FeatureGates) -> bool:
    return gates["DRADeviceBindingConditions"] and gates["DRAResourceClaimDeviceStatus"]


def _check(found: DynamicResourcesArgs, path: str, gates: FeatureGates) -> Errors:
    where, time = child(path, "filterTimeout"), found.filter_timeout
    if time is not None and not gates["DRASchedulerFilterTimeout"]:
        yield forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled")
    elif time is not None and time < 0:
        yield invalid(where, go_json(text_of(time)), "must be zero or positive")
    where, time = child(path, "bindingTimeout"), found.binding_timeout
    if time is not None and not _has_binding_conditions(gates):
        yield forbidden(
            where,
            "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
        )
    elif time is not None and time < SECOND:
        yield invalid(where, go_json(text_of(time)), "must be at least 1 second")


DYNAMIC_RESOURCES_ARGUMENTS: Final = Arguments(
    arguments_record(
        DynamicResourcesArgs, filter_timeout=DURATION_POINTER, binding_timeout=DURATION_POINTER
    ),
    _check,
    _complete,
)


@dataclass(frozen=True, slots=True)
class _OnRow:
    """The claims to allocate on a row, which depend on what its device plugins offer."""

    claims: tuple[ResourceClaim, ...]
    mappings: tuple[ContainerExtendedResource, ...] = ()


class DynamicResourcesGate:
    """Keeps a pod out of the active queue until all its claims exist."""

    name = NAME

    def __init__(self, word: str = "Pod") -> None:
        """*word* is what texts call the pod."""
        self._word = word

    def hold(self, pod: Incoming, view: View) -> Refused | None:
        """Why the claims of the pod cannot be used yet; None when they can."""
        if not pod.cls.spec.resource_claims:
            return None
        try:
            claims_of(pod.pod, view.catalog.resource_claims, self._word)
        except ClaimProblem as problem:
            return Refused(NAME, str(problem))
        return None


class DynamicResources(FilterRule, ReserveRule):
    """Every claim is allocated and usable from the node, or can be allocated there."""

    name = NAME
    kinds: tuple[str, ...] = DEVICE_KINDS

    def __init__(
        self,
        max_steps: int = 0,
        binding_timeout_seconds: float = 600.0,
        features: DeviceFeatures = DEFAULT_FEATURES,
    ) -> None:
        self.max_steps = max_steps
        self.binding_timeout_seconds = binding_timeout_seconds
        self.features = features
        if features.taint_rules:
            self.kinds = (*DEVICE_KINDS, "DeviceTaintRule")

    def scope(self, cls: PodClass) -> Scope:
        """Claims, slices and classes, for pods that may need devices."""
        return Scope.OBJECTS if _may_need_devices(cls) else Scope.NONE

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped for a pod without claims whose extended resources no class serves."""
        if not _may_need_devices(pod.cls):
            return Activity.SKIPPED
        if pod.cls.spec.resource_claims and _named_claims(pod, view.catalog):
            return Activity.ACTIVE
        served = view.catalog.device_classes.served
        any_served = any(name in served for name in extended_requests(pod.cls))
        return Activity.ACTIVE if any_served else Activity.SKIPPED

    def pre_filter(self, pod: Incoming, view: View) -> Refused | None:
        """Every claim must exist, and every class that one without an allocation names."""
        if not _may_need_devices(pod.cls):
            return None
        catalog = view.catalog
        try:
            claims = pod_claims(pod, catalog, self.features.choices.pod)
        except ClaimProblem as problem:
            return Refused(self.name, str(problem))
        for claim in claims.all:
            allocation = claim.status.allocation
            if allocation is not None:
                if allocation.node_selector is not None:
                    fault = selector_fault(allocation.node_selector)
                    if fault:
                        raise AttemptError(fault)
                continue
            if claim.uid in catalog.resource_claims.in_flight:
                what = f"resource claim {claim.key} is in the process of being allocated"
                return Refused(self.name, what)
            if claim is not claims.special:
                refused = self._check_classes(claim, catalog)
                if refused is not None:
                    return refused
        return None

    def _check_classes(self, claim: ResourceClaim, catalog: Catalog) -> Refused | None:
        for request in claim.spec.devices.requests or ():
            if request.exactly is not None:
                named = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                named = [
                    (f"{request.name}/{each.name}", each.device_class_name)
                    for each in request.first_available
                ]
            else:
                what = f"resource claim {claim.key}, request {request.name}: unknown request type"
                return Refused(self.name, what)
            for name, device_class in named:
                if not device_class:
                    raise AttemptError(f"request {name}: unsupported request type")
                if catalog.device_classes.get(device_class) is None:
                    what = f"request {name}: device class {device_class} does not exist"
                    return Refused(self.name, what)
        return None

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The verdict of each row."""
        search = DeviceSearch(self, pod, at.view)
        return at.either(search.codes, search.code)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterable[Cause]:
        """The requests that get too few devices, with what turned each device down."""
        return DeviceSearch(self, pod, at.view).causes(at.row)

    def reserve(self, pod: Incoming, at: OneRow) -> DevicePlan | None:
        """The devices of each claim on this row; None for a pod without claims."""
        if self.activity(pod, at.view) is Activity.SKIPPED:
            return None
        return DeviceSearch(self, pod, at.view).plan(at.row)


def _may_need_devices(cls: PodClass) -> bool:
    return bool(cls.spec.resource_claims) or bool(extended_requests(cls))


def _named_claims(pod: Incoming, catalog: Catalog) -> list[ResourceClaim]:
    try:
        return claims_of(pod.pod, catalog.resource_claims)
    except ClaimProblem:
        return []


def pod_claims(pod: Incoming, catalog: Catalog, word: str = "Pod") -> PodClaims:
    """All claims of a pod; a problem with one of them is raised."""
    named = claims_of(pod.pod, catalog.resource_claims, word)
    resources = extended_requests(pod.cls)
    served = catalog.device_classes.served
    if not any(name in served for name in resources):
        return PodClaims(named)
    found = catalog.resource_claims.made_for(pod.uid, pod.pod.name)
    return PodClaims(named, special_claim(pod.pod) if found is None else found, resources)


class DeviceSearch:
    """The search for the devices of one pod, on any rows."""

    def __init__(self, rule: DynamicResources, pod: Incoming, view: View) -> None:
        self._rule, self._pod, self._view = rule, pod, view
        self._catalog = view.catalog
        self._verdicts = view.verdicts
        self.claims = pod_claims(pod, view.catalog)
        self._ledger: DeviceLedger = ledger_of(view, rule.features)
        self._served = view.catalog.device_classes.served
        #: Whether some claim has no allocation yet.
        self.searches = bool(self.claims.unallocated)

    # Verdicts -------------------------------------------------------------------------------------

    def codes(self, at: ManyRows) -> np.ndarray:
        """The verdict codes of many rows; errors are noted there."""
        return self._answers(at.index, at.errors)[0]

    def code(self, at: OneRow) -> int:
        """The verdict code of one row; an error is noted there."""
        errors: dict[int, str] = {}
        codes, _ = self._answers(np.array([at.row]), errors)
        if errors:
            at.fail(errors[0])
        return int(codes[0])

    def scores(self, at: ManyRows) -> np.ndarray:
        """The scores of rows on which the claims can be allocated."""
        return self._answers(at.index, {})[1]

    def score(self, at: OneRow) -> int:
        """The score of one row."""
        return int(self._answers(np.array([at.row]), {})[1][0])

    def _answers(self, rows: np.ndarray, errors: dict[int, str]) -> tuple[np.ndarray, np.ndarray]:
        codes, scores = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int64)
        special = self.claims.special
        if special is not None and special.spec.devices.requests:
            codes[:] = self._code(STALE_CLAIM)
            return codes, scores
        before = self._score_of_allocated()
        for places, by_devices, fits in self._by_offer(rows):
            if not fits:
                codes[places] = self._code(CANNOT_FIT)
                continue
            if special is not None and not by_devices and not self.claims.named:
                continue
            some = rows[places]
            if self.searches:
                found: dict[int, str] = {}
                codes[places], own = self._allocated(some, by_devices, found)
                errors.update((int(places[place]), text) for place, text in found.items())
                scores[places] = own + before
            unavailable = self._unavailable_on(some)
            fitting = codes[places] == FITS
            codes[places[unavailable & fitting]] = self._code(NOT_AVAILABLE)
        return codes, scores

    def _code(self, reason: Reason) -> int:
        return self._verdicts.of(NAME, (reason,))

    def _by_offer(self, rows: np.ndarray) -> Iterable[tuple[np.ndarray, tuple[str, ...], bool]]:
        """Rows by the extended resources that devices must serve there, and whether that works."""
        everything = np.arange(len(rows))
        if self.claims.special is None:
            yield everything, (), True
            return
        names = sorted(self.claims.resources)
        served = [name for name in names if name in self._served]
        flags = [self._allocatable(name, rows) == 0 for name in served]
        packed = np.packbits(np.array(flags, np.bool_), axis=0)
        _, first, which = np.unique(packed, axis=1, return_index=True, return_inverse=True)
        lacking = np.zeros(len(rows), np.bool_)
        for name in names:
            if name not in self._served:
                lacking |= ~self._is_listed(name, rows)
        for group, place in enumerate(first.tolist()):
            members = which.ravel() == group
            by_devices = tuple(
                name for name, flag in zip(served, flags, strict=True) if flag[place]
            )
            for fits in (True, False):
                places = everything[members & (lacking ^ fits)]
                if len(places):
                    yield places, by_devices, fits

    def _allocatable(self, name: str, rows: np.ndarray) -> np.ndarray:
        nodes = self._view.nodes
        column = nodes.resources.get(name)
        if column is None or column >= len(nodes.allocatable):
            return np.zeros(len(rows), np.int64)
        found: np.ndarray = nodes.allocatable[column][rows]
        return found

    def _is_listed(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Whether the node says anything of a resource, be it that there is none."""
        nodes = [self._view.nodes.objects[row] for row in rows.tolist()]
        listed = [n is not None and name in (n.status.allocatable or {}) for n in nodes]
        return np.array(listed, np.bool_)

    def _unavailable_on(self, rows: np.ndarray) -> np.ndarray:
        """The rows from which some allocated claim cannot be used."""
        found = np.zeros(len(rows), np.bool_)
        for claim in self.claims.all:
            found |= self.is_unavailable(claim, rows)
        return found

    def is_unavailable(self, claim: ResourceClaim, rows: np.ndarray) -> np.ndarray:
        """The rows from which an allocated claim cannot be used."""
        allocation = claim.status.allocation
        if allocation is None:
            return np.zeros(len(rows), np.bool_)
        if allocation.node_selector is not None:
            at = ManyRows(self._view, rows)
            terms = node_terms(allocation.node_selector)
            elsewhere: np.ndarray = ~np.asarray(selects_any(at, terms))
        else:
            elsewhere = np.zeros(len(rows), np.bool_)
        return elsewhere | self._is_stuck(claim)

    def _is_stuck(self, claim: ResourceClaim) -> bool:
        """Whether the devices of an allocated claim could not be prepared."""
        try:
            ready = is_ready(claim)
        except BindingFailure:
            return True
        timeout = self._rule.binding_timeout_seconds
        return not ready and is_late(claim, timeout, self._view.decided_at)

    # Allocation -----------------------------------------------------------------------------------

    def _allocated(
        self, rows: np.ndarray, by_devices: tuple[str, ...], errors: dict[int, str]
    ) -> tuple[np.ndarray, np.ndarray]:
        wanted = self._wanted(by_devices)
        key = (self._rule.max_steps, *(_encode(claim.spec) for claim in wanted.claims))
        return self._ledger.answers(key, rows, lambda row: self._answer(wanted, row), errors)

    def _wanted(self, by_devices: tuple[str, ...]) -> _OnRow:
        """The claims to allocate where devices must serve these resources."""
        claims = self.claims.unallocated
        special = self.claims.special
        if special is None:
            return _OnRow(tuple(claims))
        requests, mappings = requests_and_mappings(self._pod.pod, by_devices, self._served)
        devices = replace(special.spec.devices, requests=requests or None)
        own = replace(special, spec=replace(special.spec, devices=devices))
        return _OnRow(tuple(own if c is special else c for c in claims), tuple(mappings))

    def _answer(self, wanted: _OnRow, row: int) -> RowAnswer:
        try:
            solution = self._solve(wanted.claims, row)
        except (AllocationError, PoolError) as error:
            timed_out = isinstance(error, SearchTimeoutError)
            if timed_out and not self._rule.features.choices.timeout_is_error:
                return RowAnswer(self._code(SEARCH_TIMED_OUT))
            return RowAnswer(FITS, error=f'running "{NAME}" filter plugin: {error}')
        if solution is not None:
            return RowAnswer(FITS, _score(wanted.claims, solution.allocations))
        fails = self._rule.features.choices.fails_on_invalid_pools
        invalid = not fails and any(pool.invalid for pool in self._ledger.pools_of(row))
        return RowAnswer(self._code(INVALID_POOLS if invalid else CANNOT_ALLOCATE))

    def _solve(
        self, claims: Sequence[ResourceClaim], row: int, notes: SearchNotes | None = None
    ) -> Solution | None:
        node = self._view.nodes.objects[row]
        return Allocator(
            self._view.nodes.names[row],
            node.labels if node is not None else {},
            self._ledger.pools_of(row),
            claims,
            classes=self._catalog.device_classes,
            in_use=self._catalog.resource_claims,
            available=self._ledger.counters,
            max_steps=self._rule.max_steps,
            notes=notes,
            features=self._rule.features,
        ).allocate()

    def _score_of_allocated(self) -> int:
        allocated = [c for c in self.claims.all if c.status.allocation is not None]
        return _score(allocated, [c.status.allocation for c in allocated])

    # The chosen row -------------------------------------------------------------------------------

    def offer(self, row: int) -> _OnRow | None:
        """The claims to allocate on a row; None if nothing needs devices there."""
        [(_, by_devices, _)] = self._by_offer(np.array([row]))
        special = self.claims.special
        if special is not None and not by_devices and not self.claims.named:
            return None
        return self._wanted(by_devices)

    def plan(self, row: int) -> DevicePlan:
        """The devices of every claim on the chosen row."""
        wanted = self.offer(row)
        if wanted is None:
            return self._planned([ClaimPlan(each, special=True) for each in self.claims.all])
        solution = self._solve(wanted.claims, row) if self.searches else None
        if self.searches and solution is None:
            raise AttemptError("claim allocation not found for node")
        found: dict[int, tuple[ResourceClaim, Allocation]] = {}
        if solution is not None:
            places = [i for i, c in enumerate(self.claims.all) if c.status.allocation is None]
            for place, claim, made in zip(places, wanted.claims, solution.allocations, strict=True):
                found[place] = (claim, made)
        plans = []
        for place, claim in enumerate(self.claims.all):
            own, allocation = found.get(place, (claim, None))
            plans.append(ClaimPlan(own, allocation, special=claim is self.claims.special))
        return self._planned(plans, wanted.mappings)

    def _planned(
        self, claims: Sequence[ClaimPlan], mappings: tuple[ContainerExtendedResource, ...] = ()
    ) -> DevicePlan:
        return DevicePlan(tuple(claims), mappings, self._rule.binding_timeout_seconds)

    # Explanations ---------------------------------------------------------------------------------

    def causes(self, row: int) -> Iterator[Cause]:
        """Why the claims of the pod cannot be used or allocated on a row."""
        special = self.claims.special
        if special is not None and special.spec.devices.requests:
            yield ClaimElsewhere(STALE_CLAIM.text, special.key, "stale")
            return
        for name in self.claims.resources:
            if name not in self._served and not self._is_listed(name, np.array([row]))[0]:
                yield ResourceUnknown(CANNOT_FIT.text, name)
        for claim in self.claims.all:
            if self.is_unavailable(claim, np.array([row])).any():
                why = "notReady" if self._is_stuck(claim) else "elsewhere"
                yield ClaimElsewhere(NOT_AVAILABLE.text, claim.key, why)
        yield from self._causes_of_search(row)

    def _causes_of_search(self, row: int) -> Iterator[Cause]:
        for pool in self._ledger.pools_of(row):
            if pool.invalid:
                yield PoolInvalid(INVALID_POOLS.text, str(pool.id), pool.invalid)
        wanted = self.offer(row)
        if wanted is not None and self.searches:
            notes = ConsideredDevices(wanted.claims)
            try:
                solution = self._solve(wanted.claims, row, notes)
            except SearchTimeoutError:
                # What the search had considered until then is not why the node was rejected.
                return
            if solution is None:
                for reason in (CANNOT_ALLOCATE, INVALID_POOLS):
                    yield from notes.lacking(reason.text)


def _score(claims: Sequence[ResourceClaim], allocations: Sequence[Allocation | None]) -> int:
    """The better the alternatives that requests got, the more."""
    total = 0
    for claim, allocation in zip(claims, allocations, strict=True):
        results = (allocation.devices.results if allocation is not None else None) or ()
        used = {each.request for each in results if "/" in each.request}
        for request in claim.spec.devices.requests or ():
            if request.exactly is not None:
                continue
            for place, each in enumerate(request.first_available or ()):
                if f"{request.name}/{each.name}" in used:
                    total += FIRST_ALTERNATIVE - place
    return total


class DynamicResourcesScore(ScaledScore):
    """Prefers nodes on which requests get their better alternatives."""

    name = NAME
    highest = MAX_SCORE

    def __init__(self, rule: DynamicResources) -> None:
        self._rule = rule
        self.kinds = rule.kinds

    def scope(self, cls: PodClass) -> Scope:
        """Claims, slices and classes, for pods that name claims."""
        return Scope.OBJECTS if cls.spec.resource_claims else Scope.NONE

    def watched(self, cls: PodClass) -> Watched:
        """Nothing, for pods without claims."""
        return Watched.ANYTHING if cls.spec.resource_claims else Watched.NOTHING

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """0 everywhere, unless some claim to allocate has alternatives."""
        if not pod.cls.spec.resource_claims:
            return SKIPPED
        try:
            claims = pod_claims(pod, view.catalog)
        except ClaimProblem:
            return SKIPPED
        requests = [r for claim in claims.named for r in claim.spec.devices.requests or ()]
        alternatives = any(request.first_available for request in requests)
        return None if alternatives and claims.unallocated else SKIPPED

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum over all requests with alternatives."""
        search = DeviceSearch(self._rule, pod, at.view)
        return at.either(search.scores, search.score)


class DynamicResourcesPostFilter:
    """Gives back a claim that is allocated where the pod cannot run, so that it may move."""

    name = NAME
    evicts_pods = False

    def __init__(self, rule: DynamicResources, *, tells_nothing_done: bool = True) -> None:
        """*tells_nothing_done*: there is a text when no claim is given back."""
        self._rule = rule
        self._tells = tells_nothing_done
        self.kinds = rule.kinds

    def run(self, failed: FailedSearch) -> Generator[Any, Any, Outcome]:
        """An error when the pod was refused before this plugin saw it."""
        return self._run(failed)
        yield  # a generator that asks no extender

    def run_for_group(self, failed: FailedGroup) -> Generator[Any, Any, GroupOutcome]:
        """Tell that claims were given back, also where there are none.

        An error when no pod of the group was seen by this plugin.
        """
        if not any(self.name in seen for seen in failed.prepared.values()):
            return GroupOutcome("Error", "not found")
        return GroupOutcome("Unschedulable", GROUP_CLAIMS_RELEASED)
        yield  # a generator that asks no extender

    def _run(self, failed: FailedSearch) -> Outcome:
        if self.name not in failed.prepared:
            return Outcome("Error", "not found")
        nothing = self._nothing("no new claims to deallocate")
        # Where this plugin refused the pod, no claims were kept.
        refused = failed.refused is not None and failed.refused.plugin == self.name
        if refused or self._rule.activity(failed.pod, failed.view) is Activity.SKIPPED:
            return nothing
        search = DeviceSearch(self._rule, failed.pod, failed.view)
        claims = search.claims
        if not claims.all:
            return nothing
        code = failed.view.verdicts.of(NAME, (NOT_AVAILABLE,))
        rows = failed.rows[failed.codes == code]
        for claim in claims.named:
            if not search.is_unavailable(claim, rows).any():
                continue
            consumers = claim.status.reserved_for or ()
            if not consumers or [each.uid for each in consumers] == [failed.pod.uid]:
                release = ClaimRelease(claim.key, claim.uid)
                what = "deallocation of ResourceClaim completed"
                return Outcome("Unschedulable", what, released=release)
        special = claims.special
        if special is not None and special.name != SPECIAL_NAME:
            release = ClaimRelease(special.key, special.uid, delete=True)
            what = "deletion of ResourceClaim completed"
            return Outcome("Unschedulable", what, released=release)
        return self._nothing("still not schedulable")

    def _nothing(self, text: str) -> Outcome:
        return Outcome("Unschedulable", text if self._tells else "")


def _rule(found: DynamicResourcesArgs | None, context: PluginContext) -> DynamicResources:
    features = features_of(context)
    if found is None:
        return DynamicResources(features=features)
    seconds = (found.filter_timeout or 0) / SECOND
    binding = (found.binding_timeout or 600 * SECOND) / SECOND
    return DynamicResources(int(seconds * STEPS_PER_SECOND), binding, features)


def _post_filter(
    found: DynamicResourcesArgs | None, context: PluginContext
) -> DynamicResourcesPostFilter:
    return DynamicResourcesPostFilter(
        _rule(found, context), tells_nothing_done=context.choices.tells_idle_claims
    )


def claim_changed(waiting: Pod, old: ResourceClaim | None, new: ResourceClaim) -> bool:
    """Devices became free, or the status of a claim of the pod changed."""
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if not _uses(waiting, new):
        return False
    return old is None or old.status != new.status


def _uses(pod: Pod, claim: ResourceClaim) -> bool:
    if pod.namespace != claim.namespace:
        return False
    made = {
        each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
    }
    return any(
        (entry.resource_claim_name or made.get(entry.name)) == claim.name
        for entry in pod.spec.resource_claims or ()
    )


def claim_deleted(_waiting: Pod, old: ResourceClaim, _new: None) -> bool:
    """A claim went that had devices."""
    return old.status.allocation is not None


def events_of(context: EventContext) -> Events:
    """Nodes, claims, classes and slices, and the claims generated for the pod itself."""
    deleted: Events = (
        {"ResourceClaim Delete": claim_deleted} if context.wake_ups.deleted_claims_count else {}
    )
    return {
        **deleted,
        "Node Add": always,
        "Node UpdateNodeLabel": always,
        "Node UpdateNodeAllocatable": always,
        "ResourceClaim Add": claim_changed,
        "ResourceClaim Update": claim_changed,
        "Pod UpdatePodGeneratedResourceClaim": is_self,
        "DeviceClass Add": always,
        "DeviceClass Update": always,
        "ResourceSlice Add": always,
        "ResourceSlice Update": always,
    }


DYNAMIC_RESOURCES: Final = PluginDeclaration(
    NAME,
    "preEnqueue preFilter filter postFilter score reserve preBind",
    "devices that the pod claims",
    filter=_rule,
    score=lambda found, context: DynamicResourcesScore(_rule(found, context)),
    gate=lambda context: DynamicResourcesGate(context.choices.devices.pod),
    post_filter=_post_filter,
    arguments=DYNAMIC_RESOURCES_ARGUMENTS,
    weight=2,
    feature_gate="DynamicResourceAllocation",
    pre_filter_error="not found",
    score_needs_pre_filter=True,
    events=events_of,
)
