"""Legal names, and the exact words in which others are refused."""

import pytest

from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    is_subdomain,
    label_key_reasons,
    label_value_reasons,
    quoted,
)

NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
WITH_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
SUBDOMAIN = (
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
    r"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    "  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("key", "reasons"),
    [
        pytest.param("app", [], id="a plain name"),
        pytest.param("example.com/App_1.x", [], id="a name with a prefix"),
        pytest.param("a" * 63, [], id="63 characters"),
        pytest.param("", ["name part must be non-empty", f"name part {NAME}"], id="empty"),
        pytest.param("/a", ["prefix part must be non-empty"], id="an empty prefix"),
        pytest.param(
            "a/", ["name part must be non-empty", f"name part {NAME}"], id="an empty name"
        ),
        pytest.param("Example.com/a", [f"prefix part {SUBDOMAIN}"], id="an upper case prefix"),
        pytest.param(
            "a" * 64, ["name part must be no more than 63 characters"], id="64 characters"
        ),
        pytest.param(
            "p" * 254 + "/a",
            ["prefix part must be no more than 253 characters"],
            id="a prefix of 254 characters",
        ),
        pytest.param("-a", [f"name part {NAME}"], id="a dash in front"),
        pytest.param("a\n", [f"name part {NAME}"], id="a newline at the end"),
        pytest.param(
            "a/b/c",
            [f"a qualified name {NAME} {WITH_PREFIX}"],
            id="two slashes",
        ),
    ],
)
def test_label_keys(key: str, reasons: list[str]) -> None:
    assert label_key_reasons(key) == reasons
    assert is_qualified_name(key) is not bool(reasons)


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("a_b-c.D", [], id="every kind of character"),
        pytest.param("-5", [VALUE], id="a sign"),
        pytest.param("ü", [VALUE], id="a letter that is not ASCII"),
        pytest.param(
            "ü" * 32, ["must be no more than 63 characters", VALUE], id="counted in bytes"
        ),
        pytest.param("\ud800", [VALUE], id="half a character"),
    ],
)
def test_label_values(value: str, reasons: list[str]) -> None:
    assert label_value_reasons(value) == reasons
    assert is_label_value(value) is not bool(reasons)


@pytest.mark.parametrize(
    ("name", "legal"),
    [("web-0", True), ("a.b", True), ("", False), ("Web", False), ("a..b", False), ("a-", False),
     ("a" * 253, True), ("a" * 254, False), ("a\n", False)],
)  # fmt: skip
def test_object_names(name: str, legal: bool) -> None:
    assert is_subdomain(name) is legal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("abc", '"abc"', id="plain text"),
        pytest.param('a"b\\', r'"a\"b\\"', id="quotes and backslashes"),
        pytest.param("\n\t\x00\x7f", r'"\n\t\x00\x7f"', id="control characters"),
        pytest.param("ü\u200b\U000e0001", r'"ü\u200b\U000e0001"', id="unprintable characters"),
    ],
)
def test_quoting(text: str, expected: str) -> None:
    assert quoted(text) == expected
