"""The `podium` command. Each command has a module, imported when that command is used."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

import click

import podium
from podium.cli.closed_output import ClosedOutputError, discard_output
from podium.cli.parsing import LazyCommand, LazyGroup
from podium.errors import PodiumError

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
BUG: Final = 70
#: Set it to see where an internal error comes from.
TRACEBACK_VARIABLE: Final = "PODIUM_TRACEBACK"

#: Title of a section of the help -> commands.
SECTIONS: Final = {
    "Decide": {
        "explain": LazyCommand("podium.cli.explain", "Show why a pod goes where it goes."),
        "schedule": LazyCommand("podium.cli.schedule", "Place pending pods."),
    },
    "What if": {
        "plan": LazyCommand("podium.cli.plan", "Show what follows from changes to a cluster."),
        "capacity": LazyCommand("podium.cli.capacity", "Count how many more pods of a kind fit."),
        "fix": LazyCommand("podium.cli.fix", "Find changes that give a pending pod a node."),
        "compare": LazyCommand("podium.cli.compare", "Place pods by several configurations."),
        "check": LazyCommand("podium.cli.check", "Check a change to manifests before a merge."),
    },
    "Run": {
        "run": LazyCommand("podium.cli.run", "Schedule the pods of a cluster."),
        "lab": LazyCommand("podium.cli.lab", "Run a small cluster in this process."),
        "extender": LazyCommand("podium.cli.extender", "Serve rules to kube-scheduler."),
        "mcp": LazyCommand("podium.cli.mcp", "Answer agents over the Model Context Protocol."),
    },
    "Past": {
        "history": LazyCommand("podium.cli.history", "Record, replay and judge decisions."),
        "snapshot": LazyCommand("podium.cli.snapshot", "Write a cluster to a file."),
    },
    "Configure": {
        "config": LazyCommand("podium.cli.config", "Check or show a scheduler configuration."),
    },
    "Develop": {
        "new": LazyCommand("podium.cli.new", "Write a rule of your own, with its test."),
    },
}
#: What every program has; the end of the help names them.
_COMMON: Final = {
    "help": LazyCommand("podium.cli.help", "Show help about a command, a reason or the course."),
    "version": LazyCommand("podium.cli.version", "Print the version and the profiles."),
    "completion": LazyCommand("podium.cli.completion", "Print the completion script of a shell."),
}
#: Of the package podium-research, if it is installed; the scheduler does not import it.
_RESEARCH: Final = {
    "bench": LazyCommand("podium_research.cli.bench", "Run scheduling workloads in memory."),
    "sweep": LazyCommand("podium_research.cli.sweep", "Run an experiment."),
}
COMMANDS: Final = {
    **{name: each for section in SECTIONS.values() for name, each in section.items()},
    **_COMMON,
    **_RESEARCH,
}


class _App(LazyGroup):
    """All commands. Names of earlier versions work, too."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, also by an old name."""
        if args and args[0] not in COMMANDS:
            from podium.cli.old_names import by_new_name  # noqa: PLC0415  rarely needed

            args = by_new_name(args)
        return super().resolve_command(ctx, args)


@click.command(
    cls=_App,
    sections=SECTIONS,
    hidden={**_COMMON, **_RESEARCH},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="podium help COMMAND, podium help reason TEXT and podium help course tell more. "
    "podium completion SHELL prints a completion script. Exit codes: 0 answered, 1 differences "
    "found or --exit-code, 2 bad input.",
)
@click.version_option(podium.__version__, prog_name="podium", message="%(prog)s %(version)s")
def app() -> None:
    """Decide where pods run, exactly as kube-scheduler does, and show why.

    FILES are manifests, folders of them, `kubectl get … -o yaml|json` dumps, or - for standard
    input. Without FILES, the cluster of the kubeconfig is read.
    """


def main() -> None:
    """Run as `podium`."""
    _begin()
    _end(run(sys.argv[1:], "podium"))


def kubectl_main() -> None:
    """Run as a plugin: `kubectl podium`."""
    _begin()
    _end(run(sys.argv[1:], "kubectl podium"))


def _end(code: int) -> NoReturn:
    """End the program; after an interrupt at once, without giving back the memory of a cluster."""
    if code == INTERRUPTED:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _begin() -> None:
    """Prepare the process, before NumPy is imported."""
    # Its linear algebra, which nothing asks for, would start a thread for each core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _escape_unencodable()


def _escape_unencodable() -> None:
    """Print characters that the terminal's encoding lacks as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def run(arguments: Sequence[str], name: str = "podium") -> int:
    """Run a command line and return its exit code; every error is one sentence on stderr."""
    try:
        code = app.main(list(arguments), prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except (ClosedOutputError, BrokenPipeError):
        discard_output()
        return BROKEN_PIPE
    except (KeyboardInterrupt, click.Abort):
        _print_error("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        _print_error(_sentence(error))
        return PodiumError.exit_code
    except PodiumError as error:
        _print_error(str(error))
        return error.exit_code
    except Exception as error:  # the last resort: a bug is one sentence, too
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _print_error(
            f"internal error ({what}); set {TRACEBACK_VARIABLE}=1 to see where, and report it"
        )
        return BUG
    return code if isinstance(code, int) else 0


def _sentence(error: click.ClickException) -> str:
    message = error.format_message()
    message = message[:1].lower() + message[1:].removesuffix(".")
    context = getattr(error, "ctx", None)
    if context is None or message.endswith("?"):
        return message
    return f"{message}; try {context.command_path} --help"


def _print_error(sentence: str) -> None:
    from podium.render.plain import printable  # noqa: PLC0415  only for an error

    # Texts of the real program may have several lines.
    click.echo(f"podium: {printable(' '.join(sentence.split()))}", err=True)
