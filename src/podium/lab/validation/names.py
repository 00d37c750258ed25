"""Rules for names, with the messages of kube-apiserver since v1.20.

The rules are those of `objects.names`, which has the messages of v1.13.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_ENVIRONMENT_VARIABLE = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_ENDS = "and must start and end with an alphanumeric character"

#: Returns the reasons why a name is invalid; none if it is valid.
NameRule = Callable[[str], tuple[str, ...]]


def _name_rule(sentence: str, pattern: str, most: int, *examples: str) -> NameRule:
    shown = " or ".join(f"'{each}', " for each in examples)
    broken = f"{sentence} (e.g. {shown}regex used for validation is '{pattern}')"
    compiled = re.compile(pattern)

    @lru_cache(maxsize=1 << 14)
    def reasons(name: str) -> tuple[str, ...]:
        found = []
        if len(name) > most:
            found.append(f"must be no more than {most} characters")
        if not compiled.fullmatch(name):
            found.append(broken)
        return tuple(found)

    return reasons


dns_subdomain_reasons = _name_rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_ENDS}",
    _DNS_SUBDOMAIN,
    253,
    "example.com",
)
dns_label_reasons = _name_rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS}",
    _DNS_LABEL,
    63,
    "my-name",
    "123-abc",
)
dns_1035_label_reasons = _name_rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _DNS_1035_LABEL,
    63,
    "my-name",
    "abc-123",
)
environment_variable_reasons = _name_rule(
    "a valid environment variable name must consist of alphabetic characters, digits, "
    "'_', '-', or '.', and must not start with a digit",
    _ENVIRONMENT_VARIABLE,
    1 << 20,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
config_key_reasons = _name_rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    253,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def path_segment_reasons(name: str) -> tuple[str, ...]:
    """The reasons why a name cannot be part of a URL path; roles have no other rule."""
    found = [f"may not be '{name}'"] if name in {".", ".."} else []
    found += [f"may not contain '{each}'" for each in "/%" if each in name]
    return tuple(found)


def port_name_reasons(name: str) -> list[str]:
    """The reasons why a name cannot be that of a port."""
    reasons = []
    if len(name) > 15:
        reasons.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        reasons.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z0-9]", name):
        reasons.append("must contain at least one letter or number (a-z, 0-9)")
    if "--" in name:
        reasons.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        reasons.append("must not begin or end with a hyphen")
    return reasons
