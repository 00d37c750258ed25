"""An API server in a process of its own; the file for its port is an argument."""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn

from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry


def main() -> None:
    """Serve until the process is killed."""
    config = uvicorn.Config(
        ApiServer(Registry()), port=0, lifespan="off", log_level="error", access_log=False
    )
    listener = config.bind_socket()
    listener.listen(128)
    Path(sys.argv[1]).write_text(str(listener.getsockname()[1]), "utf-8")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
