"""Profiles as tables for a terminal: of a configuration, of a Policy, and what each can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.render.columns import TextTable, styled
from podium.render.documents import to_json_line
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.render.columns import Line


def section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Line]:
    """A section without the columns that are empty in all rows; nothing if there are no rows."""
    if not rows:
        return
    yield styled()
    yield styled(title, "bold")
    used = [at for at in range(len(rows[0])) if any(row[at] for row in rows)]
    table = TextTable(*(columns[at] if columns else "" for at in used))
    for row in rows:
        table.add(*(row[at] for at in used))
    yield from table.lines()


def extenders_section(extenders: Sequence[dict[str, Any]]) -> Iterator[Line]:
    """The section of the extenders, which both generations have."""
    yield from section(
        "Extenders",
        ("URL", "VERBS", "WEIGHT"),
        [(e["urlPrefix"], ", ".join(e["verbs"]), str(e["weight"])) for e in extenders],
    )


def option_text(value: Any, *, unset: str) -> str:
    """The value of an option, *unset* if it is None."""
    if isinstance(value, bool):
        return str(value).lower()
    return unset if value is None else str(value)


Data = dict[str, Any]


def config_tables(config: Data) -> Iterator[Line]:
    """The sections of a configuration, which is described as plain data."""
    for place, profile in enumerate(config["profiles"]):
        if place:
            yield styled()
        yield from _config_profile(profile, config["generation"])
    yield from extenders_section(config["extenders"])
    yield from section("Options", ("OPTION", "VALUE"), _config_options(config))


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


def _config_profile(profile: Data, generation: str) -> Iterator[Line]:
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


def _config_options(config: Data) -> list[tuple[str, str]]:
    rows = [(name, _config_option_text(value)) for name, value in config["options"].items()]
    for part in ("leaderElection", "clientConnection"):
        rows += [
            (f"{part}.{name}", _config_option_text(value)) for name, value in config[part].items()
        ]
    gates = config["featureGates"]
    return rows + [
        (f"featureGates.{n}", _config_option_text(gates[n])) for n in config["changedGates"]
    ]


def _config_option_text(value: Any) -> str:
    return option_text(value, unset="not set")


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
    yield from section("Options", ("OPTION", "VALUE"), _policy_options(profile["options"]))
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


def _policy_options(options: Data) -> list[tuple[str, str]]:
    return [
        (name, _policy_option_text(value))
        for name, value in options.items()
        if name != "featureGates"
    ] + [
        (f"featureGates.{name}", _policy_option_text(on))
        for name, on in options["featureGates"].items()
    ]


def _policy_option_text(value: Any) -> str:
    return option_text(value, unset="not used")
