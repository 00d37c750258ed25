"""The `podium` command. Each command has a module, imported when that command is used."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

import podium
from podium.cli.console import ClosedOutputError, discard_output
from podium.cli.parsing import HelpfulGroup
from podium.errors import PodiumError
from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141
BUG: Final = 70
#: Set it to see where an internal error comes from.
TRACEBACK_VARIABLE: Final = "PODIUM_TRACEBACK"

#: Command -> module and what it does. The module has a click command of the same name.
COMMANDS: Final = {
    "schedule": ("podium.cli.schedule", "Place pending pods and say why some did not fit."),
    "explain": ("podium.cli.explain", "Show the whole reasoning for one pod."),
    "why": ("podium.cli.why", "Ask a running scheduler what it decided about a pod."),
    "capacity": ("podium.cli.capacity", "Say how many more pods of a kind fit, and what runs out."),
    "fix": ("podium.cli.fix", "Find the smallest changes that would give a pending pod a node."),
    "compare": (
        "podium.cli.compare",
        "Place the same pods by several configurations, and compare.",
    ),
    "verify": ("podium.cli.verify", "Replay recorded decisions and report differences."),
    "policy": ("podium.cli.policy", "Check a Policy file, or show what a provider runs."),
    "config": ("podium.cli.config", "Check a KubeSchedulerConfiguration, or show what it runs."),
    "run": ("podium.cli.run", "Schedule the pods of a real cluster."),
    "record": ("podium.cli.record", "Record what scheduling reads of a cluster as it changes."),
    "replay": ("podium.cli.replay", "Make the decisions of a recorded history again."),
    "judge": ("podium.cli.judge", "Judge the placements of another scheduler in a history."),
    "snapshot": ("podium.cli.snapshot", "Write what scheduling reads of a cluster to a file."),
    "plan": ("podium.cli.plan", "Show what follows from changes to a cluster."),
    "survive": ("podium.cli.survive", "Show what is left when a zone, a rack or a node is lost."),
    "lab": ("podium.cli.lab", "Run a small cluster in this process, for kubectl and the browser."),
    "extender": ("podium.cli.extender", "Serve predicates and priorities to kube-scheduler."),
    "new": ("podium.cli.new", "Write a predicate or priority of your own, with its test."),
    "bench": ("podium.cli.bench", "Run scheduling workloads in memory and measure them."),
    "history": ("podium.cli.history", "Make histories from traces."),
    "sweep": ("podium.cli.sweep", "Run an experiment: workloads by configurations by seeds."),
    "version": ("podium.cli.version", "Print the version and the profiles it serves."),
    "completion": ("podium.cli.completion", "Print the completion script for a shell."),
}


class LazyGroup(HelpfulGroup):
    """The group of all commands; the module of a command is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of all commands, in the order in which help lists them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is an error that suggests the closest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from podium.profiles.similar_names import did_you_mean  # noqa: PLC0415  rarely needed

            hint = did_you_mean(args[0], COMMANDS) or f"known: {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 all placed, 1 some not (or differences found), 2 bad input.",
)
@click.version_option(podium.__version__, prog_name="podium", message="%(prog)s %(version)s")
def app() -> None:
    """Decide where pods run, exactly as kube-scheduler does, and show why.

    FILES are manifests, folders of them, `kubectl get … -o yaml|json` dumps, or - for standard
    input.
    """


def main() -> None:
    """Run as `podium`."""
    _escape_unencodable()
    sys.exit(run(sys.argv[1:], "podium"))


def kubectl_main() -> None:
    """Run as a plugin: `kubectl podium`."""
    _escape_unencodable()
    sys.exit(run(sys.argv[1:], "kubectl podium"))


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
    # Texts of the real program may have several lines.
    click.echo(f"podium: {printable(' '.join(sentence.split()))}", err=True)
