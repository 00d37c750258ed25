"""Which names objects may have, in the words of kube-apiserver since 1.20.

The rules are those of `objects.names`; the sentences changed between the generations.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_ENV = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_ENDS = "and must start and end with an alphanumeric character"

#: Reasons why a name is refused; none if it is fine.
Check = Callable[[str], tuple[str, ...]]


def _rule(sentence: str, pattern: str, most: int, *examples: str) -> Check:
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


subdomain_reasons = _rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_ENDS}",
    _SUBDOMAIN,
    253,
    "example.com",
)
label_reasons = _rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS}",
    _LABEL,
    63,
    "my-name",
    "123-abc",
)
service_reasons = _rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    _OLD_LABEL,
    63,
    "my-name",
    "abc-123",
)
variable_reasons = _rule(
    "a valid environment variable name must consist of alphabetic characters, digits, "
    "'_', '-', or '.', and must not start with a digit",
    _ENV,
    1 << 20,
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
config_key_reasons = _rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    253,
    "key.name",
    "KEY_NAME",
    "key-name",
)


def segment_reasons(name: str) -> tuple[str, ...]:
    """Why this cannot stand in a path: all that is asked of the names of roles."""
    found = [f"may not be '{name}'"] if name in {".", ".."} else []
    found += [f"may not contain '{each}'" for each in "/%" if each in name]
    return tuple(found)


def port_name_reasons(name: str) -> list[str]:
    """Why this is no name for a port."""
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
