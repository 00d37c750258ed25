"""How replies of extenders are read, where releases differ."""

from __future__ import annotations

import msgspec


class ExtenderProtocol(msgspec.Struct, frozen=True, kw_only=True):
    """How replies are read; the defaults are those of the releases with plugins."""

    #: Whether a reply may reject nodes for good.
    has_unresolvable_nodes: bool = True
    #: Whether nodes that were not sent are refused, even if there are such nodes.
    refuses_other_nodes: bool = True
    #: Whether every node needs victims.
    needs_victims: bool = True
    #: Whether violated budgets are sent and counted.
    counts_violations: bool = True
    #: Whether error texts are taken for formats of Go without arguments.
    formats_errors: bool = False
    #: The first word of the error after another status than 200.
    failed: str = "failed"
