"""Loading of users' rules from files, modules and installed packages.

A rule is a function that a decorator of `podium.rules` marked. A Policy may name it like a built-in
rule and give it arguments; without a Policy every loaded rule is used.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.engine.framework.profile import Weighted
from podium.errors import ConfigError
from podium.generations.plugins import PLUGINS
from podium.generations.predicates import PRIORITIES
from podium.profiles.policy.configured_predicates import BY_NAME
from podium.profiles.user_rules.adapter import (
    PERMIT,
    PREDICATE,
    PRIORITY,
    RESERVE,
    RuleSpec,
    UserPermit,
    UserPredicate,
    UserPriority,
    UserReserve,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from importlib.metadata import EntryPoints
    from types import ModuleType

    from podium.engine.framework.profile import Profile
    from podium.profiles.user_rules.adapter import RuleObserver

#: The attribute by which the decorators mark a function as a rule.
MARK = "__podium_rule__"
#: The entry point group in which installed packages offer rules.
GROUP = "podium.rules"

_BUILT_IN = {
    PREDICATE: frozenset(BY_NAME),
    PRIORITY: frozenset(entry.name for entry in PRIORITIES),
}
#: The names of all plugins, of whatever generation.
_PLUGINS = frozenset(plugin.name for plugin in PLUGINS)
#: The sections of a Policy.
_SECTIONS = {"predicates": PREDICATE, "priorities": PRIORITY}
#: How the names of modules begin that files are loaded as, and the folders of these files.
_PREFIX = "podium_rules_"
_FOLDERS: set[Path] = set()


def check_not_built_in(kind: str, name: str, where: str = "") -> None:
    """Refuse a rule with the name of a plugin, or of a built-in rule of its kind.

    A plugin may be several kinds of rule, and its name stands for the events that wake pods.
    """
    built_in = kind if name in _BUILT_IN.get(kind, ()) else "plugin" if name in _PLUGINS else ""
    if built_in:
        place = f"{where}: " if where else ""
        raise ConfigError(f"{place}{name} is a built-in {built_in}", hint="choose another name")


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """The loaded rules, by name, and the observer of their run times and failures."""

    predicates: Mapping[str, RuleSpec] = field(default_factory=dict)
    priorities: Mapping[str, RuleSpec] = field(default_factory=dict)
    watch: RuleObserver | None = None
    reserves: Mapping[str, RuleSpec] = field(default_factory=dict)
    permits: Mapping[str, RuleSpec] = field(default_factory=dict)
    #: Keyword arguments by the name of a rule, for rules that no Policy gives arguments to.
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.predicates or self.priorities or self.reserves or self.permits)

    def of(self, kind: str) -> Mapping[str, RuleSpec]:
        """The predicates, or the priorities."""
        return self.predicates if kind == PREDICATE else self.priorities

    def predicate(self, name: str, arguments: Mapping[str, Any] | None = None) -> UserPredicate:
        """A predicate with these arguments."""
        spec = self.predicates[name]
        return UserPredicate(spec, self._bound(spec, arguments), self.watch)

    def priority(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, max_score: int = 10
    ) -> UserPriority:
        """A priority with these arguments, its scores up to *max_score*."""
        spec = self.priorities[name]
        return UserPriority(spec, self._bound(spec, arguments), self.watch, max_score)

    def reserve(self, name: str) -> UserReserve:
        """A reserve rule."""
        spec = self.reserves[name]
        return UserReserve(spec, self._bound(spec, None), self.watch)

    def permit(self, name: str) -> UserPermit:
        """A permit rule."""
        spec = self.permits[name]
        return UserPermit(spec, self._bound(spec, None), self.watch)

    def _bound(self, spec: RuleSpec, arguments: Mapping[str, Any] | None) -> Callable[..., Any]:
        return bound(spec, arguments or self.arguments.get(spec.name))


NO_RULES = LoadedRules()


def load_rules(
    sources: Iterable[str],
    policy: Mapping[str, Any] | None = None,
    watch: RuleObserver | None = None,
) -> LoadedRules:
    """All rules of the sources, and those of installed packages that a Policy names."""
    found: dict[tuple[str, str], tuple[str, RuleSpec]] = {}
    for source in sources:
        rules = rules_in(_module(source))
        if not rules:
            raise ConfigError(
                f"{source} holds no rules",
                hint="a rule is a function decorated by podium.rules.predicate or .priority",
            )
        _add(found, rules, source)
    for name in _unknown_names(policy, found):
        for offered in _offered(name):
            _add(found, rules_in(offered.load()), f"entry point {name}")
    specs = [spec for _, spec in found.values()]
    return LoadedRules(
        {spec.name: spec for spec in specs if spec.kind == PREDICATE},
        {spec.name: spec for spec in specs if spec.kind == PRIORITY},
        watch,
        {spec.name: spec for spec in specs if spec.kind == RESERVE},
        {spec.name: spec for spec in specs if spec.kind == PERMIT},
    )


def _add(
    found: dict[tuple[str, str], tuple[str, RuleSpec]], rules: Iterable[RuleSpec], source: str
) -> None:
    for spec in rules:
        check_not_built_in(spec.kind, spec.name, source)
        before = found.get((spec.kind, spec.name))
        if before is not None and before[1].function is not spec.function:
            raise ConfigError(f"{source}: {spec.kind} {spec.name} is in {before[0]} already")
        found[spec.kind, spec.name] = (source, spec)


def rules_in(module: ModuleType | Callable[..., Any]) -> list[RuleSpec]:
    """The rules of a module in the order they were written, or the one that a function is."""
    holders = vars(module).values() if inspect.ismodule(module) else (module,)
    marked = (getattr(function, MARK, None) for function in holders if callable(function))
    return list({id(spec): spec for spec in marked if isinstance(spec, RuleSpec)}.values())


def _module(source: str) -> Any:
    """The module that a source names: a file, an entry point or an importable module."""
    if source.endswith(".py") or Path(source).is_file():
        return load_file(source)
    for offered in _offered(source):
        return offered.load()
    try:
        return import_module(source)
    except ImportError as error:
        raise ConfigError(
            f"rules {source!r}: {error}", hint="name a file, an importable module or an entry point"
        ) from error


def _offered(name: str) -> EntryPoints:
    """What installed packages offer under this name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  it takes long

    return entry_points(group=GROUP, name=name)


def load_file(source: str) -> ModuleType:
    """Execute a file of a user as a module; what it raises becomes a `ConfigError`."""
    from importlib.util import (  # noqa: PLC0415  it takes long
        module_from_spec,
        spec_from_file_location,
    )

    path = Path(source)
    if path.suffix != ".py":
        raise ConfigError(f"{source} is no Python file", hint="a file with rules ends in .py")
    # Files of one name in two folders are two modules.
    folder = blake2b(bytes(path.resolve().parent), digest_size=4).hexdigest()
    spec = spec_from_file_location(f"{_PREFIX}{path.stem}_{folder}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # dataclasses and pickling look it up there.
    sys.modules[module.__name__] = module
    try:
        with _importable(path.resolve().parent):
            spec.loader.exec_module(module)
    except FileNotFoundError:
        raise ConfigError(f"{source}: there is no such file") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error.text}", hint=error.hint) from error
    except (Exception, SystemExit) as error:
        place = _line(error, source)
        raise ConfigError(f"{place}: {type(error).__name__}: {error}") from error
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a file import its neighbours while it is executed, as a script may.

    Neighbours of an earlier file that have the name of one here make room for it.
    """
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "")
        elsewhere = file.parent in _FOLDERS - {folder} and (folder / file.name).exists()
        if elsewhere and not name.startswith(_PREFIX):
            del sys.modules[name]
    _FOLDERS.add(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _line(error: BaseException, source: str) -> str:
    """The file and its line that was executed last."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{source}:{error.lineno}"
    lines, step = [], error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == source:
            lines.append(step.tb_lineno)
        step = step.tb_next
    return f"{source}:{lines[-1]}" if lines else source


def bound(spec: RuleSpec, arguments: Mapping[str, Any] | None) -> Callable[..., Any]:
    """The function with its arguments bound; a `ConfigError` if it does not take them."""
    given = dict(arguments or {})
    if inspect.iscoroutinefunction(spec.function):
        raise ConfigError(f"rule {spec.name} is async", hint="rules are plain functions")
    try:
        inspect.signature(spec.function).bind(None, None, **given)
    except TypeError as error:
        code = getattr(spec.function, "__code__", None)
        place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
        names = ", ".join(["a pod", "a node", *given])
        takes = inspect.signature(spec.function)
        raise ConfigError(
            f"rule {spec.name}{place} takes {takes} and cannot be called with {names}: {error}"
        ) from error
    return partial(spec.function, **given) if given else spec.function


# In a Policy ----------------------------------------------------------------------------------


def take_arguments(
    policy: Mapping[str, Any], rules: LoadedRules
) -> tuple[Mapping[str, Any], dict[tuple[str, str], Mapping[str, Any]]]:
    """The Policy without the arguments of users' rules, and those arguments by kind and name."""
    if not rules or not isinstance(policy, Mapping):
        return policy, {}
    left, taken = dict(policy), {}
    for section, kind in _SECTIONS.items():
        entries = policy.get(section)
        if not isinstance(entries, list):
            continue
        left[section] = kept = []
        for entry in entries:
            name = entry.get("name") if isinstance(entry, Mapping) else None
            if isinstance(name, str) and name in rules.of(kind):
                taken[kind, name] = _argument(name, entry.get("argument"))
                entry = {key: value for key, value in entry.items() if key != "argument"}  # noqa: PLW2901
                if kind == PRIORITY:
                    entry.setdefault("weight", rules.priorities[name].weight)
            kept.append(entry)
    return left, taken


def _argument(name: str, given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ConfigError(f"rule {name}: argument is not a mapping of names to values")
    return given


def _unknown_names(
    policy: Mapping[str, Any] | None, found: Mapping[tuple[str, str], Any]
) -> list[str]:
    """Names in a Policy of rules that are neither built in nor loaded."""
    names = []
    for section, kind in _SECTIONS.items():
        entries = policy.get(section) if isinstance(policy, Mapping) else None
        for entry in entries if isinstance(entries, list) else ():
            name = entry.get("name") if isinstance(entry, Mapping) else None
            if isinstance(name, str) and name not in _BUILT_IN[kind] and (kind, name) not in found:
                names.append(name)
    return names


def with_rules(profile: Profile, rules: LoadedRules) -> Profile:
    """The profile with all rules that it does not have yet.

    Predicates run after its own; priorities go by name. Reserve and permit rules, which only a
    scheduler can use, are added with the predicates.
    """
    there = {rule.name for rule in profile.predicates}
    predicates = [rules.predicate(name) for name in rules.predicates if name not in there]
    there = {each.name for each in profile.priorities}
    priorities = [
        Weighted(rules.priority(name, max_score=profile.max_score), spec.weight)
        for name, spec in rules.priorities.items()
        if name not in there
    ]
    weighted = sorted((*profile.priorities, *priorities), key=lambda each: each.name)
    return replace(
        profile,
        predicates=(*profile.predicates, *predicates),
        priorities=tuple(weighted),
        configured_predicates=tuple(sorted({*profile.configured_predicates, *rules.predicates})),
        reserves=(*profile.reserves, *map(rules.reserve, rules.reserves)),
        permits=(*profile.permits, *map(rules.permit, rules.permits)),
    )
