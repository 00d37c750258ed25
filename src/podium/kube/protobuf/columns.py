"""Decodes many protobuf messages at once: one field of all of them, then the next.

A `Span` holds the bytes of the messages, arrays tell where each of them begins and ends, and a
reader makes a list of values from them. Python does the same few steps for thousands of messages,
where decoding one after the other would do them for every field of every message. The fields and
their types are those of the value classes of kinds, the numbers those of the API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice, repeat
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec import inspect
from numpy.typing import NDArray

from podium.objects.protobuf.field_numbers import field_numbers
from podium.objects.protobuf.wire import BYTES, FIXED32, FIXED64, VARINT, MalformedError

Positions = NDArray[np.int64]

#: Go's zero time, the first second of the year 1, in seconds since 1970.
_ZERO_TIME_SECONDS: Final = -62_135_596_800
#: The character after each of the strings that are decoded at once; it is hardly ever in one.
_AFTER: Final = 0
#: Strings are decoded at once if they have no more bytes on average; for each byte of them some
#: memory is taken.
_SHORT_BYTES: Final = 64
#: The tags of the fields that are read are less.
_GREATEST_TAG: Final = 1 << 10
#: So many bytes of a field are kept, with the values made of them, for messages with the same.
_MOST_SHARED_BYTES: Final = 1 << 23
#: After so many values it is known whether they repeat.
_ENOUGH_TO_JUDGE: Final = 1000


class Span:
    """The bytes of messages."""

    __slots__ = ("data", "numbers")

    def __init__(self, data: bytes) -> None:
        """Hold these bytes, also as an array."""
        self.data = data
        self.numbers = np.frombuffer(data, np.uint8)

    def slices(self, begins: Positions, ends: Positions) -> list[bytes]:
        """The bytes between these positions."""
        data = self.data
        return [data[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]


class Reader(Protocol):
    """Makes values from what stands in a span."""

    def read(self, span: Span, begins: Positions, ends: Positions, /) -> list[Any]:
        """The value at each position; for a number, *begins* are the numbers themselves."""


class Texts:
    """Reads strings."""

    def read(self, span: Span, begins: Positions, ends: Positions) -> list[str]:
        """The strings. Short ones are decoded at once, unless one has the character after them."""
        sizes = ends - begins + 1
        ends_there = np.cumsum(sizes)
        if len(sizes) and ends_there[-1] <= _SHORT_BYTES * len(sizes):
            sources = np.repeat(begins - ends_there + sizes, sizes)
            sources += np.arange(len(sources))
            joined = span.numbers.take(sources, mode="clip")
            joined[ends_there - 1] = _AFTER
            texts = joined.tobytes().decode().split(chr(_AFTER))
            if len(texts) == len(sizes) + 1:
                return texts[:-1]
        return [each.decode() for each in span.slices(begins, ends)]


class Numbers:
    """Reads whole numbers."""

    def read(self, _span: Span, begins: Positions, _ends: Positions) -> list[Any]:
        """The numbers."""
        return [*begins.tolist()]


class Booleans:
    """Reads booleans."""

    def read(self, _span: Span, begins: Positions, _ends: Positions) -> list[bool]:
        """The booleans."""
        return [*(begins != 0).tolist()]


class Times:
    """Reads messages of seconds and nanoseconds since 1970."""

    def read(self, span: Span, begins: Positions, ends: Positions) -> list[str | None]:
        """The times as JSON has them, to the second; None for Go's zero time."""
        found = _scan(span, begins, ends)
        is_seconds = found.tags == (1 << 3 | VARINT)
        seconds = np.zeros(len(begins), np.int64)
        seconds[found.owners[is_seconds]] = found.begins[is_seconds]
        given = (ends > begins) & (seconds != _ZERO_TIME_SECONDS)
        texts = np.datetime_as_string(seconds.astype("datetime64[s]"), timezone="UTC").tolist()
        return [text if known else None for text, known in zip(texts, given.tolist(), strict=True)]


class MessageField(NamedTuple):
    """A field of a message: which argument of the value's class it is, and what reads it.

    A zero counts as not given unless the field *keeps_zero*. What reads a *repeated* field gets
    all its occurrences in a message as a message of their own.
    """

    position: int
    reader: Reader
    wire_type: int = BYTES
    keeps_zero: bool = True
    repeated: bool = False


class Messages:
    """Reads messages of one type."""

    def __init__(
        self,
        make: Callable[..., Any],
        defaults: Iterable[Any],
        fields: Mapping[int, MessageField],
        parts: Mapping[int, Mapping[int, MessageField]] | None = None,
    ) -> None:
        """Call *make* for each message, with an argument for each of *defaults*.

        *fields* are by their numbers; *parts* are embedded messages, whose fields count as fields
        of the message itself.
        """
        self._make, self._defaults = make, tuple(defaults)
        self._fields = _by_tag(fields)
        self._parts = {number << 3 | BYTES: _by_tag(each) for number, each in (parts or {}).items()}

    def read(self, span: Span, begins: Positions, ends: Positions) -> list[Any]:
        """The values."""
        count = len(begins)
        columns = [repeat(each, count) for each in self._defaults]
        found = _scan(span, begins, ends)
        _fill(columns, self._fields, span, found, count)
        for tag, fields in self._parts.items():
            owners, part_begins, part_ends = found.of_tag(tag)
            if len(owners):
                within = _scan(span, part_begins, part_ends)
                within = within._replace(owners=owners[within.owners])
                _fill(columns, fields, span, within, count)
        return list(map(self._make, *columns)) if columns else [self._make()] * count


def _by_tag(fields: Mapping[int, MessageField]) -> dict[int, MessageField]:
    found = {number << 3 | each.wire_type: each for number, each in fields.items()}
    assert max(found, default=0) < _GREATEST_TAG, "the tag of a field is greater than expected"
    return found


def _fill(
    columns: list[Any], fields: Mapping[int, MessageField], span: Span, found: _Found, count: int
) -> None:
    """Put the values of the fields that were found into the columns of all *count* values."""
    present = found.present()
    for tag, field in fields.items():
        if tag not in present:
            continue
        owners, begins, ends = found.of_field(tag, field)
        if not len(owners):
            continue
        values = field.reader.read(span, begins, ends)
        if len(owners) == count and bool((owners == np.arange(count)).all()):
            columns[field.position] = values
            continue
        column = columns[field.position] = [*columns[field.position]]
        for owner, value in zip(owners.tolist(), values, strict=True):
            column[owner] = value


class Repeated:
    """Reads messages that consist of the occurrences of one field: a list or a map each."""

    def __init__(
        self, number: int, element: Reader, collect: Callable[[Iterable[Any]], Any]
    ) -> None:
        """Read the elements and let *collect* make a list, or a map of pairs, from them."""
        self._tag, self._element, self._collect = number << 3 | BYTES, element, collect

    def read(self, span: Span, begins: Positions, ends: Positions) -> list[Any]:
        """The lists or maps."""
        owners, element_begins, element_ends = _scan(span, begins, ends).of_tag(self._tag)
        elements = iter(self._element.read(span, element_begins, element_ends))
        counts = np.bincount(owners, minlength=len(begins)).tolist()
        return [self._collect(islice(elements, count)) for count in counts]


class Shared:
    """Reads equal bytes once: values that are made of them are the same object.

    Where more than half of them were new, the rest is read without looking for equal ones.
    """

    def __init__(self, reader: Reader) -> None:
        """Read with *reader* what was not read before."""
        self._reader = reader
        self._known: dict[bytes, Any] = {}
        self._known_bytes = 0
        #: How many values were read, and how many of them were not known before.
        self._read_count = self._new_count = 0

    def read(self, span: Span, begins: Positions, ends: Positions) -> list[Any]:
        """The values."""
        if self._read_count > _ENOUGH_TO_JUDGE and 2 * self._new_count > self._read_count:
            return self._reader.read(span, begins, ends)
        keys, known = span.slices(begins, ends), self._known
        if self._known_bytes > _MOST_SHARED_BYTES:
            known.clear()
            self._known_bytes = 0
        new = list({*keys}.difference(known))
        if new:
            new_ends = np.cumsum(np.fromiter(map(len, new), np.int64, len(new)))
            new_begins = np.concatenate((np.zeros(1, np.int64), new_ends[:-1]))
            data = b"".join(new)
            known.update(zip(new, self._reader.read(Span(data), new_begins, new_ends), strict=True))
            self._known_bytes += len(data)
        self._read_count += len(keys)
        self._new_count += len(new)
        return list(map(known.__getitem__, keys))


class _Found(NamedTuple):
    """Fields of messages: of which message, the tag, where the tag, the value and its end are.

    Of a number, *begins* has the number itself.
    """

    owners: Positions
    tags: Positions
    tags_at: Positions
    begins: Positions
    ends: Positions

    def present(self) -> frozenset[int]:
        """The tags that occur."""
        counts = np.bincount(np.minimum(self.tags, _GREATEST_TAG))
        return frozenset(np.flatnonzero(counts).tolist())

    def of_tag(self, tag: int) -> tuple[Positions, Positions, Positions]:
        """The owners and the values of the fields with a tag, in the order of their owners."""
        which = self._where(tag)
        return self.owners[which], self.begins[which], self.ends[which]

    def of_field(self, tag: int, field: MessageField) -> tuple[Positions, Positions, Positions]:
        """The owners and the values of a field; one value for each owner."""
        which = self._where(tag)
        owners, ends = self.owners[which], self.ends[which]
        if not field.repeated:
            begins = self.begins[which]
            if field.keeps_zero:
                return owners, begins, ends
            given = np.flatnonzero(begins if field.wire_type == VARINT else ends - begins)
            return owners[given], begins[given], ends[given]
        tags_at = self.tags_at[which]
        is_same = owners[1:] == owners[:-1]
        if bool((tags_at[1:][is_same] != ends[:-1][is_same]).any()):
            raise MalformedError("another field stands among those of a list")
        first = np.flatnonzero(np.concatenate((np.ones(1, bool), ~is_same)))
        last = np.concatenate((first[1:], [len(owners)])) - 1
        return owners[first], tags_at[first], ends[last]

    def _where(self, tag: int) -> NDArray[np.intp]:
        which = np.flatnonzero(self.tags == tag)
        owners = self.owners[which]
        if bool((owners[1:] < owners[:-1]).any()):
            which = which[np.argsort(owners, kind="stable")]
        return which


def _scan(span: Span, begins: Positions, ends: Positions) -> _Found:
    """All fields of messages: the first of each message, then the second of each, and so on."""
    data = span.numbers
    owners = np.flatnonzero(begins < ends)
    at, limits = begins[owners], ends[owners]
    steps: list[_Found] = []
    try:
        while len(owners):
            tags, values_at = _varints(data, at)
            wire_types = tags & 7
            is_bytes = wire_types == BYTES
            if bool((is_bytes | (wire_types == VARINT)).all()):
                numbers, begin = _varints(data, values_at)
                sizes = np.where(is_bytes, numbers, 0)
            else:
                numbers, begin, sizes = _any_values(data, values_at, wire_types)
            end = begin + sizes
            if bool(((end > limits) | (sizes < 0)).any()):
                raise MalformedError("a field is cut off")
            steps.append(_Found(owners, tags, at, np.where(is_bytes, begin, numbers), end))
            more = end < limits
            at = end
            if not bool(more.all()):
                owners, at, limits = owners[more], end[more], limits[more]
    except IndexError:
        raise MalformedError("a number is cut off") from None
    if not steps:
        none = np.zeros(0, np.int64)
        return _Found(none, none, none, none, none)
    return _Found(*(np.concatenate(column) for column in zip(*steps, strict=True)))


def _any_values(
    data: NDArray[np.uint8], at: Positions, wire_types: Positions
) -> tuple[Positions, Positions, Positions]:
    """Numbers, where the bytes after them begin, and how many there are, of any wire types.

    A number of a fixed size counts as bytes; no field that is read has one.
    """
    if not bool(np.isin(wire_types, (VARINT, BYTES, FIXED64, FIXED32)).all()):
        raise MalformedError("a wire type is not known")
    numbers, begin = np.zeros(len(at), np.int64), at.copy()
    sizes = np.where(wire_types == FIXED64, 8, np.where(wire_types == FIXED32, 4, 0))
    which = np.flatnonzero(sizes == 0)
    numbers[which], begin[which] = _varints(data, at[which])
    return numbers, begin, np.where(wire_types == BYTES, numbers, sizes)


def _varints(data: NDArray[np.uint8], at: Positions) -> tuple[Positions, Positions]:
    """The numbers that begin at these positions, and the positions after them."""
    first = data[at]
    numbers, after = first.astype(np.int64), at + 1
    more = np.flatnonzero(first >= 0x80)
    if len(more):
        numbers[more] &= 0x7F
    shift = 7
    while len(more):
        if shift > 63:
            raise MalformedError("a number is cut off")
        byte = data[after[more]].astype(np.int64)
        numbers[more] |= (byte & 0x7F) << shift
        after[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    return numbers, after


#: Models of the API whose value classes are not called as they are without their version.
MODELS: Final = {
    "AwsElasticBlockStore": "V1AWSElasticBlockStoreVolumeSource",
    "AzureDisk": "V1AzureDiskVolumeSource",
    "CinderVolume": "V1CinderVolumeSource",
    "ClaimVolume": "V1PersistentVolumeClaimVolumeSource",
    "ContainerExtendedResource": "V1ContainerExtendedResourceRequest",
    "CsiInlineVolume": "V1CSIVolumeSource",
    "EphemeralVolume": "V1EphemeralVolumeSource",
    "ExtendedResourceClaimStatus": "V1PodExtendedResourceClaimStatus",
    "GcePersistentDisk": "V1GCEPersistentDiskVolumeSource",
    "ImageVolume": "V1ImageVolumeSource",
    "IscsiVolume": "V1ISCSIVolumeSource",
    "PortworxVolume": "V1PortworxVolumeSource",
    "RbdVolume": "V1RBDVolumeSource",
    "RestartRule": "V1ContainerRestartRule",
    "SchedulingGate": "V1PodSchedulingGate",
}


def model_of(value_class: type) -> str:
    """The model of the API that a value class has fields of."""
    return MODELS.get(value_class.__name__, f"V1{value_class.__name__}")


def object_reader(kind: type[msgspec.Struct]) -> Messages:
    """What reads objects of a kind.

    Equal parts of metadata, specification and status are read once and shared; as a whole these
    differ from object to object.
    """
    return _messages(inspect.type_info(kind), shares=False)


def _messages(info: Any, *, shares: bool = True) -> Messages:
    """The reader of the messages of a value class; it *shares* equal messages in their fields."""
    declared = {each.encode_name: (at, each) for at, each in enumerate(info.fields)}

    def fields_of(table: str) -> dict[int, MessageField]:
        return {
            number: _field(number, *declared[known.name], is_pointer=known.pointer, shares=shares)
            for number, known in field_numbers()[table].items()
            if known.name in declared
        }

    model = model_of(info.cls)
    parts = {
        number: fields_of(known.part)
        for number, known in field_numbers()[model].items()
        if known.part
    }
    return Messages(info.cls, map(_default, info.fields), fields_of(model), parts)


def _default(declared: Any) -> Any:
    assert declared.default is not msgspec.NODEFAULT, "it must not be made anew for each value"
    return declared.default


def _field(
    number: int, position: int, declared: Any, *, is_pointer: bool, shares: bool
) -> MessageField:
    of = _without_none(declared.type)
    if isinstance(of, inspect.ListType):
        items = Repeated(number, _reader(of.item_type), list)
        return MessageField(position, Shared(items), repeated=True)
    if isinstance(of, inspect.DictType):
        entries = Repeated(number, _entries(of.value_type), dict)
        return MessageField(position, Shared(entries), repeated=True)
    reader = _reader(of)
    if isinstance(of, inspect.StructType) or _is_time(of):
        return MessageField(position, Shared(reader) if shares else reader)
    wire_type = VARINT if isinstance(of, inspect.IntType | inspect.BoolType) else BYTES
    return MessageField(position, reader, wire_type, keeps_zero=is_pointer)


def _reader(of: Any) -> Reader:
    """The reader of one value of a type."""
    if isinstance(of, inspect.StructType):
        return _messages(of)
    if isinstance(of, inspect.IntType):
        return Numbers()
    if isinstance(of, inspect.BoolType):
        return Booleans()
    if _is_time(of):
        return Times()
    if isinstance(of, inspect.UnionType):  # a quantity, which is a message of one string
        return Messages(_itself, ["0"], {1: MessageField(0, Texts(), keeps_zero=False)})
    assert isinstance(of, inspect.StrType), of
    return Texts()


def _entries(of: Any) -> Messages:
    """The reader of the entries of a map."""
    return Messages(_pair, ["", ""], {1: MessageField(0, Texts()), 2: MessageField(1, _reader(of))})


def _is_time(of: Any) -> bool:
    """Whether a type is `meta.Time`."""
    return isinstance(of, inspect.Metadata) and (of.extra or {}).get("is_time", False)


def _without_none(of: Any) -> Any:
    """The type of a value that is there."""
    if isinstance(of, inspect.UnionType):
        types = [each for each in of.types if not isinstance(each, inspect.NoneType)]
        return types[0] if len(types) == 1 else inspect.UnionType(tuple(types))
    return of


def _itself(value: Any) -> Any:
    return value


def _pair(key: str, value: Any) -> tuple[str, Any]:
    return key, value
