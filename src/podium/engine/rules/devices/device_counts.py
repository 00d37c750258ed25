"""How many devices of a class a node has, and how many are in use, for scores of resources.

Counted are all devices that the node may use and that match the selectors of the class, also those
of outdated generations, incomplete and invalid pools.

Upstream: pkg/scheduler/framework/plugins/noderesources/resource_allocation.go, Kubernetes v1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.engine.rules.devices.allocator import AllocationError, first_mismatch
from podium.engine.rules.devices.device_ledger import ledger_of
from podium.engine.rules.devices.pools import OfferedDevice, PoolError, node_matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.rows.rows import OneRow
    from podium.objects.kinds.devices import DeviceClass

#: What looking for devices reads.
DEVICE_KINDS = ("ResourceClaim", "DeviceClass", "ResourceSlice")


def device_counts(at: OneRow, device_class: DeviceClass) -> tuple[int, int]:
    """The devices of a class on a row, and how many of them are in use; none after an error."""
    in_use = at.view.catalog.resource_claims
    count = used = 0
    try:
        for device in _devices_on(at):
            if first_mismatch("", device_class.spec.selectors, device) is None:
                count += 1
                used += in_use.is_used(device.id)
    except (AllocationError, PoolError):
        return 0, 0
    return count, used


def _devices_on(at: OneRow) -> Iterator[OfferedDevice]:
    builder = ledger_of(at.view).builder
    name, labels = at.name, at.node_labels
    for found in at.view.catalog.resource_slices:
        spec = found.spec
        if not spec.per_device_node_selection:
            if not spec.all_nodes and spec.node_name != name and spec.node_selector is not None:
                if not node_matches(name, labels, spec):
                    continue
            elif not spec.all_nodes and spec.node_name and spec.node_name != name:
                continue
        for device in builder.offered(found):
            if spec.per_device_node_selection and not node_matches(name, labels, device.device):
                continue
            yield _without_sharing(device)


def _without_sharing(offered: OfferedDevice) -> OfferedDevice:
    """As upstream: for scores, no device says that it can be shared."""
    if not offered.is_shareable:
        return offered
    return OfferedDevice(offered.slice, replace(offered.device, allow_multiple_allocations=None))
