"""What the real program refuses before it builds anything, with its words and in its order."""

from __future__ import annotations

from typing import Any

import pytest

from profiles.config.documents import Document, config, disabled, enabled, loaded, refused

REMOVED = (
    'was invalid in version "v1" (KubeSchedulerConfiguration is version '
    '"kubescheduler.config.k8s.io/v1")'
)


def election(**fields: Any) -> Document:
    return config(leaderElection=fields)


def two(first: Document, second: Document) -> Document:
    return config(
        profiles=[{"schedulerName": "a", **first}, {"schedulerName": "b", **second}],
    )


def extender(**fields: Any) -> Document:
    return config(extenders=[{"urlPrefix": "http://x", **fields}])


def managing(*names: str) -> Document:
    return extender(managedResources=[{"name": name} for name in names])


@pytest.mark.parametrize(
    ("document", "text"),
    [
        pytest.param(
            config(clientConnection={"burst": -1}),
            "clientConnection.burst: Invalid value: -1: must be non-negative",
            id="burst",
        ),
        pytest.param(
            election(resourceLock="endpoints"),
            'leaderElection.resourceLock: Invalid value: "endpoints": '
            'resourceLock value must be "leases"',
            id="resource lock",
        ),
        pytest.param(
            election(retryPeriod="-2s"),
            'leaderElection.retryPeriod: Invalid value: "-2s": must be greater than zero',
            id="retry period",
        ),
        pytest.param(
            election(renewDeadline="-1m"),
            'leaderElection.renewDeadline: Invalid value: "-1m0s": must be greater than zero',
            id="renew deadline",
        ),
        pytest.param(
            election(leaseDuration="-1ms"),
            '[leaderElection.leaseDuration: Invalid value: "-1ms": must be greater than zero, '
            'leaderElection.leaseDuration: Invalid value: "10s": '
            "must be greater than `RenewDeadline`]",
            id="lease duration",
        ),
        pytest.param(
            election(leaseDuration="1m30s", renewDeadline="90s"),
            'leaderElection.leaseDuration: Invalid value: "1m30s": '
            "must be greater than `RenewDeadline`",
            id="a lease that ends with the deadline",
        ),
        pytest.param(
            config(parallelism=0),
            "parallelism: Invalid value: 0: should be an integer value greater than zero",
            id="no workers",
        ),
        pytest.param(
            config(percentageOfNodesToScore=101),
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
            id="percentage",
        ),
        pytest.param(
            config(profiles=[{"percentageOfNodesToScore": -1}]),
            "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
            id="percentage of a profile",
        ),
        pytest.param(
            config(podInitialBackoffSeconds=0),
            "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
            id="no first backoff",
        ),
        pytest.param(
            config(podInitialBackoffSeconds=5, podMaxBackoffSeconds=4),
            "podMaxBackoffSeconds: Invalid value: 4: "
            "must be greater than or equal to PodInitialBackoffSeconds",
            id="backoff that shrinks",
        ),
        pytest.param(
            config(profiles=[{"schedulerName": "a"}, {}]),
            "profiles[1].schedulerName: Required value",
            id="a name is filled in for a single profile only",
        ),
        pytest.param(
            config(profiles=[{"schedulerName": ""}]),
            "profiles[0].schedulerName: Required value",
            id="an empty name is no absent one",
        ),
        pytest.param(
            config(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}]),
            "profiles[1].schedulerName: Duplicate value: {}",
            id="the same name twice",
        ),
        pytest.param(
            config(profiles=[{}, {}]),
            "[profiles[0].schedulerName: Required value, "
            "profiles[1].schedulerName: Required value, "
            "profiles[1].schedulerName: Duplicate value: {}]",
            id="no name, twice",
        ),
        pytest.param(
            config(profiles=[{"plugins": {"score": enabled("EBSLimits")}}]),
            f'profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": {REMOVED}',
            id="a removed plugin",
        ),
        pytest.param(
            config(profiles=[{"pluginConfig": [{"name": "CinderLimits"}]}]),
            f'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": {REMOVED}',
            id="arguments of a removed plugin",
        ),
        pytest.param(
            config(profiles=[{"pluginConfig": [{"name": "X"}, {"name": "X"}]}]),
            'profiles[0].pluginConfig[1]: Duplicate value: "X"',
            id="arguments twice",
        ),
        pytest.param(
            config(
                profiles=[{"pluginConfig": [{"name": "NodeResourcesFitArgs", "args": {"b": "<"}}]}]
            ),
            'profiles[0].pluginConfig[0].args: Invalid value: {"b":"\\u003c"}: '
            "has to match plugin args",
            id="arguments for the name of arguments",
        ),
        pytest.param(
            config(profiles=[{"pluginConfig": [{"name": "NodeResourcesFitArgs"}]}]),
            "profiles[0].pluginConfig[0].args: Invalid value: null: has to match plugin args",
            id="no arguments for the name of arguments",
        ),
        pytest.param(
            config(profiles=[{"plugins": {"queueSort": enabled("PrioritySort", "Other")}}]),
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: "
            "only one queue sort plugin can be enabled",
            id="two orders of the queue",
        ),
        pytest.param(
            two({}, {"plugins": {"queueSort": disabled("X")}}),
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":null,"Disabled":'
            '[{"Name":"X","Weight":0}]}: must be the same for all profiles',
            id="a difference that does nothing",
        ),
        pytest.param(
            two(
                {"plugins": {"queueSort": enabled("PrioritySort")}},
                {"plugins": {"queueSort": enabled(("PrioritySort", 2))}},
            ),
            'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort",'
            '"Weight":2}],"Disabled":null}: must be the same for all profiles',
            id="a weight that nobody reads",
        ),
        pytest.param(
            two(
                {"plugins": {"queueSort": enabled("PrioritySort")}},
                {
                    "plugins": {"queueSort": enabled("PrioritySort")},
                    "pluginConfig": [{"name": "PrioritySort", "args": {"a": 1}}],
                },
            ),
            'profiles[1].pluginConfig.args: Invalid value: {"a":1}: '
            "queueSort must be the same for all profiles",
            id="arguments of the order of the queue",
        ),
        pytest.param(
            extender(prioritizeVerb="p"),
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="an extender without a weight",
        ),
        pytest.param(
            config(extenders=[{"bindVerb": "b"}, {"bindVerb": "b"}, {}]),
            'extenders: Invalid value: "found 2 extenders implementing bind": '
            "only one extender can implement bind",
            id="two binders",
        ),
        pytest.param(
            managing("cpu"),
            'extenders[0].managedResources[0].name: Invalid value: "cpu": '
            "is an invalid extended resource name",
            id="a resource of Kubernetes' own",
        ),
        pytest.param(
            managing("a.b/c", "a.b/c"),
            'extenders[0].managedResources[1].name: Invalid value: "a.b/c": '
            "duplicate extender managed resource name",
            id="a resource twice",
        ),
        pytest.param(
            managing("a/b/c"),
            'extenders[0].managedResources[0].name: Invalid value: "a/b/c": a valid label key must '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')",
            id="no name at all",
        ),
        pytest.param(
            managing("A/b"),
            'extenders[0].managedResources[0].name: Invalid value: "A/b": prefix part a lowercase '
            "RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
            "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            id="a prefix in capitals",
        ),
        pytest.param(
            managing("a.b/" + "c" * 64),
            f'extenders[0].managedResources[0].name: Invalid value: "a.b/{"c" * 64}": '
            "name part must be no more than 63 bytes",
            id="a long name",
        ),
    ],
)
def test_one_mistake(document: Document, text: str) -> None:
    assert refused(document).text == text


def test_all_mistakes_are_told_in_order_and_once() -> None:
    document = config(
        extenders=[{"prioritizeVerb": "p"}],
        podMaxBackoffSeconds=0,
        percentageOfNodesToScore=101,
        profiles=[{"percentageOfNodesToScore": 101}],
        parallelism=-1,
        leaderElection={"resourceLock": "x"},
        clientConnection={"burst": -1},
    )

    assert refused(document).text == (
        "[clientConnection.burst: Invalid value: -1: must be non-negative, "
        'leaderElection.resourceLock: Invalid value: "x": resourceLock value must be "leases", '
        "parallelism: Invalid value: -1: should be an integer value greater than zero, "
        "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100], "
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100], "
        "podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to "
        "PodInitialBackoffSeconds, "
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it]"
    )


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(election(leaseDuration="0s"), id="a time of 0 is the default"),
        pytest.param(
            election(leaderElect=False, resourceLock="x", leaseDuration="-1s"),
            id="nothing about leaders is checked where there are none",
        ),
        pytest.param(config(clientConnection={"burst": 0, "qps": 0}), id="0 is the default"),
        pytest.param(config(podInitialBackoffSeconds=10), id="equal backoffs"),
        pytest.param(config(percentageOfNodesToScore=0), id="adaptive"),
        pytest.param(extender(weight=-1), id="a weight that is not asked for"),
    ],
)
def test_what_is_fine(document: Document) -> None:
    assert loaded(document).profiles


def test_defaults() -> None:
    found = loaded(config())
    election, client = found.leader_election, found.client_connection

    assert (found.parallelism, found.percentage_of_nodes_to_score) == (16, None)
    assert (found.pod_initial_backoff_seconds, found.pod_max_backoff_seconds) == (1, 10)
    assert (found.enable_profiling, found.enable_contention_profiling) == (True, True)
    assert [profile.scheduler_name for profile in found.profiles] == ["default-scheduler"]
    assert (election.leader_elect, election.resource_lock) == (True, "leases")
    assert (election.resource_namespace, election.resource_name) == (
        "kube-system",
        "kube-scheduler",
    )
    times = election.lease_duration, election.renew_deadline, election.retry_period
    assert times == (15_000_000_000, 10_000_000_000, 2_000_000_000)
    assert (client.qps, client.burst) == (50.0, 100)
    assert client.content_type == "application/vnd.kubernetes.protobuf"


def test_contention_is_profiled_only_with_everything_else() -> None:
    assert not loaded(config(enableProfiling=False)).enable_contention_profiling
    assert loaded(
        config(enableProfiling=False, enableContentionProfiling=True)
    ).enable_contention_profiling


def test_a_profile_overrides_the_percentage_of_all() -> None:
    document = config(
        percentageOfNodesToScore=30,
        profiles=[
            {"schedulerName": "a"},
            {"schedulerName": "b", "percentageOfNodesToScore": 0},
        ],
    )

    percentages = [p.percentage_of_nodes_to_score for p in loaded(document).profiles]

    assert percentages == [30, 0]
