"""What cannot be decoded is refused with the real program's words, to the letter."""

from __future__ import annotations

import json

import pytest

from podium.errors import ConfigError
from podium.generations.v1_36 import V1_36
from podium.profiles.config.build import SchedulerConfig, load_config
from profiles.config.documents import HEAD, config, loaded, refused, with_args

SCHEME = 'in scheme "pkg/scheduler/apis/config/scheme/scheme.go:29"'
STRUCT = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
GROUP = "kubescheduler.config.k8s.io"
PARSE = "couldn't get version/kind; json parse error: "


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "Object 'Kind' is missing in ''", id="an empty file"),
        pytest.param(
            f"apiVersion: {GROUP}/v1\n",
            f"Object 'Kind' is missing in 'apiVersion: {GROUP}/v1\n'",
            id="no kind",
        ),
        pytest.param(
            "kind: KubeSchedulerConfiguration",
            "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration'",
            id="no version",
        ),
        pytest.param(
            f"kind: X\napiVersion: {GROUP}/",
            f"Object 'apiVersion' is missing in 'kind: X\napiVersion: {GROUP}/'",
            id="a group without a version",
        ),
        pytest.param(
            f"apiVersion: {GROUP}/v1beta3\nkind: KubeSchedulerConfiguration",
            f'no kind "KubeSchedulerConfiguration" is registered for version "{GROUP}/v1beta3" '
            f"{SCHEME}",
            id="an older version",
        ),
        pytest.param(
            f"apiVersion: {GROUP}/v1\nkind: Policy",
            f'no kind "Policy" is registered for version "{GROUP}/v1" {SCHEME}',
            id="an unknown kind",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod",
            f'no kind "Pod" is registered for version "v1" {SCHEME}',
            id="something else altogether",
        ),
        pytest.param(
            "apiVersion: a/b/c\nkind: X",
            "unexpected GroupVersion string: a/b/c",
            id="too many slashes",
        ),
        pytest.param(
            f"apiVersion: {GROUP}/v1\nkind: InterPodAffinityArgs",
            f"couldn't decode as KubeSchedulerConfiguration, got {GROUP}/v1, "
            "Kind=InterPodAffinityArgs: ",
            id="arguments of a plugin",
        ),
        pytest.param(
            f"apiVersion: {GROUP}/v1\nkind: InterPodAffinityArgs\nx: 1",
            'strict decoding error: unknown field "x"',
            id="arguments with a wrong field",
        ),
        pytest.param(
            "[1]", f"{PARSE}json: cannot unmarshal array into Go value of type {STRUCT}", id="list"
        ),
        pytest.param(
            "text",
            f"{PARSE}json: cannot unmarshal string into Go value of type {STRUCT}",
            id="text",
        ),
        pytest.param(
            "kind: 5",
            f"{PARSE}json: cannot unmarshal number into Go struct field .kind of type string",
            id="a number for a kind",
        ),
        pytest.param(
            '{"kind": "X",}',
            f"{PARSE}invalid character '}}' looking for beginning of object key string",
            id="a comma too many",
        ),
        pytest.param('{"kind": "X"', f"{PARSE}unexpected end of JSON input", id="half an object"),
        pytest.param(
            "a: b\n c: d",
            "yaml: line 2: mapping values are not allowed in this context",
            id="wrong indentation",
        ),
        pytest.param(
            "a:\n  - b\n c: d\n",
            "yaml: line 2: did not find expected key",
            id="wrong indentation, told by the parser that counts from 0",
        ),
        pytest.param("a: *b", "yaml: unknown anchor 'b' referenced", id="an alias for nothing"),
        pytest.param("a: .inf", "json: unsupported value: +Inf", id="a number without end"),
    ],
)
def test_what_is_no_configuration(text: str, expected: str) -> None:
    assert refusal(text).text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("foo: 1\n", 'unknown field "foo"', id="an unknown field"),
        pytest.param(
            "Parallelism: 1\n", 'unknown field "Parallelism"', id="names are case-sensitive"
        ),
        pytest.param(
            "profiles: [{plugins: {foo: {}, bar: {}}}]\nzoo: 1\nabc: 2\n",
            'unknown field "abc", unknown field "profiles[0].plugins.bar", '
            'unknown field "profiles[0].plugins.foo", unknown field "zoo"',
            id="several, sorted by path as YAML is",
        ),
        pytest.param(
            "parallelism: 1\nenableProfiling: true\nparallelism: 2\n",
            'yaml: unmarshal errors:\n  line 5: key "parallelism" already set in map',
            id="a key twice",
        ),
        pytest.param(
            "parallelism: 1\nparallelism: 2\nfoo: 1\nfoo: 2\n",
            'yaml: unmarshal errors:\n  line 4: key "parallelism" already set in map\n'
            '  line 6: key "foo" already set in map, unknown field "foo"',
            id="two keys twice, and one of them unknown",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n"
            "      scoringStrategy: {resources: [{Name: cpu}]}\n      x: 1\n",
            "decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for "
            'plugin NodeResourcesFit: strict decoding error: unknown field "scoringStrategy.'
            'resources[0].Name", unknown field "x"',
            id="unknown fields in arguments",
        ),
    ],
)
def test_strict_decoding(text: str, expected: str) -> None:
    assert refused(text).text == f"strict decoding error: {expected}"


def test_json_keeps_its_order_and_tells_repeated_fields() -> None:
    text = json.dumps(config(parallelism=1))[:-1] + ', "zoo": 1, "abc": 2, "parallelism": 3}'

    assert refusal(text).text == (
        'strict decoding error: unknown field "zoo", unknown field "abc", '
        'duplicate field "parallelism"'
    )


def test_a_repeated_field_in_arguments_of_json() -> None:
    text = json.dumps(with_args("VolumeBinding")).replace(
        '"args": {}', '"args": {"bindTimeoutSeconds": 1, "bindTimeoutSeconds": 2}'
    )

    assert refusal(text).text == (
        "strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: "
        "decoding args for plugin VolumeBinding: strict decoding error: "
        'duplicate field "bindTimeoutSeconds"'
    )


CANNOT = "json: cannot unmarshal "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "parallelism: many",
            "string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
            id="text for a number",
        ),
        pytest.param(
            "parallelism: 1.5",
            "number 1.5 into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
            id="a fraction",
        ),
        pytest.param(
            "parallelism: 2147483648",
            "number 2147483648 into Go struct field KubeSchedulerConfiguration.parallelism of type "
            "int32",
            id="a number too large",
        ),
        pytest.param(
            "enableProfiling: 5",
            "number into Go struct field KubeSchedulerConfiguration.DebuggingConfiguration."
            "enableProfiling of type bool",
            id="a field of an embedded struct",
        ),
        pytest.param(
            "profiles: [{plugins: {filter: {enabled: [{name: X, weight: heavy}]}}}]",
            "string into Go struct field Plugin.profiles.plugins.filter.enabled.weight of type "
            "int32",
            id="deep inside: the innermost struct, the whole way",
        ),
        pytest.param(
            "profiles: [{plugins: {filter: {enabled: [X]}}}]",
            "string into Go struct field PluginSet.profiles.plugins.filter.enabled of type "
            "v1.Plugin",
            id="a name instead of a plugin",
        ),
        pytest.param(
            "profiles: {schedulerName: X}",
            "object into Go struct field KubeSchedulerConfiguration.profiles of type "
            "[]v1.KubeSchedulerProfile",
            id="one profile instead of a list",
        ),
        pytest.param(
            "leaderElection: {leaderElect: 'yes'}",
            "string into Go struct field LeaderElectionConfiguration.leaderElection.leaderElect of "
            "type bool",
            id="another package",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 15}",
            "number into Go struct field LeaderElectionConfiguration.leaderElection.leaseDuration "
            "of type string",
            id="a number for a duration",
        ),
        pytest.param(
            "extenders: [{tlsConfig: {caData: {}}}]",
            "object into Go struct field ExtenderTLSConfig.extenders.tlsConfig.caData of type "
            "[]uint8",
            id="bytes",
        ),
        pytest.param(
            "parallelism: a\nclientConnection: {burst: b}",
            "string into Go struct field ClientConnectionConfiguration.clientConnection.burst of "
            "type int32",
            id="the first of several, by name",
        ),
    ],
)
def test_wrong_types(text: str, expected: str) -> None:
    assert refused(text).text == f"json: cannot unmarshal {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "leaderElection: {leaseDuration: soon}", 'time: invalid duration "soon"', id="no number"
        ),
        pytest.param(
            "leaderElection: {leaseDuration: '15'}",
            'time: missing unit in duration "15"',
            id="no unit",
        ),
        pytest.param(
            "extenders: [{httpTimeout: 5parsecs}]",
            'time: unknown unit "parsecs" in duration "5parsecs"',
            id="an unknown unit",
        ),
        pytest.param(
            "extenders: [{httpTimeout: null}]", 'time: invalid duration ""', id="null is no time"
        ),
        pytest.param(
            "parallelism: x\nextenders: [{httpTimeout: x}]",
            'time: invalid duration "x"',
            id="a duration goes before other mistakes",
        ),
        pytest.param(
            "extenders: [{tlsConfig: {caData: 'YWJj?'}}]",
            "illegal base64 data at input byte 4",
            id="no base64",
        ),
    ],
)
def test_durations_and_bytes(text: str, expected: str) -> None:
    assert refused(text).text == expected


PLACE = "decoding .profiles[0].pluginConfig[0]: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "{name: DefaultPreemption, args: {kind: InterPodAffinityArgs}}",
            f"{PLACE}args for plugin DefaultPreemption were not of type "
            f"DefaultPreemptionArgs.{GROUP}, got InterPodAffinityArgs.{GROUP}",
            id="arguments for another plugin",
        ),
        pytest.param(
            "{name: DefaultPreemption, args: {kind: InterPodAffinityArgs, x: 1}}",
            f"{PLACE}args for plugin DefaultPreemption were not of type "
            f"DefaultPreemptionArgs.{GROUP}, got InterPodAffinityArgs.{GROUP}",
            id="that goes before their fields",
        ),
        pytest.param(
            "{name: NodeAffinity, args: {kind: Foo}}",
            f"{PLACE}decoding args for plugin NodeAffinity: "
            f'no kind "Foo" is registered for version "{GROUP}/v1" {SCHEME}',
            id="an unknown kind",
        ),
        pytest.param(
            "{name: NodeAffinity, args: [1]}",
            f"{PLACE}decoding args for plugin NodeAffinity: {PARSE}"
            f"json: cannot unmarshal array into Go value of type {STRUCT}",
            id="a list",
        ),
        pytest.param(
            "{name: InterPodAffinity, args: {hardPodAffinityWeight: x}}",
            f"{PLACE}decoding args for plugin InterPodAffinity: {CANNOT}string into Go struct "
            "field InterPodAffinityArgs.hardPodAffinityWeight of type int32",
            id="a wrong type",
        ),
        pytest.param(
            "{name: NodeResourcesFit, args: {scoringStrategy: {type: 5}}}",
            f"{PLACE}decoding args for plugin NodeResourcesFit: {CANNOT}number into Go struct "
            "field ScoringStrategy.scoringStrategy.type of type v1.ScoringStrategyType",
            id="a named type",
        ),
    ],
)
def test_arguments_that_cannot_be_read(text: str, expected: str) -> None:
    assert refused(f"profiles: [{{pluginConfig: [{text}]}}]").text == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing but its kind"),
        pytest.param("profiles:\n", id="null is absent"),
        pytest.param("parallelism: 1e3", id="a float that is whole"),
        pytest.param("parallelism: 0x10", id="another base"),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity}]}]", id="no arguments at all"
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: NodeAffinityArgs, "
            f"apiVersion: {GROUP}/v1}}}}]}}]",
            id="arguments that say what they are",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: Own, args: {any: [thing, 5]}}]}]",
            id="arguments of a stranger",
        ),
        pytest.param("x: &x 1\n---\nnever: read", id="only the first document counts"),
    ],
)
def test_what_is_fine(text: str) -> None:
    text = text.replace("x: &x 1", "parallelism: &x 1")

    assert isinstance(loaded(text), SchedulerConfig)


def test_json_and_yaml_are_the_same() -> None:
    document = with_args("DefaultPreemption", minCandidateNodesAbsolute=7)
    again = load_config(json.dumps(document), generation=V1_36)

    assert loaded(document).profiles == again.profiles


def test_hints_are_apart_from_the_words() -> None:
    error = refused("paralelism: 5")

    assert error.text == 'strict decoding error: unknown field "paralelism"'
    assert error.hint == "did you mean parallelism?"
    assert refusal("").hint == f"it begins with {' and '.join(HEAD.splitlines())}"
