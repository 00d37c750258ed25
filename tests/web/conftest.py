"""A browser, pages to look at, and a watch over what they ask for and complain about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from podium.library.reading import read
from web.playground import Playground, Served

WORLD = str(Path(__file__).with_name("small_world.yaml"))
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: Milliseconds until a page that does not show what it should is a failure, on a busy machine too.
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, for one module only: while it is open, an event loop runs in this thread."""
    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, CHROMIUM)), None)
        if program is None:
            pytest.skip("NO BROWSER, so no page is tested: apt-get install chromium")
        found = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def site() -> Iterator[Served]:
    """A small cluster whose pods were just placed."""
    playground = Playground()
    playground.load(read([WORLD]))
    playground.work()
    with Served(playground).running() as served:
        yield served


@contextmanager
def watched(
    browser: Browser, url: str, ready: str, *, origin: str = "", allowed: str = "", **options: Any
) -> Iterator[Page]:
    """A page at *url*, once *ready* is there; afterwards it must have no complaints.

    It may ask *origin* alone, by default *url*, and only data may be missing. The browser notes
    each refusal, which is a complaint unless its text has *allowed*.
    """
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    missing: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.goto(url)
    page.wait_for_selector(ready)
    yield page
    context.close()
    assert [each for each in complaints if not allowed or allowed not in each] == []
    assert [each for each in missing if "/podium/v1/" not in each] == []
    assert [each for each in asked if not each.startswith((origin or url, "data:"))] == []


@pytest.fixture
def page(browser: Browser, site: Served) -> Iterator[Page]:
    """The page of the cluster, whose data may be refused."""
    size = {"width": 1280, "height": 800}
    allowed = "Failed to load resource"
    with watched(
        browser, site.url, ".tile", allowed=allowed, viewport=size, color_scheme="light"
    ) as page:
        yield page
