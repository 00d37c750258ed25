"""A browser, pages to look at, and a watch over what they ask for and complain about."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def page(browser: Browser, site: Served) -> Iterator[Page]:
    """The page of the cluster; afterwards it must have no errors and no requests elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    missing: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
    page.goto(site.url)
    page.wait_for_selector(".tile")
    yield page
    context.close()
    # The browser notes each refusal; those of the data are what a test is about.
    assert [each for each in complaints if "Failed to load resource" not in each] == []
    assert [url for url in missing if "/podium/v1/" not in url] == []
    assert [url for url in asked if not url.startswith((site.url, "data:"))] == []
