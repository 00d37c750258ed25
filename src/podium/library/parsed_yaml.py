"""YAML texts that are parsed in several processes before they are read.

To parse YAML takes thirty times as long as to decode the same objects from JSON. JSON is decoded
where it is needed: to hand objects from one process to another takes as long as to decode them.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from podium.errors import InputError
from podium.library.parallel import in_parallel
from podium.objects.reading.encoding import text_of
from podium.objects.reading.garbage import without_gc
from podium.objects.reading.json_text import looks_like_json
from podium.objects.reading.yaml_text import Piece, YamlDocument, cut, documents, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
