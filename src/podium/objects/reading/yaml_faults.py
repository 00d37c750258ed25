"""Where a YAML text is faulty, and what is wrong there.

The parser stops where it cannot go on, which may be lines after the fault: `kind:Pod` is text until
the next line turns out to be a mapping, and an open quote ends at the next one. What is reported is
the line that has to be changed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_BLANK = re.compile(r"(?P<key>[A-Za-z0-9_./-]+):(?P<value>[^\s:/].*)")
_HAS_KEY = re.compile(r":(\s|$)")
_COMPLETE = "is the file complete and indented with blanks?"


class YamlFault(NamedTuple):
    """A line, counted from 1, what is wrong there, and what would work."""

    line: int
    column: int | None
    what: str
    hint: str = _COMPLETE

    @property
    def place(self) -> str:
        """The line and the column."""
        column = "" if self.column is None else f", column {self.column}"
        return f"line {self.line}{column}"


def fault_of(error: yaml.MarkedYAMLError, text: str) -> YamlFault | None:
    """The fault that made the parser stop; None if it does not say where it stopped."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return None
    problem, context = error.problem or "", error.context or ""
    lines = text.splitlines()
    found: YamlFault | None = None
    if problem.startswith(("mapping values", "did not find expected <document start>")):
        found = _in_line_before(lines, mark)
    elif error.context_mark is not None:
        begun = error.context_mark
        if "simple key" in context:
            found = _without_colon(begun.line, lines[begun.line])
        elif "quoted scalar" in context:
            found = _open_quote(begun)
        elif "flow" in context and mark.line > begun.line:
            found = _in_brackets(lines, begun, mark)
        else:
            found = _after_open_quote(text, mark)
    return found or YamlFault(mark.line + 1, mark.column + 1, problem or context)


def _in_line_before(lines: list[str], mark: yaml.Mark) -> YamlFault | None:
    """A line that was read as text, because it has no key, and goes on in the line of the mark."""
    if mark.line < len(lines) and _HAS_KEY.search(lines[mark.line][: mark.column]):
        return None  # a second colon in one line
    before = _significant_before(lines, mark.line)
    if before is None or _HAS_KEY.search(lines[before]) or lines[before].startswith(("---", "%")):
        return None
    return _without_colon(before, lines[before])


def _without_colon(line: int, text: str) -> YamlFault:
    content = text.strip().removeprefix("- ").strip()
    found = _NO_BLANK.fullmatch(content)
    if found is not None:
        key, value = found["key"], found["value"]
        what = f"there is no blank after the colon of {key}"
        return YamlFault(line + 1, None, what, f"write {key}: {value}")
    return YamlFault(line + 1, None, f"there is no colon in {content!r}", "write KEY: VALUE")


def _open_quote(begun: yaml.Mark) -> YamlFault:
    what = "the quote that begins there is not closed"
    return YamlFault(begun.line + 1, begun.column + 1, what, "close it on the same line")


def _in_brackets(lines: list[str], begun: yaml.Mark, mark: yaml.Mark) -> YamlFault:
    """A bracket that is never closed, or a comma that is missing between two of its values."""
    if mark.line >= len(lines) or _indent(lines[mark.line]) <= _indent(lines[begun.line]):
        bracket = lines[begun.line][begun.column : begun.column + 1]
        what = f"the {bracket} there is not closed"
        return YamlFault(
            begun.line + 1, begun.column + 1, what, "close it, or separate with commas"
        )
    before = _significant_before(lines, mark.line)
    line = begun.line if before is None else before
    return YamlFault(line + 1, len(lines[line].rstrip()) + 1, "a comma is missing", "add it")


def _after_open_quote(text: str, mark: yaml.Mark) -> YamlFault | None:
    """A quote that was closed by that of another value, further down."""
    last = None
    try:
        for token in yaml.scan(text, Loader=_LOADER):
            if token.start_mark.index >= mark.index:
                break
            if isinstance(token, yaml.ScalarToken) and not token.plain:
                last = token
    except yaml.YAMLError:
        return None
    if last is None or last.start_mark.line == last.end_mark.line:
        return None
    return _open_quote(last.start_mark) if last.end_mark.line == mark.line else None


def _significant_before(lines: list[str], line: int) -> int | None:
    """The nearest line above that is neither empty nor a comment."""
    above = (at for at in range(line - 1, -1, -1) if lines[at].strip())
    return next((at for at in above if not lines[at].lstrip().startswith("#")), None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
