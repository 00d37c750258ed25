"""Random expressions with the answers on which kube-scheduler v1.36.4 and v1.37 agree.

The expressions are those of `test_random_expressions`, about the same device. An answer is true,
false, or an error; the text of an error is recorded where it does not name types of Go. The
compiler refuses some expressions: an API server does not store them, and its text is not compared.
Left out are maps with keys of types that CEL has no keys of, indices of such types, names of types
in `cel.bind`, and loops over attributes, whose values are of any type.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from cel.test_random_expressions import LONG, VARIABLES
from podium.cel.environment import compile_expression
from podium.cel.errors import CompileError


class Recorded(msgspec.Struct):
    """An expression, and what kube-scheduler makes of it."""

    expression: str
    answer: bool | None = None
    #: The text of an error; empty where only that there is one counts.
    error: str | None = None
    refused: bool = False


def recorded() -> list[Recorded]:
    path = Path(__file__).with_name("recorded_answers.jsonl.gz")
    text = gzip.decompress(path.read_bytes()).replace(b"LONG", LONG.encode())
    return msgspec.json.Decoder(Recorded).decode_lines(text)


def found(expression: str) -> Recorded:
    compiled = compile_expression(expression)
    if isinstance(compiled, CompileError):
        return Recorded(expression, refused=True)
    result = compiled.judge(VARIABLES).result
    if isinstance(result, bool):
        return Recorded(expression, answer=result)
    return Recorded(expression, error=str(result))


@pytest.mark.slow
def test_every_recorded_expression_has_the_answer_of_kube_scheduler() -> None:
    differing = []
    for expected in recorded():
        mine = found(expected.expression)
        if expected.error == "" and mine.error is not None:
            mine.error = ""
        if mine != expected:
            differing.append((expected, mine))

    assert differing == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("type(1) == int", True),
        ("type(dyn('a')) == string && type(int) == type", True),
        ("type(null) == null_type && type(optional.none()) == optional_type", True),
        ("type(timestamp('2026-01-01T00:00:00Z')) == google.protobuf.Timestamp", True),
        ("dyn(type(1)) == dyn('int')", False),
        ("'%s'.format([type(1)]) == 'int'", True),
        ("dyn('abc').substring(dyn(1u)) == 'bc'", "no such overload: substring(string, uint)"),
        ("string(dyn({'a': device.driver})) == ''", "no such overload: string(map)"),
        ("-dyn(true) == true", "no such overload"),
        ("{1 / (device.driver.size() - 15): dyn(device.driver).major()} == {}", "division by zero"),
        ("{}[dyn(1e308)] == 1", "no such key: 1e+308"),
    ],
)
def test_what_was_found(expression: str, expected: bool | str) -> None:
    mine = found(expression)

    assert (mine.answer if isinstance(expected, bool) else mine.error) == expected, mine
