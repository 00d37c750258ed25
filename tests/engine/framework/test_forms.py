"""Classes of one form concern the same rules in the same way.

Rules are asked for scope, `watched` and `may_refuse` once for all classes of a form (`PodForm`), so
a rule that reads more of a class would give one pod what it said of another.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from hypothesis import given, note, settings

from builders import view as view_v1_13
from builders_v1_36 import view as view_v1_36
from podium.cluster.cache.columns import Columns
from podium.engine.framework.rule import FilterRule, Rule, Scope, Watched
from podium.engine.state.pod_class import PodClass
from podium.objects.kinds.pod import Pod
from random_clusters import PREDICATES, PRIORITIES, Cluster, clusters
from random_clusters_v1_36 import FILTERS, SCORES, ClusterV136, clusters_v1_36


def renamed(pod: Pod) -> Pod:
    """A pod of another class and the same form."""
    replace = msgspec.structs.replace
    volumes = []
    for volume in pod.spec.volumes or ():
        claim = volume.persistent_volume_claim
        if claim is not None:
            other = replace(claim, claim_name=f"{claim.claim_name}-other")
            volumes.append(replace(volume, name="other", persistent_volume_claim=other))
        else:
            volumes.append(volume)
    meta = replace(
        pod.metadata, namespace="other", labels={"other": "label"}, owner_references=None
    )
    return replace(pod, metadata=meta, spec=replace(pod.spec, volumes=volumes or None))


def answers(rule: Rule, cls: PodClass) -> tuple[Scope, Watched, bool]:
    may_refuse = isinstance(rule, FilterRule) and rule.may_refuse(cls)
    return rule.scope(cls), rule.watched(cls), may_refuse


def check(columns: Columns, pods: Iterable[Pod], rules: Iterable[Rule]) -> None:
    known = list(rules)
    said: dict[object, tuple[PodClass, list[tuple[Scope, Watched, bool]]]] = {}
    for pod in pods:
        first = columns.pods.class_of(pod, pod.spec.node_name)
        other = columns.pods.class_of(renamed(pod), pod.spec.node_name)
        assert first is not other
        assert first.form is other.form
        for cls in (first, other):
            now = [answers(rule, cls) for rule in known]
            before, expected = said.setdefault(cls.form, (cls, now))
            for rule, one, two in zip(known, expected, now, strict=True):
                note(f"{rule.name}: {before.sample.key} and {cls.sample.key}")
                assert one == two


@given(world=clusters_v1_36())
@settings(max_examples=40)
def test_one_form_means_the_same_rules_v1_36(world: ClusterV136) -> None:
    check(view_v1_36(*world.objects()), (*world.pods, world.wanted), [*FILTERS, *SCORES])


@given(cluster=clusters())
@settings(max_examples=40)
def test_one_form_means_the_same_rules_v1_13(cluster: Cluster) -> None:
    check(
        view_v1_13(*cluster.objects()), (*cluster.pods, cluster.wanted), [*PREDICATES, *PRIORITIES]
    )
