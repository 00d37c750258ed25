"""The pools of devices that can be seen from a node.

Slices are relevant for a node by their node selection; up to v1.36, slices with shared counters are
relevant everywhere. Of a pool only the newest generation counts. A pool that lacks slices is
incomplete, one that contradicts itself is invalid; no device is taken from either.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
pools_incubating.go, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from podium.cel.errors import CelError, CompileError
from podium.engine.rules.devices.features import DEFAULT_FEATURES, DeviceFeatures
from podium.engine.state.devices import DeviceId, PoolId, pool_of
from podium.objects.field_errors import together
from podium.objects.quantity import nano
from podium.objects.selectors.faults import node_term_faults
from podium.objects.selectors.selectors import matches_terms, node_terms

if TYPE_CHECKING:
    from podium.engine.state.devices import ResourceSlices
    from podium.engine.state.shelf import Shelf
    from podium.objects.kinds.devices import Device, DeviceTaintRule, ResourceSlice
    from podium.objects.kinds.pod import NodeSelector

#: A device keeps the answers of this many selectors.
MOST_ANSWERS = 256


class PoolError(Exception):
    """The slices cannot be understood; the text is that of kube-scheduler."""


class SelectorAnswer(NamedTuple):
    """What a selector says about a device, and the effort of its evaluation."""

    answer: bool | CelError | CompileError
    effort: int = 0


class OfferedDevice:
    """A device of a slice, with the answers of the selectors that were asked about it.

    Selectors depend on nothing but the device: their answers are kept for as long as the slice is
    unchanged, whatever is allocated in between.
    """

    __slots__ = ("_answers", "_variables", "consumes", "device", "id", "slice")

    def __init__(self, found: ResourceSlice, device: Device) -> None:
        self.slice = found
        self.device = device
        self.id = DeviceId(found.spec.driver, found.spec.pool.name, device.name)
        #: Billionths of each counter that it consumes, by counter set.
        self.consumes = tuple(
            (each.counter_set, {n: nano(c.value) for n, c in (each.counters or {}).items()})
            for each in device.consumes_counters or ()
        )
        self._variables: dict[str, Any] | CelError | None = None
        self._answers: dict[str, SelectorAnswer] = {}

    @property
    def is_shareable(self) -> bool:
        """Whether several claims may each get a share of it."""
        return bool(self.device.allow_multiple_allocations)

    def answer(self, expression: str) -> SelectorAnswer:
        """Whether a selector matches, or its error."""
        known = self._answers.get(expression)
        if known is not None:
            return known
        # What evaluates expressions is loaded with the first selector, if there is one.
        from podium.cel.environment import compile_expression  # noqa: PLC0415

        compiled = compile_expression(expression)
        if isinstance(compiled, CompileError):
            return SelectorAnswer(compiled)
        try:
            found = SelectorAnswer(*compiled.judge(self._device_variables()))
        except CelError as error:
            found = SelectorAnswer(error)
        if len(self._answers) >= MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[expression] = found
        return found

    def _device_variables(self) -> dict[str, Any]:
        if self._variables is None:
            from podium.cel.environment import variables_of  # noqa: PLC0415

            try:
                self._variables = variables_of(self.id.driver, self.device)
            except CelError as error:
                self._variables = error
        if isinstance(self._variables, CelError):
            raise self._variables
        return self._variables


@dataclass(slots=True, eq=False)
class DevicePool:
    """A pool as it is seen from some nodes."""

    id: PoolId
    #: The devices in the order in which they are tried.
    devices: tuple[OfferedDevice, ...] = ()
    #: Devices of slices for other nodes; they may have used up counters.
    elsewhere: tuple[OfferedDevice, ...] = ()
    #: Billionths of each counter, by counter set.
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    is_incomplete: bool = False
    #: Why the pool contradicts itself; empty if it does not.
    invalid: str = ""
    has_binding_conditions: bool = False

    @property
    def usable(self) -> bool:
        """Whether devices may be taken from it."""
        return not self.is_incomplete and not self.invalid


class PoolBuilder:
    """Makes the pools that nodes see, each distinct one once while its slices stay the same."""

    def __init__(
        self,
        slices: ResourceSlices,
        features: DeviceFeatures = DEFAULT_FEATURES,
        rules: Shelf[DeviceTaintRule] | None = None,
    ) -> None:
        """*rules* are those that taint devices, where that is a feature."""
        self._slices = slices
        self._features = features
        self._rules = rules if features.taint_rules else None
        self._offered: dict[str, tuple[ResourceSlice, tuple[OfferedDevice, ...]]] = {}
        self._pools: dict[PoolId, dict[tuple[str, ...], DevicePool | None]] = {}

    def forget_taints(self) -> None:
        """Drop everything: the rules that taint devices changed."""
        self._pools.clear()
        self._offered.clear()

    def forget(self, pools: Iterable[PoolId] | None) -> None:
        """Drop what was made for pools whose slices changed; None: for all of them."""
        if pools is None:
            self._pools.clear()
            return
        for pool in pools:
            self._pools.pop(pool, None)

    def seen_from(self, name: str, labels: Mapping[str, str]) -> list[DevicePool]:
        """The pools that a node sees, in the order in which they are tried."""
        relevant: dict[PoolId, list[ResourceSlice]] = {}
        for each in (*self._slices.on_node(name), *self._slices.elsewhere.values()):
            if _is_relevant(each, name, labels, self._features):
                _add(relevant, each)
        found = [self._pool(pool, kept) for pool, kept in relevant.items()]
        return sorted(
            (pool for pool in found if pool is not None),
            key=lambda pool: (pool.has_binding_conditions, pool.id),
        )

    def offered(self, found: ResourceSlice) -> tuple[OfferedDevice, ...]:
        """The devices of a slice."""
        known = self._offered.get(found.name)
        if known is None or known[0] is not found:
            devices = self._tainted(found)
            made = tuple(OfferedDevice(found, device) for device in devices)
            known = self._offered[found.name] = (found, made)
        return known[1]

    def _tainted(self, found: ResourceSlice) -> Sequence[Device]:
        """The devices of a slice with the taints of rules; the order of rules is that of names."""
        devices = found.spec.devices or ()
        if not self._rules:
            return devices
        rules = sorted(self._rules, key=lambda rule: rule.name)
        tainted = []
        for device in devices:
            added = [taint for rule in rules if (taint := rule.taint_of(found, device))]
            own = device.taints or []
            tainted.append(replace(device, taints=[*own, *added]) if added else device)
        return tainted

    def _pool(self, pool: PoolId, kept: list[ResourceSlice]) -> DevicePool | None:
        if self._features.choices.orders_slices:
            kept.sort(key=lambda each: each.name)
        names = tuple(each.name for each in kept)
        made = self._pools.setdefault(pool, {})
        if names not in made:
            made[names] = self._build(pool, kept)
        return made[names]

    def _build(self, pool: PoolId, kept: list[ResourceSlice]) -> DevicePool | None:
        """The pool with these relevant slices; None when a newer generation is on its way."""
        about = kept[0].spec.pool
        others: list[ResourceSlice] = []
        choices = self._features.choices
        made = DevicePool(pool)
        if len(kept) != about.resource_slice_count and not choices.completes_over_nodes:
            made.is_incomplete = True
        elif len(kept) != about.resource_slice_count:
            every = list(self._slices.in_pool(pool))
            if any(each.spec.pool.generation > about.generation for each in every):
                return None
            same = [each for each in every if each.spec.pool.generation == about.generation]
            if len(same) != about.resource_slice_count:
                return DevicePool(pool, is_incomplete=True)
            names = {each.name for each in kept}
            others = [each for each in same if each.name not in names]
        made.devices = self._devices_of(each for each in kept if not each.spec.shared_counters)
        made.elsewhere = self._devices_of(each for each in others if not each.spec.shared_counters)
        made.invalid = _repeated_name(made.devices)
        if self._features.partitions and not made.invalid:
            # Where slices with counters belong to the pool wherever they are, all are in `kept`.
            made.invalid = (
                _read_counters(made, [*kept, *others])
                or _unknown_counter(made, self._devices_of(kept))
                or _unknown_counter(made, made.elsewhere)
            )
        if made.invalid:
            return DevicePool(pool, is_incomplete=made.is_incomplete, invalid=made.invalid)
        made.has_binding_conditions = any(
            device.device.binding_conditions is not None for device in made.devices
        )
        return made

    def _devices_of(self, slices: Iterable[ResourceSlice]) -> tuple[OfferedDevice, ...]:
        return tuple(device for each in slices for device in self.offered(each))


def _add(relevant: dict[PoolId, list[ResourceSlice]], found: ResourceSlice) -> None:
    """Keep the slices of the highest generation of each pool."""
    kept = relevant.setdefault(pool_of(found), [])
    newest = kept[0].spec.pool.generation if kept else found.spec.pool.generation
    if found.spec.pool.generation > newest:
        kept.clear()
    if found.spec.pool.generation >= newest:
        kept.append(found)


def _is_relevant(
    found: ResourceSlice, name: str, labels: Mapping[str, str], features: DeviceFeatures
) -> bool:
    spec = found.spec
    if not features.partitions and (
        spec.per_device_node_selection is not None or spec.shared_counters
    ):
        return False
    if spec.shared_counters and features.choices.counters_everywhere:
        return True
    try:
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return node_matches(name, labels, spec)
        if spec.per_device_node_selection:
            return any(node_matches(name, labels, device) for device in spec.devices or ())
    except PoolError as error:
        what = f"failed to perform node selection for slice {found.name}: {error}"
        raise PoolError(f"gather pool information: {what}") from None
    return False


def node_matches(name: str, labels: Mapping[str, str], where: Any) -> bool:
    """Whether a node is meant by the node selection of a slice or a device."""
    if where.node_name:
        return bool(where.node_name == name)
    if where.all_nodes:
        return True
    selector: NodeSelector | None = where.node_selector
    if selector is None:
        return False
    if fault := selector_fault(selector):
        raise PoolError(f"failed to parse node selector: {fault}")
    return matches_terms(node_terms(selector), labels, {"metadata.name": name})


def selector_fault(selector: NodeSelector) -> str:
    """All errors of a node selector; empty if there is none."""
    faults: list[str] = []
    for number, term in enumerate(selector.node_selector_terms or ()):
        faults += node_term_faults(term, f"nodeSelectorTerms[{number}]")
    return together(faults)


def _repeated_name(devices: Sequence[OfferedDevice]) -> str:
    seen: set[str] = set()
    for each in devices:
        if each.device.name in seen:
            return f"duplicate device name {each.device.name}"
        seen.add(each.device.name)
    return ""


def _read_counters(pool: DevicePool, slices: Sequence[ResourceSlice]) -> str:
    counters: dict[str, dict[str, int]] = {}
    for each in slices:
        for counter_set in each.spec.shared_counters or ():
            if counter_set.name in counters:
                return f"duplicate counter set name {counter_set.name}"
            amounts = (counter_set.counters or {}).items()
            counters[counter_set.name] = {name: nano(found.value) for name, found in amounts}
    pool.counters = counters
    return ""


def _unknown_counter(pool: DevicePool, devices: Sequence[OfferedDevice]) -> str:
    for each in devices:
        for counter_set, amounts in each.consumes:
            if counter_set not in pool.counters:
                return f"counter set {counter_set} not found"
            for name in amounts:
                if name not in pool.counters[counter_set]:
                    return f"counter {name} not found in counter set {counter_set}"
    return ""
