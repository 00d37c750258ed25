"""The CEL environment of device selectors: variables, types, functions and limits.

Expressions are parsed and type-checked by `cel-expr-python`, which is imported when the first
expression is compiled. Upstream: staging/src/k8s.io/dynamic-resource-allocation/cel and
staging/src/k8s.io/apiserver/pkg/cel, Kubernetes v1.36.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from podium.cel.checked_expression import decode, literal_errors
from podium.cel.errors import CelError, CompileError
from podium.cel.evaluation import Evaluated, UnsupportedError, as_answer, compiled, evaluated
from podium.cel.named_formats import FORMATS
from podium.cel.values import DomainMap, Quantity, Semver
from podium.errors import InputError

if TYPE_CHECKING:
    from podium.cel.checked_expression import CheckedExpression
    from podium.cel.evaluation import Step
    from podium.objects.kinds.devices import Device, DeviceAttribute

#: The cost of an evaluation that is not exceeded.
COST_LIMIT: Final = 1_000_000

_CONFIG: Final = """
name: kubernetes-devices
stdlib:
  exclude_functions:
  - name: _<_
  - name: _<=_
  - name: _>_
  - name: _>=_
  - name: string
extensions:
- {name: lists, version: latest}
- {name: sets, version: latest}
- {name: two-var-comprehensions, version: latest}
- {name: optional, version: latest}
- {name: bindings, version: "0"}
"""
#: Functions and their overloads: `target.(arguments) -> result`, with a target for methods.
#: The library has no way to declare an optional result, which is `dyn` here.
_DECLARATIONS: Final = """
quantity            (string) -> quantity
isQuantity          (string) -> bool
sign                (quantity) -> int
isGreaterThan       quantity.(quantity) -> bool, semver.(semver) -> bool
isLessThan          quantity.(quantity) -> bool, semver.(semver) -> bool
compareTo           quantity.(quantity) -> int, semver.(semver) -> int
asApproximateFloat  quantity.() -> double
asInteger           quantity.() -> int
isInteger           quantity.() -> bool
add                 quantity.(quantity) -> quantity, quantity.(int) -> quantity
sub                 quantity.(quantity) -> quantity, quantity.(int) -> quantity
semver              (string) -> semver, (string bool) -> semver
isSemver            (string) -> bool, (string bool) -> bool
major               semver.() -> int
minor               semver.() -> int
patch               semver.() -> int
charAt              string.(int) -> string
indexOf             string.(string) -> int, string.(string int) -> int, list.(dyn) -> int
lastIndexOf         string.(string) -> int, string.(string int) -> int, list.(dyn) -> int
join                strings.() -> string, strings.(string) -> string
lowerAscii          string.() -> string
upperAscii          string.() -> string
replace             string.(string string) -> string, string.(string string int) -> string
split               string.(string) -> strings, string.(string int) -> strings
substring           string.(int) -> string, string.(int int) -> string
trim                string.() -> string
format              string.(list) -> string
strings.quote       (string) -> string
find                string.(string) -> string
findAll             string.(string) -> strings, string.(string int) -> strings
isSorted            list.() -> bool
sum                 ints.() -> int, doubles.() -> double
ip                  (string) -> ip, cidr.() -> ip
isIP                (string) -> bool
ip.isCanonical      (string) -> bool
family              ip.() -> int
isUnspecified       ip.() -> bool
isLoopback          ip.() -> bool
isLinkLocalMulticast ip.() -> bool
isLinkLocalUnicast  ip.() -> bool
isGlobalUnicast     ip.() -> bool
cidr                (string) -> cidr
isCIDR              (string) -> bool
containsIP          cidr.(ip) -> bool, cidr.(string) -> bool
containsCIDR        cidr.(cidr) -> bool, cidr.(string) -> bool
masked              cidr.() -> cidr
prefixLength        cidr.() -> int
string              (bool) -> string, (int) -> string, (uint) -> string, (double) -> string, \
(string) -> string, (bytes) -> string, (timestamp) -> string, (duration) -> string, \
(ip) -> string, (cidr) -> string
url                 (string) -> url
isURL               (string) -> bool
getScheme           url.() -> string
getHost             url.() -> string
getHostname         url.() -> string
getPort             url.() -> string
getEscapedPath      url.() -> string
getQuery            url.() -> query
format.named        (string) -> dyn
validate            format.(string) -> dyn
min                 ints.() -> int, doubles.() -> double, strings.() -> string, bools.() -> bool
max                 ints.() -> int, doubles.() -> double, strings.() -> string, bools.() -> bool
"""
_COMPARED: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "timestamp",
    "duration",
)
_NUMBERS: Final = ("int", "uint", "double")
_ANY: Final = "google.protobuf.Any"
#: A field of the device is always there; the library does not know `device` as a value.
_HAS_FIELD: Final = re.compile(
    r"\bhas\(\s*device\.(driver|attributes|capacity|allowMultipleAllocations)\s*\)"
)


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """A compiled selector."""

    text: str
    step: Step

    def judge(self, variables: dict[str, Any]) -> Evaluated:
        """Whether the expression selects a device, or the error, and the effort it took."""
        found = evaluated(self.step, variables, COST_LIMIT)
        return Evaluated(as_answer(found.result), found.effort)

    def matches(self, driver: str, device: Device) -> bool:
        """Whether the expression selects a device; errors are `CelError`."""
        answer: bool | CelError = self.judge(variables_of(driver, device)).result
        if isinstance(answer, CelError):
            raise answer
        return answer


V = TypeVar("V")

#: A compiled expression takes about this many bytes for each character of its text.
_BYTES_PER_CHARACTER: Final = 200
_MOST_BYTES: Final = 32 << 20


class KeptExpressions(Generic[V]):
    """What was made of texts. When it takes too much memory, the longest unused go first."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[str, V] = OrderedDict()
        self.bytes = 0

    def get(self, text: str, make: Callable[[], V]) -> V:
        """What was made of a text, or what *make* makes of it."""
        if text in self._kept:
            self._kept.move_to_end(text)
            return self._kept[text]
        made = make()
        self._kept[text] = made
        self.bytes += _bytes_of(text)
        while self.bytes > self._most and len(self._kept) > 1:
            self.bytes -= _bytes_of(self._kept.popitem(last=False)[0])
        return made

    def __len__(self) -> int:
        return len(self._kept)


def _bytes_of(text: str) -> int:
    return 1024 + _BYTES_PER_CHARACTER * len(text)


_SELECTORS: Final[KeptExpressions[CompiledExpression | CompileError]] = KeptExpressions()


def compile_expression(text: str) -> CompiledExpression | CompileError:
    """The compiled expression, or why it cannot be compiled; the last ones are kept."""
    return _SELECTORS.get(text, lambda: _selector(text))


def _selector(text: str) -> CompiledExpression | CompileError:
    source = _HAS_FIELD.sub(lambda found: "true".ljust(len(found[0])), text)
    try:
        checked = _checked(_environment(), source, text)
        if checked.type.name not in {"bool", "any"}:
            return CompileError(f"must evaluate to bool or the unknown type, not {checked.type}")
        return CompiledExpression(text, _compiled(checked))
    except CompileError as error:
        return error


def _checked(environment: Any, source: str, text: str) -> CheckedExpression:
    """An expression that was parsed, whose types and literals were checked."""
    try:
        checked = decode(environment.compile(source).serialize())
    except RuntimeError as error:
        shown = str(error).removeprefix("INVALID_ARGUMENT: ").removesuffix(" [INVALID_ARGUMENT]")
        raise CompileError(f"compilation failed: {shown}") from None
    problems = literal_errors(text, checked)
    if problems:
        raise CompileError(f"compilation failed: {problems}")
    return checked


def _compiled(checked: CheckedExpression) -> Step:
    try:
        return compiled(checked)
    except UnsupportedError as error:
        what = f"program instantiation failed: the function {error} is not supported"
        raise CompileError(what) from None
    except CelError as error:
        raise CompileError(f"program instantiation failed: {error}") from None


def variables_of(driver: str, device: Device) -> dict[str, Any]:
    """The variable `device` for one device."""
    attributes, capacity = DomainMap(), DomainMap()
    for name, attribute in (device.attributes or {}).items():
        domain, identifier = _qualified(name, driver)
        attributes.setdefault(domain, {})[identifier] = _value(name, attribute)
    for name, amount in (device.capacity or {}).items():
        domain, identifier = _qualified(name, driver)
        capacity.setdefault(domain, {})[identifier] = Quantity.parse(amount.value)
    return {
        "device.driver": driver,
        "device.allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "device.attributes": attributes,
        "device.capacity": capacity,
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _value(name: str, attribute: DeviceAttribute) -> Any:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    try:
        return Semver.parse(attribute.version_value)
    except CelError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from None


@cache
def _environment() -> Any:
    """The environment of device selectors, made once with the types of the library."""
    try:
        from cel_expr_python import cel  # noqa: PLC0415 - only commands that use devices load it
    except ImportError:
        raise InputError(
            "device selectors are CEL expressions, which need the package cel-expr-python",
            hint="pip install 'podium[devices]'",
        ) from None
    kind = cel.Type
    types = {
        "bool": kind.BOOL,
        "int": kind.INT,
        "uint": kind.UINT,
        "double": kind.DOUBLE,
        "string": kind.STRING,
        "bytes": kind.BYTES,
        "dyn": kind.DYN,
        "list": kind.List(kind.DYN),
        "strings": kind.List(kind.STRING),
        "ints": kind.List(kind.INT),
        "doubles": kind.List(kind.DOUBLE),
        "bools": kind.List(kind.BOOL),
        "timestamp": kind.TIMESTAMP,
        "duration": kind.DURATION,
        "ip": kind.AbstractType("net.IP"),
        "cidr": kind.AbstractType("net.CIDR"),
        "url": kind.AbstractType("kubernetes.URL"),
        "query": kind.Map(kind.STRING, kind.List(kind.STRING)),
        "quantity": kind.AbstractType("kubernetes.Quantity"),
        "semver": kind.AbstractType("kubernetes.Semver"),
        "format": kind.AbstractType("kubernetes.NamedFormat"),
    }
    functions = [
        cel.FunctionDecl(
            name,
            [
                cel.Overload(
                    f"{name}({','.join(given)})", types[result], [types[t] for t in given], member
                )
                for given, result, member in overloads
            ],
        )
        for name, overloads in _declared()
    ]
    variables = {
        "device.driver": kind.STRING,
        "device.allowMultipleAllocations": kind.BOOL,
        "device.attributes": kind.Map(kind.STRING, kind.Map(kind.STRING, kind(_ANY))),
        "device.capacity": kind.Map(kind.STRING, kind.Map(kind.STRING, types["quantity"])),
    }
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(_CONFIG),
        variables=variables,
        functions=functions,
    )


_OVERLOAD: Final = re.compile(r"(?:(\w+)\.)?\(([\w ]*)\) -> (\w+)")


def _declared() -> list[tuple[str, list[tuple[list[str], str, bool]]]]:
    """Name and overloads (parameters, result, whether it is a method) of every function."""
    found = []
    for line in _DECLARATIONS.strip().splitlines():
        name, _, written = line.partition(" ")
        overloads = [
            ([*([target] if target else []), *given.split()], result, bool(target))
            for target, given, result in _OVERLOAD.findall(written)
        ]
        found.append((name, overloads))
    found += [(f"format.{name}", [([], "format", False)]) for name in FORMATS]
    for operator in ("_<_", "_<=_", "_>_", "_>=_"):
        pairs = [(one, one) for one in _COMPARED]
        pairs += [(one, two) for one in _NUMBERS for two in _NUMBERS if one != two]
        found.append((operator, [([one, two], "bool", False) for one, two in pairs]))
    return found
