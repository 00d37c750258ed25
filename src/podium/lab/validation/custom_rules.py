"""Rules in CEL of the schemas of custom objects (`x-kubernetes-validations`).

A rule sees the value it stands at as `self`, and as `oldSelf` the value before a change; a rule
that names `oldSelf` says nothing about values that are new. Expressions are compiled without the
types of the schema, so that a mistake in types is found when a rule is evaluated.

Upstream: apiextensions-apiserver/pkg/apiserver/schema/cel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from podium.engine.rules.devices.cel.environment import (
    COST_LIMIT,
    compile_rule,
)
from podium.engine.rules.devices.cel.errors import CelError, CompileError
from podium.engine.rules.devices.cel.evaluation import Scope
from podium.errors import InputError
from podium.lab.api.field_errors import FieldError, invalid_value
from podium.objects.kinds.meta import JsonObject

RULES: Final = "x-kubernetes-validations"
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


def rule_errors(schema: JsonObject, item: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """What the rules of a schema say against an object, and against its change from *old*."""
    if not has_rules(schema):
        return []
    return list(_errors(schema, item, old, "", is_root=True))


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


@cache
def _compiled(text: str) -> Any:
    try:
        return compile_rule(text)
    except InputError:
        return CompileError("CEL: the package cel-expr-python is not installed")


def _errors(
    schema: JsonObject, value: Any, old: Any, path: str, *, is_root: bool = False
) -> Iterator[FieldError]:
    for rule in schema.get(RULES) or ():
        yield from _rule_errors(schema, rule, value, old, path, is_root=is_root)
    if isinstance(value, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        before = old if isinstance(old, dict) else {}
        for name, each in value.items():
            inner = properties.get(name, others)
            if isinstance(inner, dict) and not (is_root and name == "metadata"):
                where = f"{path}.{name}" if name in properties else f"{path}[{name}]"
                yield from _errors(inner, each, before.get(name), where.removeprefix("."))
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, each in enumerate(value):
            before = _element_before(schema, each, old)
            yield from _errors(schema["items"], each, before, f"{path}[{index}]")


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
    schema: JsonObject, rule: JsonObject, value: Any, old: Any, path: str, *, is_root: bool
) -> Iterator[FieldError]:
    text = str(rule.get("rule") or "")
    step = _compiled(text)
    if isinstance(step, CompileError) or value is None:
        return
    variables = {"self": _seen(schema, value, is_root=is_root)}
    if _OLD.search(text):
        if old is None:
            return
        variables["oldSelf"] = _seen(schema, old, is_root=is_root)
    place = f"{path}{rule.get('fieldPath') or ''}".removeprefix(".") or "<nil>"
    shown = "object" if is_root else schema.get("type") or "object"
    try:
        holds = step(Scope(dict(variables), COST_LIMIT))
    except CelError as error:
        text = f"{error} evaluating rule: {_message(rule, variables)}"
        yield invalid_value(place, shown, text)
        return
    if holds is not True:
        reason = _REASONS.get(str(rule.get("reason") or ""), "FieldValueInvalid")
        yield FieldError(reason, place, shown, _message(rule, variables))


def _message(rule: JsonObject, variables: dict[str, Any]) -> str:
    """What a rule says when it does not hold."""
    expression = str(rule.get("messageExpression") or "")
    step = _compiled(expression) if expression else None
    if step is not None and not isinstance(step, CompileError):
        try:
            found = step(Scope(dict(variables), COST_LIMIT))
        except CelError:
            found = None
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found
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
