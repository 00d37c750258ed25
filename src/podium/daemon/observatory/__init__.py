"""What the pages show of a scheduler at work: the cluster, the queue, decisions, what would be."""

from podium.daemon.observatory.observatory import Observatory, Watched
from podium.daemon.observatory.pulse import Pulse

__all__ = ["Observatory", "Pulse", "Watched"]
