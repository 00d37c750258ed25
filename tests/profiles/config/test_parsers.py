"""Texts on their way to values: YAML and JSON, as Go reads and writes them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.profiles.config import json_parser, yaml_parser
from podium.profiles.config.json_values import compact, from_python, plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a: 1", '{"a":1}', id="a number"),
        pytest.param("b: 1\na: 2", '{"a":2,"b":1}', id="keys come sorted"),
        pytest.param("a: 1\na: 2", '{"a":2}', id="the last one counts"),
        pytest.param("[y, No, ON, 'yes', ~, null, '']", '[true,false,true,"yes",null,null,""]'),
        pytest.param("[0x1F, 0o17, 017, 08, 0b11, -0b11, +5, 1_000]", "[31,15,15,8,3,-3,5,1000]"),
        pytest.param("[1.5, 1e3, .5, 1., -1.25e-7, 1e21]", "[1.5,1000,0.5,1,-1.25e-7,1e+21]"),
        pytest.param(
            "[18446744073709551615, 18446744073709551616]",
            "[18446744073709551615,18446744073709552000]",
            id="beyond 64 bits it is a float",
        ),
        pytest.param(
            "[12:30, 2026-01-01, 1.2.3, 0x, -]", '["12:30","2026-01-01","1.2.3","0x","-"]'
        ),
        pytest.param("{1: a, true: b, 1.5: c}", '{"1":"a","1.5":"c","true":"b"}', id="other keys"),
        pytest.param("a: &x {b: 1}\nc: *x", '{"a":{"b":1},"c":{"b":1}}', id="an alias"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x, d: 2}", '{"a":{"b":1},"c":{"b":1,"d":2}}'),
        pytest.param("{<<: [{a: 1}, {a: 2, b: 3}]}", '{"a":1,"b":3}', id="merged from several"),
        pytest.param("[!!str 5, !!float 5, !!int '5', !own 5]", '["5",5,5,"5"]', id="tags"),
        pytest.param("!!binary aGk=", '"hi"', id="binary"),
        pytest.param("", "null", id="nothing"),
        pytest.param("# nothing\n--- \n---\na: 1", "null", id="the first document is empty"),
        pytest.param("a: 1\n--- *broken", '{"a":1}', id="the rest is not even read"),
    ],
)
def test_yaml(text: str, expected: str) -> None:
    tree, _ = yaml_parser.parse(text)

    assert compact(tree) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [b", "yaml: line 1: did not find expected ',' or ']'"),
        ("x:\n\t- a", "yaml: line 2: found character that cannot start any token"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("a: {<<: 5}", "yaml: map merge requires map or sequence of maps as the value"),
        ("!!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("!!binary '?'", "yaml: !!binary value contains invalid base64 data"),
        ("[" * 200, "yaml: exceeded max depth"),
        ("\x01", "yaml: control characters are not allowed"),
        ("[.nan]", "json: unsupported value: NaN"),
        ("-.inf", "json: unsupported value: -Inf"),
    ],
)
def test_yaml_that_cannot_be_read(text: str, expected: str) -> None:
    with pytest.raises(yaml_parser.YamlError) as caught:
        yaml_parser.parse(text)

    assert str(caught.value) == expected


def test_aliases_of_aliases_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]

    with pytest.raises(yaml_parser.YamlError, match="document contains excessive aliasing"):
        yaml_parser.parse("\n".join(lines))


def test_repeated_keys_are_told_with_the_line_of_the_value() -> None:
    _, repeated = yaml_parser.parse("a: 1\nb:\n  c: 1\n  c:\n    d: 1\na: 2\n5: x\n5: y\n")

    assert list(map(str, repeated)) == [
        'line 5: key "c" already set in map',
        'line 6: key "a" already set in map',
        "line 8: key 5 already set in map",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1} 2', "invalid character '2' after top-level value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a": 1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[01]", "invalid character '1' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{'a': 1}", r"invalid character '\'' looking for beginning of object key string"),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string"),
        ("tru", "unexpected end of JSON input"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("nil", "invalid character 'i' in literal null (expecting 'u')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ('"\n"', r"invalid character '\n' in string literal"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u12x4"', r"invalid character 'x' in \u hexadecimal character escape"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("[" * 200, "exceeded max depth"),
        ("", "unexpected end of JSON input"),
    ],
)
def test_json_that_cannot_be_read(text: str, expected: str) -> None:
    with pytest.raises(json_parser.JsonSyntaxError) as caught:
        json_parser.parse(text)

    assert str(caught.value) == expected


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers(-(2**62), 2**62) | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=12,
    )


@given(values(st.text(max_size=8)))
def test_json_comes_back_as_it_was(value: Any) -> None:
    assert plain(json_parser.parse(compact(from_python(value)))) == value


def quoting(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """The writer leaves `08` without quotes, which to other readers is a number."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if text else '"')


class Quoting(yaml.SafeDumper):
    """Writes every text in quotes."""


Quoting.add_representer(str, quoting)


@given(values(st.text(alphabet="abc :-#'\"{}[]0123456789.&*!|\n", max_size=8)))
def test_yaml_is_read_as_it_was_written(value: Any) -> None:
    tree, _ = yaml_parser.parse(yaml.dump(value, Dumper=Quoting, allow_unicode=True))

    assert plain(tree) == value
