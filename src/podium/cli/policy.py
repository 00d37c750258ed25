"""`podium policy`: what a Policy file or a provider makes the scheduler do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from podium.cli.console import print_parts, write_data
from podium.cli.flags import gates_flag, output_flag
from podium.cli.parsing import HelpfulGroup
from podium.library.profile_choice import options_of
from podium.library.profile_source import ProfileSource
from podium.library.profiles import DEFAULT_PROVIDER, from_provider
from podium.profiles.policy.describe import catalogue, describe
from podium.render.profile.policy_table import catalogue_tables, policy_tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.profile import Profile
    from podium.profiles.policy.build import Options


@click.group(cls=HelpfulGroup)
def policy() -> None:
    """Check a Policy file, or show what a provider runs."""


@policy.command()
@click.argument("file", type=click.Path())
@gates_flag
@output_flag("table", "json", "yaml")
def check(*, file: str, feature_gates: tuple[Mapping[str, bool], ...], output: str) -> None:
    """Check the Policy in FILE and show what it makes the scheduler do.

    FILE may also be the name of a Policy that `podium policy list` shows.

    Exit code: 0 it is fine, 2 it is refused.
    """
    source = ProfileSource(policy=file, feature_gates=feature_gates)
    chosen = source.choose()
    _show(chosen.profile, chosen.options, output, chosen.policy)


@policy.command()
@click.option(
    "--provider",
    "--algorithm-provider",
    "provider",
    default=DEFAULT_PROVIDER,
    show_default=True,
    metavar="NAME",
    help="The algorithm provider.",
)
@gates_flag
@output_flag("table", "json", "yaml")
def show(*, provider: str, feature_gates: tuple[Mapping[str, bool], ...], output: str) -> None:
    """Show what an algorithm provider runs, in order."""
    options = options_of(ProfileSource(feature_gates=feature_gates))
    _show(from_provider(provider, options), options, output)


@policy.command("list")
@gates_flag
@output_flag("table", "json", "yaml")
def list_(*, feature_gates: tuple[Mapping[str, bool], ...], output: str) -> None:
    """List every predicate and priority that a Policy can name, and Policies that are shipped."""
    found = catalogue(options_of(ProfileSource(feature_gates=feature_gates)))
    if output == "table":
        print_parts(catalogue_tables(found))
    else:
        shown = {"predicates": found["allPredicates"], "priorities": found["allPriorities"]}
        kept = ("predicateArguments", "priorityArguments", "providers", "featureGates")
        write_data(
            shown | {name: found[name] for name in kept} | {"policies": found["shippedPolicies"]},
            output,
        )


def _show(
    profile: Profile, options: Options, output: str, policy: Mapping[str, Any] | None = None
) -> None:
    found = describe(profile, options, policy)
    if output == "table":
        print_parts(policy_tables(found))
    else:
        write_data(found, output)
