"""The wake-up rules of v1.36: what a plugin that rejected a pod says about an event."""

from podium.cluster.hints.rules import HintRules

__all__ = ["HintRules"]
