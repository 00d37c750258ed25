"""The named formats of strings in expressions: `format.dns1123Label().validate(text)`.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library/format.go, Kubernetes v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from podium.cel.network import uri_problem
from podium.cel.regular_expressions import compile_pattern
from podium.cel.values import Opaque
from podium.objects.field_errors import (
    dns_1035_label_reasons,
    dns_label_reasons,
    dns_subdomain_reasons,
    key_faults,
    value_faults,
)

Reasons = Callable[[str], Sequence[str]]

_UUID: Final = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_BYTE: Final = (
    r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$"
)
_TIME: Final = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    """A format of strings."""

    cel_name: ClassVar = "kubernetes.NamedFormat"

    name: str
    #: Why a text is not of the format; empty if it is.
    reasons: Reasons = field(compare=False)
    #: The length of its pattern, or of one that would do; the cost of a validation grows with it.
    size: int = field(compare=False)


def _before_suffix(rule: Reasons) -> Reasons:
    """The rule for names to which random characters are added: a dash may be at their end."""

    def reasons(text: str) -> Sequence[str]:
        # As in the real program, the character before the dash is not looked at.
        return rule(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return reasons


def _unless(holds: Callable[[str], bool], reason: str) -> Reasons:
    return lambda text: [] if holds(text) else [reason]


def _matching(pattern: str) -> Callable[[str], bool]:
    return lambda text: compile_pattern(pattern).matches(text)


def _uri_reasons(text: str) -> list[str]:
    problem = uri_problem(text)
    return [problem] if problem else []


def _is_date(text: str) -> bool:
    if not _matching(_DATE)(text):
        return False
    year, month, day = map(int, text.split("-"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= month <= 12 and 1 <= day <= (29 if month == 2 and leap else _DAYS[month - 1])


def _is_moment(text: str) -> bool:
    date, *times = text.lower().split("t")
    if not times or not _is_date(date) or not _matching(_TIME)(times[0]):
        return False
    hours, minutes, seconds = times[0][:8].split(":")
    return hours <= "23" and minutes <= "59" and seconds <= "59"


#: By the name in an expression.
FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", dns_label_reasons, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", dns_subdomain_reasons, 60),
    "dns1035Label": NamedFormat("DNS1035Label", dns_1035_label_reasons, 30),
    "qualifiedName": NamedFormat("QualifiedName", key_faults, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _before_suffix(dns_label_reasons), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _before_suffix(dns_subdomain_reasons), 60
    ),
    "dns1035LabelPrefix": NamedFormat(
        "DNS1035LabelPrefix", _before_suffix(dns_1035_label_reasons), 30
    ),
    "labelValue": NamedFormat("LabelValue", value_faults, 40),
    "uri": NamedFormat("URI", _uri_reasons, 1103),
    "uuid": NamedFormat(
        "uuid", _unless(_matching(_UUID), "does not match the UUID format"), len(_UUID)
    ),
    "byte": NamedFormat("byte", _unless(_matching(_BYTE), "invalid base64"), 84),
    "date": NamedFormat("date", _unless(_is_date, "invalid date"), len(_TIME)),
    "datetime": NamedFormat("datetime", _unless(_is_moment, "invalid datetime"), len(_TIME)),
}
