"""YAML as kubectl reads it, with limits that end in a sentence."""

import re
from typing import Any

import pytest

from cases import cases
from podium.errors import InputError
from podium.objects.reading.yaml_text import documents


def only(text: str) -> Any:
    [document] = documents(text)
    return document.value


@cases(
    ("text", "value"),
    {
        "times stay text": ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        "days stay text": ("2020-01-01", "2020-01-01"),
        "no sexagesimal integers": ("12:30", "12:30"),
        "no sexagesimal fractions": ("12:30.5", "12:30.5"),
        "yes is true": ("yes", True),
        "off is false": ("Off", False),
        "quoted text is text": ("'yes'", "yes"),
        "tagged text is text": ("!!str 12", "12"),
        "octal": ("0644", 420),
        "hexadecimal": ("0x1f", 31),
        "binary": ("0b11", 3),
        "a prefix alone is text": ("0x", "0x"),
        "underscores": ("-1_000", -1000),
        "a fraction": ("1.5", 1.5),
        "infinity": ("-.inf", float("-inf")),
        "an exponent without a point is text": ("1e3", "1e3"),
        "a version is text": ("1.2.3", "1.2.3"),
        "an absurd number is text": ("9" * 2000, "9" * 2000),
        "nothing": ("a: ~", {"a": None}),
        "keys": ("{1: a, true: b, ~: c}", {"1": "a", "true": "b", "null": "c"}),
        "the last of equal keys counts": ("{a: 1, a: 2}", {"a": 2}),
        "aliases": ("[&x {a: 1}, *x]", [{"a": 1}, {"a": 1}]),
        "a merge gives way to keys": (
            "b: &b {x: 1, y: 1}\nc: {<<: *b, y: 2}",
            {"b": {"x": 1, "y": 1}, "c": {"x": 1, "y": 2}},
        ),
        "the first of several merges counts": (
            "[&a {x: 1}, &b {x: 2, y: 2}, {<<: [*a, *b]}]",
            [{"x": 1}, {"x": 2, "y": 2}, {"x": 1, "y": 2}],
        ),
    },
)
def test_values(text: str, value: object) -> None:
    assert only(text) == value


def test_a_stream_of_documents_without_the_empty_ones() -> None:
    text = "# head\n---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n"

    assert list(documents(text)) == [(3, {"a": 1}), (8, {"b": 2})]


@cases(
    ("text", "sentence"),
    {
        "truncated": ("a: [1,", "is not readable YAML at line"),
        "a colon": ("a: b: c", "is not readable YAML at line 1, column 5: mapping"),
        "tabs": ("a:\n\t- b", "is not readable YAML at line 2, column 1: found char"),
        "control": ("\x01", "is not readable YAML: unacceptable character #x0001"),
        "an unknown alias": ("a: *b", "line 1: the alias *b stands for nothing"),
        "a cycle": ("&a [*a]", "line 1: the alias *a stands for what it is a part of"),
        "a foreign tag": ("a: !x 1", "line 1: the tag !x is not known"),
        "binary": ("a: !!binary aaaa", "line 1: the tag tag:yaml.org,2002:bin"),
        "a list as a key": ("? [a]\n: b", "line 1: a key must be a plain value"),
        "an alias as a key": ("a: &x [1]\n*x : b", "line 2: a key must be a plain"),
        "a merge of no mapping": ("<<: 5", "line 1: << takes a mapping"),
        "deep lists": ("[" * 5000, "line 1: is nested deeper than 100 levels"),
        "deep block lists": ("- " * 5000 + "a", "line 1: is nested deeper than"),
    },
)
def test_what_cannot_be_read(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        list(documents(text))

    assert str(error.value).startswith(sentence)


FAULTS = {
    "no blank after a colon": ("---\napiVersion:v1\nkind: Pod\n", 2),
    "no blank, and a comment below": ("# x\nkind:Pod\n\n# y\nmetadata: {}\n", 2),
    "no blank further in": ("kind: Pod\nmetadata:\n  name:a\n  namespace: b\n", 3),
    "no colon": ("kind Pod\nmetadata:\n  name: a\n", 1),
    "no colon further in": ("spec:\n  containers:\n  - name a\n    image: b\n", 3),
    "no colon before a mapping": ("kind: Pod\nmetadata\n  name: a\n", 2),
    "no colon in the middle": ("kind: Pod\napiVersion v1\nmetadata:\n  name: a\n", 2),
    "two colons": ("a: b\nc: d: e\nf: g\n", 2),
    "indented too far": ("metadata:\n  name: a\n    labels: {}\n", 3),
    "not indented far enough": ("metadata:\n  name: a\n labels: {}\n", 3),
    "a tab": ("metadata:\n\tname: a\n", 2),
    "a quote that is never closed": ('a:\n  b: "c\n  d: e\nf: 1\n', 2),
    "a quote that the next one closes": ("a:\n  b: 'c\n  d: e\nf:\n  g: 'h'\n", 2),
    "a list that is never closed": ("a:\n  b: [c, d\n  e: f\ng: h\n", 2),
    "a mapping that is never closed": ("kind: Pod\nspec: {a: b\n", 2),
    "a mapping that the next line would go on": ("metadata: {name: a\nkind: Pod\n", 1),
    "no comma": ("a: {\n  b: c\n  d: e}\nf: g\n", 2),
    "a character that begins nothing": ("a: b\nc: @d\n", 2),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_line_of_a_fault_is_that_which_has_to_be_changed(name: str) -> None:
    text, line = FAULTS[name]

    with pytest.raises(InputError) as error:
        list(documents(text))

    assert re.search(r"at line (\d+)", str(error.value)).group(1) == str(line)  # type: ignore[union-attr]


def test_a_missing_blank_is_said_in_words() -> None:
    with pytest.raises(InputError) as error:
        list(documents("---\napiVersion:v1\nkind: Pod\n"))

    assert str(error.value) == (
        "is not readable YAML at line 2: there is no blank after the colon of apiVersion; "
        "write apiVersion: v1"
    )


def test_aliases_of_aliases_do_not_explode() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]

    with pytest.raises(InputError, match="aliases stand for more than 1000000 values"):
        list(documents("\n".join(levels)))
