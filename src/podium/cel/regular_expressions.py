"""Regular expressions of expressions: RE2, in time linear in the text, with the texts of Go.

Go's `regexp` and RE2 accept the same syntax, apart from what is checked here first. A pattern that
needs too much memory is refused. Compiled patterns are kept, within a limit of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes that a compiled pattern and its cache of states may take: nearly all, and the largest.
_USUAL_MEMORY: Final = 1 << 20
_MOST_MEMORY: Final = 8 << 20
_TOO_LARGE: Final = "pattern too large"
#: The words of RE2, and those of Go.
_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "bad escape sequence": "invalid escape sequence",
}
_NAMED_GROUP: Final = re.compile(r"\(\?P?<([^>]*)>")
#: A byte, which Go does not know; text between `\Q` and `\E` is literal.
_ANY_BYTE: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)


class PatternError(Exception):
    """A pattern is no regular expression; the text is that of Go."""


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        #: The instructions of its program: a match takes at most this many steps per byte.
        self.size = int(compiled.programsize)

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return self._compiled.search(text) is not None

    def first(self, text: str) -> str:
        """The first match, empty without one."""
        found = self._compiled.search(text)
        return found.group() if found is not None else ""

    def all(self, text: str) -> Iterator[str]:
        """All matches. An empty one directly behind another is none, as in Go."""
        last = -1
        for found in self._compiled.finditer(text):
            start, end = found.span()
            if start != end or start != last:
                yield text[start:end]
            last = end


def compile_pattern(text: str) -> Pattern:
    """The compiled pattern; raises `PatternError`."""
    found = _usual(text)
    if found is None:
        found = _largest(text)
    if isinstance(found, PatternError):
        raise found
    return found


@lru_cache(maxsize=128)
def _usual(text: str) -> Pattern | PatternError | None:
    """The pattern or its error; None if it needs more than the usual memory."""
    found = _compile(text, _USUAL_MEMORY)
    if isinstance(found, PatternError) and _TOO_LARGE in str(found):
        return None
    return found


@lru_cache(maxsize=8)
def _largest(text: str) -> Pattern | PatternError:
    """A pattern that needs much memory; few of them are kept."""
    found = _compile(text, _MOST_MEMORY)
    if isinstance(found, PatternError) and _TOO_LARGE in str(found):
        return PatternError(f"error parsing regexp: expression too large: `{text}`")
    return found


def _compile(text: str, memory: int) -> Pattern | PatternError:
    problem = _refused_by_go(text)
    if problem:
        return PatternError(f"error parsing regexp: {problem}")
    import re2 as library  # noqa: PLC0415 - only expressions with patterns load it

    options = library.Options()
    options.log_errors = False
    options.max_mem = memory
    compile_: Callable[..., Any] = library.compile
    try:
        return Pattern(compile_(text, options=options))
    except library.error as error:
        return PatternError(f"error parsing regexp: {_words_of_go(text, error)}")
    finally:
        library.purge()  # the library keeps patterns itself, without a limit of memory


def _refused_by_go(text: str) -> str:
    for found in _ANY_BYTE.finditer(text):
        if found[1] == "C":
            return "invalid escape sequence: `\\C`"
    names = [each for each in _NAMED_GROUP.findall(text) if each]
    for place, name in enumerate(names):
        if name in names[:place]:
            return f"duplicate capture group name: `{name}`"
    return ""


def _words_of_go(text: str, error: Exception) -> str:
    (given,) = error.args
    told = given.decode() if isinstance(given, bytes) else str(given)
    if told.startswith("trailing"):
        return "trailing backslash at end of expression: ``"
    if told.startswith(_TOO_LARGE):
        return told
    what, _, where = told.partition(": ")
    return f"{_WORDS.get(what, what)}: `{where or text}`"
