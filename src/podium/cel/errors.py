"""Errors of expressions."""

from __future__ import annotations


class CelError(Exception):
    """An evaluation failed; the text is that of kube-scheduler."""


class AbortError(CelError):
    """The evaluation ended at once; no operator absorbs this."""


class CostError(AbortError):
    """The limit of cost was exceeded."""


class CompileError(Exception):
    """An expression cannot be compiled; the text is that of kube-scheduler, as far as it goes."""
