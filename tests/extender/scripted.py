"""An extender that says what it is told to, on a real socket."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

#: A body, a body with a status, or a function of the request.
Script = Any


class Scripted:
    """Serves replies by verb, and keeps the requests. To be used in a `with`."""

    def __init__(self, *, tls: ssl.SSLContext | None = None, **replies: Script) -> None:
        self.replies = replies
        self.asked: list[tuple[str, Any]] = []
        self.types: set[str] = set()
        self.authorizations: list[str] = []
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        app = web.Application()
        app.router.add_post("/{verb:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        self._started.set()
        await self._end.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        verb = request.match_info["verb"]
        body = await request.json()
        self.asked.append((verb, body))
        self.types.add(request.content_type)
        self.authorizations.append(request.headers.get("Authorization", ""))
        reply = self.replies[verb]
        reply = reply(body) if callable(reply) else reply
        if reply is SILENCE:
            await self._end.wait()
        status, text = reply if isinstance(reply, tuple) else (200, reply)
        return web.Response(
            status=status, body=text if isinstance(text, bytes) else json.dumps(text)
        )


SILENCE = object()
Answer = Callable[[Any], Any]


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and *name*, and its key."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-keyout", key, "-out", cert, "-subj", f"/CN={name}",
            "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1",
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key
