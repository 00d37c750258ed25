"""Server-sent events: what happened, at most five times a second; a sign of life each second."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from podium.web.page_data import PageData

COALESCED_SECONDS: Final = 0.2
ALIVE_SECONDS: Final = 1.0


async def stream(page_data: PageData) -> AsyncIterator[bytes]:
    """Events named `pulse` with the summary; the first one comes at once."""
    yield b"retry: 2000\n\n"
    sent: object = None
    quiet = 0.0
    while True:
        revision = page_data.revision()
        if revision != sent or quiet >= ALIVE_SECONDS:
            sent, quiet = revision, 0.0
            yield b"event: pulse\ndata: " + msgspec.json.encode(page_data.summary()) + b"\n\n"
        await asyncio.sleep(COALESCED_SECONDS)
        quiet += COALESCED_SECONDS
