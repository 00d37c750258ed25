"""Selectors: what matches, what absent and empty mean, and what invalid ones do."""

from collections.abc import Callable

import pytest

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


@pytest.mark.parametrize(
    ("operator", "values", "accepted", "rejected"),
    [
        pytest.param("In", ["a", "b"], ["a", "b"], ["c", "", None], id="In"),
        pytest.param("=", ["a"], ["a"], ["b", None], id="equals is In one value"),
        pytest.param("==", [""], [""], ["b", None], id="equal to the empty value"),
        pytest.param("NotIn", ["a"], ["b", "", None], ["a"], id="NotIn accepts an absent label"),
        pytest.param("!=", ["a"], ["b", None], ["a"], id="not equal accepts an absent label"),
        pytest.param("Exists", [], ["a", ""], [None], id="Exists"),
        pytest.param("DoesNotExist", [], [None], ["a", ""], id="DoesNotExist"),
        pytest.param(
            "Gt",
            ["5"],
            ["6", "+6", "0006", "9223372036854775807"],
            ["5", "-6", "", " 6", "6.0", "1_0", "٦", "9223372036854775808", None],
            id="Gt is strict and reads 64-bit integers only",
        ),
        pytest.param("Lt", ["05"], ["4", "-9223372036854775808"], ["5", "x", None], id="Lt"),
    ],
)
def test_requirements(
    operator: str, values: list[str], accepted: list[str | None], rejected: list[str | None]
) -> None:
    wanted = requirement("key", operator, values)

    assert [value for value in [*accepted, *rejected] if wanted.accepts(value)] == accepted


@pytest.mark.parametrize(
    ("key", "operator", "values", "text"),
    [
        pytest.param("-", "Maybe", [], 'invalid label key "-": name part must', id="the key first"),
        pytest.param(
            "k", "In", [], "for 'in', 'notin' operators, values set can't be empty", id="In nothing"
        ),
        pytest.param(
            "k", "=", ["a", "b"], "exact-match compatibility requires one single value", id="= two"
        ),
        pytest.param(
            "k",
            "Exists",
            ["-"],
            "values set must be empty for exists and does not exist",
            id="Exists with a value",
        ),
        pytest.param(
            "k",
            "Gt",
            ["1", "2"],
            "for 'Gt', 'Lt' operators, exactly one value is required",
            id="Gt two",
        ),
        pytest.param(
            "k",
            "Lt",
            ["0x5"],
            "for 'Gt', 'Lt' operators, the value must be an integer",
            id="Lt of no integer",
        ),
        pytest.param("k", "in", ["a"], "operator 'in' is not recognized", id="operators have case"),
        pytest.param(
            "k", "Gt", ["-5"], 'invalid label value: "-5": a valid label', id="no negative operands"
        ),
    ],
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


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        pytest.param(lambda: from_map(None), EVERYTHING, id="no map"),
        pytest.param(lambda: from_map({}), EVERYTHING, id="an empty map"),
        pytest.param(
            lambda: from_map({"a": "b", "k": "-x"}), EVERYTHING, id="a map with an invalid pair"
        ),
        pytest.param(lambda: from_map_literal({}), EVERYTHING, id="an empty literal map"),
        pytest.param(lambda: from_label_selector(None), NOTHING, id="no label selector"),
        pytest.param(
            lambda: from_label_selector(LabelSelector()), EVERYTHING, id="an empty label selector"
        ),
        pytest.param(lambda: from_node_requirements([]), NOTHING, id="no node requirements"),
    ],
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


@pytest.mark.parametrize(
    ("build", "text"),
    [
        pytest.param(
            lambda: from_label_selector(
                LabelSelector(match_expressions=[expression("a", "Gt", "1")])
            ),
            '"Gt" is not a valid pod selector operator',
            id="Gt is for nodes only",
        ),
        pytest.param(
            lambda: from_label_selector(LabelSelector({"a": "-"})),
            'invalid label value: "-": a valid label',
            id="an invalid label is an error here",
        ),
        pytest.param(
            lambda: from_node_requirements([expression("a", "Equals", "1")]),
            '"Equals" is not a valid node selector operator',
            id="an unknown node operator",
        ),
        pytest.param(
            lambda: from_field_requirements([expression("metadata.name", "Exists")]),
            '"Exists" is not a valid node field selector operator',
            id="an unknown field operator",
        ),
        pytest.param(
            lambda: from_field_requirements([expression("metadata.name", "In", "a", "b")]),
            'unexpected number of value (2) for node field selector operator "In"',
            id="a field with two values",
        ),
    ],
)
def test_builders_that_refuse(build: Callable[[], object], text: str) -> None:
    with pytest.raises(SelectorError) as error:
        build()

    assert str(error.value).startswith(text)


@pytest.mark.parametrize(
    ("selector", "fields", "matches"),
    [
        pytest.param(("metadata.name", "In", "n"), {"metadata.name": "n"}, True, id="equal"),
        pytest.param(("metadata.name", "NotIn", "n"), {"metadata.name": "n"}, False, id="unequal"),
        pytest.param(("metadata.name", "In", "n"), {}, False, id="an unknown field is empty text"),
        pytest.param(("spec.x", "In", ""), {}, True, id="and equals empty text"),
        pytest.param(("metadata.name", "NotIn", "n"), {}, True, id="and differs from other text"),
    ],
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


@pytest.mark.parametrize(
    ("terms", "labels", "matches"),
    [
        pytest.param(None, {}, False, id="no terms match no node"),
        pytest.param([NodeSelectorTerm()], {}, False, id="an empty term matches no node"),
        pytest.param([ZONE], {"zone": "a"}, True, id="labels alone"),
        pytest.param([NAME], {}, True, id="fields alone"),
        pytest.param([ZONE, NAME], {"zone": "b"}, True, id="any term will do"),
        pytest.param([BROKEN], {"zone": "a"}, False, id="an invalid term matches no node"),
        pytest.param([BROKEN, ZONE], {"zone": "a"}, True, id="the terms beside it still count"),
        pytest.param(
            [NodeSelectorTerm(ZONE.match_expressions, [expression("metadata.name", "In", "n2")])],
            {"zone": "a"},
            False,
            id="labels and fields must both match",
        ),
    ],
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
