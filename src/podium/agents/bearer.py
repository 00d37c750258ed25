"""Only requests with the token reach an application."""

from __future__ import annotations

import hmac
from typing import Any, Final

_REFUSED: Final = b"a bearer token is needed: Authorization: Bearer TOKEN\n"


class BearerOnly:
    """Answers requests without the token with 401, and passes all others on."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Compare the token in constant time."""
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": _REFUSED})
                return
        await self._app(scope, receive, send)
