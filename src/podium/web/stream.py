"""Server-sent events with the summary: after a change, and at least once a second."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from podium.web.page_data import PageSource

#: Seconds between two looks at the revision; changes in between are sent together.
INTERVAL: Final = 0.2
#: Seconds after which an event is sent even if nothing changed.
LONGEST_SILENCE: Final = 1.0


async def stream(page_data: PageSource) -> AsyncIterator[bytes]:
    """Events named `pulse` with the summary; the first one is sent at once."""
    yield b"retry: 2000\n\n"
    sent: object = None
    silence = 0.0
    while True:
        revision = page_data.revision()
        if revision != sent or silence >= LONGEST_SILENCE:
            sent, silence = revision, 0.0
            yield b"event: pulse\ndata: " + msgspec.json.encode(page_data.summary()) + b"\n\n"
        await asyncio.sleep(INTERVAL)
        silence += INTERVAL
