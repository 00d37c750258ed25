"""One state of manifests: the objects of a folder, each with the line where it stands.

A state is a folder or file, or the same at a revision of a git repository. A folder with a
kustomization is rendered by `kubectl kustomize`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME
from podium.library.reading import contents
from podium.objects.kinds.meta import JsonObject

_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STEPS: Final = re.compile(r"[^.\[\]]+|\[\d+\]|\[[^\]]*\]")
_HELM: Final = "Chart.yaml"
#: What kubectl writes around an error: the prefix of a log line, or the word.
_ERROR_OF_KUBECTL: Final = re.compile(r'^(?:[EF]\d{4} .*? err="|error: )(.*?)"?$')
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
#: Where the spec of pods is: in a pod, in a workload, and in a cron job.
POD_SPECS: Final = ("spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec")

_NO_OBJECT: Final = "holds no Kubernetes object"

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """An object as it is written, and where."""

    item: JsonObject
    file: str
    #: The place of the object in the file; None for what was rendered.
    place: yaml.Node | None = None

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.item["kind"])

    @property
    def _metadata(self) -> JsonObject:
        """The metadata; empty where something else is written in its place."""
        found = self.item.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        """Its name."""
        return str(self._metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        """Its namespace, `default` where none is written; empty for an object without one."""
        resource = BY_NAME.get(self.kind)
        if resource is not None and not resource.namespaced:
            return ""
        return str(self._metadata.get("namespace") or "default")

    @property
    def key(self) -> Key:
        """Kind, namespace and name."""
        return self.kind, self.namespace, self.name

    @property
    def label(self) -> str:
        """Kind, namespace and name in one word."""
        return "/".join(part for part in self.key if part)

    def line(self, path: str = "") -> int:
        """The line of a field such as `spec.template.spec.containers[0].image`, from 1.

        It is the line of the nearest field above where there is no such field. Where a path names
        no item of a list, the first item with the field is meant.
        """
        if self.place is None:
            return 1
        found, line = self.place, self.place.start_mark.line
        for step in _STEPS.findall(path):
            entry = entry_of(found, step)
            if entry is None:
                break
            line, found = entry
        return line + 1


def entry_of(node: yaml.Node, step: str) -> tuple[int, yaml.Node] | None:
    """The line of a field or item of a node, and its value."""
    name = step.strip("[]")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return key.start_mark.line, value
    elif isinstance(node, yaml.SequenceNode) and name.isdigit() and int(name) < len(node.value):
        item = node.value[int(name)]
        return item.start_mark.line, item
    elif isinstance(node, yaml.SequenceNode):
        found = (entry_of(each, step) for each in node.value)
        return next((each for each in found if each is not None), None)
    return None


class ManifestMistake(NamedTuple):
    """A place of a file from which no object can be taken, and why."""

    file: str
    line: int
    text: str
    #: More about it that is no part of what makes two mistakes the same.
    hint: str = ""


@dataclass(slots=True)
class ManifestState:
    """The objects of one state, and what was left out of it."""

    #: The folder or file, as its files are named for people.
    root: str = "."
    objects: dict[Key, ManifestObject] = field(default_factory=dict)
    mistakes: list[ManifestMistake] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def new_mistakes(self, before: ManifestState) -> list[ManifestMistake]:
        """The mistakes that the state before does not have in the same file."""
        known = {(before._inside(each.file), each.text) for each in before.mistakes}
        return [each for each in self.mistakes if (self._inside(each.file), each.text) not in known]

    def _inside(self, file: str) -> str:
        return Path(file).relative_to(self.root).as_posix()

    def changed_since(self, before: ManifestState) -> list[ManifestObject]:
        """The objects that are new or written otherwise."""
        known = {key: each.item for key, each in before.objects.items()}
        return [each for key, each in self.objects.items() if known.get(key) != each.item]

    def removed_since(self, before: ManifestState) -> list[ManifestObject]:
        """The objects that are not there any more."""
        return [each for key, each in before.objects.items() if key not in self.objects]


def read_state(path: str, shown_as: Mapping[str, str] | None = None) -> ManifestState:
    """The state in a folder or file; *shown_as* names it and the files for people."""
    state = ManifestState(_shown(path, shown_as))
    root = Path(path)
    if not root.exists():
        raise InputError("does not exist", where=path, hint="name a folder or file with manifests")
    if root.is_dir() and not any(each.suffix in _SUFFIXES for each in root.rglob("*")):
        state.notes.append(f"{state.root}: {_NO_OBJECT}")
        return state
    kustomizations = _kustomizations(root)
    for where, data in _plain_files(root, list(kustomizations)):
        _read_text(state, _shown(where, shown_as), data.decode("utf-8", "replace"))
    for folder, is_root in kustomizations.items():
        if is_root:
            _render(state, folder, shown_as)
    if not (state.objects or state.mistakes or state.notes):
        state.notes.append(f"{state.root}: {_NO_OBJECT}")
    return state


def revision_state(path: str, revision: str, folder: Path) -> ManifestState:
    """The state of *path* at a revision of its git repository; *folder* takes the files."""
    top = Path(_git(path, "rev-parse", "--show-toplevel").strip())
    inside = Path(path).resolve().relative_to(top.resolve()).as_posix()
    _git(path, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", revision=revision)
    listed = _git(path, "ls-tree", "-r", "--name-only", "--full-tree", revision, "--", inside)
    shown = {str(folder / inside): inside}
    for name in listed.splitlines():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_git(path, "show", f"{revision}:{name}"), "utf-8")
        shown[str(target)] = name
    if not listed:
        return ManifestState(notes=[f"{revision} has no file below {inside}"])
    return read_state(str(folder / inside), shown)


def _git(path: str, *arguments: str, revision: str = "") -> str:
    """What git answers; *revision* is what it is asked for, if that alone can be wrong."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    git = shutil.which("git")
    if git is None:
        raise InputError("needs git, which is not installed", where="--git")
    done = subprocess.run(  # noqa: S603  a program of the user, without a shell
        [git, "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode and revision:
        hint = "a branch, a tag or a commit is one"
        raise InputError(f"there is no revision {revision!r}", where="--git", hint=hint)
    if done.returncode:
        told = (done.stderr.strip().splitlines() or ["failed"])[0]
        raise InputError(told, where=f"git {' '.join(arguments[:2])}")
    return done.stdout


def _shown(where: str, shown_as: Mapping[str, str] | None) -> str:
    return (shown_as or {}).get(where, where)


def _kustomizations(root: Path) -> dict[Path, bool]:
    """The folders with a kustomization; True for those that no other one below *root* includes.

    A component is part of the kustomizations that include it, never rendered alone.
    """
    if not root.is_dir():
        return {}
    found = {each.parent: each for name in _KUSTOMIZATIONS for each in sorted(root.rglob(name))}
    included: set[Path] = set()
    for folder, file in found.items():
        value = yaml.load(file.read_text("utf-8"), _LOADER) or {}  # noqa: S506  the safe loader
        if value.get("kind") == "Component":
            included.add(folder.resolve())
        for field_name in ("resources", "bases", "components"):
            included.update((folder / str(name)).resolve() for name in value.get(field_name) or ())
    return {folder: folder.resolve() not in included for folder in sorted(found)}


def _plain_files(root: Path, kustomized: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """The files that are no part of a kustomization or a chart."""
    apart = [*kustomized, *(each.parent for each in root.rglob(_HELM))] if root.is_dir() else []
    for where, data in contents([str(root)]):
        if not any(Path(where).is_relative_to(folder) for folder in apart):
            yield where, data


def _render(state: ManifestState, folder: Path, shown_as: Mapping[str, str] | None) -> None:
    """Add what `kubectl kustomize` makes of a folder; objects keep the lines of their files."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        hint = "install kubectl, or name rendered manifests"
        raise InputError("a kustomization needs kubectl", where=str(folder), hint=hint)
    done = subprocess.run(  # noqa: S603  a program of the user, without a shell
        [kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    where = next(str(folder / name) for name in _KUSTOMIZATIONS if (folder / name).exists())
    if done.returncode:
        told = _ERROR_OF_KUBECTL.sub(r"\1", " ".join(done.stderr.split()))
        text = "kubectl kustomize: " + told.replace('\\"', '"').replace(str(folder), folder.name)
        state.mistakes.append(ManifestMistake(_shown(where, shown_as), 1, text))
        return
    written = ManifestState()
    for file, data in contents([str(folder)]):
        _read_text(written, _shown(file, shown_as), data.decode("utf-8", "replace"))
    sources = {(each.kind, each.name): each for each in written.objects.values()}
    made = ManifestState()
    _read_text(made, _shown(where, shown_as), done.stdout)
    for each in made.objects.values():
        source = sources.get((each.kind, each.name))
        file, place = (each.file, None) if source is None else (source.file, source.place)
        _add(state, ManifestObject(each.item, file, place))


def _read_text(state: ManifestState, where: str, text: str) -> None:
    try:
        nodes = list(yaml.compose_all(text, _LOADER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        line = mark.line + 1 if mark else 1
        state.mistakes.append(ManifestMistake(where, line, f"cannot be read: {problem}"))
        return
    for node in nodes:
        if node is not None:
            _add_document(state, where, node)


def _add_document(state: ManifestState, where: str, node: yaml.Node) -> None:
    repeated = repeated_key(node)
    if repeated is not None:
        state.mistakes.append(ManifestMistake(where, *repeated))
        return
    loader = _LOADER("")
    try:
        value = loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as error:
        line = node.start_mark.line + 1
        state.mistakes.append(ManifestMistake(where, line, f"cannot be read: {error}"))
        return
    finally:
        loader.dispose()
    if not isinstance(value, dict) or not value.get("kind") or not value.get("apiVersion"):
        state.notes.append(f"{where}: {_NO_OBJECT}")
        return
    if str(value["kind"]).endswith("List") and isinstance(value.get("items"), list):
        items = entry_of(node, "items")
        assert items is not None
        for each in items[1].value:
            _add_document(state, where, each)
        return
    _add(state, ManifestObject(value, where, node))


def repeated_key(node: yaml.Node) -> tuple[int, str] | None:
    """The first key that a mapping has twice: its line, and what is wrong."""
    if isinstance(node, yaml.SequenceNode):
        found = (repeated_key(each) for each in node.value)
        return next((each for each in found if each is not None), None)
    if not isinstance(node, yaml.MappingNode):
        return None
    seen: dict[str, int] = {}
    for key, value in node.value:
        if key.value in seen:
            text = f"the key {key.value!r} stands twice, first on line {seen[key.value]}"
            return key.start_mark.line + 1, text
        seen[key.value] = key.start_mark.line + 1
        inner = repeated_key(value)
        if inner is not None:
            return inner
    return None


def _add(state: ManifestState, found: ManifestObject) -> None:
    if not found.name:
        found = _named(state, found)
    if not found.name:
        mistake = ManifestMistake(found.file, found.line("metadata"), "metadata.name is missing")
        state.mistakes.append(mistake)
        return
    twin = state.objects.get(found.key)
    if twin is not None and twin.item != found.item and found.kind in BY_NAME:
        text = f"{found.label} stands twice"
        hint = f"first in {twin.file}:{twin.line()}; if they are of two clusters, check one folder"
        state.mistakes.append(ManifestMistake(found.file, found.line(), text, hint))
        return
    state.objects[found.key] = found


def _named(state: ManifestState, found: ManifestObject) -> ManifestObject:
    """An object with `generateName`, with the first name that is free."""
    about = found.item.get("metadata") or {}
    stem = about.get("generateName")
    if not stem:
        return found
    for number in count():
        named = {**found.item, "metadata": {**about, "name": f"{stem}{number}"}}
        made = ManifestObject(named, found.file, found.place)
        if made.key not in state.objects:
            break
    return made
