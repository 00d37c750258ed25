"""Which kinds are watched for the rules of a profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from builders import simulation
from podium.engine.state.catalog import Catalog
from podium.engine.state.shelf import Shelf
from podium.objects.kinds.registry import KINDS
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_policy, from_provider
from podium.profiles.user_rules.loading import LoadedRules, rules_in
from podium.profiles.watched_kinds import watched_kinds
from podium.rules import predicate
from random_clusters_v1_36 import ClusterV136, clusters_v1_36


def test_only_what_the_rules_read_is_watched() -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "PodFitsResources"}],
        "priorities": [{"name": "MostRequestedPriority", "weight": 1}],
    }
    profile = from_policy(policy, Options(disable_preemption=True))

    found = watched_kinds([profile])

    assert found == {"Node", "Pod", "PersistentVolumeClaim"}


def test_the_older_name_of_a_priority_reads_the_same_kinds() -> None:
    def kinds(name: str) -> set[str]:
        policy = {"kind": "Policy", "apiVersion": "v1", "predicates": []}
        rules = {"priorities": [{"name": name, "weight": 1}]}
        return set(watched_kinds([from_policy({**policy, **rules}, Options())]))

    assert {"Service", "ReplicaSet"} <= kinds("ServiceSpreadingPriority")
    assert kinds("ServiceSpreadingPriority") == kinds("SelectorSpreadPriority")


def test_the_defaults_watch_nothing_that_only_controllers_read() -> None:
    current = watched_kinds(from_config(default_config(), Options()))
    classic = watched_kinds([from_provider("DefaultProvider", Options())])

    assert {"Namespace", "CSINode", "PodDisruptionBudget", "StorageClass"} <= current
    assert not {"Deployment", "Job", "DaemonSet", "PriorityClass"} & (current | classic)
    assert "Namespace" not in classic


def test_without_preemption_budgets_are_not_watched() -> None:
    profile = from_provider("DefaultProvider", Options(disable_preemption=True))

    assert "PodDisruptionBudget" not in watched_kinds([profile])


class Recorded:
    """A shelf that notes its kind when objects are read from it."""

    def __init__(self, kind: str, shelf: Shelf[Any], read: set[str]) -> None:
        self._kind, self._shelf, self._read = kind, shelf, read

    def __getattr__(self, name: str) -> Any:
        if name not in {"version", "changes_since"}:
            self._read.add(self._kind)
        return getattr(self._shelf, name)

    def __iter__(self) -> Iterator[Any]:
        self._read.add(self._kind)
        return iter(self._shelf)

    def __len__(self) -> int:
        self._read.add(self._kind)
        return len(self._shelf)


def recording(catalog: Catalog) -> set[str]:
    """The kinds that are read from the catalogue from now on."""
    read: set[str] = set()
    recorded = {id(shelf): Recorded(kind, shelf, read) for kind, shelf in catalog.shelves()}
    for name, value in list(vars(catalog).items()):
        if id(value) in recorded:
            setattr(catalog, name, recorded[id(value)])
    return read


PROFILES = [
    *from_config(default_config(), Options()),
    from_provider("DefaultProvider", Options()),
    from_provider("ClusterAutoscalerProvider", Options()),
]
FILTERS = [(profile, rule) for profile in PROFILES for rule in profile.predicates]
SCORES = [(profile, each) for profile in PROFILES for each in profile.priorities]
ALONE: dict[str, Any] = {"pre_filters": (), "post_filters": (), "pre_scores": (), "checks": ()}
CASES = [
    *(replace(p, predicates=(rule,), priorities=(), **ALONE) for p, rule in FILTERS),
    *(replace(p, predicates=(), priorities=(score,), **ALONE) for p, score in SCORES),
]


@pytest.mark.parametrize("number", range(len(CASES)))
@given(world=clusters_v1_36(least_nodes=1))
@settings(max_examples=15)
def test_a_rule_looks_up_the_kinds_that_it_declares(number: int, world: ClusterV136) -> None:
    alone = CASES[number]
    made = simulation(*world.objects(), profile=alone)
    read = recording(made.cache.columns.catalog)

    made.attempt(world.wanted)

    # The index of affinity terms reads the labels of a namespace; terms of v1.13 do not use them.
    unused = {"Namespace"} if alone.name.startswith("v1.13") else set()
    assert read - unused <= watched_kinds([alone])


def test_a_users_rule_may_look_up_every_kind() -> None:
    @predicate("Mine")
    def mine(_pod: object, _node: object) -> bool:
        return True

    [spec] = rules_in(mine)
    rules = LoadedRules({spec.name: spec})
    profile = from_provider("DefaultProvider", Options(rules=rules))

    assert watched_kinds([profile]) == {"Node", "Pod"} | {
        kind.name for kind in KINDS.values() if kind.looked_up
    }
