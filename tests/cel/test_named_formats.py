"""The formats of strings in expressions, and addresses: what kube-scheduler says of them.

`true_of_formats.txt.gz` holds expressions that kube-scheduler v1.37.0-rc.1 found to be true:
whether a text is of a format, and the reasons why it is not.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from podium.cel.environment import CompiledExpression, compile_expression, variables_of
from podium.cel.errors import CelError, CompileError
from podium.objects.kinds.devices import Device

VARIABLES = variables_of("gpu.example.com", Device("gpu-0", {}, {}))


def answer(expression: str) -> bool | CelError:
    compiled = compile_expression(expression)
    assert isinstance(compiled, CompiledExpression), str(compiled)
    found: bool | CelError = compiled.judge(VARIABLES).result
    return found


def test_formats_and_addresses_are_those_of_kube_scheduler() -> None:
    path = Path(__file__).with_name("true_of_formats.txt.gz")
    recorded = gzip.decompress(path.read_bytes()).decode().splitlines()

    wrong = [each for each in recorded if answer(each) is not True]

    assert len(recorded) > 800
    assert wrong == []


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("dyn(1).validate('x').hasValue()", "no such overload: validate(int, string)"),
        ("dyn(format.uuid()) == 1", "no such overload"),
        (
            "dyn(format.uuid()) in [1]",
            "internal error: runtime error: hash of unhashable type cel.Format",
        ),
        ("format.uri().validate(dyn(1)).hasValue()", "no such overload: validate("),
    ],
)
def test_wrong_arguments_are_errors(expression: str, text: str) -> None:
    assert str(answer(expression)).startswith(text)


@pytest.mark.parametrize(
    "expression", ["format.foo().validate('x').hasValue()", "format.uuid().validate(1).hasValue()"]
)
def test_what_is_not_declared_does_not_compile(expression: str) -> None:
    assert isinstance(compile_expression(expression), CompileError)


def test_a_long_text_costs_what_a_pattern_would() -> None:
    twice = "[1, 2].all(i, [1, 2, 3, 4].all(j, !format.uri().validate(x).hasValue() || true))"

    found = answer(f"cel.bind(x, '{'a' * 60000}', {twice})")

    assert "cost limit exceeded" in str(found)
