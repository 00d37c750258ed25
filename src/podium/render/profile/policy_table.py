"""The rules and options of a profile of v1.13, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.render.columns import styled
from podium.render.documents import to_json_line
from podium.render.profile.sections import extenders_section, option_text, section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.render.columns import Line

Data = dict[str, Any]


def policy_tables(profile: Data) -> Iterator[Line]:
    """The sections of a profile, which is described as plain data."""
    yield styled(profile["profile"], "bold")
    yield from section(
        "Predicates, in the order they run",
        ("NAME", "POSITION", "ORDER", "A POD FITS IF", "ARGUMENT"),
        [
            (
                p["name"],
                _number(p["position"]),
                _number(p.get("order")),
                _description(p),
                _argument(p),
            )
            for p in profile["predicates"]
        ],
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


def catalogue_tables(found: Data) -> Iterator[Line]:
    """Every predicate and priority that a Policy can name, and the Policies that are shipped."""
    yield styled("What a Policy of v1.13 can name", "bold")
    yield from section(
        "Predicates, by their position of the 22",
        ("POSITION", "NAME", "A POD FITS IF", "ARGUMENT", "ALSO READ", "NEEDS", "IN"),
        [
            (
                _number(p["position"]) or "never runs",
                p["name"],
                p["description"],
                p["argument"] or "",
                ", ".join(p["aliases"]),
                p["featureGate"] or p["effectiveWith"] or "",
                _membership(p),
            )
            for p in found["allPredicates"]
        ],
    )
    yield styled(
        "The constants of kube-scheduler's source are read as well: MatchNodeSelectorPred."
    )
    yield from section(
        "Priorities",
        ("NAME", "KIND", "WEIGHT", "PREFERS", "NEEDS", "IN"),
        [
            (
                p["name"],
                p["kind"],
                str(p["weight"]),
                p["description"],
                p["featureGate"] or "",
                _providers(p["providers"]),
            )
            for p in found["allPriorities"]
        ],
    )
    yield from section(
        "Arguments, which make rules under any name",
        ("OF", "ARGUMENT"),
        [
            ("predicates", ", ".join(found["predicateArguments"])),
            ("priorities", ", ".join(found["priorityArguments"])),
        ],
    )
    yield from section(
        "Policies that come with Podium, for --policy NAME",
        ("NAME", "WHAT IT IS"),
        [(each["name"], each["description"]) for each in found["shippedPolicies"]],
    )


def _membership(predicate: Data) -> str:
    """In which configurations the predicate is."""
    if predicate["mandatory"]:
        return "every configuration"
    return _providers(predicate["providers"])


def _providers(names: list[str]) -> str:
    return "both providers" if len(names) > 1 else ", ".join(names)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _description(predicate: Data) -> str:
    always = " (always runs)" if predicate["mandatory"] else ""
    if predicate.get("added"):
        always = " (mandatory, and was added)"
    return f"{predicate['description']}{always}"


def _argument(rule: Data) -> str:
    return to_json_line(rule["argument"]).strip() if rule.get("argument") else ""


def _options(options: Data) -> list[tuple[str, str]]:
    return [
        (name, _option_text(value)) for name, value in options.items() if name != "featureGates"
    ] + [(f"featureGates.{name}", _option_text(on)) for name, on in options["featureGates"].items()]


def _option_text(value: Any) -> str:
    return option_text(value, unset="not used")
