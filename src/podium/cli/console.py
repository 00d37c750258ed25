"""What commands print: results on stdout, notes on stderr, colours on terminals only."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import click

from podium.cli.closed_output import ClosedOutputError
from podium.render.plain import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from podium.render.columns import Line

_Item = TypeVar("_Item")

#: The exit code of a command that was interrupted and printed what it knew.
INTERRUPTED: Final = 130
#: The exit code of a command that SIGTERM ended, as shells write it.
TERMINATED: Final = 128 + signal.SIGTERM
#: The exit code for bad input, such as a rule that does not return.
_BAD_INPUT: Final = 2
#: A progress bar appears after this time.
_PROGRESS_SECONDS: Final = 0.5
#: It is drawn at most this often, and so wide.
_REDRAW_SECONDS: Final = 0.1
_BAR_WIDTH: Final = 30


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


def output_width() -> int | None:
    """The columns of the terminal or of COLUMNS; None for a pipe."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return _columns()
    return None


def _columns() -> int:
    from shutil import get_terminal_size  # noqa: PLC0415  it brings three ways to compress

    return get_terminal_size().columns


def write(text: str) -> None:
    """Print the text as it is."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise ClosedOutputError from None


def write_lines(lines: Iterable[Line]) -> None:
    """Print lines, each in its style if the output has colours."""
    from podium.render.columns import within  # noqa: PLC0415  not needed for json, yaml, name

    dull = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    coloured = sys.stdout.isatty() and not dull
    with within(output_width()):
        for line, style in lines:
            text = printable(line)
            write(f"{click.style(text, **style) if coloured and style else text}\n")


def write_section(title: str, sentences: Iterable[str]) -> None:
    """Print sentences below a title, after an empty line."""
    write_lines([("", {}), (title, {"bold": True}), *((each, {}) for each in sentences)])


def write_data(value: Any, output: str) -> None:
    """Print a value as `json` or `yaml`."""
    from podium.render.documents import to_json_text, to_yaml  # noqa: PLC0415  brings msgspec, yaml

    write(to_json_text(value) if output == "json" else to_yaml(value))


def write_answer(output: str, lines: Callable[[], Iterable[Line]], data: Callable[[], Any]) -> None:
    """Print an answer: its lines as `table`, else its data as `json` or `yaml`."""
    if output == "table":
        write_lines(lines())
    else:
        write_data(data(), output)


def note(sentence: str) -> None:
    """Print a sentence on stderr that does not stop the command."""
    click.echo(f"podium: note: {printable(sentence)}", err=True)


def end(sentence: str) -> None:
    """Print a sentence on stderr and end the program at once, whatever it is doing."""
    click.echo(f"podium: {printable(sentence)}", err=True)
    os._exit(_BAD_INPUT)


def notes(sentences: Iterable[str]) -> None:
    """Print sentences on stderr that do not stop the command."""
    for sentence in sentences:
        note(sentence)


class StatusLine:
    """A line on stderr that says how far long work is, on a terminal only.

    It appears *after_seconds*, is overwritten, and is gone in the end.
    """

    def __init__(self, what: str, *, after_seconds: float = _PROGRESS_SECONDS) -> None:
        self._what = what
        self._watched = sys.stderr.isatty()
        self._begun = time.monotonic()
        self._next = self._begun + after_seconds
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._put("")

    def step(self, text: str) -> None:
        """Say what is done now."""
        if self._take_turn():
            self._put(f"{self._what}: {text}")

    def count(self, done: int, total: int) -> None:
        """Say how much of the work is done, and how long the rest may take."""
        if not self._take_turn():
            return
        left = (time.monotonic() - self._begun) * (total - done) / done if done else 0.0
        filled = "#" * (_BAR_WIDTH * done // max(total, 1))
        rest = f", {left:.0f} s left" if left >= 1 else ""
        self._put(f"{self._what} [{filled:{_BAR_WIDTH}}] {done}/{total}{rest}")

    def _take_turn(self) -> bool:
        """True when it is time to draw; then not again for a while."""
        now = time.monotonic()
        if not self._watched or now < self._next:
            return False
        self._next = now + _REDRAW_SECONDS
        return True

    def _put(self, text: str) -> None:
        self._shown = True
        columns = _columns()
        sys.stderr.write(f"\r{printable(text)[: columns - 1]}\x1b[K")
        sys.stderr.flush()


def tracked(
    items: Iterable[_Item], total: int, what: str, *, after_seconds: float = _PROGRESS_SECONDS
) -> Iterator[_Item]:
    """The items; on a terminal, a progress bar on stderr appears once that takes long.

    With *after_seconds* 0 it is there before the first item.
    """
    with StatusLine(what, after_seconds=after_seconds) as status:
        status.count(0, total)
        for done, item in enumerate(items, 1):
            yield item
            status.count(done, total)


def note_interrupt() -> None:
    """Say that an interrupt ended a search whose answer follows."""
    note("interrupted; what follows is what was found so far")


def searched(steps: Iterable[object], total: int, what: str) -> int:
    """Take all steps of a search; the exit code, 130 if an interrupt ended it early."""
    try:
        for _ in tracked(steps, total, what):
            pass
    except KeyboardInterrupt:
        note_interrupt()
        return INTERRUPTED
    return 0
