"""Selectors in text form: `a=b,c!=d,e in (x,y),!f,g>5` and `metadata.name=x`.

The grammar and the error texts are those of `kubectl --selector` and `--field-selector`.

Upstream: apimachinery/pkg/labels and pkg/fields, Kubernetes v1.13.
"""

from __future__ import annotations

import re

from podium.objects.names import is_qualified_name, label_key_reasons, quoted
from podium.objects.selectors.requirements import (
    FieldRequirement,
    FieldSelector,
    Requirement,
    Selector,
    SelectorError,
    conjunction,
    requirement,
)

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+))")
_END = ""  # the word after the last one
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", _END})
_OPERATORS = {"in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_EXACT = frozenset({"=", "==", "!="})
_FIELD_TERM = re.compile(r"(?P<field>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def parse_selector(text: str) -> Selector:
    """The label selector in *text*; the empty text selects everything."""
    return conjunction(_Parser(text).requirements())


class _Parser:
    """Reads tokens from left to right; `in` and `notin` are words where a value is expected."""

    def __init__(self, text: str) -> None:
        found = _TOKEN.finditer(text)
        self.tokens = [match["symbol"] or match["word"] for match in found] + [_END]
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self) -> str:
        word = self.tokens[self.position]
        # Staying on the last word makes "unexpected end" an ordinary mismatch.
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return word

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while (word := self.peek()) != _END:
            if word in _SYMBOLS - {"!"}:
                raise SelectorError(_expected(word, "!, identifier, or 'end of string'"))
            try:
                found.append(self.requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            self.separator()
        return found

    def separator(self) -> None:
        word = self.take()
        if word not in {",", _END}:
            raise SelectorError(_expected(word, "',' or 'end of string'"))
        if word == "," and self.peek() in _SYMBOLS - {"!"}:
            raise SelectorError(_expected(self.peek(), "identifier after ','"))

    def requirement(self) -> Requirement:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if key in _SYMBOLS:
            raise SelectorError(_expected(key, "identifier"))
        if not is_qualified_name(key):
            reasons = "; ".join(label_key_reasons(key))
            raise SelectorError(f"invalid label key {quoted(key)}: {reasons}")
        if absent:
            return requirement(key, "DoesNotExist", ())
        if self.peek() in {",", _END}:
            return requirement(key, "Exists", ())
        operator = self.take()
        if operator not in _OPERATORS and operator not in _EXACT:
            raise SelectorError(_expected(operator, "'=', '!=', '==', 'in', notin'"))
        values = self.values() if operator in {"in", "notin"} else self.value()
        return requirement(key, _OPERATORS.get(operator, operator), values)

    def value(self) -> list[str]:
        if self.peek() in {",", _END}:
            return [""]
        word = self.take()
        if word in _SYMBOLS:
            raise SelectorError(_expected(word, "identifier"))
        return [word]

    def values(self) -> list[str]:
        word = self.take()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        if self.peek() in _SYMBOLS - {",", ")"}:
            raise SelectorError(_expected(self.peek(), "',', ')' or identifier"))
        found = {""} if self.peek() in {",", ")"} else set()
        while (word := self.take()) != ")":
            if word == ",":
                # Two commas in a row, or one before the bracket, mean an empty value.
                if self.peek() in {",", ")"}:
                    found.add("")
            elif word in _SYMBOLS:
                raise SelectorError(_expected(word, "',', or identifier"))
            elif self.peek() not in {",", ")"}:
                raise SelectorError(_expected(self.peek(), "',' or ')'"))
            else:
                found.add(word)
        return sorted(found)


def _expected(found: str, wanted: str) -> str:
    return f"found '{found}', expected: {wanted}"


def parse_field_selector(text: str) -> FieldSelector:
    """The field selector that *text* stands for; the empty text selects everything."""
    terms = sorted(re.findall(r"(?:\\.|[^\\,]|\\\Z)+", text, re.DOTALL))
    return FieldSelector(tuple(_field(term, text) for term in terms))


def _field(term: str, text: str) -> FieldRequirement:
    match = _FIELD_TERM.fullmatch(term)
    if not match:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _ESCAPED.sub(_unescaped, match["value"])
    return FieldRequirement(match["field"], match["operator"] != "!=", value)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        code = ord(match[0])  # upstream prints the number of the character
        raise SelectorError(f"invalid field selector: unescaped character in value: {code}")
    if match[1] not in {"\\", ",", "="} or not match[1]:
        raise SelectorError(f"invalid field selector: invalid escape sequence: {match[0]}")
    return match[1]
