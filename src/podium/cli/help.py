"""`podium help`: help about a command, or about a reason that a scheduler gives."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Final

import click

from podium.cli.console import write, write_data
from podium.cli.flags import output_flag
from podium.cli.parsing import FlagsCommand
from podium.library.documentation import ReasonPage, reason_anchor, reason_page, reason_pages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.engine.framework.decision import Decision

#: What shells read inside of double quotes.
_SPECIAL: Final = frozenset('"$`\\!')


@click.command("help", cls=FlagsCommand)
@click.argument("topic", nargs=-1, metavar="[COMMAND… | reason [TEXT] | course]")
@output_flag("table", "json", "yaml")
@click.pass_context
def help(ctx: click.Context, /, *, topic: tuple[str, ...], output: str) -> None:  # noqa: A001  its name
    """Show the help of a COMMAND, what a reason means that a scheduler gives, or the course.

    \b
      podium help plan
      podium help reason
      podium help reason "Insufficient cpu"
      podium help course
    """  # noqa: D301  click reads the escape
    if topic[:1] == ("reason",):
        _reason(" ".join(topic[1:]), output)
        return
    if topic == ("course",):
        from podium.cli.course import list_chapters  # noqa: PLC0415  only for the course

        list_chapters(output)
        return
    if output != "table":
        raise click.UsageError("-o is for `podium help reason` and `podium help course`", ctx)
    from podium.cli.main import app  # noqa: PLC0415  it imports this module when it is used

    command: click.Command = app
    context = click.Context(app, info_name="podium", parent=None)
    for name in topic:
        found = command.get_command(context, name) if isinstance(command, click.Group) else None
        if found is None:
            raise click.UsageError(f"there is no command {' '.join(topic)!r}", ctx)
        command, context = found, click.Context(found, info_name=name, parent=context)
    write(f"{command.get_help(context)}\n")


def _reason(text: str, output: str) -> None:
    """Print the page of a reason, or the list of all."""
    if output != "table":
        pages = [reason_page(text)] if text else reason_pages()
        data = [{"reason": page.text, "page": page.body} for page in pages]
        write_data(data[0] if text else data, output)
    elif text:
        show_reason(reason_page(text))
    else:
        write("".join(f"{page.text}\n" for page in reason_pages()))


def show_reason(page: ReasonPage) -> None:
    """Print what is known about a reason."""
    body = page.body.replace("**", "").replace("*Said by:*", "Said by:").replace("`", "")
    write(f"{page.text}\n\n{body}\n")


def name_reason_help(decisions: Iterable[Decision]) -> None:
    """Print on a terminal which command tells more about the first reason that has a page."""
    if not sys.stdout.isatty():
        return
    reasons = (reason for decision in decisions for reason in _reasons(decision))
    found = next((text for text in reasons if reason_anchor(text) is not None), None)
    if found is not None:
        text = shlex.quote(found) if _SPECIAL & set(found) else f'"{found}"'
        write(f"\nWhat a reason means, and what to change: podium help reason {text}\n")


def _reasons(decision: Decision) -> Iterator[str]:
    """The reasons of a decision, those of most nodes first."""
    yield decision.error
    for stopped in (decision.held, decision.refused):
        if stopped is not None:
            yield stopped.reason
    found = decision.reasons
    yield from sorted(found, key=lambda text: (-found[text], text))
