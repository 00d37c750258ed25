"""YAML that every reader takes for the same, and JSON."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.reading.yaml_text import documents
from podium.render.documents import to_json_line, to_json_text, to_yaml

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "text",
    [
        "1e3",
        "0x10",
        "0o17",
        "1_000",
        "12:30:45",
        "yes",
        "No",
        "on",
        "y",
        "null",
        "~",
        "",
        "1.0",
        "-",
    ],
)
def test_text_that_looks_like_something_else_is_quoted(text: str) -> None:
    written = to_yaml({"a": text})

    assert written[3] in "\"'"
    assert yaml.safe_load(written) == {"a": text}


@pytest.mark.parametrize("text", ["web-0", "nginx:1.25", "kubernetes.io/role", "500m", "1Gi"])
def test_ordinary_text_is_not(text: str) -> None:
    assert to_yaml({"a": text}) == f"a: {text}\n"


def test_keys_are_quoted_in_the_same_way() -> None:
    assert to_yaml({"on": 1, "1e3": 2}) == '"on": 1\n"1e3": 2\n'


def test_several_lines_stay_lines() -> None:
    assert to_yaml({"a": "one\ntwo\n"}) == "a: |\n  one\n  two\n"


def test_what_occurs_twice_is_written_twice() -> None:
    shared = {"x": [1]}

    assert "&" not in to_yaml([shared, shared])


def test_long_text_is_not_folded() -> None:
    assert to_yaml({"a": "word " * 200}).count("\n") == 1


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    written = to_yaml({"value": value})

    assert yaml.safe_load(written) == {"value": value}


@given(
    st.dictionaries(
        st.text("abc019.:-+_eExo", max_size=6), st.text("abc019.:-+_eExoyn", max_size=6)
    )
)
def test_our_own_reader_reads_it_as_well(labels: dict[str, str]) -> None:
    [document] = documents(to_yaml({"labels": labels}))

    assert document.value == {"labels": labels}


def test_json_is_indented_or_one_sorted_line() -> None:
    assert to_json_text({"b": [1], "a": "é"}) == '{\n  "b": [\n    1\n  ],\n  "a": "é"\n}\n'
    assert to_json_line({"b": [1], "a": 2}) == '{"a":2,"b":[1]}\n'
