"""Readers of the binary form for the value classes of kinds.

The fields and their types are those of the classes, the numbers those of the API.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import inspect

from podium.kube.protobuf.columns import (
    Booleans,
    MessageField,
    Messages,
    Numbers,
    Reader,
    Repeated,
    Shared,
    Texts,
    Times,
)
from podium.objects.protobuf.field_numbers import field_numbers
from podium.objects.protobuf.wire import BYTES, VARINT

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
