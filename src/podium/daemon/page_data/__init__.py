"""The data of the web pages, read from a running scheduler: map, queue, decisions, what-if."""

from podium.daemon.page_data.activity import Activity
from podium.daemon.page_data.page_data import ObservedScheduler, PageData

__all__ = ["Activity", "ObservedScheduler", "PageData"]
