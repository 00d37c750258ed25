"""The manifests in deploy/: accepted by a real API server, and enough to work with."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane.harness import ROOT, ControlPlane, Program, free_port
from podium.profiles.config.build import from_config, load_config
from podium.profiles.policy.build import Options
from waiting import until

DEPLOY = ROOT / "deploy"
PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ConfigMap": "configmaps",
    "Service": "services",
    "Deployment": "deployments",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}
#: What older API servers do not serve; the older version has the same fields.
OLDER = {"policy/v1": "policy/v1beta1"}
Manifest = dict[str, Any]


def manifests(folder: Path) -> list[Manifest]:
    """What a kustomization names, in its order."""
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return [each for name in listed for each in yaml.safe_load_all((folder / name).read_text())]


EVERYTHING = [
    pytest.param(each, id=f"{folder}/{each['kind']}")
    for folder in (".", "shadow", "monitoring")
    for each in manifests(DEPLOY / folder)
    if each["kind"] not in {"ServiceMonitor", "PrometheusRule"}  # of the Prometheus operator
]


@pytest.mark.parametrize("folder", [".", "shadow"])
def test_only_the_monitoring_namespace_reaches_the_pods(folder: str) -> None:
    by_kind = {each["kind"]: each for each in manifests(DEPLOY / folder)}
    pods, policy = by_kind["Deployment"]["spec"]["template"], by_kind["NetworkPolicy"]

    assert policy["metadata"]["namespace"] == by_kind["Deployment"]["metadata"]["namespace"]
    assert (
        policy["spec"]["podSelector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    )
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    [rule] = policy["spec"]["ingress"]
    [source] = rule["from"]
    assert source["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "monitoring"
    }
    ports = {each["containerPort"] for each in pods["spec"]["containers"][0]["ports"]}
    assert {each["port"] for each in rule["ports"]} == ports


def version_of(control_plane: ControlPlane, manifest: Manifest) -> str:
    """The version of a manifest, or an older one with the same fields where that is not served."""
    given = str(manifest["apiVersion"])
    if given not in OLDER or control_plane.serves(given):
        return given
    return OLDER[given]


def path_of(control_plane: ControlPlane, manifest: Manifest) -> str:
    version = version_of(control_plane, manifest)
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    space = manifest["metadata"].get("namespace")
    where = f"/namespaces/{space}" if space else ""
    return f"{root}{where}/{PLURALS[manifest['kind']]}"


def created(control_plane: ControlPlane, manifest: Manifest, query: str = "") -> Manifest:
    sent = {**manifest, "apiVersion": version_of(control_plane, manifest)}
    answer: Manifest = control_plane.post(f"{path_of(control_plane, manifest)}{query}", sent)
    return answer


def removed(control_plane: ControlPlane, manifest: Manifest) -> None:
    try:
        control_plane.call(
            "DELETE", f"{path_of(control_plane, manifest)}/{manifest['metadata']['name']}"
        )
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise


def lacking(sent: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Fields that were sent and not kept: the API server does not know them."""
    if isinstance(sent, dict):
        for key, value in sent.items():
            if key not in (kept or {}):
                yield f"{path}.{key}"
            else:
                yield from lacking(value, kept[key], f"{path}.{key}")
    elif isinstance(sent, list):
        for place, value in enumerate(sent):
            yield from lacking(value, kept[place], f"{path}[{place}]")
    elif str(sent) != str(kept):
        yield f"{path}: {sent} became {kept}"


def apart(manifest: Manifest) -> Manifest:
    """The same under a name that is unique in the whole cluster."""
    found: Manifest = json.loads(json.dumps(manifest))
    if "namespace" not in found["metadata"]:
        found["metadata"]["name"] += "-deployed"
    referred = found.get("roleRef", {})
    if referred.get("kind") == "ClusterRole" and not referred["name"].startswith("system:"):
        referred["name"] += "-deployed"
    return found


@pytest.fixture(scope="module")
def spaces(control_plane: ControlPlane) -> ControlPlane:
    """The namespaces of both ways to run Podium; nothing here finalizes them, so they stay."""
    for name in ("podium-system", "podium-shadow"):
        with suppress(urllib.error.HTTPError):  # there already
            control_plane.post("/api/v1/namespaces", {"metadata": {"name": name}})
    return control_plane


@pytest.mark.parametrize("manifest", EVERYTHING)
def test_the_api_server_takes_it_with_every_field(spaces: ControlPlane, manifest: Manifest) -> None:
    sent = apart(manifest)

    kept = created(spaces, sent, "?dryRun=All")

    sent.pop("apiVersion")
    assert list(lacking(sent, kept)) == []


def test_a_field_that_does_not_exist_is_noticed(spaces: ControlPlane) -> None:
    [manifest] = [each for each in manifests(DEPLOY) if each["kind"] == "PodDisruptionBudget"]
    wrong = {**manifest, "spec": {**manifest["spec"], "minAvailabel": 1}}

    kept = created(spaces, wrong, "?dryRun=All")

    wrong.pop("apiVersion")
    assert list(lacking(wrong, kept)) == [".spec.minAvailabel"]


@pytest.mark.parametrize("folder", [".", "shadow", "monitoring"])
def test_every_file_belongs_to_a_kustomization(folder: str) -> None:
    named = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())["resources"]

    there = {file.name for file in (DEPLOY / folder).glob("*.yaml")}
    assert there == {*named, "kustomization.yaml"}


#: What people need who ask the scheduler; the scheduler itself does not use it.
FOR_READERS = {"podium-reader", "podium-why"}


def one(kind: str, folder: str = ".") -> Manifest:
    """The object of a kind that the scheduler itself uses."""
    there = [each for each in manifests(DEPLOY / folder) if each["kind"] == kind]
    [found] = [each for each in there if each["metadata"]["name"] not in FOR_READERS]
    return found


def test_labels_ports_and_names_fit_together() -> None:
    deployment, service = one("Deployment"), one("Service")
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"].items()
    monitor = one("ServiceMonitor", "monitoring")

    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
    assert service["spec"]["selector"].items() <= labels
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"].items() <= labels
    assert one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= labels
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert (endpoint["scheme"], endpoint["path"]) == ("https", "/metrics")
    [rule] = one("ClusterRole", "monitoring")["rules"]
    assert rule == {"nonResourceURLs": [endpoint["path"]], "verbs": ["get"]}
    assert template["spec"]["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]
    assert deployment["spec"]["replicas"] == 2


@pytest.mark.parametrize("folder", [".", "shadow"])
def test_pods_run_with_little(folder: str) -> None:
    spec = one("Deployment", folder)["spec"]["template"]["spec"]
    [container] = spec["containers"]
    containerfile = (ROOT / "Containerfile").read_text()

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    [port] = container["ports"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container[probe]["httpGet"]
        assert (asked["scheme"], asked["port"]) == ("HTTPS", port["name"])
    assert f"--secure-port={port['containerPort']}" in container["args"]
    assert {"requests", "limits"} <= container["resources"].keys()
    user, group = re.findall(r"^USER (\d+):(\d+)$", containerfile, re.MULTILINE)[0]
    assert spec["securityContext"]["runAsUser"] == int(user) != 0
    assert spec["securityContext"]["runAsGroup"] == int(group)
    assert f"EXPOSE {container['ports'][0]['containerPort']}" in containerfile


def test_a_shadow_may_only_read() -> None:
    rules = one("ClusterRole", "shadow")["rules"]

    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
    assert "secrets" not in {resource for rule in rules for resource in rule["resources"]}


def test_the_configuration_is_one_that_podium_takes() -> None:
    text = one("ConfigMap")["data"]["config.yaml"]
    [profile] = from_config(load_config(text, {}), Options())

    assert profile.scheduler_name == "podium"


# Run with these rights ----------------------------------------------------------------------------


@contextmanager
def applied(control_plane: ControlPlane, folder: str) -> Iterator[None]:
    """The accounts and rights of deploy/, for real."""
    rights = [
        apart(each)
        for each in manifests(DEPLOY / folder)
        if each["kind"] == "ServiceAccount" or "Role" in each["kind"]
    ]
    for each in rights:
        created(control_plane, each)
    try:
        yield
    finally:
        for each in rights:
            removed(control_plane, each)


def kubeconfig_of(control_plane: ControlPlane, account: Manifest, url: str = "") -> Path:
    """A kubeconfig with a token of the service account."""
    about = account["metadata"]
    path = f"/api/v1/namespaces/{about['namespace']}/serviceaccounts/{about['name']}/token"
    token: str = control_plane.post(path, {"spec": {}})["status"]["token"]
    document = yaml.safe_load(control_plane.kubeconfig("admin-token", url=url).read_text())
    document["users"] = [{"name": "user", "user": {"token": token}}]
    file = control_plane.folder / f"{about['name']}.account.kubeconfig"
    file.write_text(json.dumps(document))
    return file


@contextmanager
def running(
    control_plane: ControlPlane, folder: str, *flags: str, url: str = ""
) -> Iterator[tuple[str, Program]]:
    """`podium run` as the Deployment would start it, but for addresses; where it answers.

    It asks the API server, or what is at *url*.
    """
    port = free_port()
    [container] = one("Deployment", folder)["spec"]["template"]["spec"]["containers"]
    config = control_plane.folder / "config.yaml"
    config.write_text(one("ConfigMap")["data"]["config.yaml"])
    replaced = {
        "--config": f"--config={config}",
        "--bind-address": "--bind-address=127.0.0.1",
        "--port": f"--port={port}",
        "--secure-port": f"--secure-port={free_port()}",
    }
    arguments = [replaced.get(each.partition("=")[0], each) for each in container["args"]]
    kubeconfig = kubeconfig_of(control_plane, one("ServiceAccount", folder), url)
    command = [sys.executable, "-m", "podium", *arguments, f"--kubeconfig={kubeconfig}", *flags]
    with control_plane.program(f"podium-{port}", *command) as program:
        yield f"http://127.0.0.1:{port}", program


def answers(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            text: str = response.read().decode()
            return text
    except (OSError, urllib.error.URLError):
        return ""


@pytest.fixture
def nodes(spaces: ControlPlane) -> Iterator[ControlPlane]:
    spaces.clear_nodes()
    for name in ("n1", "n2"):
        spaces.add_node(name, {}, "2")
    yield spaces
    spaces.clear_nodes()


def refusals(program: Program) -> list[str]:
    lines = program.log.read_text("utf-8", "replace").splitlines()
    return [line.replace('\\"', '"') for line in lines if "forbidden" in line.lower()]


def test_with_these_rights_everything_works(nodes: ControlPlane) -> None:
    with applied(nodes, "."), running(nodes, ".") as (url, program):
        program.wait_for("it is ready", lambda: answers(f"{url}/readyz") == "ok")
        nodes.add_pod("low-1", "podium", cpu="1500m", priority=1)
        nodes.add_pod("low-2", "podium", cpu="1500m", priority=1)
        until("both are bound", lambda: nodes.node_of("low-1") and nodes.node_of("low-2"))
        nodes.add_pod("giant", "podium", cpu="64", priority=5)
        nodes.add_pod("high", "podium", cpu="1500m", priority=10)
        until("a victim has to go", lambda: nodes.is_leaving("low-1") or nodes.is_leaving("low-2"))
        for name in ("low-1", "low-2"):
            if nodes.is_leaving(name):
                nodes.delete_pod(name)
        until("the better one is bound", lambda: nodes.node_of("high"))
        until("it is said", lambda: any("Scheduled" in said for said in nodes.events_of("high")))
        until("it is said", lambda: any("FailedSch" in said for said in nodes.events_of("giant")))
        lease = nodes.get("/apis/coordination.k8s.io/v1/namespaces/podium-system/leases/podium")

        assert lease["spec"]["holderIdentity"]
        assert refusals(program) == []
        assert "0/2 nodes are available" in answers(f"{url}/decisions/default/giant")
        assert '"scores":[{"priority":' in answers(f"{url}/decisions/default/low-1")
        assert 'scheduler_schedule_attempts_total{profile="podium",result="scheduled"} 3.0' in (
            answers(f"{url}/metrics")
        )


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("pods/binding", 'cannot create resource "pods/binding"'),
        ("services", 'cannot list resource "services"'),
        ("leases", 'cannot get resource "leases"'),
        ("events", 'cannot create resource "events"'),
        ("pods/status", 'cannot patch resource "pods/status"'),
    ],
)
def test_a_right_that_is_lacking_is_named(nodes: ControlPlane, resource: str, said: str) -> None:
    with applied(nodes, "."):
        for role in (apart(one("ClusterRole")), one("Role")):
            for rule in role["rules"]:
                rule["resources"] = [r for r in rule["resources"] if r != resource] or ["none"]
            nodes.call("PUT", f"{path_of(nodes, role)}/{role['metadata']['name']}", role)
        with running(nodes, ".") as (_, program):
            nodes.add_pod("p", "podium", cpu="64" if resource == "pods/status" else "1")

            lines = program.wait_for("it is told", lambda: refusals(program))

    assert said in lines[0]
    assert program._process.returncode == 0, "it can be stopped, whatever is wrong"
    assert "Traceback" not in program.log.read_text("utf-8", "replace")


def securely(url: str, token: str = "", certificate: tuple[Path, Path] | None = None) -> int:
    """The code of an answer over TLS; 0 for none. The certificate of the server is self-signed."""
    context = ssl._create_unverified_context()  # noqa: S323
    if certificate is not None:
        context.load_cert_chain(*certificate)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    asked = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=60, context=context) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def passes(probe: str) -> bool:
    return securely(probe) == 200


@pytest.mark.parametrize("folder", [".", "shadow"])
def test_the_secure_port_is_open_to_probes_and_to_whom_the_cluster_allows(
    nodes: ControlPlane, folder: str
) -> None:
    """With the rights of the manifests tokens are reviewed, and certificates of users are known."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    path = "/api/v1/namespaces/default/serviceaccounts"
    monitoring = [apart(each) for each in manifests(DEPLOY / "monitoring")][:2]
    with applied(nodes, folder), running(nodes, folder, f"--secure-port={port}") as (_, program):
        for each in monitoring:
            created(nodes, each)
        try:
            [container] = one("Deployment", folder)["spec"]["template"]["spec"]["containers"]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asked = f"{url}{container[probe]['httpGet']['path']}"
                program.wait_for(asked, partial(passes, asked))
            nodes.post(path, {"metadata": {"name": "anyone"}})
            token = nodes.post(f"{path}/anyone/token", {"spec": {}})["status"]["token"]
            member = nodes.certificate("prometheus", "system:serviceaccounts:monitoring")
            codes = [
                securely(f"{url}/metrics"),
                securely(f"{url}/metrics", token),
                securely(f"{url}/metrics", f"{token}x"),
                securely(f"{url}/metrics", "admin-token"),
                securely(f"{url}/metrics", certificate=member),
                securely(f"{url}/decisions", certificate=member),
            ]
        finally:
            nodes.call("DELETE", f"{path}/anyone")
            for each in monitoring:
                removed(nodes, each)
    assert codes == [403, 403, 401, 200, 200, 403]
    assert refusals(program) == []


def await_compared(url: str, count: int) -> None:
    def compared() -> bool:
        return bool(json.loads(answers(f"{url}/shadow") or '{"pods": 0}')["pods"] == count)

    until(f"{count} placements were compared", compared)


def test_a_shadow_compares_and_writes_nothing(nodes: ControlPlane) -> None:
    with applied(nodes, "shadow"), running(nodes, "shadow") as (url, program):
        program.wait_for("it is ready", lambda: answers(f"{url}/readyz") == "ok")
        nodes.add_pod("seen", "default-scheduler")
        until("it is seen", lambda: json.loads(answers(f"{url}/shadow"))["waiting"] == 1)
        assert nodes.node_of("seen") == ""
        theirs = "n2"  # as good as n1, which Podium would take
        nodes.post(
            "/api/v1/namespaces/default/pods/seen/binding",
            {"metadata": {"name": "seen"}, "target": {"kind": "Node", "name": theirs}},
        )
        await_compared(url, 1)
        found = json.loads(answers(f"{url}/shadow?v"))

        assert (found["asGood"], found["differences"][0]["theirs"]) == (1, theirs)
        assert nodes.events_of("seen") == []
        assert refusals(program) == []
        os.kill(program.pid, signal.SIGUSR1)
        program.wait_for("the table", lambda: told(program) == 1)
    assert told(program) == 2, "once more at the end"


def told(program: Program) -> int:
    return program.log.read_text("utf-8", "replace").count("1 placement compared, 100.0% agree")
