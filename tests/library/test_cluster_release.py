"""The generation of a live cluster: which release decides, and what users are told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from cases import cases
from podium.kube.access import load_access
from podium.kube.errors import UnreachableError
from podium.library.cluster_release import (
    Versions,
    choose_in_cluster,
    decided_as,
    source_in_cluster,
)
from podium.library.profile_source import ProfileSource


@cases(
    ("server", "scheduler", "generation", "told"),
    {
        "the API server": ("v1.37.2", "", "v1.37", "decided as v1.37: the API server is v1.37.2"),
        "the scheduler comes first": (
            "v1.36.1",
            "v1.35.8",
            "v1.35",
            "decided as v1.35: the cluster's scheduler is v1.35.8",
        ),
        "a provider's own version": (
            "v1.34.4-gke.100",
            "",
            "v1.34",
            "decided as v1.34: the API server is v1.34.4-gke.100",
        ),
        "newer than any": (
            "v1.99.0",
            "",
            "v1.37",
            "decided as v1.37, the newest release known: the API server is v1.99.0, which is newer",
        ),
        "older": (
            "v1.20.2",
            "",
            "v1.37",
            "decided as v1.37: the API server is v1.20.2, which is older than the releases known",
        ),
        "nothing is told": ("", "", "", ""),
        "no version": ("unknown", "", "", ""),
        "a build without a version": ("v0.0.0-master+faecb19", "", "", ""),
    },
)
def test_the_release_of_the_cluster_decides(
    server: str, scheduler: str, generation: str, told: str
) -> None:
    assert decided_as(Versions(server, scheduler)) == (generation, told)


@contextmanager
def api_server(documents: dict[str, Any], port: int = 0) -> Iterator[str]:
    """An API server that serves some documents; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = documents.get(self.path.partition("?")[0])
            body = json.dumps(found if found is not None else {"kind": "Status"}).encode()
            self.send_response(200 if found is not None else 403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def scheduler_pods(*images: str) -> dict[str, Any]:
    return {
        "items": [
            {"spec": {"containers": [{"name": "kube-scheduler", "image": image}]}}
            for image in images
        ]
    }


PODS = "/api/v1/namespaces/kube-system/pods"
VERSION = {"/version": {"gitVersion": "v1.37.1"}}


def chosen(documents: dict[str, Any], **source: Any) -> tuple[str, list[str]]:
    told: list[str] = []
    with api_server(documents) as url:
        flags = ProfileSource(**{"environment": {}, **source}, notify=told.append)
        found = choose_in_cluster(flags, load_access(None, None, url))
    return found.profile.name, told


def test_the_api_server_is_asked() -> None:
    name, told = chosen(VERSION)

    assert name == "v1.37 default-scheduler"
    assert told == ["decided as v1.37: the API server is v1.37.1"]


def test_the_image_of_the_scheduler_tells_its_version() -> None:
    pods = scheduler_pods("example.com/kube-scheduler:v1.36.4", "example.com/other:v1.36.4")
    name, told = chosen(VERSION | {PODS: pods})

    assert name == "v1.36 default-scheduler"
    assert told == ["decided as v1.36: the cluster's scheduler is v1.36.4"]


def test_schedulers_of_two_releases_tell_nothing() -> None:
    pods = scheduler_pods("kube-scheduler:v1.36.4", "kube-scheduler:v1.35.8")

    assert chosen(VERSION | {PODS: pods})[0] == "v1.37 default-scheduler"


@cases(
    ("source", "name"),
    {
        "a flag": ({"profile": "v1.35"}, "v1.35 default-scheduler"),
        "a default": ({"environment": {"PODIUM_PROFILE": "v1.34"}}, "v1.34 default-scheduler"),
        "a provider": ({"provider": "DefaultProvider"}, "v1.13 DefaultProvider"),
    },
)
def test_what_is_named_overrides_the_cluster(source: dict[str, Any], name: str) -> None:
    assert chosen(VERSION, **source) == (name, [])


def test_a_configuration_is_read_as_the_cluster_reads_it() -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    name, told = chosen(VERSION, config="mine", texts={"mine": head})

    assert name == "v1.37 default-scheduler"
    assert len(told) == 1


def test_without_an_answer_no_release_is_assumed() -> None:
    source = ProfileSource(environment={})
    told: list[str] = []
    with api_server(VERSION) as url:
        access = load_access(None, None, url)

    with pytest.raises(UnreachableError, match="connection refused"):
        source_in_cluster(source, access, (0.0, 0.0), lambda error: told.append(str(error)))
    assert told == [f"{url}: connection refused"] * 2


def test_a_cluster_that_restarts_is_asked_again() -> None:
    documents = {"/version": {"gitVersion": "v1.35.2"}}
    with api_server(documents) as url:
        access = load_access(None, None, url)
    with ExitStack() as stack:

        def restart(_: object) -> None:
            stack.enter_context(api_server(documents, urlsplit(url).port or 0))

        found = source_in_cluster(ProfileSource(environment={}), access, (0.0,), restart)
    assert found.profile == "v1.35"


def test_a_cluster_that_refuses_to_answer_is_left_to_what_reads_it_next() -> None:
    name, told = chosen({})

    assert name == "v1.37 default-scheduler"
    assert told == []
