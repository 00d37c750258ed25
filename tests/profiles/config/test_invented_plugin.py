"""A plugin that is declared in one place is configured, checked, run, shown, watched and woken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from builders import node, pod, simulation
from podium.cluster.queue.entities import QueuedPod
from podium.cluster.wakeups.hints import HintRules
from podium.cluster.wakeups.wakeups import Added, Deleted, Wake
from podium.engine.framework.declaration import (
    Arguments,
    FeatureGates,
    PluginDeclaration,
    arguments_record,
    plain,
)
from podium.engine.framework.rule import BitFilter, ScoreRule, negated
from podium.engine.rows.rows import Ints, K, Rows
from podium.engine.state.pod_class import Incoming
from podium.engine.state.verdicts import Reason
from podium.generations.v1_36 import V1_36
from podium.objects.field_errors import child, invalid
from podium.objects.go_types import STRING
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.profiles.config.description import describe_config
from podium.profiles.watched_kinds import watched_kinds
from profiles.config.documents import at, built, config, loaded, profile_of, refused, with_args


@dataclass(frozen=True, slots=True)
class NodeColourArgs:
    colour: str = "blue"


class NodeColour(BitFilter):
    name = "NodeColour"
    kinds = ("Colour",)
    reasons = (Reason("node(s) had another colour", curable=False),)

    def __init__(self, found: NodeColourArgs) -> None:
        self.colour = found.colour

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        return negated(at.has_label(self.colour)) * 1


class NodeColourScore(ScoreRule):
    name = "NodeColour"
    kinds = ("Shade",)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        return at.full(7)


def check(found: NodeColourArgs, path: str, _: FeatureGates) -> Iterator[str]:
    if not found.colour:
        yield invalid(child(path, "colour"), '""', "must not be empty")


def is_coloured(_waiting: Pod, _old: Node | None, new: Node) -> bool:
    return "blue" in new.labels


INVENTED = PluginDeclaration(
    "NodeColour",
    "filter score",
    "nodes of one colour",
    filter=lambda found, _: NodeColour(found),
    score=plain(NodeColourScore),
    arguments=Arguments(arguments_record(NodeColourArgs, colour=STRING), check),
    weight=4,
    events={"Node Add": is_coloured},
)


COLOURED = V1_36.having(plugins=(*V1_36.plugins, INVENTED))


def test_it_is_a_default_plugin_with_its_weight() -> None:
    assert ("NodeColour", 4) in at(config(), "score", COLOURED)
    assert profile_of(config(), COLOURED).args["NodeColour"] == NodeColourArgs("blue")


def test_its_arguments_are_read() -> None:
    document = with_args("NodeColour", colour="red")

    assert profile_of(document, COLOURED).args["NodeColour"] == NodeColourArgs("red")


def test_its_arguments_are_checked() -> None:
    error = refused(with_args("NodeColour", colour=""), COLOURED)

    assert 'profiles[0].pluginConfig[0].args.colour: Invalid value: ""' in error.text


def test_fields_that_its_arguments_do_not_have_are_refused() -> None:
    error = refused(with_args("NodeColour", color="red"), COLOURED)

    assert 'unknown field "color"' in error.text


def test_it_is_shown() -> None:
    [profile] = describe_config(loaded(config(), COLOURED))["profiles"]
    shown = {"name": "NodeColour", "description": "nodes of one colour"}

    assert shown in profile["plugins"]["filter"]


def test_it_filters_and_scores() -> None:
    profile = built(with_args("NodeColour", colour="red"), COLOURED)
    red = [node(name, labels={"red": ""}) for name in ("n2", "n3")]
    found = simulation(node("n1"), *red, profile=profile).attempt(pod("p"), recording=True)

    assert found.node in ("n2", "n3")
    assert "NodeColour" in [column.name for column in found.scores]


def test_its_kinds_are_watched() -> None:
    assert {"Colour", "Shade"} <= watched_kinds([built(config(), COLOURED)])


def test_its_events_wake_pods() -> None:
    rules = HintRules(lambda _: {}, generation=COLOURED)
    queued = QueuedPod(pod("p"), 0, 0, rejected_by=frozenset({"NodeColour"}))

    def woken(event: Added | Deleted) -> bool:
        return any(rules.wakes(each, queued) is not Wake.NO for each in rules.requests(event, 1))

    assert woken(Added(node("n", labels={"blue": ""})))
    assert not woken(Added(node("n")))
    assert not woken(Deleted(pod("other", node="n")))
