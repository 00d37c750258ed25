"""Templates with expressions in braces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.workloads import Service
from podium_research.bench.templates import UNNAMED, GoTemplate, Template, evaluate

POD = """
kind: Pod
apiVersion: v1
metadata:
  generateName: p-
  labels: {number: "%s"}
spec:
  containers: [{name: main, image: x}]
"""


@pytest.fixture
def template(tmp_path: Path) -> Callable[[str], Template]:
    def make(text: str) -> Template:
        path = tmp_path / "template.yaml"
        path.write_text(text)
        return Template(path)

    return make


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (".Index", 7),
        (" .Count ", 20),
        ("Mod .Index 3", 1),
        ("DivideInt .Index 2", 3),
        ("DivideFloat 1 4", 0.25),
        ("AddInt .Index .Count 1", 28),
        ("AddFloat 0.5 1", 1.5),
        ("SubtractInt .Count .Index", 13),
        ("SubtractFloat 1 0.25", 0.75),
        ("MultiplyInt 2 3 4", 24),
        ("MultiplyFloat 1.5 2", 3.0),
        ("Mod (AddInt .Index 1) (DivideInt .Count 4)", 3),
        ("12", 12),
        ("(or .Other nil) | JSON", "null"),
        ("(or .List nil) | JSON", '[{"cel":"a"}]'),
    ],
)
def test_what_stands_between_braces_is_computed(expression: str, value: float | str) -> None:
    assert evaluate(expression, {"Index": 7, "Count": 20, "List": [{"cel": "a"}]}) == value


@pytest.mark.parametrize(
    "expression",
    ["", ".Other", "Shout .Index", "Mod .Index 0", "Mod .Index", "1 2", "if .Index", "(Mod 1 2"],
)
def test_what_cannot_be_computed_is_said(expression: str) -> None:
    with pytest.raises(InputError, match=r"cannot fill in .*known: \.Index, \.Count, AddFloat"):
        evaluate(expression, {"Index": 7, "Count": 20})


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{range 3}}{{.}},{{end}}", "0,1,2,"),
        ("{{$n := or .many 2}}{{range $i := ($n | Int)}}<{{$i}}{{Mod . 2}}>{{end}}", "<00><11>"),
        ("{{if .wanted}}a{{else}}b{{end}}", "b"),
        ("{{if eq .Index 7}}a{{else if .wanted}}b{{else}}c{{end}}", "a"),
        ("{{if ge .Index (8 | Int)}}a{{else if not .wanted}}b{{end}}", "b"),
        ("a {{- .Index -}} b", "a7b"),
        ('{{or .text "x y"}}', "x y"),
        ("{{/* nothing */}}", ""),
    ],
)
def test_blocks_and_variables(text: str, filled: str) -> None:
    assert GoTemplate(text).filled({"Index": 7}) == filled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{range 3}}", "{{range}} has no {{end}}"),
        ("{{if .Index}}{{else}}", "{{if}} has no {{end}}"),
        ("{{end}}", "{{end}} has no beginning"),
    ],
)
def test_blocks_that_are_not_whole(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        GoTemplate(text)
    assert words in str(error.value)


def test_a_place_is_filled_in_for_each_object(template: Callable[[str], Template]) -> None:
    made = template(POD % "{{.Index}}-of-{{ .Count }}")

    assert [made.make(index, 2).labels["number"] for index in (0, 1)] == ["0-of-2", "1-of-2"]


def test_equal_objects_are_read_once(template: Callable[[str], Template]) -> None:
    made = template(POD % "{{Mod .Index 2}}")

    assert made.make(0, 4) is made.make(2, 4)
    assert made.make(0, 4) is not made.make(1, 4)


def test_an_object_without_a_name_gets_one_later(template: Callable[[str], Template]) -> None:
    found = template("kind: Service\napiVersion: v1\nspec: {selector: {a: b}}").make(0, 1)

    assert isinstance(found, Service)
    assert found.name == UNNAMED


def test_an_object_is_completed_as_an_api_server_does(
    template: Callable[[str], Template],
) -> None:
    limits = "{resources: {limits: {cpu: 1}}, name: main, image: x}"
    found = template((POD % "1").replace("{name: main, image: x}", limits)).make(0, 1)

    assert isinstance(found, Pod)
    assert found.spec.containers
    resources = found.spec.containers[0].resources
    assert resources
    assert resources.requests == {"cpu": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [", "is not readable YAML", id="no YAML"),
        pytest.param("[1]", "must hold exactly one object", id="a list"),
        pytest.param(f"{POD % 1}---{POD % 2}", "must hold exactly one object", id="two objects"),
        pytest.param("kind: DeviceClass\napiVersion: x/v1", "holds DeviceClass", id="other kind"),
        pytest.param(POD % "{{.Name}}", "cannot fill in {{.Name}}", id="unknown name"),
    ],
)
def test_a_template_that_cannot_be_used_is_named(
    template: Callable[[str], Template], text: str, words: str
) -> None:
    with pytest.raises(InputError, match=r"template\.yaml") as error:
        template(text).make(0, 1)

    assert words in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: no such file"):
        Template(tmp_path / "none.yaml")
