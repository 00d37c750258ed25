"""IP addresses, networks and URLs in expressions.

Upstream: staging/src/k8s.io/apiserver/pkg/cel/library (ip.go, cidr.go, urls.go), Kubernetes v1.36.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, quote

from podium.cel.errors import CelError
from podium.cel.values import Opaque

_URL: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.DOTALL,
)
_HOST: Final = re.compile(r"(?P<name>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?")
_PREFIX: Final = re.compile(r"0|[1-9][0-9]{0,2}")


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    """An IP address."""

    cel_name: ClassVar = "net.IP"

    address: IPv4Address | IPv6Address

    @classmethod
    def parse(cls, text: str) -> Ip:
        """An address without a zone that is not an IPv4 address in IPv6 form."""
        return cls(_address(text))

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """An address with the length of its network's prefix."""

    cel_name: ClassVar = "net.CIDR"

    address: IPv4Address | IPv6Address
    length: int

    @classmethod
    def parse(cls, text: str) -> Cidr:
        """An address, a slash and a length."""
        address, slash, length = text.partition("/")
        found, problem = None, ""
        if not slash:
            problem = "no '/'"
        elif not _PREFIX.fullmatch(length):
            problem = f'bad bits after slash: "{length}"'
        else:
            try:
                found = ip_interface(text)
            except ValueError:
                problem = _problem(address)
        if found is None:
            raise CelError(
                "network address parse error during conversion from string: "
                f'netip.ParsePrefix("{text}"): {problem}'
            )
        if isinstance(found.ip, IPv6Address) and found.ip.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
        return cls(found.ip, found.network.prefixlen)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"

    def masked(self) -> Cidr:
        """The network without the bits of a host."""
        return Cidr(ip_interface(str(self)).network.network_address, self.length)

    def contains(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether an address is in the network."""
        return address in ip_interface(str(self)).network


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """An absolute URL, or an absolute path."""

    cel_name: ClassVar = "kubernetes.URL"

    scheme: str
    host: str
    path: str
    query: str

    @classmethod
    def parse(cls, text: str) -> Url:
        """What a request could be sent to."""
        found = _URL.fullmatch(text)
        problem = ""
        if not text:
            problem = "empty url"
        elif re.search(r"[\x00-\x1f\x7f]", text):
            problem = "net/url: invalid control character in URL"
        elif found is None or not (found["scheme"] or text.startswith("/")):
            problem = "invalid URI for request"
        else:
            problem = _host_problem(found["authority"] or "")
        if problem:
            shown = text.replace("\\", "\\\\").replace('"', '\\"')
            what = f'URL parse error during conversion from string: parse "{shown}": {problem}'
            raise CelError(what)
        assert found is not None
        host = (found["authority"] or "").rpartition("@")[2]
        return cls((found["scheme"] or "").lower(), host, found["path"], found["query"] or "")

    @property
    def hostname(self) -> str:
        """The host without its port, an IPv6 address without brackets."""
        found = _HOST.fullmatch(self.host)
        return found["name"].strip("[]") if found else self.host

    @property
    def port(self) -> str:
        """The port as it is written; empty if there is none."""
        found = _HOST.fullmatch(self.host)
        return (found["port"] or "") if found else ""

    @property
    def escaped_path(self) -> str:
        """The path with every other character escaped."""
        return quote(self.path, safe="/%:@!$&'()*+,;=~-._[]")

    def values(self) -> dict[str, list[str]]:
        """The values of each name in the query."""
        made: dict[str, list[str]] = {}
        for name, value in parse_qsl(self.query, keep_blank_values=True):
            made.setdefault(name, []).append(value)
        return made


def _host_problem(authority: str) -> str:
    host = authority.rpartition("@")[2]
    found = _HOST.fullmatch(host)
    if found is None:
        return "missing ']' in host" if "[" in host else f'invalid port ":{host}" after host'
    port = found["port"]
    if port and not port.isdigit():
        return f'invalid port ":{port}" after host'
    return 'invalid character " " in host name' if " " in host else ""


def _problem(text: str) -> str:
    return f'ParseAddr("{text}"): unable to parse IP'


def _address(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise CelError(f'IP address "{text}" with zone value is not allowed')
    try:
        found = ip_address(text)
    except ValueError:
        raise CelError(
            f'IP Address "{text}" parse error during conversion from string: {_problem(text)}'
        ) from None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def is_valid(kind: type[Ip | Cidr | Url], text: str) -> bool:
    """Whether a text can be read as an address, a network or a URL."""
    try:
        kind.parse(text)
    except CelError:
        return False
    return True


def contains(network: Cidr, other: Any) -> bool:
    """Whether a network contains an address or a network, given as such or as text."""
    if isinstance(other, Ip):
        return network.contains(other.address)
    if other.address.version != network.address.version:
        return False
    return network.length <= other.length and network.contains(other.masked().address)
