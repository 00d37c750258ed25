"""Numbers that know how they were computed, and a row of them: the arithmetic of a score as text.

A rule that scores a `WrittenRow` computes as on any other row and gets a number whose `text` is the
formula with the numbers put in: `⌊(4000 − 1500) × 10 ÷ 4000⌋`. Only explanations use it.

In a text every number is a double, `×` and `÷` bind more tightly than `+` and `−`, operators of one
rank are applied from left to right, `⌊x⌋` cuts x off toward zero, `|x|` is the absolute value, `√x`
the root and `ln(x)` the natural logarithm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from podium.engine.rows.rows import OneRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.state.label_column import LabelColumn
    from podium.engine.state.node_columns import FactColumn
    from podium.engine.state.tallies import Tally

#: How tightly the outermost operator of a text binds.
_SUM, _PRODUCT, _ATOM = range(3)
_PLUS, _MINUS, _TIMES, _OVER = "+", "−", "×", "÷"
#: The rank of an operator, and the ranks that its operands need to stand without parentheses.
_RANKS: Final = {
    _PLUS: (_SUM, _SUM, _PRODUCT),
    _MINUS: (_SUM, _SUM, _PRODUCT),
    _TIMES: (_PRODUCT, _PRODUCT, _ATOM),
    _OVER: (_PRODUCT, _PRODUCT, _ATOM),
}


class _Written:
    """The operators of written numbers."""

    text: str
    rank: int

    def __add__(self, other: Any) -> Any:
        return _computed(_PLUS, self, other, _value(self) + _value(other))

    def __radd__(self, other: Any) -> Any:
        return _computed(_PLUS, other, self, _value(other) + _value(self))

    def __sub__(self, other: Any) -> Any:
        return _computed(_MINUS, self, other, _value(self) - _value(other))

    def __rsub__(self, other: Any) -> Any:
        return _computed(_MINUS, other, self, _value(other) - _value(self))

    def __mul__(self, other: Any) -> Any:
        return _computed(_TIMES, self, other, _value(self) * _value(other))

    def __rmul__(self, other: Any) -> Any:
        return _computed(_TIMES, other, self, _value(other) * _value(self))

    def __truediv__(self, other: Any) -> Any:
        return _computed(_OVER, self, other, _value(self) / _value(other))

    def __rtruediv__(self, other: Any) -> Any:
        return _computed(_OVER, other, self, _value(other) / _value(self))

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return written(abs(_value(self)), f"|{self.text}|")


class WrittenInt(_Written, int):
    """A whole number with its text."""


class WrittenFloat(_Written, float):
    """A double with its text."""


def written(value: float, text: str = "", rank: int = _ATOM) -> Any:
    """A number with a text; by default its digits."""
    made: Any = WrittenInt(value) if isinstance(value, int) else WrittenFloat(value)
    made.text, made.rank = text or _digits(value), rank
    return made


def quotient(number: int, by: int) -> Any:
    """A fraction that a rule has as a constant, such as 2 ÷ 3, as the double that it is."""
    return written(number) / by


def logarithm(number: float) -> Any:
    """The natural logarithm."""
    return written(math.log(number), f"ln({text_of(number)})")


def text_of(number: float) -> str:
    """How a number was computed; its digits, if that is not known."""
    return number.text if isinstance(number, _Written) else _digits(number)


def _value(number: Any) -> Any:
    """The number without its text."""
    if isinstance(number, WrittenInt):
        return int(number)
    return float(number) if isinstance(number, WrittenFloat) else number


def _digits(value: float) -> str:
    """A number as it is read back: `3`, `0.125`, `(−3)`."""
    size = abs(value)
    whole = size == int(size) if math.isfinite(size) else False
    digits = str(int(size)) if whole else repr(float(size))
    return f"(−{digits})" if value < 0 else digits


def _computed(operator: str, left: Any, right: Any, value: Any) -> Any:
    """The result of an operator; a plain 0 that is added or a plain 1 as a factor is left out."""
    neutral = {_PLUS: 0, _TIMES: 1}.get(operator)
    for one, other in ((left, right), (right, left)):
        if not isinstance(one, _Written) and one == neutral:
            return written(value, text_of(other), _rank(other))
    rank, on_left, on_right = _RANKS[operator]
    text = f"{_operand(left, on_left)} {operator} {_operand(right, on_right)}"
    return written(value, text, rank)


def _rank(number: Any) -> int:
    return number.rank if isinstance(number, _Written) else _ATOM


def _operand(number: Any, least: int) -> str:
    return text_of(number) if _rank(number) >= least else f"({text_of(number)})"


class WrittenRow(OneRow):
    """One row whose numbers are written; rules read it as they read any other row."""

    __slots__ = ()

    @override
    def requested(self, resource: int) -> Any:
        return written(super().requested(resource))

    @override
    def allocatable(self, resource: int) -> Any:
        return written(super().allocatable(resource))

    @override
    def nonzero_requested(self, resource: int) -> Any:
        return written(super().nonzero_requested(resource))

    @override
    def pod_count(self) -> Any:
        return written(super().pod_count())

    @override
    def allowed_pods(self) -> Any:
        return written(super().allowed_pods())

    @override
    def on_row(self, tally: Tally) -> Any:
        return written(int(super().on_row(tally)))

    @override
    def domain(self, tally: Tally, key: str) -> Any:
        return written(int(super().domain(tally, key)))

    @override
    def fact(self, column: FactColumn | LabelColumn, answer: Callable[[Any], int]) -> Any:
        return written(int(super().fact(column, answer)))

    @override
    def image_size(self, name: str) -> Any:
        return written(super().image_size(name))

    @override
    def image_nodes(self, name: str) -> Any:
        return written(super().image_nodes(name))

    @override
    def map(self, answer: Callable[[OneRow], int]) -> Any:
        return written(int(answer(OneRow(self.view, self.row, self.errors, self.position))))

    @override
    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        found = super().where(condition, yes, no)
        return found if not found or isinstance(found, _Written) else written(found)

    @override
    def divide(self, number: Any, by: Any) -> Any:
        if by == 0:
            return 0
        found = super().divide(_value(number), _value(by))
        return written(found, f"⌊{text_of(written(number, *_shape(number)) / by)}⌋")

    @override
    def ratio(self, number: Any, by: Any) -> Any:
        return written(number, *_shape(number)) / by if by else 1.0

    @override
    def truncate(self, number: Any) -> Any:
        return written(super().truncate(_value(number)), f"⌊{text_of(number)}⌋")

    @override
    def sqrt(self, number: Any) -> Any:
        return written(math.sqrt(number), f"√({text_of(number)})")

    @override
    def wrap(self, number: Any) -> Any:
        wrapped = super().wrap(_value(number))
        return number if wrapped == number else written(wrapped)


def _shape(number: Any) -> tuple[str, int]:
    return text_of(number), _rank(number)
