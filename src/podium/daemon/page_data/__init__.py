"""The data of the web pages, read from a running scheduler: map, queue, decisions, what-if."""

from podium.daemon.page_data.activity import Pulse
from podium.daemon.page_data.page_data import Observatory, Watched

__all__ = ["Observatory", "Pulse", "Watched"]
