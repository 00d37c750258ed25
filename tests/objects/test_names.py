"""Legal names, and the exact words in which others are refused."""

import pytest

from cases import cases
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


@cases(
    ("key", "reasons"),
    {
        "a plain name": ("app", []),
        "a name with a prefix": ("example.com/App_1.x", []),
        "63 characters": ("a" * 63, []),
        "empty": ("", ["name part must be non-empty", f"name part {NAME}"]),
        "an empty prefix": ("/a", ["prefix part must be non-empty"]),
        "an empty name": ("a/", ["name part must be non-empty", f"name part {NAME}"]),
        "an upper case prefix": ("Example.com/a", [f"prefix part {SUBDOMAIN}"]),
        "64 characters": ("a" * 64, ["name part must be no more than 63 characters"]),
        "a prefix of 254 characters": (
            "p" * 254 + "/a",
            ["prefix part must be no more than 253 characters"],
        ),
        "a dash in front": ("-a", [f"name part {NAME}"]),
        "a newline at the end": ("a\n", [f"name part {NAME}"]),
        "two slashes": ("a/b/c", [f"a qualified name {NAME} {WITH_PREFIX}"]),
    },
)
def test_label_keys(key: str, reasons: list[str]) -> None:
    assert label_key_reasons(key) == reasons
    assert is_qualified_name(key) is not bool(reasons)


@cases(
    ("value", "reasons"),
    {
        "empty": ("", []),
        "every kind of character": ("a_b-c.D", []),
        "a sign": ("-5", [VALUE]),
        "a letter that is not ASCII": ("ü", [VALUE]),
        "counted in bytes": ("ü" * 32, ["must be no more than 63 characters", VALUE]),
        "half a character": ("\ud800", [VALUE]),
    },
)
def test_label_values(value: str, reasons: list[str]) -> None:
    assert [*label_value_reasons(value)] == reasons
    assert is_label_value(value) is not bool(reasons)


@pytest.mark.parametrize(
    ("name", "legal"),
    [("web-0", True), ("a.b", True), ("", False), ("Web", False), ("a..b", False), ("a-", False),
     ("a" * 253, True), ("a" * 254, False), ("a\n", False)],
)  # fmt: skip
def test_object_names(name: str, legal: bool) -> None:
    assert is_subdomain(name) is legal


@cases(
    ("text", "expected"),
    {
        "plain text": ("abc", '"abc"'),
        "quotes and backslashes": ('a"b\\', r'"a\"b\\"'),
        "control characters": ("\n\t\x00\x7f", r'"\n\t\x00\x7f"'),
        "unprintable characters": ("ü\u200b\U000e0001", r'"ü\u200b\U000e0001"'),
    },
)
def test_quoting(text: str, expected: str) -> None:
    assert quoted(text) == expected
