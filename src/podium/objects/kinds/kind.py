"""What is declared once about a kind of object.

Reading, checking, defaulting, discovery, watching, lookups by rules and snapshots go through the
kinds of `registry.KINDS`; none of them has a list of kinds of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import msgspec

from podium.objects.kinds.meta import Object
from podium.objects.snapshots.pseudonyms import OBJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from podium.objects.field_errors import Fault
    from podium.objects.kinds.defaults import Admission
    from podium.objects.kinds.workloads import PodTemplate
    from podium.objects.selectors.selectors import Selector
    from podium.objects.snapshots.pseudonyms import RenamedFields

T = TypeVar("T", bound=Object)


class Reports(Protocol[T]):
    """Decodes the objects of the events of a watch, one after the other."""

    def decode(self, text: bytes | memoryview, /) -> T:
        """The object that a text describes, as the decoder of its kind gives it."""

    def forget(self, item: T, /) -> None:
        """Forget an object that was deleted."""

    def clear(self) -> None:
        """Forget all objects."""


@dataclass(frozen=True, eq=False)
class Kind(Generic[T]):
    """A kind of object that scheduling reads."""

    name: str
    #: The value class; it has the fields that scheduling reads, and decoding skips all others.
    type: type[T]
    #: Versions that can be read from an API server (`apps/v1`), the preferred one first.
    api_versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    #: API groups in which the kind was served before; manifests may still name them.
    former_groups: tuple[str, ...] = ()

    # Reading -------------------------------------------------------------------------------

    #: What an API server would refuse in an object, and decisions would depend on.
    faults: Callable[[T], Iterable[Fault]] | None = None
    #: The pod template of a workload, whose controller makes pods of it.
    template: Callable[[T], PodTemplate | None] | None = None
    #: What the API server fills in when the object is created.
    apply_defaults: Callable[[T, Admission], T] | None = None

    #: Whether the list is so long that it is asked for as protobuf.
    has_long_lists: bool = False
    #: Makes the decoder of watch events for a kind whose versions differ little from each other;
    #: None: `decoder` is used.
    reports: Callable[[], Reports[T]] | None = None

    # Scheduling ----------------------------------------------------------------------------

    #: Whether rules may look objects up in the catalogue. Nodes and pods are in columns, and
    #: other kinds matter to controllers and to the API server alone.
    looked_up: bool = True
    #: How the objects of a kind that selects pods do that; None for an object that selects none.
    pod_selector: Callable[[T], Selector | None] | None = None

    # Snapshots and histories ---------------------------------------------------------------

    #: Whether histories record the objects. They need not where only controllers read them.
    in_histories: bool = True
    #: Takes out what decisions do not depend on; annotations are trimmed for every kind.
    trim: Callable[[T], T] | None = None
    #: The category of new names in an anonymized snapshot; empty: the name is kept.
    category: str = OBJECT
    #: What is renamed there, besides the metadata, because it tells whose object it is.
    renamed: RenamedFields = field(default_factory=dict)

    @property
    def groups(self) -> frozenset[str]:
        """The API groups of the kind, `""` for the core group."""
        return frozenset(
            {version.rpartition("/")[0] for version in self.api_versions} | {*self.former_groups}
        )

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[T]:
        """Decodes one object from JSON."""
        return msgspec.json.Decoder(self.type)

    @cached_property
    def packed_decoder(self) -> msgspec.msgpack.Decoder[T]:
        """Decodes one object from msgpack."""
        return msgspec.msgpack.Decoder(self.type)
