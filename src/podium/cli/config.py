"""`podium config`: what a KubeSchedulerConfiguration makes the scheduler do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli.console import print_parts, write_data
from podium.cli.flags import gates_flag, output_flag
from podium.cli.parsing import HelpfulGroup
from podium.library.files import text_from
from podium.library.profile_choice import config_in
from podium.profiles.config.build import default_config, from_config
from podium.profiles.config.describe import describe_config, list_plugins
from podium.profiles.policy.build import Options
from podium.render.profile.config_table import config_tables, plugin_list, validity_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.profiles.config.build import SchedulerConfig

    Gates = tuple[Mapping[str, bool], ...]


@click.group(cls=HelpfulGroup)
def config() -> None:
    """Check a KubeSchedulerConfiguration, or show what it makes the scheduler do."""


@config.command()
@click.argument("file", type=click.Path())
@gates_flag
@output_flag("table", "json", "yaml")
def check(file: str, feature_gates: Gates, output: str) -> None:
    """Check the configuration in FILE, and say what is easily overlooked.

    Exit code: 0 it is fine, 2 it is refused.
    """
    found = describe_config(_loaded(file, feature_gates))
    if output == "table":
        print_parts(validity_report(file, found))
    else:
        write_data(found, output)


@config.command()
@click.argument("file", type=click.Path(), required=False)
@gates_flag
@output_flag("table", "json", "yaml")
def show(file: str | None, feature_gates: Gates, output: str) -> None:
    """Show what runs, in order, with weights and arguments; without FILE, the defaults."""
    found = describe_config(_loaded(file, feature_gates))
    if output == "table":
        print_parts(config_tables(found))
    else:
        write_data(found, output)


@config.command("list")
@gates_flag
@output_flag("table", "json", "yaml")
def list_(feature_gates: Gates, output: str) -> None:
    """List every plugin that a configuration can name: extension points, weight, arguments."""
    found = list_plugins({name: on for changes in feature_gates for name, on in changes.items()})
    if output == "table":
        print_parts(plugin_list(found))
    else:
        write_data(found, output)


def _loaded(file: str | None, given: Gates) -> SchedulerConfig:
    """The configuration, sure to be one that profiles can be made of."""
    gates = {name: on for changes in given for name, on in changes.items()}
    options = Options(feature_gates=gates)
    if file is not None:
        return config_in(file, text_from(file), options)[0]
    found = default_config(gates)
    from_config(found, options)
    return found
