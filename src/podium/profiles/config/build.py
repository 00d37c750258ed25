"""Profiles made from a KubeSchedulerConfiguration and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from podium.engine.cycle.ties import ties
from podium.engine.framework.declaration import PluginContext, PluginDeclaration
from podium.engine.framework.missing_points import (
    FailingFilter,
    FailingScore,
    NeverSkippedScore,
)
from podium.engine.framework.profile import Profile, Weighted
from podium.engine.framework.rule import ScoreRule
from podium.engine.state.accounting import Resizes, WholePod
from podium.errors import ConfigError
from podium.profiles.config.feature_gates import ConfigurationGates
from podium.profiles.config.loading import (
    check_together,
    config_from,
    default_config,
    load_config,
)
from podium.profiles.config.scheduler_config import (
    EnabledPlugin,
    ProfileConfig,
    SchedulerConfig,
)
from podium.profiles.extenders import make_extenders
from podium.releases import KUBE_SCHEDULER

if TYPE_CHECKING:
    from podium.engine.framework.choices import Conduct
    from podium.engine.framework.post_filter import GroupPostFilter, PostFilter
    from podium.engine.framework.rule import FilterRule, PermitRule
    from podium.profiles.policy.build import Options

__all__ = [
    "EnabledPlugin",
    "ProfileConfig",
    "SchedulerConfig",
    "config_from",
    "default_config",
    "from_config",
    "load_config",
]

MAX_SCORE = 100
_FIRST = "first"


def from_config(config: SchedulerConfig, options: Options) -> tuple[Profile, ...]:
    """The profiles, in the order of the configuration."""
    generation = config.gates.generation
    config.gates.check_supported()
    ConfigurationGates(options.feature_gates, generation).check_supported()
    check_together(config.profiles)
    extenders = make_extenders(config.extenders, generation.extenders)
    return tuple(
        _Builder(profile, options, config).profile(
            extenders, _ties(options.ties, generation.conduct)
        )
        for profile in config.profiles
    )


def _ties(rule: str | None, conduct: Conduct) -> str:
    """The rule for ties; where kube-scheduler takes any node, its rule is to take the first."""
    if rule == KUBE_SCHEDULER and conduct.ties != "heap":
        return _FIRST
    try:
        ties(rule or _FIRST)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return rule or _FIRST


class _Builder:
    """Makes the rules of one profile; a plugin has one filter object for all extension points."""

    def __init__(self, config: ProfileConfig, options: Options, of: SchedulerConfig) -> None:
        self.config = config
        self.options = options
        self.generation = of.gates.generation
        self.parallelism = of.parallelism
        self.context = PluginContext(self.generation.choices, of.gates)
        names = {name for point in config.points for name in config.names(point)}
        self.filters: dict[str, FilterRule] = {
            name: make(config.args.get(name), self.context)
            for name in names
            if (make := self.generation.plugin[name].filter) is not None
        }

    def profile(self, extenders: tuple[Any, ...], rule: str) -> Profile:
        """The profile."""
        config = self.config
        return Profile(
            name=f"{self.generation.name} {config.scheduler_name}",
            generation=self.generation,
            predicates=tuple(map(self.filter, self.plugins("filter"))),
            priorities=tuple(self.priorities()),
            accounting=WholePod(self.resizes()),
            configured_predicates=tuple(sorted(config.names("filter"))),
            extenders=extenders,
            gates=tuple(
                p.gate(self.context) for p in self.plugins("preEnqueue") if p.gate is not None
            ),
            pre_filters=tuple(self.filters[name] for name in config.names("preFilter")),
            post_filters=tuple(self.post_filters("postFilter")),
            schedules_groups=self.schedules_groups(),
            group_post_filters=tuple(self.group_post_filters()),
            permits=tuple(self.permits()),
            pre_scores=tuple(self.pre_scores()),
            max_score=MAX_SCORE,
            checks_scores=True,
            nominated_first=True,
            clears_without_post_filter=self.generation.conduct.clears_without_post_filter,
            nominees_count_for_affinity=True,
            node_order="list",
            all_errors=False,
            first_if_equal=True,
            percentage_of_nodes_to_score=self.percentage(),
            adaptive_sampling=True,
            parallelism=self.parallelism,
            ties=rule,
            scheduler_name=config.scheduler_name,
            notes=(*config.notes, *self.notes()),
        )

    def notes(self) -> Iterator[str]:
        """What is chance in the real program, and what Podium does in its place."""
        by_default = self.options.ties in (None, KUBE_SCHEDULER)
        if self.generation.conduct.ties == "random" and by_default:
            yield (
                f"{self.generation.name} takes any of the nodes with the best total; the first is "
                "taken here, and --ties random:SEED takes any"
            )

    def resizes(self) -> Resizes:
        """How the requests of a pod that is being resized add up."""
        gate = "InPlacePodLevelResourcesVerticalScaling"
        by_sums = self.generation.choices.resized == "pod"
        return Resizes(by_sums=by_sums, of_pod_level=self.context.gates[gate])

    def plugins(self, point: str) -> list[PluginDeclaration]:
        """What runs at a point, in order."""
        return [self.generation.plugin[name] for name in self.config.names(point)]

    def percentage(self) -> int:
        """As configured, or else as usual; 0 means a share that depends on the cluster."""
        given = self.options.percentage_of_nodes_to_score
        if given is None:
            given = self.config.percentage_of_nodes_to_score
        if given is None:
            given = self.options.usual_percentage
        if not 0 <= given <= 100:
            raise ConfigError(
                f"percentageOfNodesToScore: Invalid value: {given}: not in valid range [0-100]"
            )
        return given

    def filter(self, plugin: PluginDeclaration) -> FilterRule:
        """The filter of a plugin, which may depend on its PreFilter."""
        rule = self.filters[plugin.name]
        if "preFilter" not in plugin.points or plugin.name in self.config.names("preFilter"):
            return rule
        if plugin.without_pre_filter is not None:
            return plugin.without_pre_filter(rule)
        if plugin.pre_filter_error:
            return FailingFilter(plugin.name, plugin.pre_filter_error)
        return rule

    def priorities(self) -> Iterator[Weighted]:
        """The scores, in order; of several that always fail, the first one is enough."""
        failed = False
        for enabled in self.config.points.get("score", ()):
            plugin = self.generation.plugin[enabled.name]
            assert plugin.score is not None, enabled.name  # only plugins with this point are there
            made = plugin.score(self.config.args.get(enabled.name), self.context)
            rule = self.score(plugin, made)
            if isinstance(rule, FailingScore):
                if failed:
                    continue
                failed = True
            yield Weighted(rule, enabled.weight)

    def permits(self) -> Iterator[PermitRule]:
        """The rules that may reject or delay a pod once its node is chosen."""
        for plugin in self.plugins("permit"):
            if plugin.permit is not None:
                yield plugin.permit(self.config.args.get(plugin.name), self.context)

    def pre_scores(self) -> Iterator[ScoreRule]:
        """Scores with a PreScore that may fail, whether the plugin is at score or not."""
        for plugin in self.plugins("preScore"):
            if plugin.score is not None:
                rule = plugin.score(self.config.args.get(plugin.name), self.context)
                if type(rule).pre_score is not ScoreRule.pre_score:
                    yield rule

    def score(self, plugin: PluginDeclaration, rule: ScoreRule) -> ScoreRule:
        """The score of a plugin, which may depend on its PreScore and PreFilter."""
        if "preScore" in plugin.points and plugin.name not in self.config.names("preScore"):
            if plugin.pre_score_error:
                return FailingScore(plugin.name, plugin.pre_score_error)
            return NeverSkippedScore(rule)
        if plugin.score_needs_pre_filter and plugin.name not in self.config.names("preFilter"):
            return FailingScore(plugin.name, plugin.pre_filter_error)
        return rule

    def schedules_groups(self) -> bool:
        """Whether pods of a pod group are scheduled together."""
        return self.generation.choices.pod_groups and self.context.gates["GenericWorkload"]

    def group_post_filters(self) -> Iterator[GroupPostFilter]:
        """Make the rules that run when too few pods of a group fit."""
        if self.schedules_groups():
            found: Iterator[Any] = self.post_filters("podGroupPostFilter")
            yield from found

    def post_filter_names(self, point: str) -> list[str]:
        """The plugins that run at a point when no node fits."""
        off = {"DefaultPreemption"} if self.options.disable_preemption else set()
        return [name for name in self.config.names(point) if name not in off]

    def post_filters(self, point: str) -> Iterator[PostFilter]:
        """Make the rules that run when no node fits."""
        for name in self.post_filter_names(point):
            make = self.generation.plugin[name].post_filter
            assert make is not None, name  # only plugins with this point are there
            yield make(self.config.args.get(name), self.context)
