"""`podium version`: which Podium this is and what it decides as."""

from __future__ import annotations

import platform

import click

import podium
from podium.cli.console import write, write_data
from podium.cli.flags import output_flag
from podium.cli.parsing import FlagsCommand
from podium.releases import RELEASES


@click.command(cls=FlagsCommand)
@output_flag("table", "json", "yaml")
def version(*, output: str) -> None:
    """Print the version and the profiles that it has."""
    if output != "table":
        profiles = [
            {
                "name": generation.name,
                "description": generation.description,
                "providers": list(generation.providers),
            }
            for generation in RELEASES
        ]
        write_data({"version": podium.__version__, "profiles": profiles}, output)
        return
    write(f"podium {podium.__version__} (Python {platform.python_version()})\n")
    for generation in RELEASES:
        write(f"profile {generation.name}: {generation.description}\n")
        if generation.providers:
            write(f"  providers: {', '.join(generation.providers)}\n")
