"""YAML text: its documents, its faults, and its pieces for several processes.

The parser stops where it cannot go on, which may be lines after the fault: `kind:Pod` is text until
the next line turns out to be a mapping, and an open quote ends at the next one. What is reported is
the line that has to be changed.

Built on the parser's events rather than on a ready-made loader, for three reasons: timestamps and
sexagesimal numbers must stay text (`12:30` is a value, not 750), and nesting and aliases need a
limit that ends in a sentence. Dumps of tens of megabytes must not take minutes.

A stream is cut between documents. A document that is one long list, as `kubectl get -o yaml` prints
it, is cut between its items as well: a frame without items, and pieces with items only. What looks
like the border of an item may be within a text. Then a piece cannot be parsed, or the frame has
items after all. Then the text has to be parsed as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import yaml
from typing_extensions import override

from podium.errors import InputError
from podium.objects.kinds.meta import Plain

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


_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"yes|Yes|YES|true|True|TRUE|on|On|ON")
_FALSE = re.compile(r"no|No|NO|false|False|FALSE|off|Off|OFF")
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_LONGEST_NUMBER = 1000
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"


class YamlDocument(NamedTuple):
    """One document of a stream and the line on which it begins."""

    line: int
    value: Plain


#: Gives every document of a text that is not empty, as `documents` does.
ParseYaml = Callable[[str], Iterable[YamlDocument]]


def documents(text: str) -> Iterator[YamlDocument]:
    """Every document of *text* that is not empty."""
    try:
        yield from _documents(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, text) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = str(error).splitlines()[0] if str(error) else "no further details"
        raise InputError(f"is not readable YAML: {what}") from None


def _documents(events: Iterator[yaml.Event]) -> Iterator[YamlDocument]:
    builder = _Builder()
    line = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder()
        elif isinstance(event, yaml.DocumentEndEvent):
            if builder.root is not None:
                yield YamlDocument(line, builder.root)
        elif not isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent):
            if not builder.begun:
                line = line_of(event)
            builder.take(event)


class OpenCollection(NamedTuple):
    """A list or mapping that has not ended; a mapping holds keys and values in turn."""

    mapping: bool
    parts: list[Any]
    start: yaml.CollectionStartEvent
    weight_before: int


class EventBuilder:
    """Puts the events of one document together, without recursion and within limits.

    A subclass says what scalars and mappings become, and words what is wrong.
    """

    #: How deep collections may be nested.
    most_deep = 100
    #: Values that aliases may stand for in one document; a manifest uses dozens.
    most_aliased = 1_000_000

    def __init__(self) -> None:
        self.root: Any = None
        self.open: list[OpenCollection] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.weight = 0  # values so far, aliases counted with all that they stand for
        self.aliased = 0

    def scalar(self, event: yaml.ScalarEvent) -> Any:
        """What a scalar becomes."""
        raise NotImplementedError

    def collection(self, ended: OpenCollection) -> Any:
        """What a list or mapping becomes."""
        raise NotImplementedError

    def repeated(self, value: Any, event: yaml.AliasEvent) -> Any:
        """What a value becomes where an alias stands for it."""
        raise NotImplementedError

    def fault(self, what: str, event: yaml.Event) -> Exception:
        """The error: too `deep`, an alias `unknown` or `inside` its value, too much `aliased`."""
        raise NotImplementedError

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._put(self.scalar(event), event.anchor, 1, 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self.open) >= self.most_deep:
                raise self.fault("deep", event)
            mapping = isinstance(event, yaml.MappingStartEvent)
            self.open.append(OpenCollection(mapping, [], event, self.weight))
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        else:
            ended = self.open.pop()
            weight = self.weight - ended.weight_before + 1
            self._put(self.collection(ended), ended.start.anchor, weight, 1)

    def _put(self, value: Any, anchor: str | None, weight: int, added: int) -> None:
        self.weight += added
        if anchor is not None:
            self.anchors[anchor] = (value, weight)
        if self.open:
            self.open[-1].parts.append(value)
        else:
            self.root = value

    def _alias(self, event: yaml.AliasEvent) -> None:
        if any(one.start.anchor == event.anchor for one in self.open):
            raise self.fault("inside", event)
        if event.anchor not in self.anchors:
            raise self.fault("unknown", event)
        value, weight = self.anchors[event.anchor]
        found = self.repeated(value, event)
        self.aliased += weight
        if self.aliased > self.most_aliased:
            raise self.fault("aliased", event)
        self._put(found, None, weight, weight)


class _Builder(EventBuilder):
    """Builds plain values: keys are text, and `<<` fills in what a mapping does not say."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = False
        self.merge_line = 0  # of the last key <<

    @override
    def take(self, event: yaml.Event) -> None:
        self.begun = True
        super().take(event)

    @override
    def scalar(self, event: yaml.ScalarEvent) -> Plain:
        if event.value == _MERGE:
            self.merge_line = line_of(event)
        return _scalar(event)

    @override
    def collection(self, ended: OpenCollection) -> Plain:
        self._check_key(ended.start)
        return _mapping(ended.parts, self.merge_line) if ended.mapping else ended.parts

    @override
    def repeated(self, value: Plain, event: yaml.AliasEvent) -> Plain:
        if isinstance(value, dict | list):
            self._check_key(event)
        return value

    def _check_key(self, event: yaml.Event) -> None:
        """Refuse a list or mapping in the place of a key."""
        if self.open and self.open[-1].mapping and len(self.open[-1].parts) % 2 == 0:
            raise InputError(f"line {line_of(event)}: a key must be a plain value")

    @override
    def fault(self, what: str, event: yaml.Event) -> InputError:
        name = getattr(event, "anchor", "")
        told = {
            "deep": f"is nested deeper than {self.most_deep} levels",
            "inside": f"the alias *{name} stands for what it is a part of",
            "unknown": f"the alias *{name} stands for nothing",
            "aliased": f"aliases stand for more than {self.most_aliased} values",
        }
        return InputError(f"line {line_of(event)}: {told[what]}")


def line_of(event: yaml.Event) -> int:
    """The line on which an event begins, counted from 1."""
    return event.start_mark.line + 1 if event.start_mark else 0


def _mapping(parts: list[Plain], merge_line: int) -> dict[Plain, Plain]:
    found: dict[Plain, Plain] = {}
    merged: list[Plain] = []
    pairs = iter(parts)
    for key, value in zip(pairs, pairs, strict=True):
        if key == _MERGE:
            merged += value if isinstance(value, list) else [value]
        else:
            found[key if isinstance(key, str) else _key(key)] = value
    for base in merged:
        if not isinstance(base, dict):
            raise InputError(f"line {merge_line}: << takes a mapping")
        for key, value in base.items():
            found.setdefault(key, value)
    return found


def _key(key: Plain) -> str:
    """A key that is no text becomes the text that JSON has for it."""
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)


def _scalar(event: yaml.ScalarEvent) -> Plain:
    if event.tag is None or event.tag == "!":
        return _plain(event.value) if event.implicit[0] else event.value
    name = event.tag.removeprefix(_TAG)
    if name == event.tag or name not in {"str", "int", "float", "bool", "null"}:
        raise InputError(f"line {line_of(event)}: the tag {event.tag} is not known")
    return event.value if name == "str" else _plain(event.value)


@lru_cache(maxsize=1 << 16, typed=True)
def _plain(text: str) -> Plain:
    """What an unquoted scalar stands for."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if len(text) <= _LONGEST_NUMBER:
        if _INT.fullmatch(text):
            return _integer(text.replace("_", ""))
        if _FLOAT.fullmatch(text):
            return _real(text.replace("_", "").lower())
    return text


def _integer(text: str) -> int | str:
    digits = text.lstrip("+-")
    base = {"0b": 2, "0x": 16}.get(digits[:2], 8 if digits.startswith("0") else 10)
    try:
        return int(text, base)
    except ValueError:  # "0b" and "0x" without digits
        return text


def _real(text: str) -> float:
    return float(text.replace(".", "") if text.endswith(("inf", "nan")) else text)


def _unreadable(error: yaml.MarkedYAMLError, text: str) -> InputError:
    fault = fault_of(error, text)
    if fault is None:
        return InputError(f"is not readable YAML: {error.problem or error.context}")
    return InputError(f"is not readable YAML at {fault.place}: {fault.what}", hint=fault.hint)


_DOCUMENT = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
#: Line breaks of YAML that are not counted here.
_OTHER_BREAKS = "\x85\u2028\u2029"
_ITEMS = re.compile(r"^items:[ \t]*\r?\n(?P<indent> *)(?=- )", re.MULTILINE)
_ITEMS_KEY = re.compile(r"""^["']?items["']?\s*:""", re.MULTILINE)
#: What may be an anchor: aliases may stand for it anywhere in the document.
_ANCHOR = re.compile(r"&(?<![^\s\[{,]&)[\w-]")
_ITEMS_LINE = "items:\n"


class Piece(NamedTuple):
    """A part of a stream."""

    text: str
    #: How many lines come before it.
    line: int
    #: Whether it has items of the list that is the last document before it, and nothing else.
    only_items: bool = False


def cut(text: str, size: int) -> Iterator[Piece]:
    """Pieces of about *size* characters, in order; larger ones where a text cannot be cut."""
    if len(text) <= size or _has_directives(text) or _has_other_breaks(text):
        yield Piece(text, 0)
        return
    line = 0
    for begin, end in _spans(text, size):
        part = text[begin:end]
        if len(part) > 2 * size:
            yield from _cut_list(part, line, size)
        else:
            yield Piece(part, line)
        line += part.count("\n")


def _has_directives(text: str) -> bool:
    """Whether some line may be a directive, which belongs to the document after it."""
    return text.startswith("%") or "\n%" in text


def _has_other_breaks(text: str) -> bool:
    """Whether a line may end otherwise than with a line feed."""
    alone = text.count("\r") != text.count("\r\n")
    return alone or any(each in text for each in _OTHER_BREAKS)


def _spans(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Where pieces of whole documents begin and end; a long document is one by itself."""
    borders = [0, *(found.start() for found in _DOCUMENT.finditer(text)), len(text)]
    start = 0
    for begin, end in pairwise(borders):
        if end - start > 2 * size and begin > start:
            yield start, begin
            start = begin
        if end - start >= size or end == len(text):
            yield start, end
            start = end


def _cut_list(text: str, line: int, size: int) -> Iterator[Piece]:
    """A document in pieces of items, if it is a list; otherwise as it is."""
    items = _ITEMS.search(text)
    if items is None or len(_ITEMS_KEY.findall(text)) > 1 or _ANCHOR.search(text):
        yield Piece(text, line)
        return
    indent = items["indent"]
    begin = items.start("indent")
    less = f" {{0,{len(indent) - 1}}}[^ \r\n#]" if indent else "[^ \r\n#-]"
    after = re.compile(f"^{less}", re.MULTILINE).search(text, begin)
    end = len(text) if after is None else after.start()
    yield Piece(text[:begin] + text[end:], line)
    border = re.compile(f"^{indent}- ", re.MULTILINE)
    while begin < end:
        found = border.search(text, begin + size, end)
        stop = end if found is None else found.start()
        yield Piece(_ITEMS_LINE + text[begin:stop], line, only_items=True)
        begin = stop


def together(
    pieces: Sequence[Piece], parsed: Sequence[list[YamlDocument]]
) -> list[YamlDocument] | None:
    """The documents of a whole text, from those of its pieces; None if a cut was wrong."""
    found: list[YamlDocument] = []
    items: list[Plain] | None = None
    for piece, documents in zip(pieces, parsed, strict=True):
        if not piece.only_items:
            found += [YamlDocument(each.line + piece.line, each.value) for each in documents]
            items = None
            continue
        part = documents[0].value if len(documents) == 1 else None
        more = part.pop("items", None) if isinstance(part, dict) else None
        if part or not isinstance(more, list):
            return None
        if items is None:
            frame = found[-1].value if found else None
            if not isinstance(frame, dict) or frame.get("items", more) is not None:
                return None
            items = frame["items"] = []
        items += more
    return found
