"""YAML as kubectl reads it, with limits that end in a sentence."""

from typing import Any

import pytest

from podium.errors import InputError
from podium.objects.reading.yaml_text import documents


def only(text: str) -> Any:
    [document] = documents(text)
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z", id="times stay text"),
        pytest.param("2020-01-01", "2020-01-01", id="days stay text"),
        pytest.param("12:30", "12:30", id="no sexagesimal integers"),
        pytest.param("12:30.5", "12:30.5", id="no sexagesimal fractions"),
        pytest.param("yes", True, id="yes is true"),
        pytest.param("Off", False, id="off is false"),
        pytest.param("'yes'", "yes", id="quoted text is text"),
        pytest.param("!!str 12", "12", id="tagged text is text"),
        pytest.param("0644", 420, id="octal"),
        pytest.param("0x1f", 31, id="hexadecimal"),
        pytest.param("0b11", 3, id="binary"),
        pytest.param("0x", "0x", id="a prefix alone is text"),
        pytest.param("-1_000", -1000, id="underscores"),
        pytest.param("1.5", 1.5, id="a fraction"),
        pytest.param("-.inf", float("-inf"), id="infinity"),
        pytest.param("1e3", "1e3", id="an exponent without a point is text"),
        pytest.param("1.2.3", "1.2.3", id="a version is text"),
        pytest.param("9" * 2000, "9" * 2000, id="an absurd number is text"),
        pytest.param("a: ~", {"a": None}, id="nothing"),
        pytest.param("{1: a, true: b, ~: c}", {"1": "a", "true": "b", "null": "c"}, id="keys"),
        pytest.param("{a: 1, a: 2}", {"a": 2}, id="the last of equal keys counts"),
        pytest.param("[&x {a: 1}, *x]", [{"a": 1}, {"a": 1}], id="aliases"),
        pytest.param(
            "b: &b {x: 1, y: 1}\nc: {<<: *b, y: 2}",
            {"b": {"x": 1, "y": 1}, "c": {"x": 1, "y": 2}},
            id="a merge gives way to keys",
        ),
        pytest.param(
            "[&a {x: 1}, &b {x: 2, y: 2}, {<<: [*a, *b]}]",
            [{"x": 1}, {"x": 2, "y": 2}, {"x": 1, "y": 2}],
            id="the first of several merges counts",
        ),
    ],
)
def test_values(text: str, value: object) -> None:
    assert only(text) == value


def test_a_stream_of_documents_without_the_empty_ones() -> None:
    text = "# head\n---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n"

    assert list(documents(text)) == [(3, {"a": 1}), (8, {"b": 2})]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("a: [1,", "is not readable YAML at line", id="truncated"),
        pytest.param("a: b: c", "is not readable YAML at line 1, column 5: mapping", id="a colon"),
        pytest.param(
            "a:\n\t- b", "is not readable YAML at line 2, column 1: found char", id="tabs"
        ),
        pytest.param("\x01", "is not readable YAML: unacceptable character #x0001", id="control"),
        pytest.param("a: *b", "line 1: the alias *b stands for nothing", id="an unknown alias"),
        pytest.param("&a [*a]", "line 1: the alias *a stands for nothing", id="a cycle"),
        pytest.param("a: !x 1", "line 1: the tag !x is not known", id="a foreign tag"),
        pytest.param("a: !!binary aaaa", "line 1: the tag tag:yaml.org,2002:bin", id="binary"),
        pytest.param("? [a]\n: b", "line 3: a key must be a plain value", id="a list as a key"),
        pytest.param("<<: 5", "line 2: << takes a mapping", id="a merge of no mapping"),
        pytest.param("[" * 5000, "line 1: is nested deeper than 100 levels", id="deep lists"),
        pytest.param("- " * 5000 + "a", "line 1: is nested deeper than", id="deep block lists"),
    ],
)
def test_what_cannot_be_read(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        list(documents(text))

    assert str(error.value).startswith(sentence)


def test_aliases_of_aliases_do_not_explode() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]

    with pytest.raises(InputError, match="aliases stand for more than 1000000 values"):
        list(documents("\n".join(levels)))
