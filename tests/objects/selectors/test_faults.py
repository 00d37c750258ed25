"""What is wrong with selectors, in the words recorded from the plugins generation."""

from __future__ import annotations

import pytest

from podium.objects.field_errors import together
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import NodeSelectorTerm, PreferredSchedulingTerm
from podium.objects.selectors.faults import label_selector_fault, preferences_fault

VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def expression(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, list(values) or None)


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        (None, ""),
        (LabelSelector({"a": "1"}), ""),
        (LabelSelector({"a": "-"}), f'values[0][a]: Invalid value: "-": {VALUE}'),
        (
            LabelSelector(None, [expression("a", "Gt", "1")]),
            '"Gt" is not a valid label selector operator',
        ),
        (
            LabelSelector(None, [expression("a", "In")]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            LabelSelector(None, [expression("a", "Exists", "<b>")]),
            (
                '[values: Invalid value: ["\\u003cb\\u003e"]: values set must be empty for '
                f'exists and does not exist, values[0][a]: Invalid value: "<b>": {VALUE}]'
            ),
        ),
        (
            LabelSelector({"a/b/c": "1"}),
            (
                'key: Invalid value: "a/b/c": a valid label key must consist of alphanumeric '
                "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
                "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional "
                "DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ),
        ),
        (
            LabelSelector({"k" * 64: "1"}),
            f'key: Invalid value: "{"k" * 64}": name part must be no more than 63 bytes',
        ),
    ],
)
def test_the_first_wrong_requirement_of_a_label_selector(
    selector: LabelSelector | None, fault: str
) -> None:
    assert label_selector_fault(selector) == fault


def test_all_that_is_wrong_with_preferences_and_where() -> None:
    skipped = PreferredSchedulingTerm(0, NodeSelectorTerm([expression("a", "No")]))
    numbers = NodeSelectorTerm([expression("a", "Exists"), expression("a", "Lt", "x", "2")])
    fields = NodeSelectorTerm(None, [expression("metadata.name", "Exists")])
    preferred = [skipped, *(PreferredSchedulingTerm(1, term) for term in (numbers, fields))]

    assert preferences_fault(preferred) == (
        "[[1].matchExpressions[1].values: Invalid value: [\"x\",\"2\"]: for 'Gt', 'Lt' operators, "
        'exactly one value is required, [1].matchExpressions[1].values[0]: Invalid value: "x": '
        "for 'Gt', 'Lt' operators, the value must be an integer, "
        '[2].matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"]'
    )


def test_the_same_fault_twice_is_told_once() -> None:
    assert together(["a", "a"]) == "a"
    assert together(["a", "b", "a"]) == "[a, b]"
    assert together([]) == ""
