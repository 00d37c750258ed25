"""A real etcd and kube-apiserver on loopback, and a real kube-scheduler beside them.

The programs come from KUBEBUILDER_ASSETS where that is set, else `tools/control-plane` makes them
once. Everything a test starts here is stopped again, and what it wrote to its log is shown when it
ends before its time.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import manifests
from waiting import until

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "control-plane"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler")
#: Newer schedulers to try besides, like PATH.
NEWER = "PODIUM_KUBE_SCHEDULERS"
#: How a test begins to say what the programs of a control plane do not have.
ABSENT = "not in this control plane:"
ADMIN, PODIUM, SCHEDULER = "admin-token", "podium-token", "scheduler-token"
PODS = "/api/v1/namespaces/default/pods"

_T = TypeVar("_T")


class MissingError(Exception):
    """There are no programs, and they cannot be made here."""


def unavailable() -> str:
    """Why there can be no control plane here; nothing if there can be one."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given:
        absent = [name for name in PROGRAMS[:2] if not Path(given, name).is_file()]
        return f"KUBEBUILDER_ASSETS={given} lacks {', '.join(absent)}" if absent else ""
    if _cached() is not None:
        return ""
    tried = subprocess.run([TOOL, "--check"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else ""


def _cached() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base, "podium", "control-plane")
    return folder if all(Path(folder, name).is_file() for name in PROGRAMS) else None


def assets() -> Path:
    """The folder with the programs; they are made now if they have to be."""
    reason = unavailable()
    if reason:
        raise MissingError(reason)
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given:
        return Path(given)
    made = subprocess.run([TOOL], stdout=subprocess.PIPE, text=True, check=True)
    return Path(made.stdout.splitlines()[-1])


def further_assets() -> list[Path]:
    """The folders of further programs to test with, besides `assets`.

    Where KUBEBUILDER_ASSETS names a folder, those that `tools/control-plane` has made.
    """
    cached = _cached()
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if not given or cached is None or cached.resolve() == Path(given).resolve():
        return []
    return [cached]


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Program:
    """A running program and its log."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **(environment or {})}
        with log.open("ab") as stream:
            self._process = subprocess.Popen(
                [str(part) for part in command], stdout=stream, stderr=stream, env=environment
            )

    def check(self) -> None:
        """Complain if it has ended."""
        code = self._process.poll()
        if code is not None:
            tail = "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-30:])
            raise RuntimeError(f"{self.name} ended with code {code}:\n{tail}")

    def wait_for(self, what: str, found: Callable[[], _T], seconds: float = 60) -> _T:
        """What is found, as long as the program runs."""

        def checked() -> _T:
            self.check()
            return found()

        return until(f"{what} ({self.name})", checked, seconds)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Wait until it ends; its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self._process.kill()
        self._process.wait(15)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(15)


class ControlPlane:
    """etcd and kube-apiserver, and a client for tests."""

    def __init__(self, programs: Path, folder: Path, *, readable: bool = False) -> None:
        """With *readable*, objects are stored as JSON, so that `history` can be read."""
        self.programs = programs
        self.folder = folder
        self._running: list[Program] = []
        self._readable = readable
        self.api_server: Program | None = None
        self.url = self.etcd = self._peers = ""

    # Life
    def start(self) -> None:
        """Start both; another port is tried if somebody else was faster."""
        self._write_credentials()
        self._retried(self._start_etcd)
        self._retried(self._start_api_server)
        self._allow()
        until("the default namespace", lambda: self._quietly("/api/v1/namespaces/default"))

    def _retried(self, start: Callable[[], None]) -> None:
        for attempt in range(3):
            try:
                start()
            except RuntimeError:
                if attempt == 2:
                    raise
                self._running.pop().stop()
            else:
                return

    def stop(self) -> None:
        """Stop everything that was started, the last first."""
        for program in reversed(self._running):
            program.stop()
        self._running.clear()

    def _write_credentials(self) -> None:
        tokens = [
            f'{ADMIN},admin,1,"system:masters"',
            f"{PODIUM},podium,2",
            f"{SCHEDULER},plain-scheduler,3",
        ]
        (self.folder / "tokens.csv").write_text("".join(f"{line}\n" for line in tokens), "utf-8")
        self._openssl("genrsa", "-out", "sa.key", "2048")
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        name = ("-keyout", "users.key", "-out", "users.crt", "-subj", "/CN=users")
        self._openssl("req", "-x509", *curve, *name, "-days", "2")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=self.folder)

    def _start_etcd(self) -> None:
        self.etcd, self._peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._start_etcd_again()

    def _start_etcd_again(self) -> None:
        clients, peers = self.etcd, self._peers
        program = self._etcd = self._run(
            "etcd",
            self.programs / "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        )
        program.wait_for("etcd is healthy", lambda: _answers(f"{clients}/health"))

    @contextmanager
    def etcd_away(self) -> Iterator[None]:
        """Etcd is dead for a while, and back at the same address with all that it had."""
        self._running.remove(self._etcd)
        self._etcd.kill()
        try:
            yield
        finally:
            self._start_etcd_again()
            until("the API server has etcd", lambda: self._quietly("/readyz"), 60)

    def _start_api_server(self) -> None:
        self.url = f"https://127.0.0.1:{free_port()}"
        self.start_api_server()

    def stop_api_server(self) -> None:
        """The API server dies; etcd goes on."""
        assert self.api_server is not None
        self._running.remove(self.api_server)
        self.api_server.kill()

    def restart_api_server(self) -> None:
        """The API server dies and comes back at the same address."""
        self.stop_api_server()
        self.start_api_server()

    @contextmanager
    def api_server_away(self) -> Iterator[None]:
        """The API server is dead for a while, and back afterwards whatever happens."""
        self.stop_api_server()
        try:
            yield
        finally:
            self.start_api_server()

    def start_api_server(self) -> None:
        """Start it at its address, and wait until it is ready."""
        port = self.url.rpartition(":")[2]
        stored = "application/json" if self._readable else "application/vnd.kubernetes.protobuf"
        program = self.api_server = self._run(
            "kube-apiserver",
            self.programs / "kube-apiserver",
            f"--etcd-servers={self.etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.folder / 'certificates'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={self.folder / 'sa.key'}",
            f"--service-account-key-file={self.folder / 'sa.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--client-ca-file={self.folder / 'users.crt'}",
            f"--storage-media-type={stored}",
            "--etcd-compaction-interval=0",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority",
        )
        program.wait_for("the API server is ready", lambda: self._quietly("/readyz"), 120)

    def _run(
        self, name: str, *command: str | Path, environment: Mapping[str, str] | None = None
    ) -> Program:
        program = Program(name, command, self.folder / f"{name}.log", environment)
        self._running.append(program)
        return program

    # Rights
    def _allow(self) -> None:
        """Podium may read nodes and pods and bind; the scheduler may do all it needs but bind."""
        reading = {"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["*"]}
        writing = {"verbs": ["create", "patch", "update"], "apiGroups": ["", "events.k8s.io"]}
        rights = {
            "podium": [
                {**reading, "apiGroups": [""], "resources": ["nodes", "pods"]},
                {"verbs": ["create"], "apiGroups": [""], "resources": ["pods/binding"]},
            ],
            "plain-scheduler": [
                reading,
                {**writing, "resources": ["events", "pods/status"]},
                {"verbs": ["delete"], "apiGroups": [""], "resources": ["pods"]},
            ],
        }
        for user, rules in rights.items():
            self.allow(user, rules)

    def allow(self, user: str, rules: Sequence[Mapping[str, Any]]) -> None:
        """Give a user these rights, in every namespace."""
        group, about = "rbac.authorization.k8s.io", {"metadata": {"name": user}}
        self.post(f"/apis/{group}/v1/clusterroles", {**about, "rules": list(rules)})
        role = {"apiGroup": group, "kind": "ClusterRole", "name": user}
        subjects = [{"kind": "User", "apiGroup": group, "name": user}]
        binding = {**about, "roleRef": role, "subjects": subjects}
        self.post(f"/apis/{group}/v1/clusterrolebindings", binding)

    @property
    def authority(self) -> Path:
        """The certificate to trust."""
        return self.folder / "certificates" / "apiserver.crt"

    def kubeconfig(self, token: str, *, url: str = "") -> Path:
        """A kubeconfig for this token; with another *url*, through something in between."""
        return self._kubeconfig(token, {"token": token}, url)

    def kubeconfig_of(self, user: str, *groups: str, url: str = "") -> Path:
        """A kubeconfig for any user, known by a client certificate."""
        fields = {
            f"client-{part}-data": base64.b64encode(path.read_bytes()).decode()
            for part, path in zip(
                ("certificate", "key"), self.certificate(user, *groups), strict=True
            )
        }
        return self._kubeconfig(user, fields, url)

    def certificate(self, user: str, *groups: str) -> tuple[Path, Path]:
        """A client certificate for a user, and its key."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        key, asked, made = (f"user-{user}.{ext}" for ext in ("key", "csr", "crt"))
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        self._openssl("req", *curve, "-keyout", key, "-out", asked, "-subj", subject)
        signed = ("-CA", "users.crt", "-CAkey", "users.key", "-CAcreateserial", "-days", "2")
        self._openssl("x509", "-req", "-in", asked, "-out", made, *signed)
        return self.folder / made, self.folder / key

    def _kubeconfig(self, name: str, user: Mapping[str, Any], url: str) -> Path:
        server = url or self.url
        path = self.folder / f"{name}-{server.rpartition(':')[2]}.kubeconfig"
        authority = base64.b64encode(self.authority.read_bytes()).decode()
        cluster = {"server": server, "certificate-authority-data": authority}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "user", "user": dict(user)}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
            "current-context": "test",
        }
        # Whole or not at all: somebody may be reading it.
        written = path.with_suffix(f".{threading.get_ident()}")
        written.write_text(json.dumps(document), "utf-8")
        written.replace(path)
        return path

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """kubectl as the administrator; what it prints."""
        command = ["kubectl", f"--kubeconfig={self.kubeconfig(ADMIN)}", *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    # Talking
    def call(
        self, method: str, path: str, body: Any = None, kind: str = "json", *, seconds: float = 30
    ) -> Any:
        """One request as the administrator, which is answered in so many *seconds*."""
        request = urllib.request.Request(
            f"{self.url}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {ADMIN}", "Content-Type": f"application/{kind}"},
            method=method,
        )
        context = ssl.create_default_context(cafile=str(self.authority))
        with urllib.request.urlopen(request, timeout=seconds, context=context) as response:
            text = response.read()
        return json.loads(text) if text.startswith(b"{") else text.decode()

    def get(self, path: str) -> Any:
        """Read something."""
        return self.call("GET", path)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create something."""
        return self.call("POST", path, body)

    def serves(self, version: str) -> bool:
        """Whether a group and version is served, such as `policy/v1`."""
        return (
            self._quietly(f"/apis/{version}" if "/" in version else f"/api/{version}") is not None
        )

    def scheduler_takes(self, version: str) -> bool:
        """Whether there is a kube-scheduler that reads configurations of this version."""
        program = self.programs / "kube-scheduler"
        if not program.is_file():
            return False
        config = self.folder / f"config-{version}.yaml"
        kind = "kind: KubeSchedulerConfiguration\n"
        config.write_text(f"apiVersion: kubescheduler.config.k8s.io/{version}\n{kind}")
        flags = [f"--config={config}", f"--write-config-to={config}.read"]
        client = ["--master=http://127.0.0.1:9", f"--secure-port={free_port()}"]
        command = [str(program), *flags, *client, f"--cert-dir={self.folder / 'probed'}"]
        tried = subprocess.run(command, capture_output=True, timeout=30, check=False)
        return tried.returncode == 0

    def _quietly(self, path: str) -> Any:
        try:
            return self.get(path)
        except (OSError, urllib.error.URLError):
            return None

    def add_node(self, name: str, labels: Mapping[str, str], cpu: str = "4") -> None:
        """A node that is ready, with room."""
        known = {"kubernetes.io/hostname": name, **labels}
        self.post("/api/v1/nodes", manifests.node(name, cpu, labels=known))

    def clear_nodes(self) -> None:
        """No nodes, and no pods."""
        self.call("DELETE", "/api/v1/nodes")
        for pod in self.get(PODS)["items"]:
            self.delete_pod(pod["metadata"]["name"])

    def delete_pod(self, name: str) -> None:
        """The pod is gone at once; there is no kubelet that would let it finish."""
        try:
            self.call("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise

    def is_leaving(self, name: str) -> bool:
        """Whether the pod is being deleted, or is gone."""
        found = {item["metadata"]["name"]: item for item in self.get(PODS)["items"]}.get(name)
        return found is None or "deletionTimestamp" in found["metadata"]

    def add_pod(self, name: str, scheduler: str, **spec: Any) -> None:
        """A pod that wants little."""
        labels, cpu = spec.pop("labels", {}), spec.pop("cpu", "10m")
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"schedulerName": scheduler, "containers": [container], **spec},
        }
        self.post(PODS, body)

    def node_of(self, pod: str) -> str:
        """Where a pod is; nothing while it is nowhere."""
        found: str = self.get(f"{PODS}/{pod}")["spec"].get("nodeName", "")
        return found

    def events_of(self, pod: str) -> list[str]:
        """What was said about a pod."""
        query = f"fieldSelector=involvedObject.name%3D{pod}"
        found = self.get(f"/api/v1/namespaces/default/events?{query}")["items"]
        return [f"{event['reason']}: {event.get('message', '')}" for event in found]

    # Programs beside it
    @contextmanager
    def program(
        self, name: str, *command: str | Path, environment: Mapping[str, str] | None = None
    ) -> Iterator[Program]:
        """Something that runs for a while, with more in its environment."""
        program = self._run(name, *command, environment=environment)
        try:
            yield program
        finally:
            self._running.remove(program)
            program.stop()

    @contextmanager
    def scheduler(
        self, name: str, extender: Mapping[str, Any], program: str = ""
    ) -> Iterator[Program]:
        """A kube-scheduler with this name and one extender: our own, or a newer one."""
        flags = self._by_config(name, extender) if program else self._by_policy(name, extender)
        command = [
            program or self.programs / "kube-scheduler",
            *flags,
            "--leader-elect=false",
            f"--secure-port={free_port()}",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self.folder / name}",
            f"--authentication-kubeconfig={self.kubeconfig(SCHEDULER)}",
            f"--authorization-kubeconfig={self.kubeconfig(SCHEDULER)}",
            "--authentication-skip-lookup=true",
        ]
        with self.program(name, *command) as running:
            yield running

    def _by_policy(self, name: str, extender: Mapping[str, Any]) -> list[str]:
        path = self.folder / f"{name}.policy.json"
        policy = {"kind": "Policy", "apiVersion": "v1", "extenders": [dict(extender)]}
        path.write_text(json.dumps(policy), "utf-8")
        return [
            f"--policy-config-file={path}",
            f"--scheduler-name={name}",
            f"--kubeconfig={self.kubeconfig(SCHEDULER)}",
            "--port=0",
        ]

    def _by_config(self, name: str, extender: Mapping[str, Any]) -> list[str]:
        path = self.folder / f"{name}.config.json"
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig(SCHEDULER))},
            "profiles": [{"schedulerName": name}],
            "extenders": [dict(extender)],
        }
        path.write_text(json.dumps(config), "utf-8")
        return [f"--config={path}"]

    @contextmanager
    def podium_extender(self, name: str, rules: Path, *flags: str) -> Iterator[str]:
        """`podium extender` with these rules; where it listens."""
        log = self.folder / f"{name}.log"
        command = [
            sys.executable,
            "-m",
            "podium",
            "extender",
            "--listen=127.0.0.1:0",
            f"--rules={rules}",
        ]
        with self.program(name, *command, *flags) as running:

            def address() -> str:
                lines = log.read_text("utf-8").splitlines()
                return next(
                    (line.rpartition(" at ")[2] for line in lines if " at http" in line), ""
                )

            url = running.wait_for("the extender listens", address)
            running.wait_for("the extender is ready", lambda: _answers(f"{url}/readyz"))
            yield url

    @property
    def access(self) -> list[str]:
        """The flags that let Podium in."""
        return [
            f"--server={self.url}",
            f"--token={PODIUM}",
            f"--ca={self.authority}",
        ]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False
