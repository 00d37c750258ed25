"""Which names, label keys and label values are legal, and what kind a resource name is.

The reasons are worded as in kube-scheduler, doubled blanks included: recorded errors contain them.

Upstream: apimachinery/pkg/util/validation, Kubernetes v1.13.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_NAME_RE = re.compile(_NAME)
_SUBDOMAIN_RE = re.compile(SUBDOMAIN)
_NAME_LENGTH = 63
_SUBDOMAIN_LENGTH = 253
#: How many random characters the API server adds to `metadata.generateName`.
RANDOM_LENGTH = 5

_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def size_in_bytes(text: str) -> int:
    """Length in bytes, of broken text too."""
    return len(text.encode(errors="surrogatepass"))


def _described(sentence: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{each}', " for each in examples)
    return f"{sentence} (e.g. {shown}regex used for validation is '{pattern}')"


def name_rule(
    sentence: str, pattern: str, most: int, *examples: str
) -> Callable[[str], tuple[str, ...]]:
    """The reasons why a name breaks a rule; none if it does not.

    The rule has a sentence, a pattern, the most bytes, and examples.
    """
    broken = _described(sentence, pattern, *examples)
    compiled = re.compile(pattern)

    @lru_cache(maxsize=1 << 14)
    def reasons(name: str) -> tuple[str, ...]:
        found = []
        if size_in_bytes(name) > most:
            found.append(f"must be no more than {most} characters")
        if not compiled.fullmatch(name):
            found.append(broken)
        return tuple(found)

    return reasons


_BAD_NAME = _described(f"must {_CHARACTERS}", _NAME, "MyName", "my.name", "123-abc")
_WITH_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_subdomain_reasons = name_rule(
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    SUBDOMAIN,
    _SUBDOMAIN_LENGTH,
    "example.com",
)
#: Why a text cannot be the value of a label; empty if it can.
label_value_reasons = name_rule(
    f"a valid label must be an empty string or {_CHARACTERS}",
    _VALUE,
    _NAME_LENGTH,
    "MyValue",
    "my_value",
    "12345",
)


def label_key_reasons(key: str) -> list[str]:
    """Why *key* is not a qualified name (`name` or `prefix/name`); empty if it is one."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [f"a qualified name {_BAD_NAME} {_WITH_PREFIX}"]
    reasons = []
    if slash and not prefix:
        reasons.append("prefix part must be non-empty")
    elif slash:
        reasons += [f"prefix part {reason}" for reason in _subdomain_reasons(prefix)]
    if not name:
        reasons.append("name part must be non-empty")
    elif size_in_bytes(name) > _NAME_LENGTH:
        reasons.append(f"name part must be no more than {_NAME_LENGTH} characters")
    if not _NAME_RE.fullmatch(name):
        reasons.append(f"name part {_BAD_NAME}")
    return reasons


def is_subdomain(text: str) -> bool:
    """Whether *text* may be the name of an object."""
    return len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN_RE.fullmatch(text) is not None


@lru_cache(maxsize=1 << 14)
def is_qualified_name(text: str) -> bool:
    """Whether *text* may be a label key or a resource name."""
    return not label_key_reasons(text)


def is_label_value(text: str) -> bool:
    """Whether *text* may be the value of a label."""
    return not label_value_reasons(text)


_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f",
    "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip


def quoted(text: str) -> str:
    """*text* in double quotes, escaped as Go's `%q` does."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def is_prefixed_native(name: str) -> bool:
    """Whether it contains `kubernetes.io/`, be it after other letters (`notkubernetes.io/x`)."""
    return "kubernetes.io/" in name


def is_native(name: str) -> bool:
    """Whether it is defined by Kubernetes: without a prefix, or with the native one."""
    return "/" not in name or is_prefixed_native(name)


def is_hugepages(name: str) -> bool:
    """Whether it counts pages of one size."""
    return name.startswith("hugepages-")


def is_attachable(name: str) -> bool:
    """Whether it counts volumes of one type that a node can attach."""
    return name.startswith("attachable-volumes-")


@lru_cache(maxsize=1 << 12)
def is_extended(name: str) -> bool:
    """Whether it is an extended resource: prefixed, not native, and a legal quota name."""
    if is_native(name) or name.startswith("requests."):
        return False
    return is_qualified_name(f"requests.{name}")


@lru_cache(maxsize=1 << 12)
def is_scalar(name: str) -> bool:
    """Whether the scheduler counts it besides cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended(name) or is_hugepages(name) or is_prefixed_native(name) or is_attachable(name)
    )
