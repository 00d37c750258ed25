"""Objects read from files, folders, histories and standard input, ready to be scheduled.

What the files say is checked first; only then is it completed with what the API server and the
controllers would have added, so that errors are about what is in the files. A history stands for
its cluster at its end. Much YAML is parsed in several processes before it is read: to parse it
takes thirty times as long as to decode the same objects from JSON.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.library.files import STDIN, unreadable
from podium.library.parallel import in_parallel
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expansion import expand, with_claims_of_templates
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode
from podium.objects.reading.encoding import text_of
from podium.objects.reading.garbage import without_gc
from podium.objects.reading.json_text import looks_like_json
from podium.objects.reading.validation import validate
from podium.objects.reading.yaml_text import (
    ParseYaml,
    Piece,
    YamlDocument,
    cut,
    documents,
    together,
)

if TYPE_CHECKING:
    from podium.objects.kinds.meta import Object
    from podium.past.format.reading import History

#: Segments of a history end in it.
_SUFFIX: Final = ".history"
#: The last segment may have been cut before its cluster was written whole.
_LAST_SEGMENTS: Final = 2


def is_history(path: str) -> bool:
    """Whether *path* is a history: a folder with segments, or one segment."""
    found = Path(path)
    if found.is_dir():
        return any(each.suffix == _SUFFIX for each in found.iterdir())
    return found.suffix == _SUFFIX


def cluster_of_history(path: str) -> bytes:
    """The cluster at the end of the history, as JSON of a snapshot with the profile in use."""
    from podium.past.format.reading import History  # noqa: PLC0415  few inputs are histories

    history = History(path)
    end = _End()
    end.follow(history, max(len(history.segments) - _LAST_SEGMENTS, 0))
    if not end.objects:
        end.follow(history, 0)
    if not end.objects:
        raise InputError("holds no whole cluster", where=path, hint="record it again")
    header = {
        "apiVersion": "podium/v1",
        "kind": "Snapshot",
        "profile": end.profile,
        # A history has the kinds that scheduling reads, and no others.
        "ofHistory": True,
    }
    parts = [msgspec.json.encode(header), *end.written()]
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + b",\n".join(parts) + b"\n]}\n"


class _End:
    """What is left when everything in a history has happened."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        #: The uid of a pod -> the node that was decided, until its own object names it.
        self._decided: dict[str, str] = {}
        self.profile: Any = None

    def follow(self, history: History, first: int) -> None:
        """Follow the history from segment *first* on."""
        from podium.past.format.reading import ObjectChange, SegmentStart, Torn  # noqa: PLC0415
        from podium.past.format.records import Decided, Forgotten, Profiles  # noqa: PLC0415

        for entry in history.entries(first):
            if isinstance(entry, SegmentStart):
                self.objects.clear()
                self._decided.clear()
                self.profile = entry.header.get("profile")
            elif isinstance(entry, Torn):
                if entry.damaged:
                    raise InputError(f"its end is not known: {entry}", where=str(history.path))
            elif isinstance(entry, ObjectChange):
                if entry.new is None:
                    del self.objects[entry.kind, entry.key]
                else:
                    self.objects[entry.kind, entry.key] = entry.new
            elif isinstance(entry, Profiles):
                self.profile = entry.profile
            elif isinstance(entry, Decided) and entry.node is not None:
                self._decided[entry.uid] = entry.node
            elif isinstance(entry, Forgotten):
                self._decided.pop(entry.uid, None)

    def written(self) -> Iterator[bytes]:
        """The objects as JSON, without pods that have finished."""
        for (kind, _), found in self.objects.items():
            item = found
            if isinstance(item, Pod):
                if item.finished:
                    continue
                item = self._placed(item)
            version = item.api_version or KINDS[kind].api_versions[0]
            yield msgspec.json.encode(replace(item, api_version=version, kind=kind))

    def _placed(self, pod: Pod) -> Pod:
        """The pod on its node; one that is not bound yet counts where it was decided."""
        node = self._decided.get(pod.uid)
        if node is None or pod.spec.node_name:
            return pod
        return replace(pod, spec=replace(pod.spec, node_name=node))


#: From so much text on processes are started; less is parsed in the time that this takes.
MUCH: Final = 1 << 19
#: Each process is given about so many pieces, so that none waits long for the last one.
_PIECES: Final = 4
_SMALLEST_PIECE: Final = 1 << 16
_LARGEST_PIECE: Final = 1 << 22

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[YamlDocument]).decode


class ParsedYaml:
    """The documents of YAML texts, parsed in *workers* processes if there is much of it.

    It is called with a text and gives its documents, as `yaml_text.documents` does. A text that was
    not parsed before, or that has a mistake, is parsed when it is asked for: errors are raised
    there, and are the same with any number of processes.
    """

    def __init__(self, contents: Iterable[bytes], workers: int) -> None:
        #: Text -> its pieces, and the documents of each, encoded; None if it cannot be parsed.
        self._pieces: dict[str, list[Piece]] = {}
        self._parsed: dict[str, list[bytes | None]] = defaultdict(list)
        texts = list(_yaml_texts(contents)) if workers > 1 else []
        total = sum(map(len, texts))
        if total >= MUCH:
            size = total // (workers * _PIECES)
            self._parse(texts, max(min(size, _LARGEST_PIECE), _SMALLEST_PIECE), workers)

    def _parse(self, texts: Sequence[str], size: int, workers: int) -> None:
        self._pieces = {text: list(cut(text, size)) for text in texts}
        portions: list[list[Piece]] = [[]]
        filled = 0
        for piece in (each for pieces in self._pieces.values() for each in pieces):
            if filled >= size:
                portions.append([])
                filled = 0
            portions[-1].append(piece)
            filled += len(piece.text)
        work = [partial(_parsed, portion) for portion in portions]
        found = dict(in_parallel(work, workers))
        parsed = (each for number in range(len(work)) for each in found[number])
        for text, pieces in self._pieces.items():
            self._parsed[text] = [next(parsed) for _ in pieces]

    def __call__(self, text: str) -> Iterable[YamlDocument]:
        """The documents of a text; what was kept of it is handed over."""
        pieces, parsed = self._pieces.pop(text, None), self._parsed.pop(text, [])
        if pieces is not None and None not in parsed:
            with without_gc():
                whole = together(pieces, [_decode(each) for each in parsed if each is not None])
            if whole is not None:
                return whole
        return documents(text)


def _yaml_texts(contents: Iterable[bytes]) -> Iterable[str]:
    """The texts that are not JSON; those that are no text at all are left out."""
    for data in contents:
        if not looks_like_json(data):
            try:
                yield text_of(data)
            except InputError:
                continue


def _parsed(pieces: Sequence[Piece]) -> list[bytes | None]:
    """The documents of each piece, encoded; None for one that cannot be parsed or encoded."""
    with without_gc():
        return [_documents_of(piece) for piece in pieces]


def _documents_of(piece: Piece) -> bytes | None:
    try:
        return _encode(list(documents(piece.text)))
    except (InputError, ValueError, OverflowError, RecursionError):
        return None


_SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
#: About so many bytes of files are in memory at a time.
_READ_TOGETHER = 1 << 26
_GZIP = b"\x1f\x8b"


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read(paths: Paths, *, workers: int = 1) -> Objects:
    """The objects of all *paths* (files, folders, `-`: standard input), checked and completed.

    *paths* is one path or several, as text or as `Path`.
    Files are YAML or JSON, gzipped or not: manifests, lists, or a snapshot. A history stands for
    the cluster at its end. What the API server
    and controllers would add is added: defaults, the pods of workloads without a uid, and the
    claims that pods have templates for. With several *workers* much YAML is parsed in so many
    copies of this process.
    """
    objects = load(paths, workers=workers)
    validate(objects)
    return with_claims_of_templates(expand(with_defaults(objects)))


def load(paths: Paths, *, workers: int = 1) -> Objects:
    """The objects of all *paths* as they were written."""
    objects = Objects()
    for where, data, parse_yaml in parsed_contents(path_list(paths), workers):
        decode(data, where, objects, parse_yaml)
    return objects


def path_list(paths: Paths) -> list[str]:
    """One path or several, as text."""
    if isinstance(paths, str | os.PathLike):
        return [os.fspath(paths)]
    return [os.fspath(each) for each in paths]


def parsed_contents(paths: Sequence[str], workers: int) -> Iterator[tuple[str, bytes, ParseYaml]]:
    """The same as `contents`, each with what parses it if it is YAML.

    With several *workers* some files are read at a time, and parsed together.
    """
    files = contents(paths)
    while together := _some_files(files, _READ_TOGETHER if workers > 1 else 0):
        parse_yaml = ParsedYaml([data for _, data in together], workers)
        for where, data in together:
            yield where, data, parse_yaml


def _some_files(files: Iterator[tuple[str, bytes]], most_bytes: int) -> list[tuple[str, bytes]]:
    """The next files, until they have that many bytes; at least one if there is any."""
    found: list[tuple[str, bytes]] = []
    size = 0
    for where, data in files:
        found.append((where, data))
        size += len(data)
        if size >= most_bytes:
            break
    return found


def contents(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The name and the unpacked content of every file in *paths*; a history is one file."""
    for path in _files(paths):
        where = "<stdin>" if path == STDIN else path
        if path != STDIN and is_history(path):
            yield where, cluster_of_history(path)
        else:
            yield where, _unpacked(_content(path), where)


def _files(paths: Sequence[str]) -> Iterator[str]:
    """Every file once: those named, whatever their ending, and the manifests in folders."""
    if not paths:
        raise InputError("no input", hint="name files, folders, or - for standard input")
    seen = set()
    for path in paths:
        is_folder = path != STDIN and Path(path).is_dir() and not is_history(path)
        for file in _in_folder(path) if is_folder else [path]:
            real = file if file == STDIN else os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield file


def _in_folder(folder: str) -> list[str]:
    """Manifests at any depth, in the order of their paths, without hidden files and folders."""
    found = []
    for root, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            str(Path(root, name))
            for name in names
            if name.endswith(_SUFFIXES) and not name.startswith(".")
        ]
    if not found:
        hint = "they end in .yaml, .yml or .json"
        raise InputError("holds no manifests", where=folder, hint=hint)
    return sorted(found)


def _content(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None


def _unpacked(data: bytes, where: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"is not a whole gzip file: {error}", where=where) from None


def _refuse(error: OSError) -> None:
    raise unreadable(str(error.filename), error)
