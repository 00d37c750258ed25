"""Which kinds are watched for the rules of a profile."""

from __future__ import annotations

from podium.objects.kinds.registry import KINDS
from podium.profiles import watched_kinds as module
from podium.profiles.config.build import config_from, default_config, from_config
from podium.profiles.config.plugins import PLUGINS
from podium.profiles.policy.build import Options, from_policy, from_provider
from podium.profiles.watched_kinds import watched_kinds


def test_only_what_the_rules_read_is_watched() -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "PodFitsResources"}],
        "priorities": [{"name": "ServiceSpreadingPriority", "weight": 1}],
    }
    profile = from_policy(policy, Options(disable_preemption=True))

    found = watched_kinds([profile])

    assert found == {"Node", "Pod", "Service", "PersistentVolumeClaim"}


def test_the_defaults_watch_nothing_that_only_controllers_read() -> None:
    current = watched_kinds(from_config(default_config(), Options()))
    classic = watched_kinds([from_provider("DefaultProvider", Options())])

    assert {"Namespace", "CSINode", "PodDisruptionBudget", "StorageClass"} <= current
    assert not {"Deployment", "Job", "DaemonSet", "PriorityClass"} & (current | classic)
    assert "Namespace" not in classic


def test_without_preemption_budgets_are_not_watched() -> None:
    profile = from_provider("DefaultProvider", Options(disable_preemption=True))

    assert "PodDisruptionBudget" not in watched_kinds([profile])


def test_every_built_in_rule_is_known() -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "ImageLocality"}]}}}],
    }
    profiles = [
        *from_config(config_from(document), Options()),
        from_provider("DefaultProvider", Options()),
        from_provider("ClusterAutoscalerProvider", Options()),
    ]
    for profile in profiles:
        rules = [*profile.predicates, *profile.post_filters]
        rules += [each.priority for each in profile.priorities]
        for rule in rules:
            names = {each.__name__ for each in type(rule).__mro__}
            assert names & module._READS.keys(), rule
    assert PLUGINS


def test_a_rule_of_a_users_own_may_look_at_anything() -> None:
    class Own:
        name = "Own"

    assert {*module._read_by(Own())} == {k.name for k in KINDS.values() if k.looked_up}
