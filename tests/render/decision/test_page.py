"""The page of an explanation: self-contained, escaped, and with the decision inside."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from builders import node, nodes, pod, profile, simulation
from podium.engine.framework.decision import Decision
from podium.engine.rules.resources.predicates import LeastRequestedPriority
from podium.engine.state.reservation import ClaimPlan, DevicePlan
from podium.engine.state.verdicts import Verdicts
from podium.library.explanation import Explanation
from podium.objects.kinds.devices import (
    AllocatedDevice,
    Allocation,
    ClaimMeta,
    DeviceAllocation,
    ResourceClaim,
)
from podium.render.decision.analysis import ResourceRoom, node_report
from podium.render.reports.explanation_page import explanation_page

RULES = profile(priorities=[LeastRequestedPriority()])
WANTED = pod("web", requests={"cpu": "1"})
VOID = {"meta", "input", "br"}


class Reader(HTMLParser):
    """Checks that elements are closed in order, and keeps what matters."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def decision_in(text: str) -> Any:
    match = re.search(r'<script type="application/json" id="decision">(.*?)</script>', text)
    assert match is not None
    return json.loads(match[1])


def decided(*items: Any) -> Decision:
    return simulation(*items, profile=RULES).attempt(WANTED, recording=True)


CASES: dict[str, Callable[[], Decision]] = {
    "placed": lambda: decided(
        node("a", cpu="2"), node("b", cpu="4"), node("c", unschedulable=True)
    ),
    "one": lambda: decided(node("a")),
    "nowhere": lambda: decided(*nodes(2, cpu="0")),
    "error": decided,
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_whole_and_needs_nothing_else(case: str) -> None:
    decision = CASES[case]()

    text = explanation_page(Explanation(decision, pods=1))

    reader = Reader(text)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert not {name for name, _ in reader.attributes} & {"src", "href", "srcset", "action"}
    assert not re.search(r"@import|url\(|https?://|fetch\(|XMLHttpRequest", text)
    assert decision_in(text)["pod"] == "default/web"
    assert ("map" in reader.ids) == (case != "error")


def test_everything_the_script_asks_for_is_there() -> None:
    text = explanation_page(Explanation(CASES["placed"](), pods=1))

    asked = set(re.findall(r'getElementById\("(\w+)"\)', text))

    assert asked <= set(Reader(text).ids)


def test_the_devices_of_claims_are_listed() -> None:
    claim = ResourceClaim(metadata=ClaimMeta(name="c", namespace="default", uid="1"))
    results = [AllocatedDevice("gpu", "d.example.com", "n0", "gpu-0")]
    plan = DevicePlan((ClaimPlan(claim, Allocation(DeviceAllocation(results))),))
    decision = Decision("default/p", "1", "v1.36", nodes=1, node="n0")
    decision.reservations = {"DynamicResources": plan}
    decision.verdicts = Verdicts()

    page = explanation_page(Explanation(decision, 0))

    assert "<td>default/c</td><td>gpu</td><td>d.example.com/n0/gpu-0</td>" in page


def test_names_cannot_break_out() -> None:
    decision = CASES["placed"]()
    decision.pod = 'x/</script><script>alert("1")</script>'
    decision.profile = "<b>&"

    text = explanation_page(Explanation(decision, pods=1))

    assert "<script>alert" not in text
    assert "&lt;b&gt;&amp;" in text
    assert decision_in(text)["pod"] == decision.pod
    assert Reader(text).open == []


def test_what_was_asked_is_answered_on_the_page() -> None:
    decision = CASES["placed"]()
    asked = node_report(decision, "a")
    asked.room = [ResourceRoom("cpu", 1000, 500, 2000)]

    text = explanation_page(
        Explanation(decision, pods=1, asked=asked, actual="a", timings=[("decide", 0.0012)])
    )

    assert "Why not a?" in text
    assert "it runs on a, but would go to b now" in text
    assert '<td class="number">1500m</td>' in text
    assert '<td class="number">1.2</td>' in text
    assert decision_in(text)["asked"]["fits"] is True


def test_preemption_is_on_the_page() -> None:
    decision = simulation(
        node("a", cpu="1"), pod("low", node="a", requests={"cpu": "1"}), profile=RULES
    ).attempt(pod("vip", requests={"cpu": "1"}, priority=5), recording=True)

    text = explanation_page(Explanation(decision, pods=2))

    assert "Preemption: tried on 1 node, would help on 1" in text
    assert '<tr class="chosen"><td>a</td>' in text
    assert "default/low (0)" in text


def test_a_page_for_many_nodes_stays_small() -> None:
    text = explanation_page(Explanation(decided(*nodes(500)), pods=1))

    assert len(text) < 100_000
    assert len(decision_in(text)["feasible"]) == 500
