"""A running scheduler makes some decisions twice, and survives kept answers that are wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host.test_scheduler_host import PODS, World, options
from manifests import node, pod
from podium.host.cluster_run import RunOptions
from podium.host.history_rules import record_options
from podium.library.profile_source import ProfileSource
from podium.past.format.reading import History
from podium.past.format.records import Decided
from podium.past.format.writing import Limits
from waiting import eventually

#: A rule that states to read the node alone, and reads a file besides: answers that are kept of it
#: are wrong once there is such a file.
RULE = """
from pathlib import Path
from podium.rules import predicate

@predicate("Open", depends="node")
def is_open(pod, node):
    return not (Path(__file__).parent / f"{node.name}.closed").exists() or "node(s) were closed"
"""


def source_in(folder: Path) -> ProfileSource:
    (folder / "open.py").write_text(RULE)
    return ProfileSource(rules=(str(folder / "open.py"),))


def verifying(every: int, folder: Path) -> RunOptions:
    usual, source = options(), source_in(folder)
    scheduler = replace(usual.host.scheduler, verified_decisions=every)
    record = record_options(
        str(folder / "history"), Limits(batch_records=1), source, source.choose()
    )
    return replace(usual, host=replace(usual.host, scheduler=scheduler, record=record))


def played(
    world: World, folder: Path, pods: str, *, closes_before: str
) -> tuple[dict[str, Any], bytes]:
    """Place pods one after the other on two nodes; the nodes they went to, and the metrics."""
    metrics = []

    async def script(world: World) -> None:
        await world.api.create("/api/v1/nodes", node("n2"))
        for name in pods:
            if name == closes_before:
                (folder / "n1.closed").touch()
            await world.api.create(PODS, pod(name, cpu="100m"))
            await eventually(lambda name=name: world.is_bound(name))  # type: ignore[misc]
        metrics.append(world.run.host.metrics.exposition()[0])

    assert asyncio.run(world.play(script)) == 0
    nodes = {name: each["spec"]["nodeName"] for name, each in world.pods().items()}
    return nodes, metrics[0]


def test_a_wrong_kept_answer_is_logged_counted_recorded_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(verifying(4, tmp_path), source_in(tmp_path))

    nodes, metrics = played(world, tmp_path, "abcdefg", closes_before="d")

    assert {nodes["d"], nodes["e"], nodes["f"], nodes["g"]} == {"n2"}
    [line] = [each for each in caplog.messages if "kept answers" in each]
    for part in (
        "default/d",
        "attempt 3, journal",
        "verdict of n1: fits instead of Open (",
        '"image":"app"',
    ):
        assert part in line
    assert b"podium_verified_decisions_total 1.0" in metrics
    assert b"podium_differing_decisions_total 1.0" in metrics
    decided = [
        each for each in History(tmp_path / "history").entries() if isinstance(each, Decided)
    ]
    differing = {each.pod: each.differences for each in decided if each.differences}
    assert list(differing) == ["default/d"]
    assert any("verdict of n1: fits instead of Open" in each for each in differing["default/d"])


@pytest.mark.parametrize("every", [0, 100])
def test_other_decisions_are_made_once(tmp_path: Path, every: int) -> None:
    world = World(verifying(every, tmp_path), source_in(tmp_path))

    _, metrics = played(world, tmp_path, "abc", closes_before="")

    assert b"podium_verified_decisions_total 0.0" in metrics
