"""Pods of another cluster that stay text until one of them is needed whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

import msgspec

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME, Resource
from podium.lab.api.status import StatusError
from podium.lab.contents.cluster_import import complete_status
from podium.lab.contents.documents import Document
from podium.lab.kinds.known import strategy_of
from podium.lab.kinds.pod import set_pod_defaults
from podium.lab.registry.registry import Registry
from podium.lab.schema.typed_bodies import refuse_wrong_types
from podium.lab.store.imported_pods import ImportedPod, MetadataHead, SharedParts, read_head
from podium.lab.store.store import Key
from podium.lab.validation.metadata import (
    NameRule,
    dns_label_reasons,
    validate_annotations,
    validate_labels,
)
from podium.objects.kinds.meta import JsonObject, OwnerReference
from podium.objects.names import is_qualified_name
from podium.objects.reading.collection import label

#: Names that every rule for names of pods allows; others are checked by the rule.
_PLAIN_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class PodTexts:
    """The pods among some documents that can be kept as text, and all other documents.

    A pod whose fields are not all as an API server writes them is among the others: it is loaded
    like any other object, which tells what is wrong with it.
    """

    def __init__(
        self, registry: Registry, served: Iterable[tuple[Resource, Document]], *, keep_text: bool
    ) -> None:
        """Sort *served*; without *keep_text* all of them are among the others.

        The pods are not in *registry* before `load`.
        """
        self._registry = registry
        self.others: list[tuple[Resource, Document]] = []
        self.pods: list[ImportedPod] = []
        self.namespaces: set[str] = set()
        self._checks = _MetadataChecks(strategy_of(BY_NAME["Pod"]).name_rule)
        self._created = registry.timestamp()
        self._keys: set[Key] = set()
        self._shared = SharedParts()
        for each in served:
            resource, document = each
            pod = None
            if keep_text and resource.kind == "Pod" and document.text is not None:
                pod = self._imported(resource, document)
            if pod is None:
                self.others.append(each)
            else:
                self.pods.append(pod)

    def load(self) -> None:
        """Put the pods into the store of the registry."""
        if self.pods:
            self._registry.store.load_new("pods", self.pods)

    def _imported(self, resource: Resource, document: Document) -> ImportedPod | None:
        text = document.text
        assert text is not None
        try:
            head = self._shared.head(read_head(text))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        about = head.metadata
        if not about.uid or not about.namespace or not self._checks.are_valid(about):
            return None
        key = Key(about.namespace, about.name)
        if key in self._keys:
            return None
        if about.creation_timestamp is None:
            about = msgspec.structs.replace(about, creation_timestamp=self._created)
            head = msgspec.structs.replace(head, metadata=about)
        complete = partial(_completed, resource, document, self._created)
        version = self._registry.store.next_version()
        try:
            pod = ImportedPod(key, version, text, head, complete, shared=self._shared)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        self._keys.add(key)
        self.namespaces.add(about.namespace)
        return pod


class _MetadataChecks:
    """Whether metadata is valid, with what many pods have in common checked once."""

    def __init__(self, name_reasons: NameRule) -> None:
        self._reasons = name_reasons
        self._shared: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], bool] = {}

    def are_valid(self, about: MetadataHead) -> bool:
        """Whether `validate_metadata` would find nothing wrong."""
        name = about.name
        if not _PLAIN_NAME.fullmatch(name) and (not name or self._reasons(name)):
            return False
        labels = tuple(about.labels.items()) if about.labels else ()
        shared = (about.namespace, about.generate_name, labels)
        known = self._shared.get(shared)
        if known is None:
            known = self._shared[shared] = self._are_shared_valid(about)
        if not known or (about.owner_references and not _are_owners(about.owner_references)):
            return False
        if about.annotations and any(validate_annotations(about.annotations)):
            return False
        return not about.finalizers or all(map(is_qualified_name, about.finalizers))

    def _are_shared_valid(self, about: MetadataHead) -> bool:
        prefix = about.generate_name
        if prefix and self._reasons(prefix.rstrip("-") or prefix):
            return False
        if dns_label_reasons(about.namespace):
            return False
        return not any(validate_labels(about.labels or {}, ""))


def _are_owners(references: Sequence[OwnerReference]) -> bool:
    controllers = 0
    for each in references:
        if not (each.api_version and each.kind and each.name and each.uid):
            return False
        controllers += bool(each.controller)
    return controllers < 2


def _completed(resource: Resource, document: Document, created: str) -> JsonObject:
    """The whole pod, as `ClusterImport.put` would have stored it."""
    item = document.item
    metadata = item["metadata"]
    try:
        refuse_wrong_types(resource, item)
    except StatusError as error:
        name = label(resource.kind, metadata["namespace"], metadata["name"])
        raise InputError(error.message, where=document.where, object=name) from None
    for name in ("resourceVersion", "selfLink"):
        metadata.pop(name, None)
    item["apiVersion"], item["kind"] = resource.group_version, resource.kind
    metadata.setdefault("creationTimestamp", created)
    set_pod_defaults(item)
    complete_status(item)
    return item
