"""The HTTP endpoints of a scheduler on a port, and decisions to serve."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext

import pytest
from starlette.types import ASGIApp

from builders import node, pod, simulation
from podium.past.decisions.decision_log import DecisionLog
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options
from podium.serving.endpoints.http_server import listening, serve_on
from scheduler.attempts import tried

V1_37 = from_config(default_config({}), Options())[0]


@contextmanager
def served(app: ASGIApp, tls: SSLContext | None = None) -> Iterator[str]:
    """The application on a port of its own, in a loop of its own."""
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    loop = asyncio.new_event_loop()
    task = loop.create_task(serve_on(app, listener, tls=tls))

    def running() -> None:
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=running)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
        loop.close()
    assert not thread.is_alive()


def a_log() -> DecisionLog:
    log = DecisionLog()
    world = simulation(node("n1", cpu="2"), node("n2", cpu="4"), profile=V1_37)
    for number in (1, 2):
        log.attempted(tried(world, pod("big", requests={"cpu": "8"}), number=number))
    placed = tried(world, pod("small", requests={"cpu": "1"}), recording=True)
    log.attempted(placed)
    log.bound(placed, "n2", 0.004)
    return log
