"""Random expressions: each has an answer or an error, and stays within its limits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cel.environment import COST_LIMIT, compile_expression, variables_of
from podium.cel.errors import CelError, CompileError
from podium.objects.kinds.devices import Device, DeviceAttribute, DeviceCapacity

DRIVER = "gpu.example.com"
DEVICE = Device(
    "gpu-0",
    {
        "model": DeviceAttribute(string_value="a100 é\n"),
        "index": DeviceAttribute(int_value=-(2**63)),
        "healthy": DeviceAttribute(bool_value=True),
        "version": DeviceAttribute(version_value="18446744073709551615.0.1-rc.1+b"),
    },
    {
        "memory": DeviceCapacity("40Gi"),
        "huge": DeviceCapacity("1e999"),
        "tiny": DeviceCapacity("1n"),
    },
)
VARIABLES = variables_of(DRIVER, DEVICE)

LONG = "9" * 4301
TEXTS = st.sampled_from(
    ["", "a", "1", "-1", "LONG", "LONG.0.0", "1.2.3-LONG", "LONGh", "+LONG:00", "99:99",
     "1e2147483647", "1e-2147483648", "1.5Gi", "[", "a**", r"\\pL{40}", "^(a+)+$", "%s", "%d", "%b",
     "%.2000000000f", "%.5e", "%", "%.", "%%", "2026-02-03T04:05:06Z", "0001-01-01T00:00:00Z",
     "9999-12-31T23:59:59Z", "-23:59", "1h30m", "10.0.0.0/8", "::1", "::ffff:1.2.3.4/96",
     "https://[::1]:99/?a=b", "http://a:b@c", "nan", "0x1p-2", "1_000", "é", "\\n", "true"]
)  # fmt: skip
NUMBERS = st.sampled_from(
    ["0", "1", "-1", "63", "9223372036854775807", "-9223372036854775808", "1u",
     "18446744073709551615u", "0.0", "-1.5", "1e308", "1e-320"]
)  # fmt: skip
LEAVES = st.one_of(
    TEXTS.map(lambda text: f'"{text}"'),
    NUMBERS,
    st.sampled_from(
        ["true", "false", "null", "[]", "{}", 'b"\\xff"', "device.driver", "device.attributes",
         "device.capacity", f'device.attributes["{DRIVER}"].model', "x", "optional.none()",
         f'device.attributes["{DRIVER}"].index', f'device.attributes["{DRIVER}"].healthy',
         f'device.attributes["{DRIVER}"].version', f'device.capacity["{DRIVER}"].memory',
         f'device.capacity["{DRIVER}"].huge', f'device.capacity["{DRIVER}"].tiny',
         f'device.attributes["{DRIVER}"].?absent', "int", "string", "list", "type", "null_type",
         "google.protobuf.Duration"]
    ),
)  # fmt: skip
UNARY = [
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "duration",
    "timestamp",
    "type",
    "dyn",
    "size",
    "quantity",
    "isQuantity",
    "semver",
    "isSemver",
    "sign",
    "ip",
    "isIP",
    "ip.isCanonical",
    "cidr",
    "isCIDR",
    "url",
    "isURL",
    "strings.quote",
    "optional.of",
    "optional.ofNonZeroValue",
    "lists.range",
]
METHODS = [
    "size",
    "isSorted",
    "sum",
    "min",
    "max",
    "reverse",
    "distinct",
    "flatten",
    "sort",
    "first",
    "last",
    "lowerAscii",
    "upperAscii",
    "trim",
    "join",
    "major",
    "minor",
    "patch",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "family",
    "isLoopback",
    "isGlobalUnicast",
    "masked",
    "prefixLength",
    "getScheme",
    "getHostname",
    "getPort",
    "getQuery",
    "getEscapedPath",
    "getFullYear",
    "getDayOfYear",
    "getHours",
    "getMilliseconds",
    "hasValue",
    "value",
    "isUnspecified",
    "isLinkLocalMulticast",
]
BINARY_METHODS = [
    "matches",
    "find",
    "findAll",
    "contains",
    "startsWith",
    "endsWith",
    "indexOf",
    "lastIndexOf",
    "split",
    "format",
    "charAt",
    "substring",
    "compareTo",
    "isGreaterThan",
    "isLessThan",
    "add",
    "sub",
    "containsIP",
    "containsCIDR",
    "join",
    "orValue",
    "or",
    "getHours",
    "getDate",
    "flatten",
]
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"]
MACROS = ["all", "exists", "exists_one", "map", "filter"]
SET_FUNCTIONS = ["sets.contains", "sets.equivalent", "sets.intersects"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of expressions; most operands are of any type, so that they compile."""
    some = st.one_of(inner, inner.map(lambda each: f"dyn({each})"))
    of_two = st.tuples(some, some)
    return st.one_of(
        st.builds("{0}({1})".format, st.sampled_from(UNARY), some),
        st.builds("{1}.{0}()".format, st.sampled_from(METHODS), some),
        st.builds("{1}.{0}({2})".format, st.sampled_from(BINARY_METHODS), some, some),
        st.builds(
            "{1}.{0}({2}, {3})".format,
            st.sampled_from(["replace", "substring", "slice", "findAll", "split", "indexOf"]),
            some, some, some,
        ),
        st.builds("({1} {0} {2})".format, st.sampled_from(OPERATORS), some, some),
        st.builds("{1}.{0}(x, {2})".format, st.sampled_from(MACROS), some, some),
        st.builds("{1}.{0}(x, y, {2})".format, st.sampled_from(["all", "exists"]), some, some),
        st.builds("{0}({1}, {2})".format, st.sampled_from(SET_FUNCTIONS), some, some),
        st.builds("cel.bind(x, {0}, {1})".format, some, some),
        st.builds("({0} ? {1} : {2})".format, some, some, some),
        st.builds("{0}[{1}]".format, some, some),
        st.builds("{0}[?{1}]".format, some, some),
        st.builds("-{0}".format, some),
        st.builds("!{0}".format, some),
        of_two.map(lambda pair: f"[dyn({pair[0]}), dyn({pair[1]})]"),
        of_two.map(lambda pair: f"{{dyn({pair[0]}): dyn({pair[1]})}}"),
        st.builds("matches({0}, {1})".format, some, some),
    )  # fmt: skip


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=12).map(
    lambda text: text.replace("LONG", LONG)
)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(EXPRESSIONS)
def test_every_selector_has_an_answer_or_an_error(text: str) -> None:
    compiled = compile_expression(f"dyn({text}) == true")

    if not isinstance(compiled, CompileError):
        result, effort = compiled.judge(VARIABLES)
        assert isinstance(result, bool | CelError)
        assert str(result)
        assert effort <= 4 * COST_LIMIT


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'semver("{LONG}.0.0") == semver("1.0.0")', "value out of range"),
        (f'semver("1.0.0-{LONG}") == semver("1.0.0")', "value out of range"),
        (f'int("{LONG}" + "") == 1', "type conversion error from 'string' to 'int'"),
        (f'uint("{LONG}" + "") == 1u', "type conversion error from 'string' to 'uint'"),
        ('double("1e999" + "") > 0.0', "type conversion error from 'string' to 'double'"),
        ('double("1_000" + "") > 0.0', "type conversion error from 'string' to 'double'"),
        ('quantity("1e2147483647").isGreaterThan(quantity("1"))', True),
        ('quantity("1e999").asApproximateFloat() > 1.0', True),
        ('timestamp("2026-01-01T00:00:00Z").getHours("99:99") == 4', True),
        ('timestamp("9999-12-31T23:59:59Z").getDate("+01:00") == 1', "timestamp overflow"),
        ('"%b".format([true]) == "1"', True),
        ('"%b %b".format([5, false]) == "101 0"', True),
        (
            '"%d".format([true]) == "1"',
            "decimal clause can only be used on integers, was given bool",
        ),
        ('"%.2f".format([1234.5]) == "1,234.50"', True),
        ('"%e".format([2.71828]) == "2.718280\\u202f\\u00d7\\u202f10\\u2070\\u2070"', True),
        ('"%s".format([["a", "b"]]) == "[\\"a\\", \\"b\\"]"', True),
        ('"%s".format([{"b": 1, "a": 2}]) == "{\\"a\\":2, \\"b\\":1}"', True),
    ],
)
def test_what_was_found(expression: str, expected: bool | str) -> None:
    compiled = compile_expression(expression)
    assert not isinstance(compiled, CompileError), compiled

    result = compiled.judge(VARIABLES).result

    assert result is expected if isinstance(expected, bool) else str(expected) in str(result)
