"""What expressions cost, and that nothing costs more than it may."""

from __future__ import annotations

from functools import partial

import pytest

from podium.cel.environment import (
    COST_LIMIT,
    CompiledExpression,
    KeptExpressions,
    compile_expression,
    variables_of,
)
from podium.cel.errors import CompileError
from podium.cel.evaluation import COST_LIMIT_EXCEEDED, Evaluated, EvaluationScope
from podium.objects.kinds.devices import Device, DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"
GPU = f'device.attributes["{DRIVER}"]'
DEVICE = Device(
    "gpu-0",
    {
        "model": DeviceAttribute(string_value="a100"),
        "index": DeviceAttribute(int_value=3),
        "version": DeviceAttribute(version_value="1.10.0"),
        **{f"a{n}": DeviceAttribute(string_value="x" * 60 + str(n)) for n in range(25)},
    },
    {"memory": DeviceCapacity("40Gi")},
)
VARIABLES = variables_of(DRIVER, DEVICE)


def judged(expression: str) -> Evaluated:
    compiled = compile_expression(expression)
    assert isinstance(compiled, CompiledExpression), str(compiled)
    return compiled.judge(VARIABLES)


def cost(expression: str) -> int:
    compiled = compile_expression(expression)
    assert isinstance(compiled, CompiledExpression), str(compiled)
    scope = EvaluationScope(dict(VARIABLES), COST_LIMIT)
    compiled.step(scope)
    return scope.cost


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", 0),
        # A variable and each of its fields.
        ('device.driver == ""', 2),
        (f'device.driver == "{DRIVER}"', 4),
        (f"{GPU}.index > 2", 5),
        (f'{GPU}["index"] > 2', 5),
        ('"absent.example.com" in device.attributes', 3),
        (f"has({GPU}.index)", 3),
        (f"{GPU}.?index.orValue(0) == 3", 5),
        (f"{GPU}.?absent.orValue(0) == 0", 4),
        # Literals, and what is made of literals alone.
        (f'{GPU}.model in ["a100", "h100"]', 4),
        ("[1, 2, 3] == [1, 2, 3]", 1),
        ('int("3") == 3', 1),
        ("[dyn(device.driver)] == []", 10 + 3 + 0),
        ('{"a": device.driver}["a"] != ""', 30 + 2 + 2 + 0),
        # A variable in a branch costs nothing but its fields.
        ('(true ? device.driver : device.driver) != ""', 1),
        # Loops.
        ("[1, 2].all(x, x > 0)", 2 * (2 + 1 + 2) + 1),
        ("[1, 2].exists(x, x > 2)", 2 * (3 + 1 + 2) + 1),
        ("[1, 2].map(x, x + 1).size() == 2", 2 * (1 + 10 + 2 + 1) + 1 + 1 + 1),
        ("[1, 2].filter(x, x > 1).size() == 1", 2 * 2 + (1 + 10 + 1 + 1) + 1 + 1 + 1),
        ("[1, 2].exists_one(x, x == 1)", 2 * 2 + 2 + 1 + 1),
        (f"cel.bind(gpu, {GPU}, gpu.index == 3)", 3 + 2 + 1),
        # Calls.
        (f'{GPU}.model.startsWith("a")', 4 + 1),
        (f'{GPU}.model.matches("^a[0-9]+$")', 4 + 1 * 3),
        ('matches("aaaaaaaaaaaaaaaaaaaa", "^a[0-9]+$")', 1),
        (f'{GPU}.model.find("[0-9]+") == "100"', 4 + 1 * 2 + 1),
        (f'{GPU}.a1.contains("xxxxxxxxxxx")', 4 + 7 * 2),
        (f'{GPU}.version.isGreaterThan(semver("1.9.9"))', 4 + 1 + 1),
        (f'device.capacity["{DRIVER}"].memory == quantity("40Gi")', 4 + 1 + 1),
        ("lists.range(5).sum() == 10", 5 + 1 + 10 + 5 + 1),
        ("[3, 1, 2].sort() == [1, 2, 3]", 18 + 1 + 10 + 1),
        ('["c", "a"].sort()[0] == "a"', 8 + 1 + 10 + 2 + 1),
        ("[1, 1].distinct() == [1]", 8 + 1 + 10 + 1),
        ("sets.contains([1, 2], [2])", 3),
        ("sets.equivalent([1, 2], [2])", 5),
        ('"a,b".split(",").join("-") == "a-b"', 1 + 1 + 1),
        ('isIP("10.0.0.1")', 1),
        ('cidr("10.0.0.0/8").containsIP("10.0.0.1")', 1 + 1 + 1),
        ('"%s".format([device.driver]) != ""', 1 + 10 + 2 + 0),
    ],
)
def test_an_expression_costs_what_it_costs_in_kube_scheduler(
    expression: str, expected: int
) -> None:
    assert cost(expression) == expected


NUMBERS = "lists.range(1000)"
#: Each is accepted by an API server, or grows beyond all bounds with one more character.
HOSTILE = {
    "loops in loops": f"{NUMBERS}.all(x, {NUMBERS}.all(y, {NUMBERS}.all(z, x + y + z >= 0)))",
    "loops over attributes": (
        f"{GPU}.all(a, {GPU}.all(b, {GPU}.all(c, {GPU}.all(d, a + b + c + d != ''))))"
    ),
    "a long list": "lists.range(1000000000).size() > 0",
    "lists that double": (
        "cel.bind(a, [device.driver], "
        + "".join(
            f"cel.bind({two}, {one} + {one}, "
            for one, two in zip("abcdefghijkl", "bcdefghijklm", strict=True)
        )
        + "cel.bind(n, m+m+m+m+m+m+m+m, cel.bind(o, n+n+n+n+n+n+n+n, cel.bind(p, o+o+o+o+o+o+o+o,"
        "cel.bind(q, p+p+p+p+p+p+p+p, q.size() > 0))))"
        + ")" * 13
    ),
    "lists within lists": (
        "cel.bind(a, [device.driver, device.driver, device.driver, device.driver], "
        + "".join(
            f"cel.bind({two}, [{one}, {one}, {one}, {one}], "
            for one, two in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
        )
        + "n == [n[0], n[1], n[2], n[3]]"
        + ")" * 14
    ),
    "a list that is flattened": (
        "cel.bind(a, [device.driver, device.driver, device.driver, device.driver], "
        + "".join(
            f"cel.bind({two}, [{one}, {one}, {one}, {one}], "
            for one, two in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
        )
        + "n.flatten(100).size() > 0"
        + ")" * 14
    ),
    "a text that doubles": (
        "cel.bind(a, device.driver, "
        + "".join(
            f"cel.bind({two}, {one}+{one}+{one}+{one}, "
            for one, two in zip("abcdefghijklmn", "bcdefghijklmno", strict=True)
        )
        + "o != ''"
        + ")" * 15
    ),
    "a text that is replaced": (
        f"cel.bind(t, {NUMBERS}.map(x, '0123456789').join(''),"
        "cel.bind(u, t.replace('', t), u.replace('', t) != ''))"
    ),
    "many digits": "lists.range(1000).all(x, '%.1000000f'.format([1.0]) != '')",
    "a pattern that is made": (
        r"lists.range(10000).all(x, matches('a', '\\pL{2}\\pL{300}' + string(x)) == false)"
    ),
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_no_expression_costs_more_than_it_may(expression: str) -> None:
    result, effort = judged(expression)

    assert str(result) == COST_LIMIT_EXCEEDED
    assert effort <= 4 * COST_LIMIT


def test_digits_that_go_does_not_write_are_none() -> None:
    """`18 s and 4 GB`: the precision of a number has a limit."""
    assert judged('"%.2000000000f".format([1.0]) == "%!(NOVERB)"').result is True


def test_kept_expressions_take_a_bounded_number_of_bytes() -> None:
    kept: KeptExpressions[int] = KeptExpressions(most_bytes=1_000_000)

    for number in range(1000):
        assert kept.get(f"{number:0100d}", partial(int, number)) == number

    assert kept.bytes <= 1_000_000
    assert len(kept) == 1_000_000 // (1024 + 200 * 100)
    assert kept.get(f"{999:0100d}", lambda: -1) == 999, "the last one is still there"
    assert kept.get(f"{0:0100d}", lambda: -1) == -1


def test_what_cannot_be_compiled_is_an_error_and_kept() -> None:
    assert isinstance(compile_expression("1 +"), CompileError)
    assert compile_expression("1 +") is compile_expression("1 +")
