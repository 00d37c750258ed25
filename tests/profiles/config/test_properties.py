"""Anything at all is a configuration or refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.engine.framework.profile import Profile
from podium.errors import ConfigError
from podium.generations.known import DEFAULT
from podium.profiles.config.build import SchedulerConfig, config_from, from_config, load_config
from podium.profiles.config.description import describe_config
from podium.profiles.config.document import MULTI_POINT, schemas
from podium.profiles.policy.build import Options
from profiles.config.documents import HEAD, config

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["15s", "-1s", "System", "List", "In", "zone", "example.com/gpu"])
)


def known_keys() -> list[str]:
    found = {"key", "operator", "values", "matchExpressions", "nodeSelectorTerms", "shape"}
    for kind in schemas(DEFAULT).values():
        found |= set(kind.fields)
    return sorted(found | {"name", "weight", "enabled", "disabled", "args", "plugins"})


KEYS = st.text(max_size=5) | st.sampled_from(known_keys())
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
NAMES = st.sampled_from([*DEFAULT.plugin, "*", "Foo", "EBSLimits"])
WEIGHTS = st.integers(-3, 200) | st.sampled_from([-(2**31), 2**31 - 1, 2**31]) | SCALARS
ENTRIES = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"weight": WEIGHTS}), max_size=3)
SETS = st.fixed_dictionaries({}, optional={"enabled": ENTRIES, "disabled": ENTRIES})


def arguments() -> st.SearchStrategy[Any]:
    """Arguments that are nearly right."""
    found: list[st.SearchStrategy[Any]] = [JSON]
    for kind in schemas(DEFAULT).values():
        fields = dict.fromkeys(kind.fields, JSON)
        found.append(st.fixed_dictionaries({}, optional=fields))
    return st.one_of(found)


PROFILES = st.fixed_dictionaries(
    {},
    optional={
        "schedulerName": st.sampled_from(["a", "b", ""]),
        "percentageOfNodesToScore": st.integers(-1, 101),
        "plugins": st.fixed_dictionaries(
            {}, optional=dict.fromkeys((*DEFAULT.points, MULTI_POINT), SETS)
        ),
        "pluginConfig": st.lists(
            st.fixed_dictionaries({"name": NAMES}, optional={"args": arguments()}), max_size=3
        ),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "parallelism": SCALARS,
        "leaderElection": JSON,
        "clientConnection": JSON,
        "podInitialBackoffSeconds": st.integers(-1, 3),
        "profiles": st.lists(PROFILES, max_size=3) | JSON,
        "extenders": JSON,
    },
).map(lambda sections: config(**sections))


def loaded_or_refused(load: Any, *given: Any) -> None:
    try:
        found = load(*given)
        assert isinstance(found, SchedulerConfig)
        assert describe_config(found)["profiles"]
        assert all(isinstance(made, Profile) for made in from_config(found, Options()))
    except ConfigError as error:
        assert error.text  # noqa: PT017  both outcomes are right


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS | JSON.filter(lambda value: isinstance(value, dict)))
def test_any_mapping(document: Any) -> None:
    loaded_or_refused(config_from, document)


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_any_document_as_yaml(document: Any) -> None:
    loaded_or_refused(load_config, yaml.safe_dump(document, allow_unicode=True))


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_any_document_as_json(document: Any) -> None:
    loaded_or_refused(load_config, json.dumps(document))


@settings(max_examples=150, deadline=None)
@given(st.text() | st.text(alphabet="{}[]:,&*!|>'\"-? \n\tab1<", max_size=40))
def test_any_text(text: str) -> None:
    loaded_or_refused(load_config, text)
    loaded_or_refused(load_config, HEAD + text)
