"""What a rule declares, beside its code: everything that the rest of the program knows of it.

Providers and default plugins, the reading and checking of arguments, the events that wake waiting
pods and the lists that are shown are derived from declarations. Their order is that of the lists
in `podium.generations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from podium.objects.go_types import STRING, Field, Struct, camel, record
from podium.objects.kinds.pod import Pod

if TYPE_CHECKING:
    from podium.engine.framework.choices import Choices, WakeUps
    from podium.engine.framework.post_filter import PostFilter
    from podium.engine.framework.rule import FilterRule, Gate, PermitRule, ScoreRule

A = TypeVar("A")
R = TypeVar("R")


class FeatureGates(Protocol):
    """Which feature gates are on."""

    def __getitem__(self, name: str, /) -> bool:
        """Whether a gate is on."""


#: Error sentences, in the order in which kube-scheduler reports them.
Errors = Iterator[str]


class Arguments(msgspec.Struct, Generic[A], frozen=True):
    """How the arguments of a plugin are read, completed and checked.

    A field that is left out gets the default of the class that `schema` makes; `complete` settles
    what one field alone cannot tell (an empty list that means two resources).
    """

    schema: Struct
    #: Yields what is wrong with the arguments at a path; the path may be empty.
    check: Callable[[A, str, FeatureGates], Errors]
    complete: Callable[[A, FeatureGates], A] | None = None
    #: The plugin whose arguments the check of the document takes these for, if not its own:
    #: kube-scheduler looks for `NodeResourcesFitArgs` there, so that arguments of NodeResourcesFit
    #: are checked only when the plugin is made.
    checked_as: str = ""

    @property
    def kind(self) -> str:
        """The kind of the arguments, named after the plugin (`NodeAffinityArgs`)."""
        return self.schema.name

    def completed(self, given: A | None, gates: FeatureGates) -> A:
        """The arguments with everything filled in; None: nothing is given."""
        found: A = self.schema.make() if given is None else given
        return found if self.complete is None else self.complete(found, gates)


#: Arguments may say their kind and version.
TYPE_META: Final = {
    "kind": Field("", STRING, "TypeMeta"),
    "apiVersion": Field("", STRING, "TypeMeta"),
}


def arguments_record(make: Callable[..., Any], **fields: Any) -> Struct:
    """The schema of arguments: a struct that is named after the class."""
    made = record(f"v1.{make.__name__}", make, **fields)
    return Struct(made.go, made.make, {**TYPE_META, **made.fields})


#: Says of (waiting pod, object before, object after) whether the pod is worth another try.
Hint = Callable[[Pod, Any, Any], bool]
#: The events that may help a pod which a plugin rejected: "<resource> <action>" to the hint.
Events = Mapping[str, Hint]
#: What a pod requests, in the units of the scheduler: thousandths of a cpu, else whole units.
Requests = Callable[[Pod], Mapping[str, int]]


class PluginContext(NamedTuple):
    """What the rules of a plugin are made with besides its arguments."""

    choices: Choices
    gates: FeatureGates


class EventContext(NamedTuple):
    """What the events of a plugin may depend on."""

    #: Its filters in all profiles.
    filters: Sequence[FilterRule]
    requests: Requests
    wake_ups: WakeUps


class PluginDeclaration(msgspec.Struct, frozen=True):
    """A plugin: `filter` and the others make its rules from its arguments, or from None.

    The kinds of objects that it looks up are those of its rules (`Rule.kinds`).
    """

    name: str
    #: The extension points that it implements, separated by blanks.
    at: str
    description: str
    filter: Callable[[Any, PluginContext], FilterRule] | None = None
    score: Callable[[Any, PluginContext], ScoreRule] | None = None
    gate: Callable[[PluginContext], Gate] | None = None
    post_filter: Callable[[Any, PluginContext], PostFilter] | None = None
    permit: Callable[[Any, PluginContext], PermitRule] | None = None
    arguments: Arguments[Any] | None = None
    #: Its weight among the default plugins.
    weight: int = 0
    #: The feature gate without which it is not among the default plugins.
    feature_gate: str = ""
    #: The events that wake the pods it rejected (EventsToRegister), or what gives them; None: any
    #: event does.
    events: Events | Callable[[EventContext], Events] | None = None
    #: The error of its filter in a profile without it at preFilter; empty if it needs none.
    pre_filter_error: str = ""
    #: The filter in such a profile, made from its own, unless it always fails or is the same.
    without_pre_filter: Callable[[FilterRule], FilterRule] | None = None
    #: Whether its score fails as well without preFilter.
    score_needs_pre_filter: bool = False
    #: The error of its score in a profile without it at preScore; empty if it needs none.
    pre_score_error: str = ""

    @property
    def points(self) -> frozenset[str]:
        """The extension points that it implements."""
        return frozenset(self.at.split())


def plain(rule: Callable[[], Any]) -> Callable[..., Any]:
    """Makes a rule that depends on no arguments and no options."""
    return lambda *_: rule()


class FactoryArgs(msgspec.Struct, frozen=True):
    """What predicates and priorities are made with (PluginFactoryArgs in kube-scheduler)."""

    gates: FeatureGates
    #: The weight in InterPodAffinityPriority of required affinity terms of placed pods.
    hard_pod_affinity_weight: int = 1
    #: The limit of volumes of a type per node from KUBE_MAX_PD_VOLS, if it is set.
    max_volumes: int | None = None
    #: Extended resources that an extender manages and PodFitsResources ignores.
    ignored_resources: frozenset[str] = frozenset()


class PolicyArgument(msgspec.Struct, Generic[R], frozen=True):
    """A member of an `argument` in a Policy, and the rule that it makes under any name."""

    #: The attribute of its value in the document; in a file it is written in camel case.
    attribute: str
    #: The struct that its value is decoded to.
    struct: type[Any]
    #: Makes the rule from the value and its name.
    make: Callable[[Any, str], R]
    rule: type[R]
    description: str
    #: The value as it is written in a Policy, from the rule that it made.
    shown: Callable[[Any], dict[str, Any]]

    @property
    def field(self) -> str:
        """Its name in a file."""
        return camel(self.attribute)


class PredicateDeclaration(msgspec.Struct, frozen=True):
    """A predicate. Conditions are feature gates: `Gate`, `Gate=false`, or empty for always."""

    name: str
    description: str
    #: None: only an argument makes a predicate of this name.
    make: Callable[[FactoryArgs], FilterRule] | None
    #: Whether both algorithm providers use it.
    provided: bool = False
    #: The condition under which the name can be used at all.
    exists: str = ""
    #: The condition under which every configuration gets it; None: never.
    mandatory: str | None = None
    #: The condition under which it rejects nodes at all.
    effective: str = ""
    #: The argument that its name usually comes with.
    argument: PolicyArgument[FilterRule] | None = None
    #: Names from documentation that kube-scheduler refuses, and that are read as this one.
    aliases: tuple[str, ...] = ()


class PriorityDeclaration(msgspec.Struct, frozen=True):
    """A priority."""

    name: str
    description: str
    make: Callable[[FactoryArgs], ScoreRule]
    #: The weight that the providers give it.
    weight: int = 1
    #: The algorithm providers that use it.
    providers: tuple[str, ...] = ()
    #: The feature gate with which the name exists; empty: always.
    exists: str = ""
    #: How kube-scheduler computes it, where that is not a map or a map and a reduce function.
    kind: str = ""
