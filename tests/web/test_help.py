"""Help: part of the package, with contents, neighbours, a search and the keys of every page."""

from __future__ import annotations

import posixpath
import re
import tomllib
import urllib.parse
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from podium.library.documentation import docs_folder
from podium.web.help import INDEX, HelpLibrary, help_library
from web.playground import Served
from web.test_data import ask

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def library() -> HelpLibrary:
    found = help_library()
    assert found is not None
    return found


def test_a_wheel_has_the_documentation_beside_the_pages() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["force-include"]["docs"] == "podium/web/docs"
    included = build["targets"]["wheel"]["force-include"]
    assert included["examples/kube-scheduler"] == "podium/examples/kube-scheduler"
    folder = docs_folder()
    assert folder is not None
    assert (ROOT / "docs" / "pages.md").read_bytes() == folder.joinpath("pages.md").read_bytes()


def test_the_contents_name_every_page_by_its_question(library: HelpLibrary) -> None:
    questions = {entry.words: entry.path for lines in library.contents.values() for entry in lines}

    assert questions["When is it tried again?"] == "queue.md"
    assert questions["How does each mechanism of kube-scheduler work?"] == "course/README.md"
    assert set(library.order) == set(library.pages)
    before, after = library.neighbours("decision.md")
    assert (before and before.path, after and after.path) == ("pending.md", "reasons.md")
    assert library.neighbours(INDEX)[0] is None
    assert library.neighbours(library.order[-1])[1] is None


@pytest.mark.parametrize(
    ("query", "path", "heading"),
    [
        ("insufficient resource", "reasons.md", "Insufficient RESOURCE"),
        (
            "NOMINATED passes",
            "course/nominated-pods/README.md",
            "Nominated pods and the two passes",
        ),
        ("pages keys", "pages.md", "Keys"),
    ],
)
def test_a_search_finds_sections_of_all_pages(
    library: HelpLibrary, query: str, path: str, heading: str
) -> None:
    best = library.search(query)[0]

    assert (best.page.path, best.section.heading) == (path, heading)
    assert library.search("no-such-word-anywhere") == library.search(" ") == []


def test_no_link_of_help_leads_nowhere(library: HelpLibrary, site: Served) -> None:
    """Every page is served, and so is everything that it links to."""
    asked: dict[str, int] = {}
    for path in library.pages:
        status, _, text = ask(f"{site.url}podium/help/{path}")
        assert status == 200, path
        for link in re.findall(rb'(?:href|src)="([^"]+)"', text):
            to = link.decode().partition("#")[0]
            if not to or ":" in to:
                continue
            there = posixpath.normpath(posixpath.join("/podium/help", posixpath.dirname(path), to))
            address = urllib.parse.urljoin(f"{site.url}podium/help/{path}", to)
            asked.setdefault(there, ask(address)[0])
    assert {there: status for there, status in asked.items() if status != 200} == {}


def test_help_is_walked_and_searched_by_keyboard(page: Page, site: Served) -> None:
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", level=1)).to_have_text("Documentation by question")
    heard(page)
    page.keyboard.press("n")
    page.wait_for_url("**/tour.md")
    heard(page)
    expect(page.get_by_role("navigation", name="Contents").locator("[aria-current]")).to_have_text(
        "tour"
    )
    page.keyboard.press("p")
    expect(page.get_by_role("heading", level=1)).to_have_text("Documentation by question")
    heard(page)

    page.keyboard.press("/")
    page.keyboard.type("untolerated <taint>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Nothing has")
    heard(page)
    page.get_by_label("Search the documentation").fill("untolerated taint")
    page.keyboard.press("Enter")
    found = page.locator(".results li").first
    expect(found.locator("mark").first).to_have_text(re.compile("untolerated|taint"))
    found.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"podium/help/.+\.md#"))
    heard(page)

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("On this page")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page).to_have_url(f"{site.url}#/plan")


def heard(page: Page) -> None:
    """Wait until a page of Help hears keys: its head is there."""
    expect(page.locator("header nav a[aria-current]")).to_have_text("Help")


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_help_fits_the_window(page: Page, site: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for path in ("", "cli.md", "pages.md", "course/resources/README.md", "?q=node"):
        page.goto(f"{site.url}podium/help/{path}")
        page.wait_for_selector(".contents")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
