"""One segment of a history as a file: a header, then frames, each with its length and checksum.

    file    = MAGIC, frame, frame, …
    frame   = length of the payload (4 bytes), CRC-32 of kind and payload (4), kind (1), payload
    kind    = 0: the header, JSON; 1: a part of the compressed stream

All numbers are little-endian. The parts of one file continue one zlib stream, each flushed to a
byte boundary. What was written before is the dictionary of what follows, and every whole frame can
be read. A file that was cut at any byte is readable up to its last whole frame. Files are for the
eyes of their owner: they tell what runs in a cluster, and where.
"""

from __future__ import annotations

import os
import struct
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from podium.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Self


MAGIC: Final = b"podium history 1\n"
HEADER, DATA = 0, 1
_FRAME: Final = struct.Struct("<IIB")
#: A frame that claims to be longer is damaged.
_MOST_BYTES: Final = 1 << 30
#: A frame behind a damaged one is looked for in so many bytes.
_MOST_SEARCHED: Final = 1 << 20
#: A part of 256 records that unpacks to more is no history: objects have at most 3 MiB.
_MOST_UNPACKED: Final = 1 << 28
#: Measured in benchmarks/history.py: higher levels take more time than they save space.
COMPRESSION: Final = 1


def _checksum(kind: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(bytes((kind,))))


def _has_frame(data: bytes) -> bool:
    """Whether bytes are more than the beginning of a frame that was not written to its end."""
    if len(data) >= _FRAME.size:
        length = _FRAME.unpack_from(data)[0]
        if length <= len(data) - _FRAME.size or length > _MOST_BYTES:
            return True  # it was written whole, and does not have its checksum
    for at in range(1, len(data) - _FRAME.size):
        length, checksum, kind = _FRAME.unpack_from(data, at)
        end = at + _FRAME.size + length
        if kind != DATA or end > len(data):
            continue
        if _checksum(kind, data[at + _FRAME.size : end]) == checksum:
            return True
    return False


class SegmentWriter:
    """Appends frames to a new file."""

    def __init__(
        self, path: Path, header: Mapping[str, Any], *, compression: int = COMPRESSION
    ) -> None:
        """Create the file, which must not exist, and write its header."""
        self.path = path
        self._packer = zlib.compressobj(compression)
        self._file: BinaryIO = open(path, "xb", buffering=0, opener=private)  # noqa: SIM115
        self.size = 0
        try:
            self._write(MAGIC)
            self._append(HEADER, msgspec.json.encode(header))
        except OSError:
            self.discard()
            raise

    def append(self, data: bytes) -> None:
        """Append a part of the stream as one frame, in one write."""
        packed = self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        self._append(DATA, packed)

    def _append(self, kind: int, payload: bytes) -> None:
        head = _FRAME.pack(len(payload), _checksum(kind, payload), kind)
        self._write(head + payload)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self.size += len(data)

    def sync(self) -> None:
        """Wait until everything is on the disk, not only handed to the system."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; nothing is appended any more."""
        self._file.close()

    def discard(self) -> None:
        """Delete the file: an incomplete segment says nothing, and takes room."""
        with suppress(OSError):
            self.close()
            self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SegmentReader:
    """Reads the header of a file, and its parts as far as they are whole."""

    def __init__(self, path: Path) -> None:
        """Open the file and read its header; an error if it is no history at all."""
        self.path = path
        #: Whether the file ends in the middle of a frame, or a frame is damaged; known at the end.
        self.torn = False
        #: Whether what was not read is more than the beginning of one frame: bytes were changed.
        self.damaged = False
        #: The number of bytes of whole frames that were read.
        self.read = 0
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot be read: {reason}", where=str(path)) from None
        self.header: dict[str, Any] = {}
        magic = self._file.read(len(MAGIC))
        if magic != MAGIC and not MAGIC.startswith(magic):
            self._file.close()
            hint = "a folder or file that `podium history record` or --record wrote would be one"
            raise InputError("is no history", where=str(path), hint=hint)
        self.read = len(magic)
        self._unpacker = zlib.decompressobj()
        frame = self._frame()
        if frame is not None and frame[0] == HEADER:
            self.header = self._decoded_header(frame[1])
        else:
            self.torn = True

    def _decoded_header(self, data: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._file.close()
            raise InputError(f"has no header: {error}", where=str(self.path)) from None

    def parts(self) -> Iterator[bytes]:
        """The parts of the stream, decompressed; ends before the first frame that is not whole.

        Asked again, it goes on with what was appended meanwhile.
        """
        if self.header and not self.damaged:
            self.torn = False
        while not self.torn:
            frame = self._frame()
            if frame is None:
                return
            if frame[0] != DATA:
                continue
            part = self._unpacked(frame[1])
            if part is not None:
                yield part

    def _unpacked(self, data: bytes) -> bytes | None:
        """A part of the stream; None, and the file counts as torn, if it is damaged."""
        try:
            found = self._unpacker.decompress(data, _MOST_UNPACKED)
        except zlib.error:
            self.torn = self.damaged = True
            return None
        if self._unpacker.unconsumed_tail:
            most = _MOST_UNPACKED >> 20
            what = f"has a part that unpacks to more than {most} MiB"
            raise InputError(what, where=str(self.path), hint="podium writes no such parts")
        return found

    def _frame(self) -> tuple[int, bytes] | None:
        head = self._file.read(_FRAME.size)
        if not head:
            return None
        if len(head) == _FRAME.size:
            length, checksum, kind = _FRAME.unpack(head)
            if length <= _MOST_BYTES:
                payload = self._file.read(length)
                if len(payload) == length and _checksum(kind, payload) == checksum:
                    self.read += _FRAME.size + length
                    return kind, payload
        self.torn = True
        self._file.seek(self.read)
        self.damaged = _has_frame(self._file.read(_MOST_SEARCHED))
        self._file.seek(self.read)
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_OWNER_ALONE = 0o600


def private(path: str, flags: int) -> int:
    """An opener for `open`: the file is readable for its owner alone, also if it was there."""
    descriptor = os.open(path, flags, _OWNER_ALONE)
    with suppress(OSError):  # a device, or a file of another owner that may be written
        os.fchmod(descriptor, _OWNER_ALONE)
    return descriptor
