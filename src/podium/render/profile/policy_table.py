"""What a profile runs, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from podium.render.documents import to_json_line
from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

Data = dict[str, Any]


def described(profile: Data) -> Iterator[RenderableType]:
    """Part by part; *profile* is what `profiles.describe` says of it."""
    yield Text(printable(profile["profile"]), style="bold")
    yield from _section(
        "Predicates, in the order they run",
        ("NAME", "A POD FITS WHERE", "ARGUMENT"),
        [(p["name"], _description(p), _argument(p)) for p in profile["predicates"]],
    )
    yield from _section(
        "Configured, but never asked",
        ("NAME", "WHY"),
        [(p["name"], p["why"]) for p in profile["idlePredicates"]],
    )
    yield from _section(
        "Priorities",
        ("NAME", "WEIGHT", "PREFERS", "ARGUMENT"),
        [
            (p["name"], str(p["weight"]), p.get("description", ""), _argument(p))
            for p in profile["priorities"]
        ],
    )
    yield from _section(
        "Extenders",
        ("URL", "VERBS", "WEIGHT"),
        [(e["urlPrefix"], ", ".join(e["verbs"]), str(e["weight"])) for e in profile["extenders"]],
    )
    yield from _section("Options", ("OPTION", "VALUE"), _options(profile["options"]))
    yield from _section("Good to know", (), [(note,) for note in profile["notes"]])


def _section(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Iterator[RenderableType]:
    if not rows:
        return
    yield Text()
    yield Text(title, style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.show_header = bool(columns)
    # An argument column that nobody uses is left out.
    used = [at for at in range(len(rows[0])) if any(row[at] for row in rows)]
    for at in used:
        table.add_column(columns[at] if columns else "")
    for row in rows:
        table.add_row(*(Text(printable(row[at])) for at in used))
    yield table


def _description(predicate: Data) -> str:
    always = " (always runs)" if predicate["mandatory"] else ""
    return f"{predicate['description']}{always}"


def _argument(rule: Data) -> str:
    return to_json_line(rule["argument"]).strip() if rule.get("argument") else ""


def _options(options: Data) -> list[tuple[str, str]]:
    return [(name, _value(value)) for name, value in options.items() if name != "featureGates"] + [
        (f"featureGates.{name}", _value(on)) for name, on in options["featureGates"].items()
    ]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "not used" if value is None else str(value)
