"""What one version of a CustomResourceDefinition says of its objects."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.objects.kinds.meta import JsonObject


@dataclass(frozen=True, slots=True, eq=False)
class CustomVersion:
    """The schema, the columns and the subresources of one version of a custom resource."""

    #: The `apiVersion` in which objects are stored.
    stored_version: str
    #: `openAPIV3Schema`; empty if there is none.
    schema: JsonObject = field(default_factory=dict)
    #: Whether fields that the schema does not have are kept everywhere.
    preserves_unknown: bool = False
    #: `additionalPrinterColumns`.
    columns: tuple[JsonObject, ...] = ()
    #: The paths of `subresources.scale`, if there is one.
    scale: JsonObject | None = None
    #: The warning of requests to a deprecated version.
    deprecation: str = ""
