"""The behaviours of kube-scheduler that changed from release to release, as named choices."""

from __future__ import annotations

from typing import Literal

import msgspec

Stage = Literal["Alpha", "Beta", "GA"]


class FeatureGate(msgspec.Struct, frozen=True):
    """A feature gate that the scheduler reads."""

    name: str
    description: str
    default: bool
    stage: Stage = "Beta"
    #: Whether kube-scheduler refuses any other value.
    locked: bool = False
    #: Whether Podium supports the default only.
    fixed: bool = False
    #: Gates that must be on when this one is.
    needs: tuple[str, ...] = ()


class DeviceChoices(msgspec.Struct, frozen=True, kw_only=True):
    """How devices are allocated, where releases differ; the defaults are those of v1.36."""

    #: Whether slices with shared counters belong to the pool wherever they are.
    counters_everywhere: bool = True
    #: Whether a pool is complete by the slices of all nodes; otherwise by those of the node.
    completes_over_nodes: bool = True
    #: Whether counted requests take devices of incomplete pools.
    uses_incomplete_pools: bool = False
    #: Whether a counted request fails on an invalid pool; otherwise it skips the pool.
    fails_on_invalid_pools: bool = False
    #: Whether the second alternative is checked with what the first one selected. The search for
    #: all devices also goes on with the first one after the first device.
    mixes_up_alternatives: bool = False
    #: distinctAttribute: unknown, or compared with the last device of each request, or with all.
    distinct: Literal["unknown", "last", "all"] = "last"
    #: Whether results have the tolerations of their requests.
    writes_tolerations: bool = True
    #: Whether a share without consumed capacity counts as one.
    counts_empty_shares: bool = False
    #: Whether a request for all devices means those, too, whose capacity is used up.
    all_includes_used_up: bool = False
    #: Whether a capacity that is not representable or negative is an error.
    refuses_capacities: bool = False
    #: Whether the settings of a claim are written once, and without requests if they are for all.
    merges_settings: bool = False
    #: Whether errors of selectors name the device and say what would help.
    names_device_in_errors: bool = False
    #: Whether the slices of a pool are tried by name, and pools too. Otherwise chance decides, and
    #: here slices are tried in the order of their arrival.
    orders_slices: bool = True
    #: How texts call the pod that a claim was not made for.
    pod: Literal["Pod", "pod"] = "Pod"
    #: Whether a search that takes too long is an error; otherwise the node is rejected.
    timeout_is_error: bool = True


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The behaviours of plugins that changed; the defaults are those of v1.36."""

    #: NodeResourcesBalancedAllocation: what the pod does to the balance, or the balance with it.
    balance: Literal["change", "with the pod"] = "change"
    #: ImageLocality: image volumes count for nothing, for the score, or for its maximum as well.
    image_volumes: Literal["ignored", "scored", "scored and counted"] = "scored"
    #: InterPodAffinity: whether the namespaceSelector of the pod's own terms stays in force beside
    #: the namespaces that it selects. Selectors that the empty label set matches then match all.
    keeps_namespace_selector: bool = True
    #: DefaultPreemption: whether a pod is charged to all its budgets, or up to the exhausted one.
    charges_all_budgets: bool = True
    #: DefaultPreemption: whether its message names the node and the number of victims.
    tells_preemption: bool = False
    #: DynamicResources: whether its PostFilter tells that there is nothing to deallocate.
    tells_idle_claims: bool = True
    #: Requests of a pod that is resized: the largest of each container, or of the whole pod.
    resized: Literal["containers", "pod"] = "containers"
    devices: DeviceChoices = DeviceChoices()
    #: Whether pods of a group are scheduled together (gate GenericWorkload) in the form of v1.37.
    pod_groups: bool = False


class WakeUps(msgspec.Struct, frozen=True, kw_only=True):
    """How events wake pods, where releases differ; the defaults are those of v1.36."""

    #: Whether a plugin that waits for new nodes is also woken by changed taints.
    taints_wake_like_new_nodes: bool = True
    #: InterPodAffinity: whether one matching term of anti-affinity is enough; otherwise all match.
    any_anti_affinity: bool = False
    #: InterPodAffinity: whether it is woken by labels of the pod itself, and by the end of a pod
    #: whose anti-affinity kept the pod away.
    own_labels_and_foreign_anti_affinity: bool = True
    #: Whether pods that are only nominated to a node count.
    nominated_pods_count: bool = True
    #: Whether a label of a nominated pod that changes counts.
    nominated_labels_count: bool = True
    #: DynamicResources: whether the deletion of an allocated claim counts.
    deleted_claims_count: bool = False
    #: What metrics call a pod without a node.
    unscheduled: str = "UnschedulablePod"


class Conduct(msgspec.Struct, frozen=True, kw_only=True):
    """What a running scheduler does besides deciding; the defaults are those of v1.36."""

    #: Which of the best nodes is taken: the root of a heap, which is the same in every run; any of
    #: them; or each in turn.
    ties: Literal["heap", "random", "round-robin"] = "heap"
    #: Whether the nomination of a pod ends when its profile has no PostFilter plugin.
    clears_without_post_filter: bool = True
    #: Seconds before a binding is sent again that the API server could not serve (500, 503).
    binding_pauses: tuple[float, ...] = ()
    #: Whether the queue holds entities: metrics count them, and nominations of gated pods count.
    queues_entities: bool = False


class ExtenderProtocol(msgspec.Struct, frozen=True, kw_only=True):
    """How replies of extenders are read; the defaults are those of the releases with plugins."""

    #: Whether a reply may reject nodes for good.
    has_unresolvable_nodes: bool = True
    #: Whether nodes that were not sent are refused, even if there are such nodes.
    refuses_other_nodes: bool = True
    #: Whether every node needs victims.
    needs_victims: bool = True
    #: Whether violated budgets are sent and counted.
    counts_violations: bool = True
    #: Whether error texts are taken for formats of Go without arguments.
    formats_errors: bool = False
    #: The first word of the error after another status than 200.
    failed: str = "failed"
