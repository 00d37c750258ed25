"""An extender in this process that leaves no candidate for preemption.

python no_candidate.py
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import podium

CLUSTER = Path(__file__).with_name("full.yaml")


class Extender(BaseHTTPRequestHandler):
    """Accepts no node on which pods would be evicted."""

    def do_POST(self) -> None:
        """Answer the question which candidates may stay."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print("asked about", ", ".join(asked["NodeNameToMetaVictims"]))
        body = json.dumps({"NodeNameToMetaVictims": {}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing of its own."""


def main() -> None:
    """Decide about the pod with the high priority, and print the message."""
    server = HTTPServer(("127.0.0.1", 0), Extender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    extender = {
        "urlPrefix": f"http://127.0.0.1:{server.server_port}",
        "preemptVerb": "preempt",
        "nodeCacheCapable": True,
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [extender],
    }
    [profile] = podium.from_config(config)
    found = podium.explain(podium.read(CLUSTER), "high", profile)
    print(found.decision.message)


if __name__ == "__main__":
    main()
