"""Devices that were reserved count until their claim is reported as it was written, or later."""

from __future__ import annotations

from typing import Any

import msgspec

from cases import cases
from podium.engine.state.devices import DeviceId, ResourceClaims
from podium.objects.kinds.devices import Allocation, ResourceClaim

DEVICE = {"request": "r", "driver": "d", "pool": "p", "device": "x"}


def claim(version: str, *, allocated: bool) -> ResourceClaim:
    allocation = {"devices": {"results": [DEVICE]}} if allocated else None
    about = {"name": "c", "namespace": "default", "uid": "u", "resourceVersion": version}
    return msgspec.convert({"metadata": about, "status": {"allocation": allocation}}, ResourceClaim)


FREE, TAKEN, FREED = (
    claim("5", allocated=False),
    claim("7", allocated=True),
    claim("8", allocated=False),
)
#: Tells that the allocation is written.
WRITTEN = "written"


@cases(
    ("events", "taken"),
    {
        "nothing is reported yet": ([WRITTEN], True),
        "what is reported is older": ([WRITTEN, FREE], True),
        "it is reported": ([WRITTEN, TAKEN], True),
        "it is reported, and given back": ([WRITTEN, TAKEN, FREED], False),
        "only what came after is reported": ([WRITTEN, FREED], False),
        "that is reported before the answer": ([FREED, WRITTEN], False),
        "an older version is reported before the answer": ([FREE, WRITTEN], True),
        "a version that is no number": ([claim("x", allocated=False), WRITTEN], True),
    },
)
def test_devices_in_flight(events: list[Any], taken: bool) -> None:
    claims = ResourceClaims()
    claims.put(FREE)
    allocation = TAKEN.status.allocation
    assert isinstance(allocation, Allocation)
    claims.reserve("u", allocation)

    for event in events:
        if event is WRITTEN:
            claims.note_written(TAKEN.key, TAKEN.uid, TAKEN.metadata.resource_version)
        else:
            claims.put(event)
    claims.release("u")

    assert claims.is_taken(DeviceId("d", "p", "x")) == taken


def test_devices_of_a_claim_that_was_made_go_with_the_reservation() -> None:
    claims = ResourceClaims()
    allocation = TAKEN.status.allocation
    assert isinstance(allocation, Allocation)
    claims.reserve("reserved", allocation)
    claims.rename_in_flight("reserved", "made")

    claims.release("reserved")

    assert not claims.in_flight


def test_devices_of_a_deleted_claim_are_free_before_it_was_ever_reported() -> None:
    claims = ResourceClaims()
    allocation = TAKEN.status.allocation
    assert isinstance(allocation, Allocation)
    claims.reserve("u", allocation)
    claims.note_written(TAKEN.key, "u", "7")

    claims.release("u")
    assert claims.in_flight
    claims.note_written(TAKEN.key, "u", "")

    assert not claims.in_flight
