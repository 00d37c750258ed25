"""Evaluates the arithmetic that traces show, as `podium.engine.rows.written` defines it."""

from __future__ import annotations

import math
import re

_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|ln|[-+−×÷()⌊⌋|√])")


def evaluate(text: str) -> float:
    """The value of an expression; whole numbers stay whole."""
    tokens = _TOKEN.findall(text)
    assert "".join(tokens) == re.sub(r"\s", "", text), text
    parser = _Parser(tokens)
    value = parser.sum()
    assert not parser.left, text
    return value


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens

    def take(self, *wanted: str) -> str:
        if not self.left or (wanted and self.left[0] not in wanted):
            return ""
        return self.left.pop(0)

    def expect(self, wanted: str) -> None:
        assert self.take(wanted), (wanted, self.left)

    def sum(self) -> float:
        value = self.product()
        while operator := self.take("+", "−"):
            other = self.product()
            value = value + other if operator == "+" else value - other
        return value

    def product(self) -> float:
        value = self.atom()
        while operator := self.take("×", "÷"):
            other = self.atom()
            value = value * other if operator == "×" else value / other
        return value

    def atom(self) -> float:
        if self.take("−"):
            return -self.atom()
        for begin, end, change in (
            ("(", ")", lambda x: x),
            ("⌊", "⌋", math.trunc),
            ("|", "|", abs),
        ):
            if self.take(begin):
                value = self.sum()
                self.expect(end)
                return change(value)
        if self.take("√"):
            return math.sqrt(self.atom())
        if self.take("ln"):
            return math.log(self.atom())
        digits = self.take()
        return float(digits) if re.search(r"[.e]", digits) else int(digits)
