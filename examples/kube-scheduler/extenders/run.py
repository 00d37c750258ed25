"""An extender in this process, and a decision with a Policy that asks it.

python run.py [filter] [prioritize]
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import podium

SCORES = {"n1": 3, "n3": 6}


class Extender(BaseHTTPRequestHandler):
    """Filters out n2, and gives n3 the best score."""

    def do_POST(self) -> None:
        """Answer one question of the scheduler."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = asked["NodeNames"]
        print(f"asked {self.path[1:]} about {', '.join(names)}")
        answer: Any
        if self.path == "/filter":
            answer = {
                "NodeNames": [name for name in names if name != "n2"],
                "FailedNodes": {"n2": "the extender says no"},
            }
        else:
            answer = [{"Host": name, "Score": SCORES.get(name, 0)} for name in names]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Write nothing of its own."""


def main(verbs: list[str]) -> None:
    """Decide about the pod of the chapter, and print what came of it."""
    server = HTTPServer(("127.0.0.1", 0), Extender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    extender: dict[str, Any] = {
        "urlPrefix": f"http://127.0.0.1:{server.server_port}",
        "nodeCacheCapable": True,
        "weight": 5,
    }
    extender |= {f"{verb}Verb": verb for verb in verbs}
    policy = {"kind": "Policy", "apiVersion": "v1", "priorities": [], "extenders": [extender]}
    objects = podium.read([str(Path(__file__).with_name("cluster.yaml"))])
    decision = podium.explain(objects, "p", podium.from_policy(policy)).decision
    totals = [] if decision.totals is None else decision.totals.tolist()
    print("totals", dict(zip(decision.feasible, totals, strict=True)))
    print(f"{decision.pod} goes to {decision.node}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["filter", "prioritize"])
