"""Rules in CEL of the schemas of custom objects (`x-kubernetes-validations`).

A rule sees the value it stands at as `self`, and as `oldSelf` the value before a change; a rule
that names `oldSelf` says nothing about values that are new. Expressions are compiled without the
types of the schema, so that a mistake in types is found when a rule is evaluated.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from podium.cel.environment import COST_LIMIT, compile_rule
from podium.cel.errors import CelError, CompileError, CostError
from podium.cel.evaluation import evaluated
from podium.errors import InputError
from podium.lab.api.status import FieldError, invalid_value
from podium.objects.kinds.meta import JsonObject

RULES: Final = "x-kubernetes-validations"
#: The cost of all rules about one object.
_BUDGET: Final = 10_000_000
_OLD: Final = re.compile(r"\boldSelf\b")
_REASONS: Final = {
    "FieldValueInvalid": "FieldValueInvalid",
    "FieldValueForbidden": "FieldValueForbidden",
    "FieldValueRequired": "FieldValueRequired",
    "FieldValueDuplicate": "FieldValueDuplicate",
}
#: Words that a field of a schema cannot be named by as they are.
_RESERVED: Final = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function",
     "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while")
)  # fmt: skip


class _NoFurtherRulesError(Exception):
    """The rules about an object cost too much."""

    def __init__(self, error: FieldError) -> None:
        super().__init__()
        self.error = error


class _Budget:
    """What the rules about one object may cost."""

    def __init__(self) -> None:
        self._left = _BUDGET

    def evaluate(self, step: Any, variables: dict[str, Any]) -> Any:
        """The value of an expression, or its error; `None` when all is spent."""
        found = evaluated(step, dict(variables), COST_LIMIT)
        self._left -= found.effort
        return found.result if self._left >= 0 else None


def rule_errors(schema: JsonObject, item: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """What the rules of a schema say against an object, and against its change from *old*."""
    if not has_rules(schema):
        return []
    found: list[FieldError] = []
    try:
        for error in _errors(schema, item, old, "", _Budget()):
            found.append(error)  # noqa: PERF402 - those before the end of the budget count
    except _NoFurtherRulesError as end:
        found.append(end.error)
    return found


def has_rules(schema: Any) -> bool:
    """Whether a schema has a rule anywhere."""
    return next(_rules_in(schema, ""), None) is not None


def definition_errors(schema: JsonObject, path: str) -> Iterator[FieldError]:
    """The rules of a schema that cannot be compiled."""
    for where, rule in _rules_in(schema, path):
        found = _compiled(str(rule.get("rule") or ""))
        if isinstance(found, CompileError) and not _is_unsupported(found):
            yield invalid_value(f"{where}.rule", rule.get("rule"), str(found))


def unevaluated(schema: JsonObject) -> list[str]:
    """A sentence for each rule of a schema that is not evaluated here."""
    told = []
    for _, rule in _rules_in(schema, ""):
        found = _compiled(str(rule.get("rule") or ""))
        if isinstance(found, CompileError) and _is_unsupported(found):
            why = (str(found).partition(": ")[2] or str(found)).splitlines()[0]
            told.append(f"the rule {rule.get('rule')!r} is not evaluated here: {why}")
    return told


def _is_unsupported(error: CompileError) -> bool:
    text = str(error)
    return "is not supported" in text or "undeclared reference" in text or "not installed" in text


def _rules_in(schema: Any, path: str) -> Iterator[tuple[str, JsonObject]]:
    """Every rule of a schema, with its place."""
    if not isinstance(schema, dict):
        return
    for index, rule in enumerate(schema.get(RULES) or ()):
        yield f"{path}.{RULES}[{index}]", rule
    for name, each in (schema.get("properties") or {}).items():
        yield from _rules_in(each, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        yield from _rules_in(schema.get(name), f"{path}.{name}")


def _compiled(text: str) -> Any:
    try:
        return compile_rule(text)
    except InputError:
        return CompileError("CEL: the package cel-expr-python is not installed")


def _errors(
    schema: JsonObject, value: Any, old: Any, path: str, budget: _Budget
) -> Iterator[FieldError]:
    """What rules say against a value and all in it; the path of an object itself is empty."""
    for rule in schema.get(RULES) or ():
        yield from _rule_errors(schema, rule, (value, old), path, budget)
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        before = old if isinstance(old, dict) else {}
        for name, each in value.items():
            inner = properties.get(name, others)
            if isinstance(inner, dict) and (path or name != "metadata"):
                where = f"{path}.{name}" if name in properties else f"{path}[{name}]"
                yield from _errors(inner, each, before.get(name), where.removeprefix("."), budget)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, each in enumerate(value):
            before = _element_before(schema, each, old)
            yield from _errors(schema["items"], each, before, f"{path}[{index}]", budget)


def _element_before(schema: JsonObject, element: Any, old: Any) -> Any:
    """The element of the list before that has the same keys; only lists like maps have one."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list) or not isinstance(element, dict):
        return None
    wanted = [element.get(key) for key in keys]
    return next(
        (e for e in old if isinstance(e, dict) and [e.get(key) for key in keys] == wanted), None
    )


def _rule_errors(
    schema: JsonObject, rule: JsonObject, values: tuple[Any, Any], path: str, budget: _Budget
) -> Iterator[FieldError]:
    """What one rule says about a value, given with the value before a change."""
    value, old = values
    text = str(rule.get("rule") or "")
    step = _compiled(text)
    if isinstance(step, CompileError) or value is None:
        return
    is_root = not path
    variables = {"self": _seen(schema, value, is_root=is_root)}
    if _OLD.search(text):
        if old is None:
            return
        variables["oldSelf"] = _seen(schema, old, is_root=is_root)
    place = f"{path}{rule.get('fieldPath') or ''}".removeprefix(".") or "<nil>"
    shown = "object" if is_root else schema.get("type") or "object"
    holds = budget.evaluate(step, variables)
    if holds is None:
        raise _NoFurtherRulesError(invalid_value(place, shown, _OUT_OF_BUDGET))
    if isinstance(holds, CostError):
        what = f"'{holds}': {_EXCEEDS_LIMIT}: {_plain_message(rule)}"
        raise _NoFurtherRulesError(invalid_value(place, shown, what))
    if isinstance(holds, CelError):
        what = f"{holds} evaluating rule: {_plain_message(rule)}"
        if str(holds).startswith("no such overload"):
            what = f"'{holds}': {_NO_SIGNATURE}: {_plain_message(rule)}"
        yield invalid_value(place, shown, what)
    elif holds is not True:
        reason = _REASONS.get(str(rule.get("reason") or ""), "FieldValueInvalid")
        yield FieldError(reason, place, shown, _message(rule, variables, budget))


_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_EXCEEDS_LIMIT: Final = (
    "no further validation rules will be run due to call cost exceeds limit for rule"
)
_NO_SIGNATURE: Final = (
    "call arguments did not match a supported operator, function or macro signature for rule"
)


def _message(rule: JsonObject, variables: dict[str, Any], budget: _Budget) -> str:
    """What a rule says when it does not hold."""
    expression = str(rule.get("messageExpression") or "")
    step = _compiled(expression) if expression else None
    if step is not None and not isinstance(step, CompileError):
        found = budget.evaluate(step, variables)
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found
    return _plain_message(rule)


def _plain_message(rule: JsonObject) -> str:
    message = str(rule.get("message") or "").strip()
    return message or f"failed rule: {' '.join(str(rule.get('rule') or '').split())}"


def _seen(schema: JsonObject, value: Any, *, is_root: bool = False) -> Any:
    """A value as rules see it: fields by their escaped names, numbers by the type of the schema."""
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        found = {}
        for name, each in value.items():
            if is_root and name == "metadata":
                found[name] = {k: each[k] for k in ("name", "generateName") if k in each}
            elif name in properties:
                found[escaped(name)] = _seen(properties[name], each)
            elif isinstance(others, dict):
                found[name] = _seen(others, each)
            elif is_root or schema.get("x-kubernetes-preserve-unknown-fields"):
                found[escaped(name)] = each
        return found
    if isinstance(value, list):
        items = schema.get("items")
        return [_seen(items if isinstance(items, dict) else {}, each) for each in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def escaped(name: str) -> str:
    """The name of a field as an expression writes it."""
    if name in _RESERVED:
        return f"__{name}__"
    for text, written in (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"),
                          ("/", "__slash__")):  # fmt: skip
        name = name.replace(text, written)
    return name
