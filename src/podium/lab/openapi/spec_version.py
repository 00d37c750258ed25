"""The two versions of the OpenAPI specification."""

from __future__ import annotations

from enum import Enum


class SpecVersion(Enum):
    """A version of the specification; its value is the prefix of references to schemas."""

    V2 = "#/definitions/"
    V3 = "#/components/schemas/"

    def reference(self, name: str) -> dict[str, str]:
        """A reference to the schema of this name."""
        return {"$ref": self.value + name}
