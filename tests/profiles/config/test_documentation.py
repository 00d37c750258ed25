"""The page about configurations is right: its files load, and it knows every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podium.generations.known import DEFAULT
from podium.objects.go_types import Slice, Struct
from podium.profiles.config.build import default_config, load_config
from podium.profiles.config.defaults import default_plugins
from podium.profiles.config.document import schemas
from podium.profiles.config.feature_gates import ConfigurationGates

PAGE = (Path(__file__).parents[3] / "docs" / "config.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
ROWS = re.findall(r"^\| `(\w+)`(?: ¹)? \| (\d*) ?\| ([\w, ]+) \| (.*) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", BLOCKS)
def test_its_files_load_and_need_no_notes(text: str) -> None:
    assert [profile.notes for profile in load_config(text).profiles] == [()]


def test_it_lists_every_plugin_with_its_points() -> None:
    described = {name: (set(points.split(", ")), text) for name, _, points, text in ROWS}

    assert described == {
        name: (set(plugin.points), plugin.description) for name, plugin in DEFAULT.plugin.items()
    }


def test_it_lists_the_defaults_in_order() -> None:
    defaults = [entry.name for entry in default_plugins(ConfigurationGates()).enabled]

    assert [name for name, *_ in ROWS][: len(defaults)] == defaults


def test_it_knows_the_weights() -> None:
    weights = {name: int(weight) for name, weight, *_ in ROWS if weight}
    [profile] = default_config().profiles
    scores = {plugin.name: plugin.weight for plugin in profile.points["score"]}

    assert weights == {**scores, "PodGroupPodsCount": 1}


def test_it_knows_every_argument() -> None:
    declared = [each.arguments for each in DEFAULT.plugins if each.arguments is not None]
    fields = {field for arguments in declared for field in arguments.schema.fields}

    assert [field for field in sorted(fields) if f"`{field}`" not in PAGE] == []


def test_it_shows_every_field_of_the_document() -> None:
    def below(kind: object) -> set[str]:
        if isinstance(kind, Slice):
            return below(kind.item)
        if not isinstance(kind, Struct) or kind.name in ("ExtenderTLSConfig", "Plugins"):
            return set()
        inner = (below(field.type) for field in kind.fields.values())
        return set(kind.fields).union(*inner)

    wanted = below(schemas(DEFAULT)["KubeSchedulerConfiguration"]) - {"tlsConfig"}

    assert [field for field in sorted(wanted) if f"{field}:" not in BLOCKS[0]] == []


def test_its_defaults_are_the_defaults() -> None:
    shown, default = load_config(BLOCKS[0]), default_config()

    for name in (
        "parallelism",
        "pod_initial_backoff_seconds",
        "pod_max_backoff_seconds",
        "leader_election",
        "client_connection",
        "enable_profiling",
        "enable_contention_profiling",
        "delay_cache_until_active",
    ):
        assert getattr(shown, name) == getattr(default, name), name


def test_it_knows_which_gates_have_one_value() -> None:
    rows = re.findall(r"^\| (`.*`) \| (true|false) \|$", PAGE, re.MULTILINE)
    shown = {
        name: value == "true" for names, value in rows for name in re.findall(r"`(\w+)`", names)
    }

    assert shown == {gate.name: gate.default for gate in DEFAULT.gates if gate.fixed}
