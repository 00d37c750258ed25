"""From text to a document: what is read, what is noted, what is refused in one sentence."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.engine.framework.profile import Profile
from podium.errors import ConfigError
from podium.profiles.policy import document as policy_document
from podium.profiles.policy.build import Options, from_policy, parse_policy
from profiles.policy.policies import policy, predicates, profile, refusal

YAML = """
kind: Policy
apiVersion: v1
predicates:
- name: PodFitsResources
  order: 1
"""
EXTENDER = {
    "URLPREFIX": "http://x/",
    "filterverb": "f",
    "BindVerb": "b",
    "PRIORITIZEVERB": "p",
    "preemptVerb": "v",
    "Weight": 3,
    "enableHTTPS": True,
    "TLSConfig": {"servername": "s", "CAData": "aGk=", "caFile": None},
    "httptimeout": 1500000000,
    "nodeCacheCapable": True,
    "ManagedResources": [{"NAME": "a.b/c", "IgnoredByScheduler": True}, {"name": "a.b/d"}],
    "Ignorable": True,
}


def refused(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        from_policy(parse_policy(text, "p.json"), Options(), "p.json")
    return caught.value


def test_json_and_yaml_read_the_same() -> None:
    assert parse_policy(YAML, "p") == parse_policy(json.dumps(parse_policy(YAML, "p")), "p")


def test_a_config_map_around_a_policy() -> None:
    text = json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "data": {"policy.cfg": YAML}})

    assert parse_policy(text, "cm.json") == parse_policy(YAML, "p")
    with pytest.raises(ConfigError) as caught:
        parse_policy('{"kind": "ConfigMap", "data": {}}', "cm.json")
    assert caught.value.text == 'missing policy config map value at key "policy.cfg"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "p.json: expected one Policy, got 0 documents"),
        ("kind: Policy\n---\nkind: Policy\n", "p.json: expected one Policy, got 2 documents"),
        ("- a", "p.json: expected a Policy, got something else"),
        ("{", "p.json: is not readable YAML"),
        ('{"kind": "Policy",', "p.json: is not readable JSON: it ends too early"),
        ('{"kind": "Policy"}', "p.json: apiVersion is missing; write apiVersion: v1"),
        ('{"kind": "Policy", "apiVersion": null}', "p.json: apiVersion is missing"),
        ('{"apiVersion": "v2"}', "p.json: apiVersion: expected v1, got 'v2'"),
        ('{"apiVersion": "v1", "kind": "Pod"}', "p.json: kind: expected Policy, got 'Pod'"),
        ('{"kind": ["Policy"]}', "p.json: kind: expected text, got a list"),
        ("[" * 100_000, "p.json: "),
        ("\x00\ufffe", "p.json: is not readable YAML"),
        ("a: \ud800", "p.json: is not readable YAML"),
    ],
)
def test_a_text_that_is_no_policy(text: str, words: str) -> None:
    assert str(refused(text)).startswith(words)


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (policy(predicates={}), "policy: predicates: expected a list, got a mapping"),
        (policy(predicates=["x"]), "policy: predicates[0]: expected a mapping, got text ('x')"),
        (
            policy(predicates=[{"name": 3}]),
            (
                "policy: predicates[0].name: expected text, got a whole number (3); "
                'write it in quotes: "3"'
            ),
        ),
        (
            predicates({"name": "x", "order": "1"}),
            (
                "policy: predicates[0].order: expected a whole number, got text ('1'); "
                "write it without quotes: 1"
            ),
        ),
        (
            predicates({"name": "x", "argument": {"labelsPresence": {"labels": ["a", 1]}}}),
            (
                "policy: predicates[0].argument.labelsPresence.labels[1]: expected text, "
                'got a whole number (1); write it in quotes: "1"'
            ),
        ),
        (
            policy(priorities=[{"name": "x", "weight": 1.0}]),
            "policy: priorities[0].weight: expected a whole number, got a number (1.0)",
        ),
        (
            policy(priorities=[{"name": "x", "weight": 2**63}]),
            (
                "policy: priorities[0].weight: is 9223372036854775808; "
                "it must be at most 9223372036854775807"
            ),
        ),
        (
            policy(alwaysCheckAllPredicates="true"),
            "policy: alwaysCheckAllPredicates: expected true or false, got text ('true')",
        ),
        (
            policy(extenders=[{"HTTPTimeout": "5s"}]),
            (
                "policy: extenders[0].httpTimeout: expected a whole number, got text ('5s'); "
                "it is a number of nanoseconds: 5000000000 is five seconds"
            ),
        ),
        (
            policy(extenders=[{"tlsConfig": {"CAData": "!"}}]),
            "policy: extenders[0].tlsConfig.CAData: Invalid base64 encoded string",
        ),
        ([], "policy: expected a Policy, got something else; it begins with kind: Policy and apiV"),
    ],
)
def test_wrong_types_are_named_with_their_place(document: Any, text: str) -> None:
    assert str(refusal(document)).startswith(text)


def test_unknown_keys_are_noted_and_ignored() -> None:
    document = predicates({"name": "HostName", "Order": 1, "weight": 2}) | {"Priorities": []}

    assert set(profile(document).notes) >= {
        "predicates[0].Order is not a field of a Policy and is ignored; did you mean order?",
        "predicates[0].weight is not a field of a Policy and is ignored",
        "Priorities is not a field of a Policy and is ignored; did you mean priorities?",
    }


def test_null_is_absent_at_any_depth() -> None:
    document = policy(
        predicates=[{"name": "HostName", "argument": None, "order": None}],
        priorities=None,
        extenders=[{"urlPrefix": "u", "tlsConfig": None, "managedResources": None}],
        alwaysCheckAllPredicates=None,
    )

    made = profile(document)

    assert len(made.priorities) == 8
    assert made.extenders[0].url_prefix == "u"


def test_keys_of_an_extender_are_read_in_any_case() -> None:
    made = profile(policy(extenders=[EXTENDER]))

    (extender,) = made.extenders
    assert extender.url_prefix == "http://x/"
    verbs = (extender.filter_verb, extender.prioritize_verb, extender.preempt_verb)
    assert (*verbs, extender.bind_verb) == ("f", "p", "v", "b")
    assert (extender.weight, extender.enable_https, extender.ignorable) == (3, True, True)
    assert extender.tls == {"server_name": "s", "ca_data": b"hi"}
    assert extender.timeout_seconds == 1.5
    assert extender.node_cache_capable
    assert extender.managed_resources == {"a.b/c", "a.b/d"}
    assert made.notes == ()


def test_ignored_resources_reach_the_predicates() -> None:
    rules = profile(
        predicates("PodFitsResources", "GeneralPredicates") | {"extenders": [EXTENDER]}
    ).predicates

    ignored = [getattr(getattr(rule, "parts", [rule])[0], "ignored", None) for rule in rules]
    assert [each for each in ignored if each is not None] == [{"a.b/c"}, {"a.b/c"}]


@pytest.mark.parametrize(("nanoseconds", "seconds"), [(0, 5.0), (10**9, 1.0), (-1, math.inf)])
def test_the_time_an_extender_has(nanoseconds: int, seconds: float) -> None:
    made = profile(policy(extenders=[{"httpTimeout": nanoseconds}]))

    assert made.extenders[0].timeout_seconds == seconds


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 120),
    st.floats(),
    st.text(),
    st.sampled_from(["HostName", "PodFitsPorts", "EqualPriority", "v1", "Policy", "a.b/c"]),
)
KNOWN_KEYS = sorted(
    {
        field.encode_name
        for part in vars(policy_document).values()
        if isinstance(part, type) and issubclass(part, msgspec.Struct)
        for field in msgspec.structs.fields(part)
    }
)
KEYS = st.text(max_size=5) | st.sampled_from(KNOWN_KEYS)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


def entries(arguments: list[str]) -> st.SearchStrategy[Any]:
    """Lists of nearly right predicates or priorities."""
    names = st.sampled_from(["HostName", "CheckServiceAffinity", "EqualPriority", "Own", "P"])
    argument = st.dictionaries(st.sampled_from(arguments), JSON, max_size=2)
    fields = {
        "name": names | SCALARS,
        "weight": st.integers(0, 2**64) | SCALARS,
        "argument": argument | st.none(),
        "order": st.integers() | SCALARS,
    }
    return st.lists(st.fixed_dictionaries({}, optional=fields) | JSON, max_size=3)


POLICIES = st.fixed_dictionaries(
    {"apiVersion": st.just("v1")},
    optional={
        "predicates": entries(["serviceAffinity", "labelsPresence"]) | JSON,
        "priorities": entries(["labelPreference", "requestedToCapacityRatioArguments"]) | JSON,
        "extenders": JSON,
        "hardPodAffinitySymmetricWeight": SCALARS,
        "alwaysCheckAllPredicates": SCALARS,
    },
)


def made_or_refused(document: Any) -> None:
    try:
        assert isinstance(from_policy(document, Options()), Profile)
    except ConfigError as error:
        assert error.text  # noqa: PT017  both outcomes are right


@settings(max_examples=400, deadline=None)
@given(POLICIES | JSON)
def test_anything_is_a_profile_or_refused(document: Any) -> None:
    made_or_refused(document)


@settings(max_examples=200, deadline=None)
@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_a_policy_or_refused(text: str) -> None:
    try:
        document = parse_policy(text, "p")
    except ConfigError:
        return
    made_or_refused(document)
