"""The event loop of a program, with and without uvloop."""

from __future__ import annotations

import asyncio
import sys

import pytest
import uvloop

from podium.host.event_loop import new_event_loop, run_program


async def loop_type() -> type:
    return type(asyncio.get_running_loop())


def test_uvloop_is_used_where_it_is_installed() -> None:
    assert run_program(loop_type()) is uvloop.Loop


def test_without_uvloop_asyncio_has_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    loop = new_event_loop()
    try:
        assert isinstance(loop, asyncio.SelectorEventLoop)
    finally:
        loop.close()
    assert run_program(loop_type()) is not uvloop.Loop
