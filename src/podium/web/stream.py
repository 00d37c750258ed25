"""Server-sent events: what happened, at most five times a second; a sign of life each second."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from podium.web.page_data import Observatory

COALESCED_SECONDS: Final = 0.2
ALIVE_SECONDS: Final = 1.0


async def stream(observatory: Observatory) -> AsyncIterator[bytes]:
    """Events named `pulse`; the first one comes at once."""
    yield b"retry: 2000\n\n"
    told: object = None
    quiet = 0.0
    while True:
        beats = observatory.beats()
        if beats != told or quiet >= ALIVE_SECONDS:
            told, quiet = beats, 0.0
            yield b"event: pulse\ndata: " + msgspec.json.encode(observatory.pulse()) + b"\n\n"
        await asyncio.sleep(COALESCED_SECONDS)
        quiet += COALESCED_SECONDS
