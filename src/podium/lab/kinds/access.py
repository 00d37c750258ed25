"""Roles and role bindings.

Upstream: pkg/apis/rbac.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.kinds.kind import KindStrategy
from podium.lab.validation.names import path_segment_reasons

KINDS: Mapping[str, KindStrategy] = {
    "ClusterRole": KindStrategy(name_rule=path_segment_reasons),
    "ClusterRoleBinding": KindStrategy(name_rule=path_segment_reasons),
    "Role": KindStrategy(name_rule=path_segment_reasons),
    "RoleBinding": KindStrategy(name_rule=path_segment_reasons),
}
