"""Every reason of every generation has a page, and its command shows it."""

from __future__ import annotations

import importlib
import pkgutil
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import Podium
from podium.engine import rules
from podium.engine.cycle.cycle import NO_NODES
from podium.engine.preemption import plugin as preemption
from podium.engine.rules.node_affinity import CONFLICTING_TERMS
from podium.engine.rules.volumes.binding import UNBOUND_IMMEDIATE_CLAIMS
from podium.engine.state.verdicts import Reason
from podium.errors import InputError
from podium.library.documentation import ReasonPage, reason_page, reason_pages

ROOT = Path(__file__).parents[2]
#: Reasons that are no constants: made for a resource, a claim or a gate.
MADE = (
    "Insufficient cpu",
    "Insufficient example.com/gpu",
    "Insufficient pods",
    'persistentvolumeclaim "data" not found',
    "waiting for scheduling gates: [a b]",
    "request gpu: device class big does not exist",
    'could not find ResourceClaim "default/x"',
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
)
OTHERS = (
    CONFLICTING_TERMS,
    NO_NODES,
    UNBOUND_IMMEDIATE_CLAIMS,
    preemption.NEVER,
    preemption.LEAVING,
    preemption.NO_VICTIMS,
    preemption.NO_CANDIDATE,
    preemption.NOT_HELPFUL,
)


def constants() -> set[str]:
    """The texts of all reasons that modules of rules have as constants."""
    found = set()
    for each in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        values = vars(importlib.import_module(each.name)).values()
        found |= {value.text for value in values if isinstance(value, Reason)}
    return found - {""}


def test_no_reason_is_without_a_page() -> None:
    texts = constants()
    assert len(texts) > 35

    for text in (*texts, *MADE, *OTHERS):
        assert any(page.about(text) for page in reason_pages()), text


def test_every_page_is_about_a_reason_that_exists() -> None:
    texts = (*constants(), *MADE, *OTHERS)

    for page in reason_pages():
        assert any(page.about(text) for text in texts), page.text
        for part in ("*Said by:*", "**Means.**", "**Usual causes.**", "**What to change.**"):
            assert part in page.body, page.text


@pytest.mark.parametrize("page", reason_pages(), ids=lambda page: page.anchor)
def test_the_command_of_a_reason_shows_it(
    page: ReasonPage, podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(page.command)
    if program == "python":
        shown = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True
        )
        assert page.text in shown.stdout
        return

    found = podium(*arguments, "-o", "json")

    assert found.code in {0, 1}, found.err
    texts = [
        found.json.get("error", ""),
        found.json.get("message", ""),
        *(found.json.get(part, {}).get("reason", "") for part in ("held", "refused")),
        *(reason for each in found.json["rejections"] for reason in each["reasons"]),
    ]
    assert any(page.about(text) or page.text.lower() in text.lower() for text in texts), texts


def test_every_reason_has_a_command() -> None:
    assert [page.text for page in reason_pages() if not page.command] == []


def test_a_part_of_the_text_is_enough() -> None:
    assert reason_page("insufficient MEMORY").text == "Insufficient RESOURCE"
    assert reason_page("ReadWriteOncePod").text.startswith("node(s) unavailable due to Persistent")
    with pytest.raises(InputError, match="it is a part of"):
        reason_page("taint")


def test_the_commands_print_a_page(podium: Podium) -> None:
    by_explain = podium("explain", "--reason", "Insufficient cpu")
    by_help = podium("help", "reason", "Insufficient", "cpu")

    assert by_explain.code == 0
    assert by_explain.out == by_help.out
    assert by_help.out.startswith("Insufficient RESOURCE\n\nSaid by: PodFitsResources (v1.13)")
    assert "Too many pods" in podium("help", "reason").lines
    assert "Usage: podium plan" in podium("help", "plan").out
