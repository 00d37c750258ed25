"""Checked expressions made into Python functions, and their evaluation within limits.

Errors are exceptions. `&&` and `||` absorb an error of one side when the other side decides, in
either order; a loop keeps an error as its result so far, for the same reason.

The cost of an evaluation is counted as kube-scheduler counts it. Literals cost nothing, a variable
and each of its fields one, a call what `costs` says. Beyond the limit the evaluation ends with an
error. Some functions do work that their cost does not count: they join lists, compare what lists
hold, or make long texts. A second limit counts that work, with the same error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from podium.cel.checked_expression import (
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
from podium.cel.costs import LIST_COST, MAP_COST, Cost, call_cost, equality, shorter
from podium.cel.errors import AbortError, CelError, CompileError, CostError
from podium.cel.functions import (
    EXTENSIONS,
    METERED,
    QUALIFIED,
    STANDARD,
    Function,
    call,
    concatenate,
    find,
    index,
    optional_index,
    unequal,
)
from podium.cel.named_formats import NamedFormat
from podium.cel.regular_expressions import PatternError, compile_pattern
from podium.cel.values import (
    INT_MAX,
    INT_MIN,
    NO_SUCH_OVERLOAD,
    Optional,
    Semver,
    TypeValue,
    type_name,
)

COST_LIMIT_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
#: An evaluation may do this many times more work than it may cost.
_WORK_PER_COST: Final = 3
#: Calls that make constants of constants, when an expression is compiled.
_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
#: The place of the pattern among the arguments.
_PATTERNS: Final = {"matches": 1, "find": 1, "findAll": 1}
_LOOKUPS: Final = frozenset(("_[_]", "_?._", "_[?_]"))


class EvaluationScope:
    """The variables of an evaluation, what it has cost so far, and the work that it did."""

    __slots__ = ("cost", "limit", "variables", "work", "work_limit")

    def __init__(self, variables: dict[str, Any], limit: int) -> None:
        self.variables = variables
        self.cost = 0
        self.limit = limit
        self.work = 0
        self.work_limit = limit * _WORK_PER_COST

    def spend(self, cost: int) -> None:
        """Count the cost of a step."""
        self.cost += cost
        if self.cost > self.limit:
            raise CostError(COST_LIMIT_EXCEEDED)

    def charge(self, work: int) -> None:
        """Count work that the cost leaves out, before it is done."""
        self.work += work
        if self.work > self.work_limit:
            raise CostError(COST_LIMIT_EXCEEDED)


class UnsupportedError(Exception):
    """The expression calls a function that is declared and not written here."""


class Evaluated(NamedTuple):
    """What came of an evaluation, and the effort: its cost and the work beyond it."""

    result: Any
    effort: int


Step = Callable[[EvaluationScope], Any]


class _Later:
    """The value of a variable that is computed when it is first read."""

    __slots__ = ("_compute", "_found")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._found: Any = None

    def value(self) -> Any:
        """The value, or the error in its place."""
        if self._compute is not None:
            self._found, self._compute = _kept(self._compute), None
        return self._found


def compiled(expression: CheckedExpression) -> Step:
    """The function that evaluates an expression."""
    return _Compiler(expression).step(expression.root)


def evaluated(step: Step, variables: dict[str, Any], limit: int) -> Evaluated:
    """The result of an expression, or its error, and the effort."""
    scope = EvaluationScope(variables, limit)
    try:
        result = step(scope)
    except CelError as error:
        result = error
    if scope.cost > limit:
        result = CostError(COST_LIMIT_EXCEEDED)
    return Evaluated(result, min(scope.cost, limit) + min(scope.work, scope.work_limit))


def as_answer(result: Any) -> bool | CelError:
    """The answer of a selector; anything but a boolean is an error."""
    if isinstance(result, bool | CelError):
        return result
    kind = type_name(result)
    return CelError(
        f"CEL result of type {kind} could not be converted to bool: "
        + _TO_BOOL.get(kind, "unsupported conversion to 'bool'")
    )


_TO_BOOL: Final = {
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
        self._overloads = expression.overloads
        #: Variables that may hold an error, or be computed when they are first read.
        self._held: set[str] = set()

    def step(self, node: Node) -> Step:
        """The step that evaluates one node."""
        known = self._constant(node)
        if known is not None:
            return _always(known[0])
        match node:
            case Ident():
                made = self._variable(self._names.get(node.id, node.name))
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
            case Constant():
                raise AssertionError(node)
        return made

    def _constant(self, node: Node) -> tuple[Any] | None:
        """The value of what needs no evaluation: literals, and conversions of literals."""
        if isinstance(node, Constant):
            return (node.value,)
        if isinstance(node, ListLiteral) and not node.optional:
            found = [self._constant(each) for each in node.elements]
            return None if None in found else ([each[0] for each in found if each is not None],)
        if isinstance(node, MapLiteral):
            return self._constant_map(node)
        if isinstance(node, Call) and node.function in _CONVERSIONS and len(node.arguments) == 1:
            given = self._constant(node.arguments[0])
            try:
                return None if given is None else (STANDARD[node.function](given[0]),)
            except CelError as error:
                raise CompileError(f"program instantiation failed: {error}") from None
        return None

    def _constant_map(self, node: MapLiteral) -> tuple[dict[Any, Any]] | None:
        made = {}
        for entry in node.entries:
            key, value = self._constant(entry.key), self._constant(entry.value)
            if key is None or value is None or entry.optional:
                return None
            made[_as_key(key[0])] = value[0]
        return (made,)

    def _variable(self, name: str) -> Step:
        cost = 1 + name.count(".")  # a field of `device` is a variable here

        def read(scope: EvaluationScope) -> Any:
            if name not in scope.variables:  # the name of a type, which costs nothing
                return TypeValue(name)
            scope.cost += cost
            return scope.variables[name]

        return _held_variable(name) if name in self._held else read

    def _select(self, node: Select) -> Step:
        if node.id in self._names:
            return self._variable(self._names[node.id])
        operand, key = self.step(node.operand), node.field
        cost = 0 if _is_attribute(node.operand) else 1
        if node.test_only:

            def has(scope: EvaluationScope) -> bool:
                holder = operand(scope)
                scope.cost += cost
                return _has(holder, key)

            return has
        return _lookup(operand, _always(key), cost + 1)

    def _call(self, node: Call) -> Step:
        if node.function in _LOOKUPS:
            return self._index(node)
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(*map(self.step, node.arguments))
        if node.function == "_?_:_":
            return self._conditional(node)
        name, arguments = self._function(node)
        overloads = self._overloads.get(node.id, ())
        if name == "@in" and overloads == ("in_list",):
            members = self._constant(arguments[1])
            if members is not None and all(map(_is_primitive, members[0])):
                return _membership(self.step(arguments[0]), members[0])
        self._check_pattern(name, arguments)
        steps = list(map(self.step, arguments))
        if name == "@in" and isinstance(arguments[1], MapLiteral) and arguments[1].entries:
            steps[0] = _hashed(steps[0])
        return _made_call(name, call_cost(name, overloads), steps)

    def _check_pattern(self, name: str, arguments: tuple[Node, ...]) -> None:
        """A literal pattern is compiled with the expression."""
        place = _PATTERNS.get(name, len(arguments))
        known = self._constant(arguments[place]) if place < len(arguments) else None
        if known is not None and isinstance(known[0], str):
            try:
                compile_pattern(known[0])
            except PatternError as error:
                raise CompileError(f"program instantiation failed: {error}") from None

    def _index(self, node: Call) -> Step:
        operand, key = node.arguments
        cost = 0 if _is_attribute(operand) else 1
        if not _is_attribute(key) or _is_conditional(key):
            cost += 1
        made = _lookup if node.function == "_[_]" else _optional_lookup
        return made(self.step(operand), self.step(key), cost)

    def _conditional(self, node: Call) -> Step:
        """Of a variable in a branch only the fields cost something."""
        condition, yes, no = map(self.step, node.arguments)
        less_yes, less_no = (
            1 if _is_attribute(each) and not _is_conditional(each) else 0
            for each in node.arguments[1:]
        )

        def run(scope: EvaluationScope) -> Any:
            chosen = condition(scope)
            if chosen is True:
                scope.cost -= less_yes
                return yes(scope)
            if chosen is False:
                scope.cost -= less_no
                return no(scope)
            raise CelError(NO_SUCH_OVERLOAD)

        return run

    def _function(self, node: Call) -> tuple[str, tuple[Node, ...]]:
        """The name of a function; the target of `lists.range(3)` is a part of its name."""
        if node.is_member:
            prefix = _dotted(node.arguments[0])
            if f"{prefix}.{node.function}" in QUALIFIED:
                return f"{prefix}.{node.function}", node.arguments[1:]
        return node.function, node.arguments

    def _list(self, node: ListLiteral) -> Step:
        steps = [(self.step(each), i in node.optional) for i, each in enumerate(node.elements)]

        def make(scope: EvaluationScope) -> list[Any]:
            scope.cost += LIST_COST
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

        def make(scope: EvaluationScope) -> dict[Any, Any]:
            scope.cost += MAP_COST
            found = {}
            for key, step, optional in steps:
                name, value = key(scope), step(scope)
                if not optional:
                    found[_as_key(name)] = value
                elif isinstance(value, Optional) and value.present:
                    found[_as_key(name)] = value.content
            return found

        return make

    def _loop(self, node: Comprehension) -> Step:
        over, start = self.step(node.over), self._start(node.start)
        held, before = node.result_variable, self._held
        self._held = (before - {node.variable, node.second_variable}) | {held}
        condition, advance = self.step(node.condition), self._advance(node, held)
        self._held = before | {held}
        result = self.step(node.result)
        self._held = before
        if isinstance(node.over, ListLiteral) and not node.over.elements:
            return _binding(held, start, result)
        loop = _Loop(node.variable, node.second_variable, held, over, start)
        return loop.step(condition, advance, result, _usual_end(node.condition, held))

    def _start(self, node: Node) -> Step:
        """An empty list or map at the start is one that the loop fills."""
        known = self._constant(node)
        if known is not None and known[0] == [] and isinstance(known[0], list):
            return lambda _: []
        if known is not None and known[0] == {} and isinstance(known[0], dict):
            return lambda _: {}
        return self.step(node)

    def _advance(self, node: Comprehension, held: str) -> Step:
        """The step of a loop, which appends to the list that it makes."""
        return self._appending(node.step, held) or self.step(node.step)

    def _appending(self, node: Node, held: str) -> Step | None:
        if not isinstance(node, Call):
            return None
        if node.function == "_+_" and isinstance(node.arguments[1], ListLiteral):
            one, two = node.arguments
            if isinstance(one, Ident) and one.name == held:
                return _append(_held_variable(held), self.step(two))
        if node.function == "_?_:_":
            condition, yes, no = node.arguments
            made = self._appending(yes, held)
            if made is not None and isinstance(no, Ident) and no.name == held:
                return _append_if(self.step(condition), made, _held_variable(held))
        return None


def _append(read: Step, element: Step) -> Step:
    def run(scope: EvaluationScope) -> Any:
        found = read(scope)
        added = element(scope)
        scope.cost += 1
        if not isinstance(found, list):
            raise CelError(NO_SUCH_OVERLOAD)
        found += added
        return found

    return run


def _append_if(condition: Step, append: Step, read: Step) -> Step:
    def run(scope: EvaluationScope) -> Any:
        chosen = condition(scope)
        if not isinstance(chosen, bool):
            raise CelError(NO_SUCH_OVERLOAD)
        if chosen:
            return append(scope)
        scope.cost -= 1  # a variable in a branch costs nothing
        return read(scope)

    return run


class _Loop(NamedTuple):
    """A loop over a list or a map, with the names of its variables."""

    variable: str
    second_variable: str
    held: str
    over: Step
    start: Step

    def step(
        self, condition: Step, advance: Step, result: Step, end: tuple[bool, int] | None
    ) -> Step:
        """The step that runs the loop.

        *end* is given where the condition asks for nothing but the result so far: the value that
        ends the loop, and the cost of asking.
        """
        first, second, held, over, start = self
        last, asking = (None, 0) if end is None else end

        def run(scope: EvaluationScope) -> Any:
            elements = _elements(over(scope), second=bool(second))
            before = scope.variables
            begun = _kept(lambda: start(scope))
            inner = scope.variables = dict(before)
            inner[held] = begun
            limit = scope.limit
            try:
                for key, value in elements:
                    inner[first] = key
                    if second:
                        inner[second] = value
                    if last is not None:
                        scope.cost += asking
                        if inner[held] is last:
                            break
                    elif _kept(lambda: condition(scope)) is False:
                        break
                    try:
                        inner[held] = advance(scope)
                    except AbortError:
                        raise
                    except CelError as error:
                        inner[held] = error
                    if scope.cost > limit:
                        raise CostError(COST_LIMIT_EXCEEDED)
                return result(scope)
            finally:
                scope.variables = before

        return run


def _usual_end(condition: Node, held: str) -> tuple[bool, int] | None:
    """The value of the result that ends `all` and `exists`, and what their condition costs."""
    if not isinstance(condition, Call) or condition.function != "@not_strictly_false":
        return None
    (asked,) = condition.arguments
    if isinstance(asked, Ident) and asked.name == held:
        return False, 2
    if isinstance(asked, Call) and asked.function == "!_":
        (inner,) = asked.arguments
        if isinstance(inner, Ident) and inner.name == held:
            return True, 3
    return None


def _binding(held: str, start: Step, result: Step) -> Step:
    """`cel.bind`: a variable that is computed when it is first read."""

    def run(scope: EvaluationScope) -> Any:
        before = scope.variables

        def compute() -> Any:
            inner, scope.variables = scope.variables, before
            try:
                return start(scope)
            finally:
                scope.variables = inner

        scope.variables = {**before, held: _Later(compute)}
        try:
            return result(scope)
        finally:
            scope.variables = before

    return run


def _kept(compute: Callable[[], Any]) -> Any:
    """A value, or the error in its place."""
    try:
        return compute()
    except AbortError:
        raise
    except CelError as error:
        return error


def _elements(over: Any, *, second: bool) -> Iterable[tuple[Any, Any]]:
    if isinstance(over, list):
        return enumerate(over) if second else ((each, None) for each in over)
    if isinstance(over, dict):
        return list(over.items())
    kind = type_name(over)
    named = _GO_TYPES.get(kind, kind)
    if second:
        raise CelError(f"unsupported comprehension range type: {named}")
    raise CelError(f"got '{named}', expected iterable type")


#: How Go names the types of values.
_GO_TYPES: Final = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "google.protobuf.Timestamp": "types.Timestamp",
    "google.protobuf.Duration": "types.Duration",
}


def _always(value: Any) -> Step:
    return lambda _: value


def _held_variable(name: str) -> Step:
    """A variable whose value may be an error, or not computed yet."""

    def read(scope: EvaluationScope) -> Any:
        scope.cost += 1
        value = scope.variables[name]
        if isinstance(value, _Later):
            value = value.value()
        if isinstance(value, CelError):
            raise value
        return value

    return read


def _is_attribute(node: Node) -> bool:
    """Whether a node is a variable or a field of something: its lookups are one path."""
    return isinstance(node, Ident | Select) or (
        isinstance(node, Call) and (node.function in _LOOKUPS or node.function == "_?_:_")
    )


def _is_conditional(node: Node) -> bool:
    """Whether a path costs nothing but its fields: a branch, or the question for a field."""
    if isinstance(node, Select):
        return node.test_only
    return isinstance(node, Call) and node.function == "_?_:_"


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


def _lookup(operand: Step, key: Step, cost: int) -> Step:
    def run(scope: EvaluationScope) -> Any:
        holder, wanted = operand(scope), key(scope)
        scope.cost += cost
        return index(holder, wanted)

    return run


def _optional_lookup(operand: Step, key: Step, cost: int) -> Step:
    def run(scope: EvaluationScope) -> Any:
        found = optional_index(operand(scope), key(scope))
        scope.cost += cost if found.present else cost - 1
        return found

    return run


#: Texts up to this length are made at once.
_SHORT: Final = 1000
_KEYS: Final = (bool, int, str)
_PRIMITIVES: Final = (bool, int, float, str)


#: Values that kube-scheduler cannot look up in a map, by the names of their types there.
_UNHASHABLE: Final = {Semver: "cel.Semver", NamedFormat: "cel.Format", bytes: "types.Bytes"}


def _check_hashable(value: Any) -> None:
    if type(value) in _UNHASHABLE:
        name = _UNHASHABLE[type(value)]
        raise AbortError(f"internal error: runtime error: hash of unhashable type {name}")


def _hashed(value: Step) -> Step:
    """A value that is looked up among the keys of a map literal."""

    def run(scope: EvaluationScope) -> Any:
        found = value(scope)
        _check_hashable(found)
        return found

    return run


def _as_key(key: Any) -> Any:
    """A key of a map literal."""
    if isinstance(key, Semver | NamedFormat):
        _check_hashable(key)
    if not isinstance(key, _KEYS):
        raise CelError(f"unsupported key type: {type_name(key)}")
    return key


def _is_primitive(value: Any) -> bool:
    return isinstance(value, _PRIMITIVES)


def _membership(value: Step, members: list[Any]) -> Step:
    """`x in [...]` with literals: a lookup that costs nothing; an empty list asks for no `x`."""
    if not members:
        return _always(value=False)
    booleans = {each for each in members if isinstance(each, bool)}
    others = {each for each in members if not isinstance(each, bool)}

    def run(scope: EvaluationScope) -> bool:
        wanted = value(scope)
        if isinstance(wanted, bool):
            return wanted in booleans
        if isinstance(wanted, _PRIMITIVES):
            return wanted in others
        _check_hashable(wanted)
        return False

    return run


def _made_call(name: str, cost: Cost | None, steps: list[Step]) -> Step:
    """The call of a function whose arguments are all evaluated."""
    if name == "_+_":
        return _sum(cost, *steps)
    if name in METERED:
        return _metered_call(name, METERED[name], cost, steps)
    if name in STANDARD:
        return _standard_call(STANDARD[name], cost, steps)
    if name in EXTENSIONS:
        return _extension_call(name, EXTENSIONS[name], cost, steps)
    raise UnsupportedError(name)


def _standard_call(function: Function, cost: Cost | None, steps: list[Step]) -> Step:
    if cost is not None:

        def run(scope: EvaluationScope) -> Any:
            arguments = [step(scope) for step in steps]
            scope.spend(cost(*arguments))
            return function(*arguments)

        return run
    if len(steps) == 1:
        (only,) = steps

        def run_one(scope: EvaluationScope) -> Any:
            value = only(scope)
            scope.cost += 1
            return function(value)

        return run_one

    if len(steps) == 2:
        first, second = steps

        def run_two(scope: EvaluationScope) -> Any:
            one, two = first(scope), second(scope)
            scope.cost += 1
            return function(one, two)

        return run_two

    def run_many(scope: EvaluationScope) -> Any:
        arguments = [step(scope) for step in steps]
        scope.cost += 1
        return function(*arguments)

    return run_many


def _sum(cost: Cost | None, first: Step, second: Step) -> Step:
    def run(scope: EvaluationScope) -> Any:
        one, two = first(scope), second(scope)
        scope.spend(1 if cost is None else cost(one, two))
        kind = type(one)
        if kind is type(two):
            if kind is str and len(one) + len(two) < _SHORT:
                return one + two
            if kind is int and INT_MIN <= one + two <= INT_MAX:
                return one + two
        return concatenate(scope.charge, one, two)

    return run


def _extension_call(name: str, function: Function, cost: Cost | None, steps: list[Step]) -> Step:
    def run(scope: EvaluationScope) -> Any:
        arguments = [step(scope) for step in steps]
        scope.spend(1 if cost is None else cost(*arguments))
        return call(name, function, arguments)

    return run


def _metered_call(name: str, function: Function, cost: Cost | None, steps: list[Step]) -> Step:
    """A function that counts its work."""

    def run(scope: EvaluationScope) -> Any:
        arguments = [step(scope) for step in steps]
        scope.spend(1 if cost is None else cost(*arguments))
        return call(name, lambda *given: function(scope.charge, *given), arguments)

    return run


def _decided_by(deciding: bool) -> Callable[..., Step]:  # noqa: FBT001 - the value that decides
    """`&&` is decided by false, `||` by true."""

    def make(*steps: Step) -> Step:
        def run(scope: EvaluationScope) -> bool:
            failed: CelError | None = None
            for step in steps:
                try:
                    value = step(scope)
                except AbortError:
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


_PLAIN: Final = (str, int)


def _equal(one: Step, two: Step) -> Step:
    compare = METERED["_==_"]

    def run(scope: EvaluationScope) -> bool:
        left, right = one(scope), two(scope)
        kind = type(left)
        if kind is type(right) and kind in _PLAIN:
            scope.cost += 1 if kind is int else shorter(left, right)
            return bool(left == right)
        scope.spend(equality(left, right))
        return bool(compare(scope.charge, left, right))

    return run


def _unequal(one: Step, two: Step) -> Step:
    def run(scope: EvaluationScope) -> bool:
        left, right = one(scope), two(scope)
        kind = type(left)
        if kind is type(right) and kind in _PLAIN:
            scope.cost += 1 if kind is int else shorter(left, right)
            return bool(left != right)
        scope.spend(shorter(left, right))
        return unequal(scope.charge, left, right)

    return run


def _not_strictly_false(step: Step) -> Step:
    def run(scope: EvaluationScope) -> bool:
        try:
            value = step(scope)
        except AbortError:
            raise
        except CelError:
            value = True
        scope.cost += 1
        return value is not False

    return run


def _or_value(optional: Step, other: Step) -> Step:
    def run(scope: EvaluationScope) -> Any:
        value = optional(scope)
        if not isinstance(value, Optional):
            raise CelError(f"{NO_SUCH_OVERLOAD}: orValue")
        return value.content if value.present else other(scope)

    return run


def _or(optional: Step, other: Step) -> Step:
    def run(scope: EvaluationScope) -> Any:
        value = optional(scope)
        if not isinstance(value, Optional):
            raise CelError(f"{NO_SUCH_OVERLOAD}: or")
        return value if value.present else other(scope)

    return run


#: Calls that do not evaluate all of their arguments first, or whose errors differ.
_SPECIAL: Final[dict[str, Callable[..., Step]]] = {
    "_&&_": _decided_by(deciding=False),
    "_||_": _decided_by(deciding=True),
    "_==_": _equal,
    "_!=_": _unequal,
    "@not_strictly_false": _not_strictly_false,
    "orValue": _or_value,
    "or": _or,
}
