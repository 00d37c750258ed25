"""`podium version`: which Podium this is and what it can decide as."""

from __future__ import annotations

import platform

import click

import podium
from podium.cli.console import write, write_data
from podium.cli.flags import FlagsCommand, output_flag
from podium.library.generations import served


@click.command(cls=FlagsCommand)
@output_flag("table", "json", "yaml")
def version(*, output: str) -> None:
    """Print the version and the profiles it serves."""
    profiles = [
        {
            "name": generation.name,
            "description": generation.description,
            "providers": list(generation.providers),
        }
        for generation in served()
    ]
    if output != "table":
        write_data({"version": podium.__version__, "profiles": profiles}, output)
        return
    write(f"podium {podium.__version__} (Python {platform.python_version()})\n")
    for generation in served():
        providers = ", ".join(generation.providers)
        write(f"profile {generation.name}: {generation.description}\n")
        if providers:
            write(f"  providers: {providers}\n")
