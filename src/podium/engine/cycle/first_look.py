"""The first look at a pod, before any node: who refuses it, names nodes, or steps aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import AttemptError
from podium.engine.rules.plugins import OnlyNodes, Refused

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import Predicate
    from podium.engine.rules.plugins import FilterPlugin
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


class FirstLook:
    """What came of it. Where nobody can object, who steps aside is found out only when needed."""

    def __init__(self, pod: Incoming, view: View, profile: Profile) -> None:
        self._pod, self._view, self._profile = pod, view, profile
        self._looked = False
        self.refused: Refused | None = None
        #: The only nodes in question; None when all are.
        self.only: frozenset[str] | None = None
        #: Plugins that named nodes.
        self.naming: list[str] = []
        self._prepared: set[str] = set()
        self._skipped: set[str] = set()
        if any(self._ask(plugin) is not None for plugin in _loud(pod, profile)):
            self._look()

    @property
    def prepared(self) -> set[str]:
        """Plugins that were asked."""
        self._look()
        return self._prepared

    def active(self) -> tuple[Predicate, ...]:
        """The predicates that take part in this attempt, trials included."""
        self._look()
        if not self._skipped:
            return self._profile.predicates
        return tuple(p for p in self._profile.predicates if p.name not in self._skipped)

    def _look(self) -> None:
        """Ask each plugin in order, until one refuses the pod for good."""
        if self._looked:
            return
        self._looked = True
        for plugin in self._profile.pre_filters:
            answer = self._ask(plugin)
            if isinstance(answer, Refused):
                self.refused = answer
                return
            self._prepared.add(plugin.name)
            if isinstance(answer, OnlyNodes):
                self.naming.append(plugin.name)
                self.only = answer.names if self.only is None else self.only & answer.names
                if not self.only:
                    self.refused = _nobody(self.naming)
                    return
            elif plugin.skips(self._pod, self._view):
                self._skipped.add(plugin.name)

    def _ask(self, plugin: FilterPlugin) -> Refused | OnlyNodes | None:
        try:
            return plugin.prepare(self._pod, self._view)
        except AttemptError as error:
            raise AttemptError(f'running PreFilter plugin "{plugin.name}": {error}') from error


def _loud(pod: Incoming, profile: Profile) -> list[FilterPlugin]:
    """The plugins that may object to pods of this class, or name nodes for them."""
    return pod.cls.once(
        ("loud", profile.pre_filters),
        lambda: [p for p in profile.pre_filters if not p.quiet(pod.cls)],
    )


def _nobody(names: list[str]) -> Refused:
    plugins = tuple(sorted(names))
    if len(plugins) == 1:
        return Refused("", f"node(s) didn't satisfy plugin {plugins[0]}", plugins=plugins)
    text = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
    return Refused("", text, plugins=plugins)
