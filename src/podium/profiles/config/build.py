"""Profiles of v1.36, made from a configuration and options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from podium.engine.cycle.ties import ties
from podium.engine.framework.declaration import PluginDeclaration
from podium.engine.framework.missing_points import (
    FailingFilter,
    FailingScore,
    NeverSkippedScore,
)
from podium.engine.framework.profile import Profile, Weighted
from podium.engine.framework.rule import ScoreRule
from podium.engine.generations.v1_36 import PLUGINS
from podium.engine.state.accounting import WholePod
from podium.errors import ConfigError
from podium.profiles.config.feature_gates import FeatureGates
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

if TYPE_CHECKING:
    from podium.engine.framework.post_filter import PostFilter
    from podium.engine.framework.rule import FilterRule
    from podium.profiles.policy.build import Options

__all__ = [
    "GENERATION",
    "EnabledPlugin",
    "ProfileConfig",
    "SchedulerConfig",
    "config_from",
    "default_config",
    "from_config",
    "load_config",
]

GENERATION = "v1.36"
MAX_SCORE = 100
_FIRST = "first"


def from_config(config: SchedulerConfig, options: Options) -> tuple[Profile, ...]:
    """The profiles, in the order of the configuration."""
    config.gates.check_supported()
    FeatureGates(options.feature_gates).check_supported()
    check_together(config.profiles)
    extenders = make_extenders(config.extenders, "v1.36")
    return tuple(
        _Builder(profile, options).profile(extenders, _ties(options.ties))
        for profile in config.profiles
    )


def _ties(rule: str | None) -> str:
    try:
        ties(rule or _FIRST)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return rule or _FIRST


class _Builder:
    """Makes the rules of one profile; a plugin has one filter object for all extension points."""

    def __init__(self, config: ProfileConfig, options: Options) -> None:
        self.config = config
        self.options = options
        names = {name for point in config.points for name in config.names(point)}
        self.filters: dict[str, FilterRule] = {
            name: make(config.args.get(name))
            for name in names
            if (make := PLUGINS[name].filter) is not None
        }

    def profile(self, extenders: tuple[Any, ...], rule: str) -> Profile:
        """The profile."""
        config = self.config
        return Profile(
            name=f"{GENERATION} {config.scheduler_name}",
            predicates=tuple(map(self.filter, self.plugins("filter"))),
            priorities=tuple(self.priorities()),
            accounting=WholePod(),
            configured_predicates=tuple(sorted(config.names("filter"))),
            extenders=extenders,
            gates=tuple(p.gate() for p in self.plugins("preEnqueue") if p.gate is not None),
            pre_filters=tuple(self.filters[name] for name in config.names("preFilter")),
            post_filters=tuple(self.post_filters()),
            pre_scores=tuple(self.pre_scores()),
            max_score=MAX_SCORE,
            checks_scores=True,
            nominated_first=True,
            nominees_count_for_affinity=True,
            node_order="list",
            all_errors=False,
            first_if_equal=True,
            percentage_of_nodes_to_score=self.percentage(),
            adaptive_sampling=True,
            ties=rule,
            scheduler_name=config.scheduler_name,
            notes=config.notes,
        )

    def plugins(self, point: str) -> list[PluginDeclaration]:
        """What runs at a point, in order."""
        return [PLUGINS[name] for name in self.config.names(point)]

    def percentage(self) -> int:
        """All nodes unless configured; 0 means a share that depends on the cluster."""
        given = self.options.percentage_of_nodes_to_score
        if given is None:
            given = self.config.percentage_of_nodes_to_score
        if given is None:
            return 100
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
            plugin = PLUGINS[enabled.name]
            assert plugin.score is not None, enabled.name  # only plugins with this point are there
            rule = self.score(plugin, plugin.score(self.config.args.get(enabled.name)))
            if isinstance(rule, FailingScore):
                if failed:
                    continue
                failed = True
            yield Weighted(rule, enabled.weight)

    def pre_scores(self) -> Iterator[ScoreRule]:
        """Scores with a PreScore that may fail, whether the plugin is at score or not."""
        for plugin in self.plugins("preScore"):
            if plugin.score is not None:
                rule = plugin.score(self.config.args.get(plugin.name))
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

    def post_filter_names(self) -> list[str]:
        """The plugins that run when no node fits."""
        off = {"DefaultPreemption"} if self.options.disable_preemption else set()
        return [name for name in self.config.names("postFilter") if name not in off]

    def post_filters(self) -> Iterator[PostFilter]:
        """Make the rules that run when no node fits."""
        for name in self.post_filter_names():
            make = PLUGINS[name].post_filter
            assert make is not None, name  # only plugins with this point are there
            yield make(self.config.args.get(name))
