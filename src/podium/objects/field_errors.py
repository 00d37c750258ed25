"""Errors of fields in the words of the API server, and the paths that they name.

Upstream: apimachinery/pkg/util/validation/field, Kubernetes v1.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from podium.errors import ConfigError
from podium.objects.names import (
    DNS_LABEL,
    SUBDOMAIN,
    is_subdomain,
    label_key_reasons,
    label_value_reasons,
    name_rule,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


class Fault(NamedTuple):
    """Something that an API server would refuse: the field, what is wrong, what would work."""

    path: str
    what: str
    hint: str


_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def joined(path: str, key: str) -> str:
    """*path* and a key below it: `requests.cpu`, `requests["nvidia.com/gpu"]`."""
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def pointer(path: str, key: str) -> str:
    """*path* and a key below it as a JSON pointer (RFC 6901): `/metadata/labels/a~1b`."""
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def pointer_keys(text: str) -> list[str]:
    """The keys of a JSON pointer."""
    return [key.replace("~1", "/").replace("~0", "~") for key in text.split("/")[1:]]


def child(path: str, name: str) -> str:
    """The path of a field below *path*; without one, the field itself."""
    return f"{path}.{name}" if path else name


def invalid(path: str, shown: str, detail: str) -> str:
    """A value that cannot be used; *shown* is how it is printed."""
    return f"{path}: Invalid value: {shown}: {detail}"


def required(path: str, detail: str = "") -> str:
    """A value that is missing."""
    return f"{path}: Required value: {detail}" if detail else f"{path}: Required value"


def duplicate(path: str, shown: str) -> str:
    """A value that must be unique and is not."""
    return f"{path}: Duplicate value: {shown}"


def forbidden(path: str, detail: str) -> str:
    """A value that must not be there."""
    return f"{path}: Forbidden: {detail}"


def unsupported(path: str, shown: str, supported: Iterable[str]) -> str:
    """A value that is none of the supported ones."""
    known = ", ".join(map(quoted, supported))
    return f"{path}: Unsupported value: {shown}: supported values: {known}"


def together(texts: Iterable[str]) -> str:
    """Several errors as one text: equal ones once, several as a list; empty without any."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


def refuse(texts: Iterable[str], hint: str = "") -> None:
    """Raise a `ConfigError` with all errors, if there are any."""
    found = list(texts)
    if found:
        raise ConfigError(together(found), hint=hint)


#: Phrases of v1.13 about names, and those of v1.36.
_WORDS = {
    "a qualified name must": "a valid label key must",
    "a DNS-1123 subdomain must": "a lowercase RFC 1123 subdomain must",
    "must be no more than 63 characters": "must be no more than 63 bytes",
    "must be no more than 253 characters": "must be no more than 253 bytes",
}


def _reworded(reason: str) -> str:
    for old, new in _WORDS.items():
        reason = reason.replace(old, new)
    return reason


def key_faults(key: str) -> list[str]:
    """Why *key* is not a label key; empty if it is one."""
    return list(map(_reworded, label_key_reasons(key)))


def value_faults(value: str) -> list[str]:
    """Why *value* is not a label value; empty if it is one."""
    return list(map(_reworded, label_value_reasons(value)))


#: Returns the reasons why a name is invalid; none if it is valid.
NameRule = Callable[[str], tuple[str, ...]]
_ENDS = "and must start and end with an alphanumeric character"


dns_subdomain_reasons = name_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_ENDS}",
    SUBDOMAIN,
    253,
    "example.com",
)
_dns_label_reasons = name_rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS}",
    DNS_LABEL,
    63,
    "my-name",
    "123-abc",
)
dns_1035_label_reasons = name_rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    63,
    "my-name",
    "abc-123",
)


def dns_label_reasons(name: str) -> tuple[str, ...]:
    """Why *name* is not a DNS-1123 label; of a subdomain only the dots are wrong."""
    reasons = _dns_label_reasons(name)
    if reasons and is_subdomain(name) and "." in name:
        return (*reasons[:-1], "must not contain dots")
    return reasons
