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
from podium.objects.names import quoted

_URL: Final = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?",
    re.DOTALL,
)
_HOST: Final = re.compile(r"(?P<name>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?")
_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile(r"(:[0-9]*)?")
_WEB: Final = frozenset({"http", "https"})
_NOT_IN_HOST: Final = re.compile(
    r"%(?!25|[89A-Fa-f][0-9A-Fa-f])|[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%\u0080-\U0010ffff]"
)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
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
        problem = uri_problem(text)
        if problem:
            raise CelError(f"URL parse error during conversion from string: {problem}")
        found = _URL.fullmatch(text)
        assert found is not None
        host = (found["authority"] or "").rpartition("@")[2]
        path = found["path"]
        if found["scheme"] and not path.startswith("/"):
            path = ""  # `mailto:a@b` has no path
        return cls((found["scheme"] or "").lower(), host, path, found["query"] or "")

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


def uri_problem(text: str) -> str:
    """Why a request cannot be sent to this address, as Go words it; empty if it can."""
    problem = _uri_problem(text)
    return f"parse {quoted(text)}: {problem}" if problem else ""


def _uri_problem(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", text):
        return "net/url: invalid control character in URL"
    if text in {"", "*"}:
        return "" if text else "empty url"
    if text.startswith(":"):
        return "missing protocol scheme"
    found = _SCHEME.match(text)
    scheme = found["scheme"].lower() if found else ""
    rest = text[found.end() :].partition("?")[0] if found else text.partition("?")[0]
    if not rest.startswith("/"):
        return "" if scheme else "invalid URI for request"
    problem = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        problem, rest = _authority_problem(scheme, authority), slash + path
    return problem or _escape_problem(rest)


def _authority_problem(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    problem = _address_problem(host) if host.startswith("[") else _host_problem(scheme, host)
    if problem or not at:
        return problem
    return _escape_problem(user) if _USER.fullmatch(user) else "net/url: invalid userinfo"


def _address_problem(host: str) -> str:
    """What is wrong with an IPv6 address in brackets and its port."""
    address, bracket, port = host[1:].rpartition("]")
    if "[" in host[1:]:
        return "invalid IP-literal"
    if not bracket:
        return "missing ']' in host"
    if not _PORT.fullmatch(port):
        return f"invalid port {quoted(port)} after host"
    number, percent, zone = address.partition("%25")
    problem = _name_problem(number) or _escape_problem(zone)
    if problem:
        return problem
    try:
        found = ip_address(number)
    except ValueError:
        shown = number + percent.removesuffix("25") + zone
        return f"invalid host: ParseAddr({quoted(shown)}): unable to parse IP"
    return "" if isinstance(found, IPv6Address) else "invalid IP-literal"


def _host_problem(scheme: str, host: str) -> str:
    if "[" in host:
        return "invalid IP-literal"
    # Only addresses of the web have no colon in the name of their host.
    _, colon, port = host.partition(":") if scheme in _WEB else host.rpartition(":")
    if colon and not _PORT.fullmatch(colon + port):
        return f"invalid port {quoted(colon + port)} after host"
    return _name_problem(host)


def _name_problem(host: str) -> str:
    """What is wrong with the name of a host, in which only letters beyond ASCII are escaped."""
    wrong = _NOT_IN_HOST.search(host)
    if wrong is None:
        return ""
    if wrong[0] == "%":
        return _bad_escape(host, wrong.start())
    return f"invalid character {quoted(wrong[0])} in host name"


def _escape_problem(text: str) -> str:
    """What is wrong with the first `%` that two hexadecimal digits do not follow."""
    wrong = _BAD_ESCAPE.search(text)
    return _bad_escape(text, wrong.start()) if wrong else ""


def _bad_escape(text: str, start: int) -> str:
    return f"invalid URL escape {quoted(text[start : start + 3])}"


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
