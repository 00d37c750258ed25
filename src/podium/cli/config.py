"""`podium config`: what a KubeSchedulerConfiguration or a Policy makes the scheduler do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from podium.cli.console import write_answer
from podium.cli.flags import gates_flag, generation_flag, output_flag, rules_flag
from podium.cli.parsing import HelpfulGroup
from podium.library.files import text_from
from podium.library.profile_choice import config_in, options_of, shipped_policy
from podium.library.profile_source import ProfileSource
from podium.library.profiles import DEFAULT_PROVIDER
from podium.profiles.config.build import default_config, from_config
from podium.profiles.config.description import describe_config, list_plugins
from podium.profiles.policy.description import catalogue, describe
from podium.releases import release_of
from podium.render.reports.profiles import (
    catalogue_tables,
    config_tables,
    plugin_list,
    policy_tables,
    validity_report,
)
from podium.what_if.compare.comparison import configuration_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from podium.profiles.policy.build import Options
    from podium.render.columns import Line

    Gates = tuple[Mapping[str, bool], ...]


@click.group(cls=HelpfulGroup)
def config() -> None:
    """Check a KubeSchedulerConfiguration or a Policy, or show what it makes the scheduler do."""


@config.command()
@click.argument("file", type=click.Path())
@rules_flag
@generation_flag
@gates_flag
@output_flag("table", "json", "yaml")
def check(
    *, file: str, rules: tuple[str, ...], profile: str | None, feature_gates: Gates, output: str
) -> None:
    """Check the KubeSchedulerConfiguration or the Policy in FILE.

    It says what is easily overlooked, and of a Policy all that runs. FILE may also be the name of a
    Policy that `podium config list --profile v1.13` shows. Give the --rules whose names it uses.

    Exit code: 0 it is fine, 2 it is refused.
    """
    source = ProfileSource(feature_gates=feature_gates, rules=rules)
    _show_file(file, source, profile, output, lambda found: validity_report(file, found))


@config.command()
@click.argument("file", type=click.Path(), required=False)
@click.option(
    "--provider",
    "--algorithm-provider",
    "provider",
    metavar="NAME",
    help="Show this algorithm provider (v1.13) instead of a file.",
)
@rules_flag
@generation_flag
@gates_flag
@output_flag("table", "json", "yaml")
def show(
    *,
    file: str | None,
    provider: str | None,
    rules: tuple[str, ...],
    profile: str | None,
    feature_gates: Gates,
    output: str,
) -> None:
    """Show what runs, in order, with weights and arguments; without FILE, the defaults."""
    if file is not None and provider is not None:
        raise click.UsageError("FILE and --provider exclude each other; give one of them")
    source = ProfileSource(feature_gates=feature_gates, rules=rules)
    if provider is not None or (file is None and _uses_policies(profile)):
        _show_policy(replace(source, provider=provider or DEFAULT_PROVIDER), output)
        return
    if file is not None:
        _show_file(file, source, profile, output, config_tables)
        return
    options = options_of(replace(source, profile=profile))
    defaults = default_config(options.feature_gates, options.of_configurations)
    from_config(defaults, options)  # refuses rules that cannot join them
    found = describe_config(defaults)
    write_answer(output, lambda: config_tables(found), lambda: found)


@config.command("list")
@generation_flag
@gates_flag
@output_flag("table", "json", "yaml")
def list_(*, profile: str | None, feature_gates: Gates, output: str) -> None:
    """List what a configuration can name: plugins, and feature gates with their defaults.

    With --profile v1.13, what a Policy can name: predicates, priorities, and Policies that come
    with Podium.
    """
    options = options_of(ProfileSource(profile=profile, feature_gates=feature_gates))
    if _uses_policies(profile):
        _list_policies(options, output)
        return
    found = list_plugins(options.feature_gates, options.of_configurations)
    write_answer(output, lambda: plugin_list(found), lambda: found)


def _uses_policies(profile: str | None) -> bool:
    """Whether a generation is named that a Policy configures."""
    release = release_of(profile or "")
    return release is not None and release.configured_by == "Policy"


def _show_file(
    file: str,
    source: ProfileSource,
    profile: str | None,
    output: str,
    tables: Callable[[dict[str, Any]], Iterable[Line]],
) -> None:
    """Show a Policy, or a configuration in *tables*; a Policy of Podium goes by its name."""
    text = text_from(file) if shipped_policy(file, source) is None else None
    if text is None or _uses_policies(profile) or configuration_kind(text) == "Policy":
        texts = {} if text is None else {file: text}
        _show_policy(replace(source, policy=file, texts=texts), output)
        return
    config, _ = config_in(file, text, options_of(replace(source, profile=profile)))
    found = describe_config(config)
    write_answer(output, lambda: tables(found), lambda: found)


def _show_policy(source: ProfileSource, output: str) -> None:
    chosen = source.choose()
    found = describe(chosen.profile, chosen.options, chosen.policy)
    write_answer(output, lambda: policy_tables(found), lambda: found)


def _list_policies(options: Options, output: str) -> None:
    found = catalogue(options)
    kept = ("predicateArguments", "priorityArguments", "providers", "featureGates")
    shown: dict[str, Any] = {
        "predicates": found["allPredicates"],
        "priorities": found["allPriorities"],
        **{name: found[name] for name in kept},
        "policies": found["shippedPolicies"],
    }
    write_answer(output, lambda: catalogue_tables(found), lambda: shown)
