"""Label selectors: read from text, maps and objects, and matched.

The grammar and the error texts are those of `kubectl --selector` and `--field-selector`.

Upstream: apimachinery/pkg/labels and pkg/fields, Kubernetes v1.13.

Each builder has its own rule for absent, empty and invalid input, and the rules differ on purpose:

| built from | absent | empty | invalid |
|---|---|---|---|
| a plain map (`from_map`) | everything | everything | everything |
| a `LabelSelector` | nothing | everything | `SelectorError` |
| node requirements | nothing | nothing | `SelectorError` |
| node selector terms | no terms | no terms | the term is dropped |
| topology terms | everything | everything | the term is dropped |

Upstream: apimachinery/pkg/apis/meta/v1 and pkg/apis/core/v1/helper, Kubernetes v1.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelector, NodeSelectorTerm
from podium.objects.kinds.storage import TopologySelectorTerm
from podium.objects.names import (
    is_qualified_name,
    label_key_reasons,
    label_value_reasons,
    quoted,
)
from podium.objects.selectors.requirements import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    FieldSelector,
    Requirement,
    Selector,
    SelectorError,
    conjunction,
    requirement,
)

_TOKEN = re.compile(r"[ \t\r\n]*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^=!(),<> \t\r\n]+))")
_END = ""  # the word after the last one
_SYMBOLS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">", _END})
_OPERATORS = {"in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_EXACT = frozenset({"=", "==", "!="})
_FIELD_TERM = re.compile(r"(?P<field>.*?)(?P<operator>!=|==|=)(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def parse_selector(text: str) -> Selector:
    """The label selector in *text*; the empty text selects everything."""
    return conjunction(_Parser(text).requirements())


class _Parser:
    """Reads tokens from left to right; `in` and `notin` are words where a value is expected."""

    def __init__(self, text: str) -> None:
        found = _TOKEN.finditer(text)
        self.tokens = [match["symbol"] or match["word"] for match in found] + [_END]
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position]

    def take(self) -> str:
        word = self.tokens[self.position]
        # Staying on the last word makes "unexpected end" an ordinary mismatch.
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return word

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while (word := self.peek()) != _END:
            if word in _SYMBOLS - {"!"}:
                raise SelectorError(_expected(word, "!, identifier, or 'end of string'"))
            try:
                found.append(self.requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            self.separator()
        return found

    def separator(self) -> None:
        word = self.take()
        if word not in {",", _END}:
            raise SelectorError(_expected(word, "',' or 'end of string'"))
        if word == "," and self.peek() in _SYMBOLS - {"!"}:
            raise SelectorError(_expected(self.peek(), "identifier after ','"))

    def requirement(self) -> Requirement:
        absent = self.peek() == "!"
        if absent:
            self.take()
        key = self.take()
        if key in _SYMBOLS:
            raise SelectorError(_expected(key, "identifier"))
        if not is_qualified_name(key):
            reasons = "; ".join(label_key_reasons(key))
            raise SelectorError(f"invalid label key {quoted(key)}: {reasons}")
        if absent:
            return requirement(key, "DoesNotExist", ())
        if self.peek() in {",", _END}:
            return requirement(key, "Exists", ())
        operator = self.take()
        if operator not in _OPERATORS and operator not in _EXACT:
            raise SelectorError(_expected(operator, "'=', '!=', '==', 'in', notin'"))
        values = self.values() if operator in {"in", "notin"} else self.value()
        return requirement(key, _OPERATORS.get(operator, operator), values)

    def value(self) -> list[str]:
        if self.peek() in {",", _END}:
            return [""]
        word = self.take()
        if word in _SYMBOLS:
            raise SelectorError(_expected(word, "identifier"))
        return [word]

    def values(self) -> list[str]:
        word = self.take()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        if self.peek() in _SYMBOLS - {",", ")"}:
            raise SelectorError(_expected(self.peek(), "',', ')' or identifier"))
        found = {""} if self.peek() in {",", ")"} else set()
        while (word := self.take()) != ")":
            if word == ",":
                # Two commas in a row, or one before the bracket, mean an empty value.
                if self.peek() in {",", ")"}:
                    found.add("")
            elif word in _SYMBOLS:
                raise SelectorError(_expected(word, "',', or identifier"))
            elif self.peek() not in {",", ")"}:
                raise SelectorError(_expected(self.peek(), "',' or ')'"))
            else:
                found.add(word)
        return sorted(found)


def _expected(found: str, wanted: str) -> str:
    return f"found '{found}', expected: {wanted}"


def parse_field_selector(text: str) -> FieldSelector:
    """The field selector that *text* stands for; the empty text selects everything."""
    terms = sorted(re.findall(r"(?:\\.|[^\\,]|\\\Z)+", text, re.DOTALL))
    return FieldSelector(tuple(_field(term, text) for term in terms))


def _field(term: str, text: str) -> FieldRequirement:
    match = _FIELD_TERM.fullmatch(term)
    if not match:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _ESCAPED.sub(_unescaped, match["value"])
    return FieldRequirement(match["field"], match["operator"] != "!=", value)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        code = ord(match[0])  # upstream prints the number of the character
        raise SelectorError(f"invalid field selector: unescaped character in value: {code}")
    if match[1] not in {"\\", ",", "="} or not match[1]:
        raise SelectorError(f"invalid field selector: invalid escape sequence: {match[0]}")
    return match[1]


__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldRequirement",
    "FieldSelector",
    "NodeTerm",
    "Requirement",
    "Selector",
    "SelectorError",
    "from_field_requirements",
    "from_label_selector",
    "from_map",
    "from_map_literal",
    "from_node_requirements",
    "is_qualified_name",
    "label_key_reasons",
    "label_value_reasons",
    "matches_terms",
    "node_term_fault",
    "node_terms",
    "parse_field_selector",
    "parse_selector",
    "requirement",
    "topology_terms",
]

_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS = _LABEL_OPERATORS | {"Gt", "Lt"}


def from_map(labels: Mapping[str, str] | None) -> Selector:
    """Every pair must be there. One invalid pair and the selector matches everything."""
    try:
        return conjunction([requirement(key, "=", [val]) for key, val in (labels or {}).items()])
    except SelectorError:
        return EVERYTHING


def from_map_literal(labels: Mapping[str, str] | None) -> Selector:
    """Every pair must be there, invalid ones too: how services and controllers find their pods."""
    return conjunction([Requirement(key, "In", (val,)) for key, val in (labels or {}).items()])


def from_label_selector(selector: LabelSelector | None, kind: str = "pod selector") -> Selector:
    """Labels and expressions together. Absent selects nothing, empty everything.

    *kind* is what a refusal calls it: generations differ.
    """
    if selector is None:
        return NOTHING
    pairs = sorted((selector.match_labels or {}).items())
    wanted = [requirement(key, "=", [value]) for key, value in pairs]
    wanted += _expressions(selector.match_expressions, _LABEL_OPERATORS, kind)
    return conjunction(wanted)


def from_node_requirements(expressions: Sequence[LabelSelectorRequirement] | None) -> Selector:
    """The matchExpressions of one node selector term; none select nothing."""
    if not expressions:
        return NOTHING
    return conjunction(_expressions(expressions, _NODE_OPERATORS, "node selector"))


def _expressions(
    expressions: Iterable[LabelSelectorRequirement] | None, legal: frozenset[str], kind: str
) -> list[Requirement]:
    wanted = []
    for expression in expressions or ():
        if expression.operator not in legal:
            raise SelectorError(f"{quoted(expression.operator)} is not a valid {kind} operator")
        wanted.append(requirement(expression.key, expression.operator, expression.values))
    return wanted


def from_field_requirements(
    expressions: Sequence[LabelSelectorRequirement] | None,
) -> FieldSelector:
    """The matchFields of one node selector term; none select nothing."""
    if not expressions:
        return FieldSelector(nothing=True)
    return FieldSelector(tuple(map(_field_requirement, expressions)))


def _field_requirement(expression: LabelSelectorRequirement) -> FieldRequirement:
    operator, values = expression.operator, expression.values or []
    if operator not in {"In", "NotIn"}:
        raise SelectorError(f"{quoted(operator)} is not a valid node field selector operator")
    if len(values) != 1:
        raise SelectorError(
            f"unexpected number of value ({len(values)}) "
            f"for node field selector operator {quoted(operator)}"
        )
    return FieldRequirement(expression.key, operator == "In", values[0])


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector, ready to match; an absent half places no condition."""

    labels: Selector | None
    fields: FieldSelector | None

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Whether a node with these *labels* and *fields* satisfies both halves."""
        if self.labels is not None and not self.labels.matches(labels):
            return False
        return self.fields is None or self.fields.matches(fields)


def node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms that can match at all: empty and invalid ones match no node and are left out."""
    terms = []
    for term in selector.node_selector_terms or ():
        try:
            built = _node_term(term)
        except SelectorError:
            continue
        if built.labels is not None or built.fields is not None:
            terms.append(built)
    return tuple(terms)


def node_term_fault(term: NodeSelectorTerm) -> str:
    """Why a term is not valid, in the words of Kubernetes; empty if it is."""
    try:
        _node_term(term)
    except SelectorError as error:
        return str(error)
    return ""


def _node_term(term: NodeSelectorTerm) -> NodeTerm:
    labels, fields = term.match_expressions, term.match_fields
    return NodeTerm(
        from_node_requirements(labels) if labels else None,
        from_field_requirements(fields) if fields else None,
    )


def matches_terms(
    terms: Iterable[NodeTerm], labels: Mapping[str, str], fields: Mapping[str, str]
) -> bool:
    """Whether any term matches; no terms match no node."""
    return any(term.matches(labels, fields) for term in terms)


def topology_terms(terms: Sequence[TopologySelectorTerm] | None) -> tuple[Selector, ...] | None:
    """The allowedTopologies of a storage class, any of which must match; `None`: no condition."""
    if not terms:
        return None
    selectors = []
    for term in terms:
        expressions = term.match_label_expressions or ()
        try:
            wanted = [requirement(each.key, "In", each.values) for each in expressions]
        except SelectorError:
            continue
        if wanted:
            selectors.append(conjunction(wanted))
    return tuple(selectors)
