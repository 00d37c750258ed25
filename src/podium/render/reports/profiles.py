"""Profiles as tables for a terminal: of a configuration, of a Policy, and what each can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.render.columns import TextTable, styled
from podium.render.documents import to_json_line
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from podium.render.columns import Line

Data = dict[str, Any]
#: Header -> the text of a cell, or the field that is shown.
Columns = dict[str, "str | Callable[[Any], str]"]


def section(title: str, items: Iterable[Any], columns: Columns) -> Iterator[Line]:
    """A row for each item, without the columns that are empty in all rows; nothing for no item."""
    rows = [[_cell(item, of) for of in columns.values()] for item in items]
    if not rows:
        return
    yield styled()
    yield styled(title, "bold")
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    table = TextTable(*(list(columns)[at] for at in used))
    for row in rows:
        table.add(*(row[at] for at in used))
    yield from table.lines()


def _cell(item: Any, of: str | Callable[[Any], str]) -> str:
    if callable(of):
        return of(item)
    found = item.get(of)
    if isinstance(found, list | dict):
        return ", ".join(found)
    return "" if found is None else str(found)


def _first(pair: tuple[str, str]) -> str:
    return pair[0]


def _second(pair: tuple[str, str]) -> str:
    return pair[1]


_NOTES: Final[Columns] = {"": str}
_EXTENDERS: Final[Columns] = {"URL": "urlPrefix", "VERBS": "verbs", "WEIGHT": "weight"}
_OPTIONS: Final[Columns] = {"OPTION": _first, "VALUE": _second}


def _options(values: Mapping[str, Any], *, unset: str, prefix: str = "") -> list[tuple[str, str]]:
    """The names and values of options, *unset* for those that are None."""
    return [
        (f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value))
        if value is not None
        else (f"{prefix}{name}", unset)
        for name, value in values.items()
    ]


def config_tables(config: Data) -> Iterator[Line]:
    """The sections of a configuration, which is described as plain data."""
    for place, profile in enumerate(config["profiles"]):
        if place:
            yield styled()
        yield from _config_profile(profile, config["generation"])
    yield from section("Extenders", config["extenders"], _EXTENDERS)
    gates = {name: config["featureGates"][name] for name in config["changedGates"]}
    parts = [("", config["options"]), ("featureGates.", gates)]
    parts[1:1] = [(f"{part}.", config[part]) for part in ("leaderElection", "clientConnection")]
    options = [
        pair
        for prefix, values in parts
        for pair in _options(values, unset="not set", prefix=prefix)
    ]
    yield from section("Options", options, _OPTIONS)


def plugin_list(found: Data) -> Iterator[Line]:
    """Every plugin with its extension points, weight and arguments."""
    title = f"What a KubeSchedulerConfiguration of {found['generation']} can name"
    yield styled(title, "bold")
    plugins: Columns = {
        "NAME": "name",
        "EXTENSION POINTS": "extensionPoints",
        "WEIGHT": "weight",
        "ARGUMENTS": "fields",
        "NEEDS": "featureGate",
        "WHAT IT LOOKS AT": "description",
    }
    yield from section("Plugins", found["plugins"], plugins)
    gates: Columns = {
        "NAME": "name",
        "STAGE": "stage",
        "DEFAULT": lambda gate: _on(gate["default"]) + (", locked" if gate["locked"] else ""),
        "VALUE": lambda gate: _on(found["featureGates"][gate["name"]]),
        "WHAT IT DOES": "description",
    }
    yield from section("Feature gates that the scheduler reads", found["gates"], gates)


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
    plugins = dict(profile["plugins"])
    prepared = {each["name"] for each in plugins.get("preFilter", ())}
    filters: Columns = {
        "NAME": "name",
        "PREFILTER": lambda each: "yes" if each["name"] in prepared else "",
        "DESCRIPTION": "description",
    }
    yield from section("Filters, in the order they run", plugins.pop("filter", ()), filters)
    scores: Columns = {"NAME": "name", "WEIGHT": "weight", "DESCRIPTION": "description"}
    yield from section("Scores", plugins.pop("score", ()), scores)
    names = [(point, ", ".join(each["name"] for each in found)) for point, found in plugins.items()]
    points: Columns = {"EXTENSION POINT": _first, "PLUGINS": _second}
    yield from section("Other extension points", names, points)
    given = (profile["args"] | profile["unreadArgs"]).items()
    arguments = [(name, to_json_line(args).strip()) for name, args in given]
    yield from section("Arguments", arguments, {"PLUGIN": _first, "ARGUMENTS": _second})
    yield from section("Notes", profile["notes"], _NOTES)


def policy_tables(profile: Data) -> Iterator[Line]:
    """The sections of a profile, which is described as plain data."""
    yield styled(profile["profile"], "bold")
    predicates: Columns = {
        "NAME": "name",
        "POSITION": "position",
        "ORDER": "order",
        "A POD FITS IF": _description,
        "ARGUMENT": _argument,
    }
    yield from section("Predicates, in the order they run", profile["predicates"], predicates)
    idle: Columns = {"NAME": "name", "WHY": "why"}
    yield from section("Configured, but not run", profile["idlePredicates"], idle)
    priorities: Columns = {
        "NAME": "name",
        "WEIGHT": "weight",
        "PREFERS": "description",
        "ARGUMENT": _argument,
    }
    yield from section("Priorities", profile["priorities"], priorities)
    yield from section("Extenders", profile["extenders"], _EXTENDERS)
    options = dict(profile["options"])
    gates = _options(options.pop("featureGates"), unset="not used", prefix="featureGates.")
    yield from section("Options", [*_options(options, unset="not used"), *gates], _OPTIONS)
    yield from section("Notes", profile["notes"], _NOTES)


def catalogue_tables(found: Data) -> Iterator[Line]:
    """Every predicate and priority that a Policy can name, and the Policies that are shipped."""
    yield styled("What a Policy of v1.13 can name", "bold")
    predicates: Columns = {
        "POSITION": lambda each: (
            "never runs" if each["position"] is None else str(each["position"])
        ),
        "NAME": "name",
        "A POD FITS IF": "description",
        "ARGUMENT": "argument",
        "ALSO READ": "aliases",
        "NEEDS": lambda each: each["featureGate"] or each["effectiveWith"] or "",
        "IN": _membership,
    }
    yield from section(
        "Predicates, by their position of the 22", found["allPredicates"], predicates
    )
    yield styled(
        "The constants of kube-scheduler's source are read as well: MatchNodeSelectorPred."
    )
    priorities: Columns = {
        "NAME": "name",
        "KIND": "kind",
        "WEIGHT": "weight",
        "PREFERS": "description",
        "NEEDS": "featureGate",
        "IN": lambda each: _providers(each["providers"]),
    }
    yield from section("Priorities", found["allPriorities"], priorities)
    arguments = [
        (rules, ", ".join(found[f"{rule}Arguments"]))
        for rule, rules in (("predicate", "predicates"), ("priority", "priorities"))
    ]
    title = "Arguments, which make rules under any name"
    yield from section(title, arguments, {"OF": _first, "ARGUMENT": _second})
    shipped: Columns = {"NAME": "name", "WHAT IT IS": "description"}
    title = "Policies that come with Podium, for --policy NAME"
    yield from section(title, found["shippedPolicies"], shipped)


def _membership(predicate: Data) -> str:
    """In which configurations the predicate is."""
    if predicate["mandatory"]:
        return "every configuration"
    return _providers(predicate["providers"])


def _providers(names: list[str]) -> str:
    return "both providers" if len(names) > 1 else ", ".join(names)


def _description(predicate: Data) -> str:
    always = " (always runs)" if predicate["mandatory"] else ""
    if predicate.get("added"):
        always = " (mandatory, and was added)"
    return f"{predicate['description']}{always}"


def _argument(rule: Data) -> str:
    return to_json_line(rule["argument"]).strip() if rule.get("argument") else ""
