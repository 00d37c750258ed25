"""Selectors as kubectl's flags take them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.selectors.selectors import (
    EVERYTHING,
    NOTHING,
    FieldRequirement,
    Requirement,
    Selector,
    SelectorError,
    parse_field_selector,
    parse_selector,
    requirement,
)


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", [], id="nothing selects everything"),
        pytest.param(" \t ", [], id="blanks, too"),
        pytest.param("a=b", [("a", "In", ["b"])], id="equals"),
        pytest.param("a == b", [("a", "In", ["b"])], id="blanks around the operator"),
        pytest.param("a=", [("a", "In", [""])], id="equal to nothing"),
        pytest.param("a!=b", [("a", "NotIn", ["b"])], id="not equals"),
        pytest.param("a", [("a", "Exists", [])], id="a key alone"),
        pytest.param("! a", [("a", "DoesNotExist", [])], id="no such key"),
        pytest.param("a>5,b<6", [("a", "Gt", ["5"]), ("b", "Lt", ["6"])], id="numbers"),
        pytest.param("b,a", [("a", "Exists", []), ("b", "Exists", [])], id="sorted by key"),
        pytest.param("a in (y, x,y)", [("a", "In", ["x", "y"])], id="a set, sorted"),
        pytest.param("a notin (x)", [("a", "NotIn", ["x"])], id="not in a set"),
        pytest.param("a in ()", [("a", "In", [""])], id="an empty set holds the empty value"),
        pytest.param("a in (,x,,y)", [("a", "In", ["", "x", "y"])], id="commas in a row"),
        pytest.param("a in (x,)", [("a", "In", ["", "x"])], id="a comma at the end"),
        pytest.param("in in (in,notin)", [("in", "In", ["in", "notin"])], id="words as values"),
    ],
)
def test_label_selectors(text: str, requirements: list[tuple[str, str, list[str]]]) -> None:
    expected = [Requirement(key, operator, tuple(values)) for key, operator, values in requirements]

    assert list(parse_selector(text).requirements) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("(", "found '(', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: '=', '!=', '==', 'in', notin'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (x y)", "unable to parse requirement: found 'y', expected: ',' or ')'"),
        ("a in (x,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a>b", "unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an int"),
        ("-a", 'unable to parse requirement: invalid label key "-a": name part must consist'),
    ],
)
def test_label_selectors_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_selector(text)

    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("a == b", "a=b"),
        ("a in (b)", "a=b"),
        ("a notin (b)", "a!=b"),
        ("a in (y, x)", "a in (x,y)"),
        ("a notin (y,x)", "a notin (x,y)"),
        ("c,! b,a>5,a<7", "a>5,a<7,!b,c"),
    ],
)
def test_a_selector_has_a_text(text: str, written: str) -> None:
    assert str(parse_selector(text)) == written
    assert parse_selector(written) == parse_selector(text)


def test_requirements_can_be_added() -> None:
    wanted = requirement("b", "In", ["x", "y"])

    assert str(parse_selector("c,a").add(wanted)) == "a,b in (x,y),c"
    assert EVERYTHING.add(wanted).matches({"b": "y"})
    assert NOTHING.add(wanted) == NOTHING
    assert str(NOTHING) == ""


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", [], id="nothing selects everything"),
        pytest.param("metadata.name=a", [("metadata.name", True, "a")], id="equals"),
        pytest.param("b!=c,,a==", [("a", True, ""), ("b", False, "c")], id="several, sorted"),
        pytest.param(r"a=b\,c\=d\\", [("a", True, r"b,c=d" + "\\")], id="escaped characters"),
    ],
)
def test_field_selectors(text: str, requirements: list[tuple[str, bool, str]]) -> None:
    expected = [FieldRequirement(*each) for each in requirements]

    assert list(parse_field_selector(text).requirements) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_field_selectors_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as error:
        parse_field_selector(text)

    assert str(error.value) == message


@given(st.text("ab=!(),<>in not\\ \t1", max_size=20))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    for read in (parse_selector, parse_field_selector):
        try:
            found = read(text)
        except SelectorError:
            continue
        if isinstance(found, Selector):
            assert parse_selector(str(found)) == found
