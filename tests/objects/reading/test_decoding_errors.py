"""What cannot be read ends in one sentence, whatever it is."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import InputError
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate

DEEP = 200_000


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            '{"kind": "Pod",\n "metadata": {"name": "a" "b"}}',
            "f: is not readable JSON at line 2, column 27: ",
            id="malformed JSON",
        ),
        pytest.param(
            '{"kind": "Pod", "metadata": {"name": "a"',
            "f: is not readable JSON: it ends too early; is the file complete?",
            id="truncated JSON",
        ),
        pytest.param("kind: Pod\nmetadata: {na", "f: is not readable YAML at line", id="cut YAML"),
        pytest.param("hello", "f: document at line 1: is text, not a Kubernetes object", id="text"),
        pytest.param("[1]", "f: item 1: is a number, not a Kubernetes object", id="numbers"),
        pytest.param(
            '{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"}}, null]}',
            "f: item 2: is nothing (null), not a Kubernetes object",
            id="a list with a hole",
        ),
        pytest.param("[[]]", None, id="empty lists"),
        pytest.param("a: 1", "f: document at line 1: kind: is missing; every object", id="no kind"),
        pytest.param(
            '{"metadata": {"name": "a"}}', "f: a: kind: is missing; every object", id="a bare name"
        ),
        pytest.param("kind: 5", "f: document at line 1: kind: is not text", id="a number as kind"),
        pytest.param('{"kind": "Pod"}', "f: Pod: metadata.name: has no name", id="no name"),
        pytest.param(
            '{"kind": "Node", "metadata": {"generateName": "a"}}',
            "f: Node: metadata.name: has no name",
            id="a node must have a name",
        ),
        pytest.param(
            '{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{},{"image":5}]}}',
            "f: Pod default/a: spec.containers[1].image: expected text, got a whole number (5); "
            'write it in quotes: "5"',
            id="a number for text",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a, namespace: b, labels: {ok: x, app.io/on: true}}}",
            'f: Pod b/a: metadata.labels["app.io/on"]: expected text, got true or false (true); '
            'write it in quotes: "true"',
            id="a boolean label",
        ),
        pytest.param(
            "{kind: Deployment, metadata: {name: a}, spec: {replicas: '3'}}",
            "f: Deployment default/a: spec.replicas: expected a whole number, got text ('3'); "
            "write it without quotes: 3",
            id="text for a number",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a}, spec: {priority: 3000000000}}",
            "f: Pod default/a: spec.priority: is 3000000000; it must be at most 2147483647",
            id="a number that is too large",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a}, spec: {containers: {}}}",
            "f: Pod default/a: spec.containers: expected a list, got a mapping",
            id="a mapping for a list",
        ),
        pytest.param(
            "{kind: Node, metadata: {name: a}, status: {capacity: {cpu: [1]}}}",
            "f: Node a: status.capacity.cpu: expected a quantity, got a list",
            id="a list for a quantity",
        ),
        pytest.param(
            "{kind: Pod, metadata: 5}",
            "f: Pod: metadata: expected a mapping, got a whole number (5)",
            id="metadata of the wrong type",
        ),
        pytest.param('{"a":' * DEEP, "f: is nested too deeply", id="deep JSON objects"),
        pytest.param("[" * DEEP, "f: is nested too deeply", id="deep JSON lists"),
        pytest.param(
            "[" * 50 + "]" * 50, "f: item 1: has lists in lists, more than 20 deep", id="lists"
        ),
        pytest.param("- " * DEEP, "f: line 1: is nested deeper than 100 levels", id="deep YAML"),
        pytest.param(b"\x7fELF\x00\x01", "f: is binary, not JSON or YAML text", id="binary"),
        pytest.param("kind: Pod".encode("utf-16-le"), "f: is binary", id="UTF-16 without a mark"),
        pytest.param(
            "kind: Pod\nmetadata: {name: é}".encode("latin-1"),
            "f: is not UTF-8 text: byte 0xe9 in line 2; save it as UTF-8",
            id="Latin-1",
        ),
        pytest.param(
            '{"kind": "Pod", "metadata": {"name": "é"}}'.encode("latin-1"),
            "f: is not UTF-8 text: byte 0xe9 in line 1; save it as UTF-8",
            id="Latin-1 in JSON",
        ),
        pytest.param(
            b'{"kind": "Pod", "metadata": {"name": "a"}, "unread": "\xe9"}',
            "f: is not UTF-8 text: byte 0xe9 in line 1; save it as UTF-8",
            id="Latin-1 in a field that is kept",
        ),
        pytest.param('{"kind": "\\ud800"}', "f: is not readable JSON", id="half a character"),
        pytest.param("", None, id="an empty file"),
        pytest.param("# only a comment\n---\n", None, id="a file of comments"),
    ],
)
def test_sentences(text: str | bytes, sentence: str | None) -> None:
    if sentence is None:
        decode(text, "f")
        return
    with pytest.raises(InputError) as error:
        decode(text, "f")

    assert str(error.value).startswith(sentence)
    assert "\n" not in str(error.value)


def survives(data: bytes | str) -> None:
    """Whatever comes in, objects or an `InputError` come out."""
    try:
        objects = decode(data, "f")
        validate(objects)
        for pod in objects.pods:
            objects.manifest(pod)
    except InputError as error:
        assert str(error)  # noqa: PT017  any error of this class is right


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(["a", "1Gi", "-1", "Exists", 10**400, 1e300])
)  # fmt: skip
fields = st.sampled_from(
    ["name", "labels", "containers", "resources", "requests", "cpu", "nodeName", "template",
     "spec", "replicas", "capacity", "kind", "metadata", "items"]
)  # fmt: skip
values = scalars
for _ in range(3):
    values = scalars | st.lists(values, max_size=2) | st.dictionaries(fields, values, max_size=3)
objects = st.fixed_dictionaries(
    {"kind": st.sampled_from(["Pod", "Node", "Deployment", "List", "PodList", "X", "", None])},
    optional={
        "metadata": st.fixed_dictionaries({"name": st.just("a")}, optional={"labels": values}),
        "spec": values,
        "status": values,
        "items": values,
        "apiVersion": values,
    },
)


@settings(max_examples=60)
@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    survives(data)


@settings(max_examples=60)
@given(st.text("ab:-[]{},&*!|>'\"#%@ \t\n?~<=.0", max_size=60))
def test_any_text(text: str) -> None:
    survives(text)


@settings(max_examples=100)
@given(objects)
def test_any_json(value: object) -> None:
    text = json.dumps(value)

    survives(text)
    survives(f"---\n{text}")
    survives(text[: len(text) // 2])
