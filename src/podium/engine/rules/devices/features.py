"""Which features devices have: feature gates and the choices of a release, as one value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from podium.engine.framework.choices import DeviceChoices

if TYPE_CHECKING:
    from podium.engine.framework.declaration import PluginContext


class DeviceFeatures(msgspec.Struct, frozen=True):
    """What the allocation of devices takes into account; the defaults are those of v1.36."""

    choices: DeviceChoices = DeviceChoices()
    #: Shared counters, and devices with a node selection of their own (DRAPartitionableDevices).
    partitions: bool = True
    #: Shares of devices and their capacity (DRAConsumableCapacity).
    shares: bool = True
    #: Taints of devices (DRADeviceTaints).
    taints: bool = True
    #: Taints that DeviceTaintRules add (DRADeviceTaintRules).
    taint_rules: bool = False
    #: Devices that must be prepared before a pod is bound (DRADeviceBindingConditions).
    binding_conditions: bool = True
    #: Ranges of capacity in thousandths (DRAFractionalCapacityRange).
    fractions: bool = False


DEFAULT_FEATURES: Final = DeviceFeatures()


def features_of(context: PluginContext) -> DeviceFeatures:
    """The features with these gates and choices."""
    gates = context.gates
    status = gates["DRAResourceClaimDeviceStatus"]
    return DeviceFeatures(
        context.choices.devices,
        partitions=gates["DRAPartitionableDevices"],
        shares=gates["DRAConsumableCapacity"],
        taints=gates["DRADeviceTaints"],
        taint_rules=gates["DRADeviceTaintRules"],
        binding_conditions=gates["DRADeviceBindingConditions"] and status,
        fractions=gates["DRAFractionalCapacityRange"],
    )
