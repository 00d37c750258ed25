"""Objects of manifests as the API server would have stored them."""

from __future__ import annotations

import dataclasses

from podium.errors import InputError
from podium.objects.kinds.defaults import Admission
from podium.objects.kinds.registry import KINDS, PRIORITY_CLASS, STORAGE_CLASS
from podium.objects.reading.collection import Objects, label


def with_defaults(objects: Objects) -> Objects:
    """A collection of the same objects with everything filled in that was left out."""
    admission = admission_of(objects)
    lists = dict(objects.lists)
    for kind in KINDS.values():
        if kind.apply_defaults is None:
            continue
        completed = lists[kind.name] = []
        for index, item in enumerate(objects.of(kind)):
            try:
                completed.append(kind.apply_defaults(item, admission))
            except InputError as error:
                name = label(kind.name, item.namespace, item.name)
                raise error.located(where=objects.where(kind, index), object=name) from None
    return dataclasses.replace(objects, lists=lists)


def admission_of(objects: Objects) -> Admission:
    """What admission looks up in these objects."""
    return Admission.given(objects.of(PRIORITY_CLASS), objects.of(STORAGE_CLASS))
