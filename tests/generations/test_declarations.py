"""Every declaration beside a rule is in the list of its generation, and nothing else is."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module

import pytest

from cases import cases
from podium import engine
from podium.cluster.wakeups.hints import HintRules
from podium.engine.framework.declaration import (
    PluginDeclaration,
    PolicyArgument,
    PredicateDeclaration,
    PriorityDeclaration,
)
from podium.generations import plugins, predicates
from podium.generations.known import DEFAULT, GENERATIONS


def declared(kind: type, *, in_package: str) -> Iterator[object]:
    """The declarations of a kind that modules of the engine hold."""
    for info in pkgutil.walk_packages(engine.__path__, f"{engine.__name__}."):
        if f".{in_package}." in info.name:
            module = import_module(info.name)
            yield from (each for each in vars(module).values() if isinstance(each, kind))


def identities(found: Iterable[object]) -> set[int]:
    return {id(each) for each in found}


@cases(
    ("kind", "listed"),
    {
        "predicates": (
            PredicateDeclaration,
            (*predicates.PREDICATES, *predicates.PREDICATES_THAT_NEVER_RUN),
        ),
        "priorities": (PriorityDeclaration, predicates.PRIORITIES),
        "arguments of a Policy": (
            PolicyArgument,
            (*predicates.PREDICATE_ARGUMENTS, *predicates.PRIORITY_ARGUMENTS),
        ),
    },
)
def test_no_declaration_is_forgotten(kind: type, listed: Iterable[object]) -> None:
    found = [*declared(kind, in_package="rules"), *declared(kind, in_package="preemption")]

    assert identities(found) == identities(listed)


def test_every_plugin_is_in_a_generation() -> None:
    """A later release may have plugins that the common list does not have, and change others."""
    kind = PluginDeclaration
    found = [*declared(kind, in_package="rules"), *declared(kind, in_package="preemption")]
    listed = [each for generation in GENERATIONS.values() for each in generation.plugins]

    assert identities(found) <= identities([*plugins.PLUGINS, *listed])
    assert identities(plugins.PLUGINS) <= identities(found)
    names = {each.name for each in found if isinstance(each, kind)}
    assert {each.name for each in listed} == names


@cases(
    "names",
    {
        "predicates": [each.name for each in predicates.PREDICATES],
        "priorities": [each.name for each in predicates.PRIORITIES],
    },
)
def test_names_are_unique(names: list[str]) -> None:
    assert len(names) == len(set(names))


@pytest.mark.parametrize("plugin", plugins.PLUGINS, ids=lambda plugin: plugin.name)
def test_a_plugin_implements_the_points_of_its_rules(plugin: PluginDeclaration) -> None:
    assert plugin.points <= {point for each in GENERATIONS.values() for point in each.points}
    assert (plugin.score is not None) == ("score" in plugin.points)
    assert (plugin.filter is not None) == ("filter" in plugin.points)
    assert (plugin.post_filter is not None) == ("postFilter" in plugin.points)


@pytest.mark.parametrize("plugin", plugins.PLUGINS, ids=lambda plugin: plugin.name)
def test_a_plugin_that_rejects_pods_declares_what_wakes_them(plugin: PluginDeclaration) -> None:
    rejects = plugin.filter or plugin.gate

    assert plugin.events is not None or not rejects


def test_the_wake_ups_know_the_plugins_with_events() -> None:
    rules = HintRules(lambda _: {})

    assert list(rules._known) == [
        plugin.name for plugin in DEFAULT.plugins if plugin.events is not None
    ]
