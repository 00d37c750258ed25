"""Which names, label keys and label values are legal, and what kind a resource name is.

The reasons are worded as in kube-scheduler, doubled blanks included: recorded errors contain them.

Upstream: apimachinery/pkg/util/validation, Kubernetes v1.13.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_NAME_RE = re.compile(_NAME)
_VALUE_RE = re.compile(_VALUE)
_SUBDOMAIN_RE = re.compile(SUBDOMAIN)
_NAME_LENGTH = 63
_SUBDOMAIN_LENGTH = 253
#: How many random characters the API server adds to `metadata.generateName`.
RANDOM_LENGTH = 5

_CHARACTERS = (
    "consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)


def _breaks(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


_BAD_NAME = _breaks(f"must {_CHARACTERS}", _NAME, "MyName", "my.name", "123-abc")
_BAD_VALUE = _breaks(
    f"a valid label must be an empty string or {_CHARACTERS}",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_WITH_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_BAD_SUBDOMAIN = _breaks(_SUBDOMAIN_RULE, SUBDOMAIN, "example.com")


def size_in_bytes(text: str) -> int:
    """Length in bytes, of broken text too."""
    return len(text.encode(errors="surrogatepass"))


def subdomain_reasons(name: str) -> list[str]:
    """Why *name* is not a DNS-1123 subdomain; empty if it is one."""
    reasons = []
    if size_in_bytes(name) > _SUBDOMAIN_LENGTH:
        reasons.append(f"must be no more than {_SUBDOMAIN_LENGTH} characters")
    if not _SUBDOMAIN_RE.fullmatch(name):
        reasons.append(_BAD_SUBDOMAIN)
    return reasons


def label_key_reasons(key: str) -> list[str]:
    """Why *key* is not a qualified name (`name` or `prefix/name`); empty if it is one."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [f"a qualified name {_BAD_NAME} {_WITH_PREFIX}"]
    reasons = []
    if slash and not prefix:
        reasons.append("prefix part must be non-empty")
    elif slash:
        reasons += [f"prefix part {reason}" for reason in subdomain_reasons(prefix)]
    if not name:
        reasons.append("name part must be non-empty")
    elif size_in_bytes(name) > _NAME_LENGTH:
        reasons.append(f"name part must be no more than {_NAME_LENGTH} characters")
    if not _NAME_RE.fullmatch(name):
        reasons.append(f"name part {_BAD_NAME}")
    return reasons


def label_value_reasons(value: str) -> list[str]:
    """Why *value* cannot be the value of a label; empty if it can."""
    reasons = []
    if size_in_bytes(value) > _NAME_LENGTH:
        reasons.append(f"must be no more than {_NAME_LENGTH} characters")
    if not _VALUE_RE.fullmatch(value):
        reasons.append(_BAD_VALUE)
    return reasons


def is_subdomain(text: str) -> bool:
    """Whether *text* may be the name of an object."""
    return len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN_RE.fullmatch(text) is not None


@lru_cache(maxsize=1 << 14)
def is_qualified_name(text: str) -> bool:
    """Whether *text* may be a label key or a resource name."""
    return not label_key_reasons(text)


@lru_cache(maxsize=1 << 14)
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
