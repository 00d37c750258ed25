"""What a configuration makes the scheduler do, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from podium.render.documents import to_json_line
from podium.render.plain import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

Data = dict[str, Any]


def configured(config: Data) -> Iterator[RenderableType]:
    """Part by part; *config* is what `profiles.config_describe` says of it."""
    for place, profile in enumerate(config["profiles"]):
        if place:
            yield Text()
        yield from _profile(profile)
    yield from _section(
        "Extenders",
        ("URL", "VERBS", "WEIGHT"),
        [(e["urlPrefix"], ", ".join(e["verbs"]), str(e["weight"])) for e in config["extenders"]],
    )
    yield from _section("Options", ("OPTION", "VALUE"), _options(config))


def accepted(file: str, config: Data) -> Iterator[RenderableType]:
    """One line for the file, one for each profile, and what is good to know."""
    yield Text(f"{printable(file)} is fine: kube-scheduler v1.36 takes it")
    for profile in config["profiles"]:
        plugins = profile["plugins"]
        filters = counted(len(plugins.get("filter", ())), "filter")
        scores = counted(len(plugins.get("score", ())), "score")
        yield Text(f"profile {printable(profile['schedulerName'])}: {filters}, {scores}")
        yield from (Text(f"  {printable(note)}") for note in profile["notes"])


def _profile(profile: Data) -> Iterator[RenderableType]:
    yield Text(f"v1.36 {printable(profile['schedulerName'])}", style="bold")
    plugins = profile["plugins"]
    yield from _section(
        "Filters, in the order they run",
        ("NAME", "FIRST LOOK", "A POD FITS BY"),
        [
            (p["name"], _also(p, plugins, "preFilter"), p["description"])
            for p in plugins.get("filter", ())
        ],
    )
    yield from _section(
        "Scores",
        ("NAME", "WEIGHT", "PREFERS"),
        [(p["name"], str(p["weight"]), p["description"]) for p in plugins.get("score", ())],
    )
    yield from _section(
        "Everywhere else",
        ("POINT", "PLUGINS"),
        [
            (point, ", ".join(p["name"] for p in found))
            for point, found in plugins.items()
            if point not in ("filter", "score")
        ],
    )
    yield from _section(
        "Arguments",
        ("PLUGIN", "ARGUMENTS"),
        [
            (name, to_json_line(args).strip())
            for name, args in (profile["args"] | profile["unreadArgs"]).items()
        ],
    )
    yield from _section("Good to know", (), [(note,) for note in profile["notes"]])


def _also(plugin: Data, plugins: Data, point: str) -> str:
    return "yes" if any(p["name"] == plugin["name"] for p in plugins.get(point, ())) else ""


def _options(config: Data) -> list[tuple[str, str]]:
    rows = [(name, _value(value)) for name, value in config["options"].items()]
    for part in ("leaderElection", "clientConnection"):
        rows += [(f"{part}.{name}", _value(value)) for name, value in config[part].items()]
    gates = config["featureGates"]
    return rows + [(f"featureGates.{n}", _value(gates[n])) for n in config["changedGates"]]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "not set" if value is None else str(value)


def _section(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[RenderableType]:
    if not rows:
        return
    yield Text()
    yield Text(title, style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.show_header = bool(columns)
    for at in range(len(rows[0])):
        table.add_column(columns[at] if columns else "")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    yield table
