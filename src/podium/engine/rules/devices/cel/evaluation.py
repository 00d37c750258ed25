"""Checked expressions made into Python functions, and their evaluation within a limit of cost.

Errors are exceptions. `&&` and `||` absorb an error of one side when the other side decides, in
either order; a loop keeps an error as its result so far, for the same reason.

The cost of an evaluation is counted as kube-scheduler counts it for lookups, literals, calls and
loops; texts cost a tenth of their length. Beyond the limit the evaluation ends with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from podium.engine.rules.devices.cel.checked_expression import (
    Call,
    CheckedExpression,
    Comprehension,
    Constant,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
)
from podium.engine.rules.devices.cel.errors import CelError
from podium.engine.rules.devices.cel.functions import (
    EXTENSIONS,
    STANDARD,
    Function,
    call,
    find,
    index,
)
from podium.engine.rules.devices.cel.values import (
    NO_SUCH_OVERLOAD,
    Optional,
    equal,
    type_name,
)

COST_LIMIT_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_LIST_COST, _MAP_COST = 10, 30


class Scope:
    """The variables of an evaluation and what it has cost so far."""

    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit

    def spend(self, cost: int) -> None:
        """Count the cost of a step."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostError(COST_LIMIT_EXCEEDED)


class CostError(CelError):
    """The limit of cost was exceeded; no operator absorbs this."""


class UnsupportedError(Exception):
    """The expression calls a function that is declared and not written here."""


Step = Callable[[Scope], Any]


class _Later:
    """The value of a variable that is computed when it is first read."""

    __slots__ = ("compute",)

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


def compiled(expression: CheckedExpression) -> Step:
    """The function that evaluates an expression."""
    return _Compiler(expression).step(expression.root)


def evaluate(step: Step, variables: dict[str, Any], limit: int) -> bool:
    """The answer of a selector; anything but a boolean is an error."""
    result = step(Scope(variables, limit))
    if isinstance(result, bool):
        return result
    kind = type_name(result)
    raise CelError(
        f"CEL result of type {kind} could not be converted to bool: "
        + _CONVERSIONS.get(kind, "unsupported conversion to 'bool'")
    )


_CONVERSIONS: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from 'Double' to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
}


class _Compiler:
    """Makes the steps of one expression."""

    def __init__(self, expression: CheckedExpression) -> None:
        self._names = expression.names

    def step(self, node: Node) -> Step:
        """The step that evaluates one node."""
        match node:
            case Constant():
                made = _always(node.value)
            case Ident():
                made = _variable(self._names.get(node.id, node.name))
            case Select():
                made = self._select(node)
            case Call():
                made = self._call(node)
            case ListLiteral():
                made = self._list(node)
            case MapLiteral():
                made = self._map(node)
            case Comprehension():
                made = self._loop(node)
        return made

    def _select(self, node: Select) -> Step:
        if node.id in self._names:
            return _variable(self._names[node.id])
        operand, key = self.step(node.operand), node.field
        if node.test_only:
            return lambda scope: _has(operand(scope), key)

        def select(scope: Scope) -> Any:
            holder = operand(scope)
            scope.spend(1)
            return index(holder, key)

        return select

    def _call(self, node: Call) -> Step:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(*map(self.step, node.arguments))
        name, arguments = self._function(node)
        steps = [self.step(each) for each in arguments]
        if name in STANDARD:
            return _standard_call(STANDARD[name], steps)
        if name in EXTENSIONS:
            return _extension_call(name, EXTENSIONS[name], steps)
        raise UnsupportedError(name)

    def _function(self, node: Call) -> tuple[str, tuple[Node, ...]]:
        """The name of a function; the target of `lists.range(3)` is a part of its name."""
        if node.is_member:
            prefix = _dotted(node.arguments[0])
            if prefix and f"{prefix}.{node.function}" in EXTENSIONS:
                return f"{prefix}.{node.function}", node.arguments[1:]
        return node.function, node.arguments

    def _list(self, node: ListLiteral) -> Step:
        steps = [(self.step(each), i in node.optional) for i, each in enumerate(node.elements)]

        def make(scope: Scope) -> list[Any]:
            scope.spend(_LIST_COST)
            found = []
            for step, optional in steps:
                value = step(scope)
                if not optional:
                    found.append(value)
                elif isinstance(value, Optional) and value.present:
                    found.append(value.content)
            return found

        return make

    def _map(self, node: MapLiteral) -> Step:
        steps = [(self.step(e.key), self.step(e.value), e.optional) for e in node.entries]

        def make(scope: Scope) -> dict[Any, Any]:
            scope.spend(_MAP_COST)
            found = {}
            for key, step, optional in steps:
                value = step(scope)
                if not optional:
                    found[key(scope)] = value
                elif isinstance(value, Optional) and value.present:
                    found[key(scope)] = value.content
            return found

        return make

    def _loop(self, node: Comprehension) -> Step:
        over, start = self.step(node.over), self.step(node.start)
        condition, advance = self.step(node.condition), self.step(node.step)
        result = self.step(node.result)
        first, second, held = node.variable, node.second_variable, node.result_variable
        is_binding = isinstance(node.over, ListLiteral) and not node.over.elements

        def run(scope: Scope) -> Any:
            before = scope.variables
            inner = scope.variables = dict(before)
            try:
                if is_binding:
                    inner[held] = _Later(lambda: _outside(scope, before, start))
                    return result(scope)
                elements = _elements(_outside(scope, before, over), second=bool(second))
                inner[held] = _kept(lambda: _outside(scope, before, start))
                for key, value in elements:
                    inner[first] = key
                    if second:
                        inner[second] = value
                    if _kept(lambda: condition(scope)) is False:
                        break
                    inner[held] = _kept(lambda: advance(scope))
                return result(scope)
            finally:
                scope.variables = before

        return run


def _outside(scope: Scope, variables: dict[str, Any], step: Step) -> Any:
    """Evaluate a step with the variables around a loop."""
    inner, scope.variables = scope.variables, variables
    try:
        return step(scope)
    finally:
        scope.variables = inner


def _kept(compute: Callable[[], Any]) -> Any:
    """A value, or the error in its place."""
    try:
        return compute()
    except CostError:
        raise
    except CelError as error:
        return error


def _elements(over: Any, *, second: bool) -> Iterable[tuple[Any, Any]]:
    if isinstance(over, list):
        return enumerate(over) if second else ((each, None) for each in over)
    if isinstance(over, dict):
        return list(over.items())
    raise CelError(f"got '{type_name(over)}', expected iterable type")


def _always(value: Any) -> Step:
    return lambda _: value


def _variable(name: str) -> Step:
    def read(scope: Scope) -> Any:
        scope.spend(1)
        value = scope.variables[name]
        if isinstance(value, _Later):
            value = scope.variables[name] = _kept(value.compute)
        if isinstance(value, CelError):
            raise value
        return value

    return read


def _dotted(node: Node) -> str:
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only:
        prefix = _dotted(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""


def _has(holder: Any, key: str) -> bool:
    if isinstance(holder, Optional):
        if not holder.present:
            return False
        holder = holder.content
    return find(holder, key) is not None


def _cost_of(arguments: list[Any]) -> int:
    """A call costs one, and a tenth of each text and list that it may walk through."""
    sizes = (len(each) for each in arguments if isinstance(each, str | bytes | list))
    return 1 + sum(-(-size // 10) for size in sizes)


def _standard_call(function: Function, steps: list[Step]) -> Step:
    def run(scope: Scope) -> Any:
        arguments = [step(scope) for step in steps]
        scope.spend(_cost_of(arguments))
        return function(*arguments)

    return run


def _extension_call(name: str, function: Function, steps: list[Step]) -> Step:
    def run(scope: Scope) -> Any:
        arguments = [step(scope) for step in steps]
        scope.spend(_cost_of(arguments))
        return call(name, function, arguments)

    return run


def _decided_by(deciding: bool) -> Callable[..., Step]:  # noqa: FBT001 - the value that decides
    """`&&` is decided by false, `||` by true."""

    def make(*steps: Step) -> Step:
        def run(scope: Scope) -> bool:
            failed: CelError | None = None
            for step in steps:
                try:
                    value = step(scope)
                except CostError:
                    raise
                except CelError as error:
                    failed = failed or error
                    continue
                if value is deciding:
                    return bool(deciding)
                if not isinstance(value, bool):
                    failed = failed or CelError(NO_SUCH_OVERLOAD)
            if failed is not None:
                raise failed
            return not deciding

        return run

    return make


def _conditional(condition: Step, yes: Step, no: Step) -> Step:
    def run(scope: Scope) -> Any:
        chosen = condition(scope)
        if not isinstance(chosen, bool):
            raise CelError(NO_SUCH_OVERLOAD)
        return yes(scope) if chosen else no(scope)

    return run


def _unequal(one: Step, two: Step) -> Step:
    def run(scope: Scope) -> bool:
        left, right = one(scope), two(scope)
        scope.spend(_cost_of([left, right]))
        try:
            return not equal(left, right)
        except CelError:
            return True  # as upstream: what cannot be compared is different

    return run


def _not_strictly_false(step: Step) -> Step:
    def run(scope: Scope) -> bool:
        value = _kept(lambda: step(scope))
        return value is not False

    return run


def _or_value(optional: Step, other: Step) -> Step:
    def run(scope: Scope) -> Any:
        value = optional(scope)
        if not isinstance(value, Optional):
            raise CelError(f"{NO_SUCH_OVERLOAD}: orValue")
        return value.content if value.present else other(scope)

    return run


def _or(optional: Step, other: Step) -> Step:
    def run(scope: Scope) -> Any:
        value = optional(scope)
        if not isinstance(value, Optional):
            raise CelError(f"{NO_SUCH_OVERLOAD}: or")
        return value if value.present else other(scope)

    return run


#: Calls that do not evaluate all of their arguments first.
_SPECIAL: Final[dict[str, Callable[..., Step]]] = {
    "_&&_": _decided_by(deciding=False),
    "_||_": _decided_by(deciding=True),
    "_?_:_": _conditional,
    "_!=_": _unequal,
    "@not_strictly_false": _not_strictly_false,
    "orValue": _or_value,
    "or": _or,
}
