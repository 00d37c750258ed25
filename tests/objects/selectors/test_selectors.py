"""Selectors: what matches, what absent and empty mean, and what invalid ones do."""

from collections.abc import Callable

import pytest

from cases import cases
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelector, NodeSelectorTerm
from podium.objects.kinds.storage import TopologySelectorTerm
from podium.objects.selectors.selectors import (
    EVERYTHING,
    NOTHING,
    FieldSelector,
    Requirement,
    Selector,
    SelectorError,
    from_field_requirements,
    from_label_selector,
    from_map,
    from_map_literal,
    from_node_requirements,
    matches_terms,
    node_terms,
    requirement,
    topology_terms,
)


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=list(values))


@cases(
    ("operator", "values", "accepted", "rejected"),
    {
        "In": ("In", ["a", "b"], ["a", "b"], ["c", "", None]),
        "equals is In one value": ("=", ["a"], ["a"], ["b", None]),
        "equal to the empty value": ("==", [""], [""], ["b", None]),
        "NotIn accepts an absent label": ("NotIn", ["a"], ["b", "", None], ["a"]),
        "not equal accepts an absent label": ("!=", ["a"], ["b", None], ["a"]),
        "Exists": ("Exists", [], ["a", ""], [None]),
        "DoesNotExist": ("DoesNotExist", [], [None], ["a", ""]),
        "Gt is strict and reads 64-bit integers only": (
            "Gt",
            ["5"],
            ["6", "+6", "0006", "9223372036854775807"],
            ["5", "-6", "", " 6", "6.0", "1_0", "٦", "9223372036854775808", None],
        ),
        "Lt": ("Lt", ["05"], ["4", "-9223372036854775808"], ["5", "x", None]),
    },
)
def test_requirements(
    operator: str, values: list[str], accepted: list[str | None], rejected: list[str | None]
) -> None:
    wanted = requirement("key", operator, values)

    assert [value for value in [*accepted, *rejected] if wanted.accepts(value)] == accepted


@cases(
    ("key", "operator", "values", "text"),
    {
        "the key first": ("-", "Maybe", [], 'invalid label key "-": name part must'),
        "In nothing": ("k", "In", [], "for 'in', 'notin' operators, values set can't be empty"),
        "= two": ("k", "=", ["a", "b"], "exact-match compatibility requires one single value"),
        "Exists with a value": (
            "k",
            "Exists",
            ["-"],
            "values set must be empty for exists and does not exist",
        ),
        "Gt two": (
            "k",
            "Gt",
            ["1", "2"],
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        "Lt of no integer": (
            "k",
            "Lt",
            ["0x5"],
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        "operators have case": ("k", "in", ["a"], "operator 'in' is not recognized"),
        "no negative operands": ("k", "Gt", ["-5"], 'invalid label value: "-5": a valid label'),
    },
)
def test_requirements_are_refused_in_order(
    key: str, operator: str, values: list[str], text: str
) -> None:
    with pytest.raises(SelectorError) as error:
        requirement(key, operator, values)

    assert str(error.value).startswith(text)


def test_equal_selectors_are_equal_values() -> None:
    one = from_map({"a": "1", "b": "2"})
    other = from_label_selector(LabelSelector(match_labels={"b": "2", "a": "1"}))

    assert one == other
    assert hash(one) == hash(other)
    assert one.requirements == (Requirement("a", "In", ("1",)), Requirement("b", "In", ("2",)))


@cases(
    ("build", "expected"),
    {
        "no map": (lambda: from_map(None), EVERYTHING),
        "an empty map": (lambda: from_map({}), EVERYTHING),
        "a map with an invalid pair": (lambda: from_map({"a": "b", "k": "-x"}), EVERYTHING),
        "an empty literal map": (lambda: from_map_literal({}), EVERYTHING),
        "no label selector": (lambda: from_label_selector(None), NOTHING),
        "an empty label selector": (lambda: from_label_selector(LabelSelector()), EVERYTHING),
        "no node requirements": (lambda: from_node_requirements([]), NOTHING),
    },
)
def test_absent_and_empty(build: Callable[[], Selector], expected: Selector) -> None:
    assert build() == expected


def test_everything_and_nothing() -> None:
    assert EVERYTHING.matches({})
    assert EVERYTHING.empty
    assert not NOTHING.matches({})
    assert not NOTHING.empty


def test_a_literal_map_compares_invalid_pairs() -> None:
    selector = from_map_literal({"k": "-x"})

    assert selector.matches({"k": "-x"})
    assert not selector.matches({})


def test_labels_and_expressions_are_all_required() -> None:
    selector = from_label_selector(
        LabelSelector(
            {"a": "1"}, [expression("b", "In", "2", "3"), expression("c", "DoesNotExist")]
        )
    )

    assert selector.matches({"a": "1", "b": "3"})
    assert not selector.matches({"a": "1", "b": "3", "c": ""})
    assert not selector.matches({"b": "3"})


@cases(
    ("build", "text"),
    {
        "Gt is for nodes only": (
            lambda: from_label_selector(
                LabelSelector(match_expressions=[expression("a", "Gt", "1")])
            ),
            '"Gt" is not a valid pod selector operator',
        ),
        "an invalid label is an error here": (
            lambda: from_label_selector(LabelSelector({"a": "-"})),
            'invalid label value: "-": a valid label',
        ),
        "an unknown node operator": (
            lambda: from_node_requirements([expression("a", "Equals", "1")]),
            '"Equals" is not a valid node selector operator',
        ),
        "an unknown field operator": (
            lambda: from_field_requirements([expression("metadata.name", "Exists")]),
            '"Exists" is not a valid node field selector operator',
        ),
        "a field with two values": (
            lambda: from_field_requirements([expression("metadata.name", "In", "a", "b")]),
            'unexpected number of value (2) for node field selector operator "In"',
        ),
    },
)
def test_builders_that_refuse(build: Callable[[], object], text: str) -> None:
    with pytest.raises(SelectorError) as error:
        build()

    assert str(error.value).startswith(text)


@cases(
    ("selector", "fields", "matches"),
    {
        "equal": (("metadata.name", "In", "n"), {"metadata.name": "n"}, True),
        "unequal": (("metadata.name", "NotIn", "n"), {"metadata.name": "n"}, False),
        "an unknown field is empty text": (("metadata.name", "In", "n"), {}, False),
        "and equals empty text": (("spec.x", "In", ""), {}, True),
        "and differs from other text": (("metadata.name", "NotIn", "n"), {}, True),
    },
)
def test_field_selectors(
    selector: tuple[str, ...],
    fields: dict[str, str],
    matches: bool,
) -> None:
    assert from_field_requirements([expression(*selector)]).matches(fields) is matches


def test_no_field_requirements_match_nothing() -> None:
    assert from_field_requirements([]) == FieldSelector(nothing=True)
    assert not from_field_requirements([]).matches({})
    assert FieldSelector().matches({})


ZONE = NodeSelectorTerm(match_expressions=[expression("zone", "In", "a")])
NAME = NodeSelectorTerm(match_fields=[expression("metadata.name", "In", "n1")])
BROKEN = NodeSelectorTerm(
    match_expressions=[expression("zone", "In")], match_fields=NAME.match_fields
)


@cases(
    ("terms", "labels", "matches"),
    {
        "no terms match no node": (None, {}, False),
        "an empty term matches no node": ([NodeSelectorTerm()], {}, False),
        "labels alone": ([ZONE], {"zone": "a"}, True),
        "fields alone": ([NAME], {}, True),
        "any term will do": ([ZONE, NAME], {"zone": "b"}, True),
        "an invalid term matches no node": ([BROKEN], {"zone": "a"}, False),
        "the terms beside it still count": ([BROKEN, ZONE], {"zone": "a"}, True),
        "labels and fields must both match": (
            [NodeSelectorTerm(ZONE.match_expressions, [expression("metadata.name", "In", "n2")])],
            {"zone": "a"},
            False,
        ),
    },
)
def test_node_terms(
    terms: list[NodeSelectorTerm] | None,
    labels: dict[str, str],
    matches: bool,
) -> None:
    built = node_terms(NodeSelector(node_selector_terms=terms))

    assert matches_terms(built, labels, {"metadata.name": "n1"}) is matches


def topology(*expressions: LabelSelectorRequirement) -> TopologySelectorTerm:
    return TopologySelectorTerm(match_label_expressions=list(expressions))


def test_topology_terms() -> None:
    zone = LabelSelectorRequirement(key="zone", values=["a", "b"])
    broken = LabelSelectorRequirement(key="zone")

    assert topology_terms(None) is None
    assert topology_terms([]) is None
    assert topology_terms([topology(), topology(broken)]) == ()
    assert topology_terms([topology(zone), topology(broken)]) == (
        Selector((Requirement("zone", "In", ("a", "b")),)),
    )
