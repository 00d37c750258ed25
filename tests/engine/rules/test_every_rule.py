"""Every rule of `engine/rules` is in one of the lists that the contract tests go through."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

from podium.engine import rules
from podium.engine.framework.rule import FilterRule, ScoreRule
from random_clusters import PREDICATES, PRIORITIES
from random_clusters_v1_36 import FILTERS, SCORES


def rules_of(contract: type) -> Iterator[type]:
    """The classes with a name by which users configure them, of their own or as an argument."""
    for info in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        for _, found in inspect.getmembers(import_module(info.name), inspect.isclass):
            if found.__module__ != info.name or not issubclass(found, contract):
                continue
            if hasattr(found, "name") or "name" in inspect.signature(found).parameters:
                yield found


def test_every_filter_is_under_contract() -> None:
    assert {type(rule) for rule in (*PREDICATES, *FILTERS)} == set(rules_of(FilterRule))


def test_every_score_is_under_contract() -> None:
    assert {type(rule) for rule in (*PRIORITIES, *SCORES)} == set(rules_of(ScoreRule))
