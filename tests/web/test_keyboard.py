"""Everything can be done with the keyboard alone, and one sees where one is."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from web.playground import Served

FOCUSED = "document.activeElement"


def tab_to(page: Page, selector: str, most: int = 60) -> None:
    """Press Tab until the element that the selector means has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(f"s => {FOCUSED}.matches(s)", selector):
            return
    raise AssertionError(f"{selector} is not reached with Tab")


def test_the_skip_link_comes_first_and_leads_to_the_content(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate(f"{FOCUSED}.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate(f"{FOCUSED}.id") == "main"


def test_focus_is_visible(page: Page) -> None:
    tab_to(page, "nav a")
    outline = page.evaluate(
        f"getComputedStyle({FOCUSED}).outlineStyle + getComputedStyle({FOCUSED}).outlineWidth"
    )
    assert outline == "solid3px"


def test_arrows_move_through_nodes_and_enter_opens_one(page: Page) -> None:
    tab_to(page, ".tile")
    assert page.evaluate(f"{FOCUSED}.dataset.node") == "a-1"
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"{FOCUSED}.dataset.node") == "a-2"
    page.keyboard.press("End")
    assert page.evaluate(f"{FOCUSED}.dataset.node") == "c-2"
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_be_visible()
    tab_to(page, ".panel .pods a")
    page.keyboard.press("Enter")
    expect(page.locator("h1.headline")).to_contain_text("shop/")


def test_escape_closes_a_node_and_goes_back_to_it(page: Page) -> None:
    tab_to(page, ".tile")
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    expect(page.locator("[data-node='a-1']")).to_be_focused()


def go(page: Page, key: str) -> None:
    """Open a page by its shortcut."""
    page.keyboard.press("g")
    page.keyboard.press(key)


def test_shortcuts_lead_to_every_page(page: Page) -> None:
    for key, heading in (
        ("p", "Pending pods"),
        ("l", "Timeline"),
        ("r", "Rules"),
        ("w", "Plan"),
        ("t", "Try a pod"),
    ):
        go(page, key)
        expect(page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    for key, part in (("m", "Compare rules"), ("f", "How many more fit")):
        go(page, key)
        expect(page.locator(".parts [aria-current]")).to_have_text(part)
    go(page, "c")
    expect(page.locator(".tile").first).to_be_visible()
    page.keyboard.press("/")
    assert page.evaluate(f"{FOCUSED}.type") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.locator("dialog.help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog.help")).not_to_be_visible()


def test_the_keys_of_a_page_are_listed_and_not_taken_from_fields(page: Page) -> None:
    go(page, "t")
    page.wait_for_selector("textarea")
    page.keyboard.press("?")
    listed = page.locator("dialog.help")
    expect(listed).to_contain_text("On this page")
    expect(listed.locator("div", has_text="Decide").locator("kbd")).to_have_text("s")
    for title in ("Timeline", "Plan", "Compare rules", "How many more fit", "Help"):
        expect(listed.locator("dd", has_text=title)).to_have_count(1)
    page.keyboard.press("s")
    page.keyboard.press("Escape")
    expect(page.locator("h1.headline")).to_have_count(0)

    page.locator("textarea").fill("")
    page.keyboard.type("gps?/d")
    expect(page.locator("textarea")).to_have_value("gps?/d")
    expect(page.get_by_role("heading", name="Try a pod", exact=True)).to_be_visible()


def test_a_weight_is_changed_and_applied_by_keyboard(page: Page) -> None:
    go(page, "r")
    page.wait_for_selector("#weight-NodeAffinityPriority")
    tab_to(page, "#weight-NodeAffinityPriority")
    page.keyboard.press("Control+A")
    page.keyboard.type("50")
    tab_to(page, "button.primary")
    page.keyboard.press("Enter")
    expect(page.locator(".counts")).to_be_visible()
    tab_to(page, ".actions button:not(.primary)", most=120)
    page.keyboard.press("Enter")
    expect(page.locator(".applied")).to_contain_text("Applied")


def test_rows_of_the_heat_map_are_walked_with_arrows(page: Page, site: Served) -> None:
    key = site.do(lambda p: p.page_data.find_pods("shop/web"))[0]["pod"]
    page.goto(f"{site.url}#/pods/{key}")
    page.wait_for_selector(".heat-map")
    tab_to(page, ".heat-map tbody tr")
    first = page.evaluate(f"{FOCUSED}.dataset.name")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".heat-map tbody tr:focus")).not_to_have_attribute("data-name", first)
    expect(page.locator(".compared")).not_to_contain_text("is the one that was chosen")


def test_tabs_of_the_rules_move_with_arrows(page: Page) -> None:
    go(page, "r")
    page.wait_for_selector("#tab-weights")
    tab_to(page, "#tab-weights")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-text")).to_be_focused()
    expect(page.locator("textarea")).to_be_visible()


def test_a_manifest_is_decided_with_control_enter(page: Page) -> None:
    go(page, "t")
    page.wait_for_selector("textarea")
    tab_to(page, "textarea")
    page.keyboard.press("Control+Enter")
    expect(page.locator("h1.headline")).to_contain_text("goes to")
