"""Why an exchange over the network came to nothing, in few words."""

from __future__ import annotations

import os

import aiohttp


def words(error: BaseException) -> str:
    """What went wrong, as people say it."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(
        error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError
    ):
        reason = error.os_error
        # A name that cannot be resolved has a number of its own kind, below zero.
        if reason.errno is not None and reason.errno > 0:
            return os.strerror(reason.errno).lower()
        return str(reason.strerror or reason).lower()
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
