"""The rules and options of a profile of v1.13, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from podium.render.documents import to_json_line
from podium.render.plain import printable
from podium.render.profile.sections import extenders_section, option_text, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

Data = dict[str, Any]


def policy_tables(profile: Data) -> Iterator[RenderableType]:
    """The sections of a profile, which is described as plain data."""
    yield Text(printable(profile["profile"]), style="bold")
    yield from section(
        "Predicates, in the order they run",
        ("NAME", "A POD FITS IF", "ARGUMENT"),
        [(p["name"], _description(p), _argument(p)) for p in profile["predicates"]],
    )
    yield from section(
        "Configured, but not run",
        ("NAME", "WHY"),
        [(p["name"], p["why"]) for p in profile["idlePredicates"]],
    )
    yield from section(
        "Priorities",
        ("NAME", "WEIGHT", "PREFERS", "ARGUMENT"),
        [
            (p["name"], str(p["weight"]), p.get("description", ""), _argument(p))
            for p in profile["priorities"]
        ],
    )
    yield from extenders_section(profile["extenders"])
    yield from section("Options", ("OPTION", "VALUE"), _options(profile["options"]))
    yield from section("Notes", (), [(note,) for note in profile["notes"]])


def _description(predicate: Data) -> str:
    always = " (always runs)" if predicate["mandatory"] else ""
    return f"{predicate['description']}{always}"


def _argument(rule: Data) -> str:
    return to_json_line(rule["argument"]).strip() if rule.get("argument") else ""


def _options(options: Data) -> list[tuple[str, str]]:
    return [
        (name, _option_text(value)) for name, value in options.items() if name != "featureGates"
    ] + [(f"featureGates.{name}", _option_text(on)) for name, on in options["featureGates"].items()]


def _option_text(value: Any) -> str:
    return option_text(value, unset="not used")
