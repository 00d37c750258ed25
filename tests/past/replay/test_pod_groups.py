"""Pod groups in a history: a cycle is recorded, followed and made again as one thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests import priority_class
from podium.host.history_rules import record_options, recorded_rules
from podium.library.profile_source import ProfileSource
from podium.past.format.reading import History
from podium.past.format.records import Evicting, GroupDecided
from podium.past.format.writing import Limits
from podium.past.replay.anonymized_copy import write_anonymized
from podium.past.replay.past_decisions import (
    Derived,
    DerivedGroup,
    decisions_about,
    derive,
    derive_about,
    derive_all,
)
from podium.past.replay.recorded_past import happenings
from podium.past.replay.replay import HistoryReplay, compare_group
from podium.virtual_cluster.cluster import ReplicaOptions, SimulatedCluster
from scheduler.test_pod_groups import CHOSEN, group, node, pod

RULES = recorded_rules(ProfileSource(environment={}))
Script = Callable[[SimulatedCluster], None]


def too_small(cluster: SimulatedCluster) -> None:
    """Two of three pods fit, until there is a third node."""
    cluster.load([node("n1"), node("n2"), group(3), *(pod(f"a{n}") for n in range(3))])
    cluster.run_for(10)
    cluster.load([node("n3")])
    cluster.run_for(20)


def left_over(cluster: SimulatedCluster) -> None:
    """One pod of the group must have a node, and one more wants to."""
    cluster.load([node("n1"), group(1), pod("alone", None, "100m"), pod("a0"), pod("a1")])
    cluster.run_for(10)


def preempting(cluster: SimulatedCluster) -> None:
    """Pods of lower priority make room."""
    low = [pod(f"low{n}", None, nodeName=f"n{n}") for n in (1, 2)]
    members = [pod(f"a{n}", priorityClassName="high") for n in range(2)]
    cluster.load([priority_class("high", 100), node("n1"), node("n2"), *low])
    cluster.load([group(2, priorityClassName="high"), *members])
    cluster.run_for(60)


def deleted(cluster: SimulatedCluster) -> None:
    """The group goes while its pods wait, and comes again."""
    cluster.load([node("n1"), group(2), pod("a0"), pod("a1")])
    cluster.run_for(3)
    cluster.registry.delete("PodGroup", "g", "default")
    cluster.run_for(3)
    cluster.load([group(1)])
    cluster.run_for(3)


def recorded(folder: Path, script: Script, limits: Limits | None = None) -> History:
    chosen = CHOSEN.choose()
    with SimulatedCluster() as cluster:
        record = record_options(str(folder), limits or Limits(), CHOSEN, chosen)
        cluster.add_scheduler(chosen, options=ReplicaOptions(record=record))
        script(cluster)
    return History(folder)


def made_again(history: History, **how: Any) -> tuple[list[DerivedGroup], list[Derived]]:
    found = list(derive_all(history, RULES, **how))
    groups = [each for each in found if isinstance(each, DerivedGroup)]
    return groups, [each for each in found if isinstance(each, Derived)]


SCRIPTS: Sequence[Script] = (too_small, left_over, preempting, deleted)


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("plain", [True, False])
def test_every_cycle_follows_again(tmp_path: Path, script: Script, *, plain: bool) -> None:
    groups, pods = made_again(recorded(tmp_path, script), plain=plain)

    assert groups
    assert {each.difference for each in groups} == {""}
    assert {each.difference for each in pods} == {None}
    assert any(each.group is not None for each in pods)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_cycle_that_is_passed_by_leaves_the_same_state(tmp_path: Path, script: Script) -> None:
    history = recorded(tmp_path, script)
    passed, derived = HistoryReplay(RULES), HistoryReplay(RULES)
    for entry in history.entries():
        passed.apply(entry)
        if isinstance(entry, GroupDecided):
            derived.derive_group(entry)
            columns = [each.state.cache.columns.pods.by_uid for each in (passed, derived)]
            assert columns[0].keys() == columns[1].keys()
            assert passed.ties.position() == derived.ties.position()
            assert passed.state.cache.past().start == derived.state.cache.past().start
        else:
            derived.apply(entry)


def test_a_member_says_which_cycle_and_what_was_undone(tmp_path: Path) -> None:
    history = recorded(tmp_path, too_small)

    first = derive(history, decisions_about(history, "default/a0", 1)[0], RULES)
    last = derive(history, decisions_about(history, "default/a0")[-1], RULES)

    assert (first.difference, last.difference) == (None, None)
    assert first.group is not None
    assert first.group.undone == (("default/a0", "n1"), ("default/a1", "n2"))
    assert first.decision.node is None
    assert first.decision.examined  # with every verdict
    assert first.as_json()["podGroup"]["missing"] == 1
    assert last.group is not None
    assert last.group.scheduled == 3
    attempts, _ = derive_about(history, "default/a0", RULES)
    assert [each.entry.attempt for each in attempts] == list(range(1, len(attempts) + 1))


def test_victims_of_a_group_are_in_the_history(tmp_path: Path) -> None:
    history = recorded(tmp_path, preempting)

    [evicting] = [each for each in history.entries() if isinstance(each, Evicting)]
    assert (evicting.pod, evicting.group) == ("", "default/g")
    assert set(evicting.victims) == {"default/low1", "default/low2"}
    texts = {each["text"] for each in happenings(evicting, {})}
    assert texts == {"in favour of pod group default/g"}


def test_a_cycle_is_whole_in_every_segment_and_in_a_copy_with_other_names(tmp_path: Path) -> None:
    history = recorded(tmp_path / "own", too_small, Limits(segment_records=8))
    copied = write_anonymized(history, tmp_path / "other", RULES)

    groups, pods = made_again(History(tmp_path / "other"))

    assert len(history.segments) > 1
    assert (copied.decisions, copied.lost) == (copied.equal, 0)
    assert {each.difference for each in groups} == {""}
    assert {each.difference for each in pods} == {None}
    assert "default/g" not in {each.entry.group for each in groups}


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_no_gang_is_below_its_minimum_and_every_random_history_follows(seed: int) -> None:
    dice = Random(seed)  # noqa: S311  not a secret
    minimum = {f"g{n}": dice.randint(1, 4) for n in range(3)}

    def script(cluster: SimulatedCluster) -> None:
        classes = [priority_class("low", 1), priority_class("high", 100)]
        cluster.load([*classes, node("n0", "4"), *(pod(f"s{n}", None, "1") for n in range(3))])
        for number, (name, needed) in enumerate(minimum.items()):
            named = {"priorityClassName": dice.choice(("low", "high"))}
            size = needed + dice.randint(-1, 2)
            cpu = dice.choice(("500m", "1", "2"))
            cluster.load([group(needed, name, **named)])
            cluster.load([pod(f"{name}-{n}", name, cpu, **named) for n in range(size)])
            cluster.run_for(dice.choice((1, 5)))
            cluster.load([node(f"n{number + 1}", dice.choice("24"))])
            cluster.run_for(dice.choice((1, 30)))
            _check(cluster, minimum)

    with TemporaryDirectory() as folder:
        groups, pods = made_again(recorded(Path(folder), script))
    assert {each.difference for each in groups} <= {""}
    assert {each.difference for each in pods} <= {None}


def _check(cluster: SimulatedCluster, minimum: dict[str, int]) -> None:
    """A gang has its minimum on nodes, or nothing; victims may leave fewer behind."""
    evicted = any(each["reason"] == "Preempted" for each in cluster.registry.list("Event"))
    on_nodes = Counter(
        each["spec"]["schedulingGroup"]["podGroupName"]
        for each in cluster.registry.list("Pod")
        if each["spec"].get("nodeName") and "schedulingGroup" in each["spec"]
    )
    assert evicted or all(count >= minimum[name] for name, count in on_nodes.items())


def test_a_changed_cycle_is_found(tmp_path: Path) -> None:
    groups, _ = made_again(recorded(tmp_path, too_small))
    one = groups[0]
    for change in ({"code": "Success"}, {"digest": one.entry.digest + 1}):
        assert compare_group(msgspec.structs.replace(one.entry, **change), one.decision)
