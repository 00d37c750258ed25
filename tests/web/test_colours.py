"""The colour of a workload: the same on every page and after a reload, and never hard to see."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from builders import pod
from web.playground import Playground, Served

#: The least contrast of shapes with their ground (WCAG 2.1, 1.4.11), over many workloads.
WORST = """async tokens => {
  const { shade, token } = await import('./podium/static/js/colours.js');
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d', { willReadFrequently: true });
  const luminance = colour => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(each =>
      each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let worst = 100;
  for (const ground of tokens.map(token).map(luminance)) {
    for (let i = 0; i < 300; i += 1) {
      const own = luminance(shade(['team', 'Deployment', `app-${i}`]));
      const [dark, light] = [own, ground].sort((a, b) => a - b);
      worst = Math.min(worst, (light + 0.05) / (dark + 0.05));
    }
  }
  return worst;
}"""
COLOUR = "each => each.style.background"
SQUARES = """async () => {
  const { square } = await import('./podium/static/js/colours.js');
  const names = [...Array(100).keys()].map(i => square(['team', 'Deployment', `app-${i}`]));
  return new Set(names).size;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_stands_out_from_its_ground(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]

    assert page.evaluate(WORST, ["--paper", "--raised", "--track"]) >= 3


def test_names_that_differ_little_are_told_apart(page: Page) -> None:
    assert page.evaluate(SQUARES) >= 95


def test_a_workload_keeps_its_colour(page: Page, site: Served) -> None:
    """Whatever came before it, on every page, after a reload."""

    def colours(selector: str) -> set[str]:
        expect(page.locator(selector).first).to_be_attached()
        return set(page.locator(selector).evaluate_all(f"all => all.map({COLOUR})"))

    web = colours(".legend li:has-text('shop/web') .cell")
    db = colours(".legend li:has-text('shop/db') .cell")
    assert len(web) == len(db) == 1
    assert web != db

    def come(playground: Playground) -> None:
        for name in ("early", "first"):
            playground.create(pod(name, namespace="another", labels={"app": name}))
        playground.work()

    site.do(come)
    expect(page.locator(".legend")).to_contain_text("another/first")
    # Numbered as they appear, the workloads of a fresh page would come in another order.
    page.fill("input[type=search]", "shop/web")
    assert colours(".matches .cell") == web
    page.reload()
    assert colours(".legend li:has-text('shop/web') .cell") == web
    page.goto(f"{site.url}#/nodes/{site.do(first_node)}")
    assert colours(".panel li:has-text('shop/web') .cell") == web
    first = pod("aaa", namespace="batch", labels={"app": "giant"}, requests={"cpu": "64"})
    site.do(lambda p: p.create(first))
    page.goto(f"{site.url}#/pending")
    assert len(colours("tr:has-text('batch/aaa') th .cell")) == 1


def first_node(playground: Playground) -> str:
    return str(playground.page_data.find_pods("shop/web")[0]["node"])
