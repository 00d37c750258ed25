"""Objects read from files, folders and standard input, ready to be scheduled.

What the files say is checked first; only then is it completed with what the API server and the
controllers would have added, so that errors are about what is in the files.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from podium.errors import InputError
from podium.library.files import STDIN, unreadable
from podium.library.history_cluster import cluster_of_history, is_history
from podium.library.parsed_yaml import ParsedYaml
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expand import expand, with_claims_of_templates
from podium.objects.reading.collection import Objects
from podium.objects.reading.decode import decode
from podium.objects.reading.validate import validate
from podium.objects.reading.yaml_text import ParseYaml

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
