"""What commands print: results on stdout, notes on stderr, colours on terminals only."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from podium.cli.closed_output import ClosedOutputError
from podium.render.columns import within
from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console, RenderableType

_Item = TypeVar("_Item")

#: Columns of what does not go to a terminal; wide enough that tables need not fold.
_PIPE_WIDTH: Final = 160
#: The exit code of a command that was interrupted and printed what it knew.
INTERRUPTED: Final = 130
#: The exit code of a command that SIGTERM ended, as shells write it.
TERMINATED: Final = 128 + signal.SIGTERM
#: The exit code for bad input, such as a rule that does not return.
_BAD_INPUT: Final = 2
#: A progress bar appears after this time.
_PROGRESS_SECONDS: Final = 0.5


class TerminatedError(KeyboardInterrupt):
    """The program received SIGTERM. It is handled where an interrupt is."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `TerminatedError` here when the program receives SIGTERM, once; more are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminated(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def console() -> Console:
    """The printer of tables. NO_COLOR is respected, by rich itself."""
    from rich.console import Console  # noqa: PLC0415  not needed for json, yaml, name

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


def print_parts(parts: Iterable[RenderableType], printer: Console | None = None) -> None:
    """Print one part after the other. Sentences are not folded, and no line ends in blanks."""
    printer = printer or console()
    with printer.capture() as captured:
        for part in parts:
            printer.print(part, soft_wrap=not printer.is_terminal)
    write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def write(text: str) -> None:
    """Print the text as it is."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise ClosedOutputError from None


def write_lines(lines: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Print lines, each in its style if the output has colours."""
    printer = console()
    coloured = printer.color_system is not None and not printer.no_color
    limited = sys.stdout.isatty() or "COLUMNS" in os.environ
    with within(printer.width if limited else None):
        for line, style in lines:
            text = printable(line)
            write(f"{click.style(text, **style) if coloured and style else text}\n")


def write_data(value: Any, output: str) -> None:
    """Print a value as `json` or `yaml`."""
    from podium.render.documents import to_json_text, to_yaml  # noqa: PLC0415  brings msgspec, yaml

    write(to_json_text(value) if output == "json" else to_yaml(value))


def note(sentence: str) -> None:
    """Print a sentence on stderr that does not stop the command."""
    click.echo(f"podium: note: {printable(sentence)}", err=True)


def end(sentence: str) -> None:
    """Print a sentence on stderr and end the program at once, whatever it is doing."""
    click.echo(f"podium: {printable(sentence)}", err=True)
    os._exit(_BAD_INPUT)


def notes(sentences: Iterable[str]) -> None:
    """Print several such sentences."""
    for sentence in sentences:
        note(sentence)


def tracked(
    items: Iterable[_Item], total: int, what: str, *, after_seconds: float = _PROGRESS_SECONDS
) -> Iterator[_Item]:
    """The items; on a terminal, a progress bar on stderr appears once that takes long.

    With *after_seconds* 0 it is there before the first item.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    bar = None
    begun = time.monotonic()
    try:
        if after_seconds <= 0:
            bar = _progress_bar(total, what)
            bar.start()
        for done, item in enumerate(items, 1):
            yield item
            if bar is None and time.monotonic() - begun > after_seconds:
                # Known before it is started: an interrupt meanwhile must end it.
                bar = _progress_bar(total, what)
                bar.start()
            if bar is not None:
                bar.update(bar.task_ids[0], completed=done)
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def following(
    what: str, *, after_seconds: float = _PROGRESS_SECONDS
) -> Iterator[Callable[[str], None]]:
    """A function that is called with each step of long work of unknown length.

    On a terminal, the last step stands in a line on stderr once that takes long, and is gone in the
    end.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    begun = time.monotonic()
    shown: list[Any] = []

    def follow(step: str) -> None:
        from rich.console import Console  # noqa: PLC0415  only on a terminal
        from rich.text import Text  # noqa: PLC0415

        if shown:
            shown[0].update(Text(f"{what}: {step}"))
        elif time.monotonic() - begun > after_seconds:
            shown.append(Console(file=sys.stderr).status(Text(f"{what}: {step}")))
            shown[0].start()

    try:
        yield follow
    finally:
        if shown:
            shown[0].stop()


def searched(steps: Iterable[object], total: int, what: str) -> int:
    """Take all steps of a search; the exit code, 130 if an interrupt ended it early."""
    try:
        for _ in tracked(steps, total, what):
            pass
    except KeyboardInterrupt:
        note("interrupted; what follows is what was found so far")
        return INTERRUPTED
    return 0


def _progress_bar(total: int, what: str) -> Any:
    from rich.console import Console  # noqa: PLC0415  only for long runs
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    bar.add_task(what, total=total)
    return bar
