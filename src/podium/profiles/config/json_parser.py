"""JSON text to values, with the error messages of Go's encoding/json."""

from __future__ import annotations

import re
from typing import Final

from podium.objects.names import quoted
from podium.profiles.config.json_values import Fields, JsonValue, Number

_DEPTH: Final = 100
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(r"[0-9]*")
_HEX = "0123456789abcdefABCDEF"
_WORDS: Final = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_ESCAPES: Final = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_VALUE: Final = "looking for beginning of value"
_KEY: Final = "looking for beginning of object key string"


class JsonSyntaxError(ValueError):
    """The text is not JSON."""


def looks_like_json(text: str) -> bool:
    """Whether kube-scheduler reads the text as JSON: an object, not a list or a plain value."""
    return text.lstrip("\t\n\v\f\r \x85\xa0").startswith("{")


def parse(text: str) -> JsonValue:
    """The one value that the text holds."""
    scanner = _Scanner(text)
    value = scanner.value(0)
    scanner.skip()
    if scanner.at < len(text):
        raise scanner.unexpected("after top-level value")
    return value


class _Scanner:
    """A position in the text that moves from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self) -> str:
        """Skip blanks; returns the next character, which is not taken."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.peek()

    def peek(self) -> str:
        """The next character, nothing at the end."""
        return self.text[self.at : self.at + 1]

    def unexpected(self, where: str) -> JsonSyntaxError:
        """The error about the next character."""
        character = self.peek()
        if not character:
            return JsonSyntaxError("unexpected end of JSON input")
        # Go looks at bytes: of a longer character it shows the first one.
        byte = chr(character.encode(errors="surrogatepass")[0])
        shown = {"'": r"'\''", '"': "'\"'"}.get(byte) or f"'{quoted(byte)[1:-1]}'"
        return JsonSyntaxError(f"invalid character {shown} {where}")

    def value(self, depth: int) -> JsonValue:
        """The value that begins here."""
        first = self.skip()
        if depth > _DEPTH:
            raise JsonSyntaxError("exceeded max depth")
        if first == "{":
            return self.fields(depth)
        if first == "[":
            return self.items(depth)
        if first == '"':
            return self.string()
        if first in _WORDS:
            return self.word(*_WORDS[first])
        if first and first in "-0123456789":
            return self.number()
        raise self.unexpected(_VALUE)

    def fields(self, depth: int) -> Fields:
        found: list[tuple[str, JsonValue]] = []
        self.at += 1
        if self.skip() == "}":
            self.at += 1
            return Fields()
        while True:
            if self.skip() != '"':
                raise self.unexpected(_KEY)
            key = self.string()
            if self.skip() != ":":
                raise self.unexpected("after object key")
            self.at += 1
            found.append((key, self.value(depth + 1)))
            if self.ends("}", "after object key:value pair"):
                return Fields(found)

    def items(self, depth: int) -> list[JsonValue]:
        found: list[JsonValue] = []
        self.at += 1
        if self.skip() == "]":
            self.at += 1
            return found
        while True:
            found.append(self.value(depth + 1))
            if self.ends("]", "after array element"):
                return found

    def ends(self, closing: str, where: str) -> bool:
        """Take the closing bracket or a comma; whether the list or object ends here."""
        found = self.skip()
        if found not in (",", closing):
            raise self.unexpected(where)
        self.at += 1
        return found == closing

    def word(self, word: str, value: bool | None) -> bool | None:  # noqa: FBT001  what it means
        for letter in word:
            if self.peek() != letter:
                raise self.unexpected(f"in literal {word} (expecting '{letter}')")
            self.at += 1
        return value

    def number(self) -> Number:
        start = self.at
        if self.peek() == "-":
            self.at += 1
        if self.peek() == "0":
            self.at += 1
        else:
            self.digits("in numeric literal")
        if self.peek() == ".":
            self.at += 1
            self.digits("after decimal point in numeric literal")
        if self.peek() and self.peek() in "eE":
            self.at += 1
            if self.peek() and self.peek() in "+-":
                self.at += 1
            self.digits("in exponent of numeric literal")
        return Number(self.text[start : self.at])

    def digits(self, where: str) -> None:
        """Take digits, at least one."""
        found = _DIGITS.match(self.text, self.at)
        if not found or not found[0]:
            raise self.unexpected(where)
        self.at = found.end()

    def string(self) -> str:
        parts: list[str] = []
        self.at += 1
        while True:
            found = _PLAIN.match(self.text, self.at)
            assert found is not None  # it may be empty
            parts.append(found[0])
            self.at = found.end()
            character = self.peek()
            if character == '"':
                self.at += 1
                # Halves of a surrogate pair that do not belong together stand for nothing.
                joined = "".join(parts).encode("utf-16", "surrogatepass")
                return joined.decode("utf-16", "replace")
            if character != "\\":
                raise self.unexpected("in string literal")
            self.at += 1
            parts.append(self.escape())

    def escape(self) -> str:
        code = self.peek()
        if code == "u":
            self.at += 1
            for _ in range(4):
                if not self.peek() or self.peek() not in _HEX:
                    raise self.unexpected(r"in \u hexadecimal character escape")
                self.at += 1
            return chr(int(self.text[self.at - 4 : self.at], 16))
        if code not in _ESCAPES:
            raise self.unexpected("in string escape code")
        self.at += 1
        return _ESCAPES[code]
