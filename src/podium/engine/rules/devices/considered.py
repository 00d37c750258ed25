"""What the search for devices considered on one row, for explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.causes import MOST_NAMED, DevicesLacking, DeviceTurnedDown
from podium.objects.kinds.devices import ALL_DEVICES, DeviceSubRequest, ExactDeviceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.rules.devices.pools import OfferedDevice
    from podium.engine.state.devices import DeviceId
    from podium.objects.kinds.devices import ResourceClaim


class ConsideredDevices:
    """Devices that were turned down or chosen, per request, in the order of the search.

    A device is noted once per request, with what turned it down last.
    """

    def __init__(self, claims: Sequence[ResourceClaim]) -> None:
        self._claims = claims
        self._turned_down: dict[tuple[int, str], dict[DeviceId, DeviceTurnedDown]] = {}
        self._chosen: dict[tuple[int, str], int] = {}
        self._most: dict[tuple[int, str], int] = {}

    def turned_down(self, claim: int, request: str, device: OfferedDevice, why: str) -> None:
        """A device was considered for a request and cannot be used."""
        noted = self._turned_down.setdefault((claim, request), {})
        noted[device.id] = DeviceTurnedDown(device.id.driver, device.id.device, why)

    def chosen(self, claim: int, request: str, device: OfferedDevice) -> None:
        """A device was chosen, for now."""
        key = (claim, request)
        self._chosen[key] = self._chosen.get(key, 0) + 1
        self._most[key] = max(self._most.get(key, 0), self._chosen[key])

    def given_up(self, claim: int, request: str, device: OfferedDevice) -> None:
        """A device that was chosen did not lead to a solution."""
        self._chosen[claim, request] -= 1
        noted = self._turned_down.setdefault((claim, request), {})
        why = "what follows it cannot be allocated then"
        noted.setdefault(device.id, DeviceTurnedDown(device.id.driver, device.id.device, why))

    def lacking(self, reason: str) -> Iterator[DevicesLacking]:
        """The requests that the search came to, and that never got all their devices."""
        for number, claim in enumerate(self._claims):
            complete = True
            for name, request in _requests(claim):
                wanted = None if request.allocation_mode == ALL_DEVICES else request.count
                found = self._most.get((number, name), 0)
                if wanted is not None and found >= wanted:
                    continue
                noted = tuple(self._turned_down.get((number, name), {}).values())
                complete = complete and "/" in name
                yield DevicesLacking(
                    reason,
                    claim.key,
                    name,
                    wanted,
                    found,
                    noted[:MOST_NAMED],
                    max(len(noted) - MOST_NAMED, 0),
                )
                if "/" not in name:
                    break  # later requests were not looked at
            if not complete:
                return


def _requests(claim: ResourceClaim) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield request.name, request.exactly
        for each in request.first_available or ():
            yield f"{request.name}/{each.name}", each
