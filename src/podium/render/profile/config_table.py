"""The profiles and options of a configuration, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.render.columns import styled
from podium.render.documents import to_json_line
from podium.render.plain import counted
from podium.render.profile.sections import extenders_section, option_text, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.render.columns import Line

Data = dict[str, Any]


def config_tables(config: Data) -> Iterator[Line]:
    """The sections of a configuration, which is described as plain data."""
    for place, profile in enumerate(config["profiles"]):
        if place:
            yield styled()
        yield from _profile(profile, config["generation"])
    yield from extenders_section(config["extenders"])
    yield from section("Options", ("OPTION", "VALUE"), _options(config))


def plugin_list(found: Data) -> Iterator[Line]:
    """Every plugin with its extension points, weight and arguments."""
    title = f"What a KubeSchedulerConfiguration of {found['generation']} can name"
    yield styled(title, "bold")
    yield from section(
        "Plugins",
        ("NAME", "EXTENSION POINTS", "WEIGHT", "ARGUMENTS", "NEEDS", "WHAT IT LOOKS AT"),
        [
            (
                p["name"],
                ", ".join(p["extensionPoints"]),
                option_text(p["weight"], unset=""),
                ", ".join(p["fields"]),
                p["featureGate"] or "",
                p["description"],
            )
            for p in found["plugins"]
        ],
    )
    yield from section(
        "Feature gates that the scheduler reads",
        ("NAME", "STAGE", "DEFAULT", "VALUE", "WHAT IT DOES"),
        [
            (
                gate["name"],
                gate["stage"],
                _on(gate["default"]) + (", locked" if gate["locked"] else ""),
                _on(found["featureGates"][gate["name"]]),
                gate["description"],
            )
            for gate in found["gates"]
        ],
    )


def _on(value: bool) -> str:  # noqa: FBT001  the value of a gate
    return "on" if value else "off"


def validity_report(file: str, config: Data) -> Iterator[Line]:
    """The lines for a valid file: one for the file, one for each profile, and its notes."""
    yield styled(f"{file} is valid for kube-scheduler {config['generation']}")
    for profile in config["profiles"]:
        plugins = profile["plugins"]
        filters = counted(len(plugins.get("filter", ())), "filter")
        scores = counted(len(plugins.get("score", ())), "score")
        yield styled(f"profile {profile['schedulerName']}: {filters}, {scores}")
        yield from (styled(f"  {note}") for note in profile["notes"])


def _profile(profile: Data, generation: str) -> Iterator[Line]:
    yield styled(f"{generation} {profile['schedulerName']}", "bold")
    plugins = profile["plugins"]
    yield from section(
        "Filters, in the order they run",
        ("NAME", "PREFILTER", "DESCRIPTION"),
        [
            (p["name"], _has_point(p, plugins, "preFilter"), p["description"])
            for p in plugins.get("filter", ())
        ],
    )
    yield from section(
        "Scores",
        ("NAME", "WEIGHT", "DESCRIPTION"),
        [(p["name"], str(p["weight"]), p["description"]) for p in plugins.get("score", ())],
    )
    yield from section(
        "Other extension points",
        ("EXTENSION POINT", "PLUGINS"),
        [
            (point, ", ".join(p["name"] for p in found))
            for point, found in plugins.items()
            if point not in ("filter", "score")
        ],
    )
    yield from section(
        "Arguments",
        ("PLUGIN", "ARGUMENTS"),
        [
            (name, to_json_line(args).strip())
            for name, args in (profile["args"] | profile["unreadArgs"]).items()
        ],
    )
    yield from section("Notes", (), [(note,) for note in profile["notes"]])


def _has_point(plugin: Data, plugins: Data, point: str) -> str:
    return "yes" if any(p["name"] == plugin["name"] for p in plugins.get(point, ())) else ""


def _options(config: Data) -> list[tuple[str, str]]:
    rows = [(name, _option_text(value)) for name, value in config["options"].items()]
    for part in ("leaderElection", "clientConnection"):
        rows += [(f"{part}.{name}", _option_text(value)) for name, value in config[part].items()]
    gates = config["featureGates"]
    return rows + [(f"featureGates.{n}", _option_text(gates[n])) for n in config["changedGates"]]


def _option_text(value: Any) -> str:
    return option_text(value, unset="not set")
