"""An API server in a process of its own, made to be killed.

The folder in which it keeps everything, or `-` for none, and the file for its port are arguments.
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn

from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry
from podium.lab.store.sqlite import open_store
from podium.lab.store.store import Store


def main() -> None:
    """Serve until the process is killed."""
    folder, port_file = sys.argv[1], Path(sys.argv[2])
    store = Store() if folder == "-" else open_store(Path(folder))[0]
    config = uvicorn.Config(
        ApiServer(Registry(store)), port=0, lifespan="off", log_level="error", access_log=False
    )
    listener = config.bind_socket()
    listener.listen(128)
    port_file.write_text(str(listener.getsockname()[1]), "utf-8")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
