"""What `podium check` says of changes to manifests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml
from click.testing import CliRunner

from podium.cli.check import check as command
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium.render.reports.check import github_annotations, junit, sarif
from podium.what_if.check.check import (
    BUDGET,
    EVICTED,
    IMPOSSIBLE,
    MOVED,
    PENDING,
    SPREAD,
    Check,
    check,
)
from podium.what_if.check.manifest_state import ManifestState, read_state, revision_state
from podium.what_if.plan.inputs import cluster_documents

NODES = """
apiVersion: v1
kind: Node
metadata: {name: a, labels: {zone: x, kubernetes.io/hostname: a}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {zone: y, kubernetes.io/hostname: b}}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
"""
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 2
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: web:1
        resources:
          requests:
            cpu: "1"
"""
SHOP = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n---\n"


def state(folder: Path, files: Mapping[str, str]) -> ManifestState:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_state(str(folder))


def checked(tmp_path: Path, before: str, after: str, *, cluster: str = NODES) -> Check:
    file = tmp_path / "cluster.yaml"
    file.write_text(cluster)
    return check(
        cluster_documents([str(file)]),
        state(tmp_path / "before", {"web.yaml": SHOP + before} if before else {}),
        state(tmp_path / "after", {"web.yaml": SHOP + after}),
        ProfileSource().choose(),
    )


def found(result: Check) -> list[tuple[str, str, int]]:
    return [(each.rule, each.object, each.line) for each in result.findings]


def test_a_change_that_fits_has_no_findings_and_says_what_room_is_left(tmp_path: Path) -> None:
    result = checked(tmp_path, WEB, WEB.replace("replicas: 2", "replicas: 3"))

    assert found(result) == []
    assert result.changed == ["Deployment/shop/web"]
    assert result.room == {"Deployment/shop/web": 5}


def test_nothing_changed_means_nothing_is_tried(tmp_path: Path) -> None:
    result = checked(tmp_path, WEB, WEB)

    assert (result.changed, result.findings, result.room) == ([], [], {})


def test_pods_without_a_node_stand_at_their_requests_with_a_fix(tmp_path: Path) -> None:
    result = checked(tmp_path, WEB, WEB.replace("replicas: 2", "replicas: 9"))

    assert found(result) == [(PENDING, "Deployment/shop/web", 20)]
    [finding] = result.findings
    assert finding.message.startswith("shop/web-")
    assert "2 Insufficient cpu" in finding.message
    assert finding.fixes


def test_a_pod_that_no_node_can_ever_take_is_told_apart(tmp_path: Path) -> None:
    result = checked(tmp_path, WEB, WEB.replace('cpu: "1"', 'cpu: "5"'))

    assert (IMPOSSIBLE, "Deployment/shop/web", 20) in found(result)
    assert any("Lower the cpu request" in text for text in result.findings[0].fixes)


def test_a_pod_that_waited_before_is_no_finding(tmp_path: Path) -> None:
    many = WEB.replace("replicas: 2", "replicas: 9")

    result = checked(tmp_path, many, many + "---\n" + SHOP.replace("shop", "other"))

    assert [each for each in found(result) if each[0] in {PENDING, IMPOSSIBLE}] == []


def test_evicted_pods_are_named_at_the_priority(tmp_path: Path) -> None:
    full = WEB.replace("replicas: 2", "replicas: 8")
    critical = WEB.replace("name: web", "name: critical").replace(
        "    spec:\n      containers", "    spec:\n      priorityClassName: high\n      containers"
    )

    result = checked(tmp_path, full, full + "---\n" + critical.replace("app: web", "app: critical"))

    evicted = [each for each in result.findings if each.rule == EVICTED]
    assert evicted
    assert all(each.object == "Deployment/shop/critical" for each in evicted)
    assert all("evicts shop/web-" in each.message for each in evicted)
    lines = (tmp_path / "after" / "web.yaml").read_text().splitlines()
    assert "priorityClassName" in lines[evicted[0].line - 1]


def test_pods_that_run_elsewhere_afterwards_are_noted(tmp_path: Path) -> None:
    pinned = WEB.replace("      containers", "      nodeSelector: {zone: x}\n      containers", 1)

    result = checked(tmp_path, WEB, pinned)

    assert (MOVED, "Deployment/shop/web", 3) in found(result)


def test_a_budget_that_is_not_kept_is_named(tmp_path: Path) -> None:
    budget = (
        "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\n"
        "metadata: {name: web, namespace: shop}\n"
        "spec:\n  minAvailable: 9\n  selector: {matchLabels: {app: web}}\n"
    )
    result = checked(tmp_path, "", WEB.replace("replicas: 2", "replicas: 9") + budget)

    [finding] = [each for each in result.findings if each.rule == BUDGET]
    assert finding.message == "budget shop/web wants 9 healthy pods, 8 have a node"
    assert finding.object == "PodDisruptionBudget/shop/web"


def test_uneven_spreading_is_named(tmp_path: Path) -> None:
    spread = WEB.replace(
        "      containers",
        "      nodeSelector: {zone: x}\n"
        "      topologySpreadConstraints:\n"
        "      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway,"
        " labelSelector: {matchLabels: {app: web}}}\n"
        "      containers",
        1,
    )
    result = checked(tmp_path, "", spread)

    [finding] = [each for each in result.findings if each.rule == SPREAD]
    assert finding.message == "pods by zone: x 2, y 0; maxSkew is 1"


def test_known_findings_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(NODES)
    after = state(tmp_path / "after", {"web.yaml": SHOP + WEB.replace('cpu: "1"', 'cpu: "5"')})
    cluster = cluster_documents([str(tmp_path / "cluster.yaml")])

    result = check(
        cluster,
        ManifestState(),
        after,
        ProfileSource().choose(),
        allow={"impossible:Deployment/shop/web"},
    )

    assert result.findings == []
    assert [each.id for each in result.allowed] == ["impossible:Deployment/shop/web"]


#: A deliberate mistake: what is written instead of what, the line, and a part of the words.
MISTAKES = [
    ("apps/v1", "apps/v1beta9", "apiVersion", "the version of a Deployment is apps/v1"),
    ("replicas: 2", "replica: 2", "replica", "did you mean replicas?"),
    ("replicas: 2", "replicas: two", "replicas", "cannot unmarshal string"),
    ("replicas: 2", "replicas: -1", "replicas", "must be greater than or equal to 0"),
    ("app: web}\n  template", "app: wob}\n  template", "labels", "does not match template"),
    ("      containers:", "      containrs:", "containrs", "did you mean containers?"),
    ("- name: web", "- name: Web_1", "Web_1", "spec.template.spec.containers[0].name"),
    ("image: web:1", "imag: web:1", "imag:", "did you mean image?"),
    ('cpu: "1"', "cpu: one", "cpu: one", "quantities must match"),
    ('cpu: "1"', 'cpu: "-1"', 'cpu: "-1"', "must be greater than or equal to 0"),
    ("requests:", "request:", "request:", "did you mean requests?"),
    ("resources:", "resource:", "resource:", "did you mean resources?"),
    ("        image: web:1", "        image: web:1\n        image: web:2", "web:2", "twice"),
    ("name: web\n  namespace", "name: Web\n  namespace", "name: Web", "metadata.name"),
    (
        "      containers",
        "      restartPolicy: Sometimes\n      containers",
        "restartPolicy",
        "restartPolicy",
    ),
    (
        "      containers",
        "      tolerations: [{key: a, operator: Equals}]\n      containers",
        "tolerations",
        "operator",
    ),
    (
        "      containers",
        (
            "      topologySpreadConstraints: [{maxSkew: 0, topologyKey: z,"
            " whenUnsatisfiable: DoNotSchedule}]\n      containers"
        ),
        "topologySpread",
        "maxSkew",
    ),
    (
        "      containers",
        (
            "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
            " {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: in}]}]}}}\n"
            "      containers"
        ),
        "affinity",
        "operator",
    ),
    ("kind: Deployment", "kind: Deployment\n  bad: indent", "bad", "cannot be read"),
    (
        "        image: web:1",
        "        ports: [{containerPort: 99999}]\n        image: web:1",
        "ports",
        "65535",
    ),
]


@pytest.mark.parametrize(("right", "wrong", "marked", "words"), MISTAKES)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, right: str, wrong: str, marked: str, words: str
) -> None:
    assert right in WEB
    text = WEB.replace(right, wrong, 1)

    result = checked(tmp_path, "", text)

    told = [each for each in result.findings if each.rule == "invalid"]
    assert told, found(result)
    assert any(words in each.message for each in told), [each.message for each in told]
    lines = (SHOP + text).splitlines()
    at = [lines[each.line - 1] for each in told]
    assert any(marked in line for line in at), at


def test_a_selector_of_nothing_is_named(tmp_path: Path) -> None:
    lonely = WEB.replace(
        "      containers",
        "      affinity:\n"
        "        podAffinity:\n"
        "          requiredDuringSchedulingIgnoredDuringExecution:\n"
        "          - {topologyKey: zone, labelSelector: {matchLabels: {app: wob}}}\n"
        "      containers",
        1,
    )
    result = checked(tmp_path, "", lonely)

    assert ("selects-nothing", "Deployment/shop/web", 19) in found(result)


# Formats --------------------------------------------------------------------------------------


def test_every_format_has_the_finding_at_its_line(tmp_path: Path) -> None:
    result = checked(tmp_path, WEB, WEB.replace('cpu: "1"', 'cpu: "5"'))
    [finding] = [each for each in result.findings if each.rule == IMPOSSIBLE]

    [run] = sarif(result)["runs"]
    [entry] = [each for each in run["results"] if each["ruleId"] == IMPOSSIBLE]
    where = entry["locations"][0]["physicalLocation"]
    assert where["region"]["startLine"] == finding.line
    assert where["artifactLocation"]["uri"] == finding.file
    assert run["tool"]["driver"]["rules"][entry["ruleIndex"]]["id"] == IMPOSSIBLE

    commands = list(github_annotations(result))
    assert any(f"::error file={finding.file},line={finding.line}," in each for each in commands)
    assert all("\n" not in each for each in commands)

    suite = ET.fromstring(junit(result, [finding]))  # noqa: S314  it was written here
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite.find("testcase/failure").get("type") == IMPOSSIBLE  # type: ignore[union-attr]


# States ---------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    names = {
        f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    subprocess.run(
        ["git", *arguments],
        cwd=folder,
        check=True,
        env={**os.environ, **names},
        capture_output=True,
    )


def test_states_are_revisions_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "repo" / "manifests"
    folder.mkdir(parents=True)
    git(folder.parent, "init", "-q")
    (folder / "web.yaml").write_text(WEB)
    git(folder.parent, "add", "-A")
    git(folder.parent, "commit", "-qm", "one")
    (folder / "web.yaml").write_text(WEB.replace("replicas: 2", "replicas: 3"))

    before = revision_state(str(folder), "HEAD", tmp_path / "old")
    after = read_state(str(folder))

    [changed] = after.changed_since(before)
    assert changed.label == "Deployment/shop/web"
    assert [each.file for each in before.objects.values()] == ["manifests/web.yaml"]
    with pytest.raises(InputError, match="--git: there is no revision 'nothing'; a branch, a tag"):
        revision_state(str(folder), "nothing", tmp_path / "none")


def test_a_kustomization_is_rendered_and_keeps_the_lines_of_its_files(tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    made = state(
        tmp_path / "app",
        {"web.yaml": WEB, "kustomization.yaml": 'resources: [web.yaml]\nnamePrefix: ""\n'},
    )

    [only] = made.objects.values()
    assert only.label == "Deployment/shop/web"
    assert only.line("spec.replicas") == 7
    assert Path(only.file).name == "web.yaml"


def test_a_kustomization_without_kubectl_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InputError, match="a kustomization needs kubectl"):
        state(tmp_path / "app", {"kustomization.yaml": "resources: []\n"})


def test_an_object_that_stands_twice_is_named(tmp_path: Path) -> None:
    made = state(tmp_path / "app", {"a.yaml": WEB, "b.yaml": WEB.replace("web:1", "web:2")})

    [mistake] = made.mistakes
    assert mistake.line == 1
    assert mistake.text == "Deployment/shop/web stands twice"
    assert mistake.hint.startswith(f"first in {tmp_path}/app/a.yaml:1; ")


def test_a_mistake_that_was_there_before_is_no_finding(tmp_path: Path) -> None:
    broken = {
        "a.yaml": WEB,
        "b.yaml": WEB.replace("web:1", "web:2"),
        "c.yaml": "kind: [\n",
        "d.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {}}\n",
    }
    before = state(tmp_path / "before", broken)
    after = state(tmp_path / "after", {**broken, "e.yaml": broken["d.yaml"]})

    assert [Path(each.file).name for each in before.mistakes] == ["b.yaml", "c.yaml", "d.yaml"]
    assert [Path(each.file).name for each in after.new_mistakes(before)] == ["e.yaml"]


def test_objects_with_generated_names_get_one(tmp_path: Path) -> None:
    job = (
        "{apiVersion: batch/v1, kind: Job, metadata: {generateName: sync-}, spec: {template: "
        "{spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}\n"
    )

    result = checked(tmp_path, "", f"{job}---\n{job}")

    assert found(result) == []
    assert result.changed[1:] == ["Job/default/sync-0", "Job/default/sync-1"]
    assert result.created == 2


def test_parts_of_kustomizations_are_not_read_alone(tmp_path: Path) -> None:
    """Bases and components belong to what includes them; an overlay of another cluster is named."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    patch = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}}\n"
    component = (
        "{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component, patches: [{path: p.yaml}]}"
    )
    files = {
        "base/web.yaml": WEB,
        "base/kustomization.yaml": "resources: [web.yaml]\n",
        "more/p.yaml": patch,
        "more/kustomization.yaml": component,
        "one/kustomization.yaml": "resources: [../base]\ncomponents: [../more]\n",
    }
    for name in files:
        (tmp_path / "app" / name).parent.mkdir(parents=True, exist_ok=True)

    made = state(tmp_path / "app", files)

    assert made.mistakes == []
    assert [each.label for each in made.objects.values()] == ["Deployment/shop/web"]
    (tmp_path / "app/two").mkdir()
    overlay = "resources: [../base]\nreplicas: [{name: web, count: 7}]\n"
    [mistake] = state(tmp_path / "app", {"two/kustomization.yaml": overlay}).mistakes
    assert mistake.text == "Deployment/shop/web stands twice"
    [mistake] = state(
        tmp_path / "app/two", {"kustomization.yaml": "resources: [gone.yaml]"}
    ).mistakes
    assert mistake.text.startswith("kubectl kustomize: accumulating resources")


def test_lists_and_files_without_objects(tmp_path: Path) -> None:
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(WEB)]})
    made = state(tmp_path / "app", {"a.yaml": listed, "values.yaml": "replicas: 2\n"})

    assert [each.label for each in made.objects.values()] == ["Deployment/shop/web"]
    assert [note.rpartition("/")[2] for note in made.notes] == [
        "values.yaml: holds no Kubernetes object"
    ]


# The command ----------------------------------------------------------------------------------


def test_the_exit_code_follows_the_rules_that_fail(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(NODES)
    (tmp_path / "web.yaml").write_text(SHOP + WEB.replace('cpu: "1"', 'cpu: "5"'))
    arguments = [str(tmp_path / "web.yaml"), "-f", str(tmp_path / "cluster.yaml")]
    runner = CliRunner()

    def code(*more: str) -> int:
        result = runner.invoke(command, [*arguments, *more], standalone_mode=False)
        return int(result.return_value)

    assert code() == 1
    assert code("--fail-on", "evicted") == 0
    assert code("--fail-on", "none") == 0
    assert code("--allow", "impossible:Deployment/shop/web") == 0
    (tmp_path / "known").write_text("# reviewed\nimpossible:Deployment/shop/web\n")
    assert code("--allow", str(tmp_path / "known")) == 0
    printed = runner.invoke(command, [*arguments, "-o", "json"], standalone_mode=False).stdout
    assert json.loads(printed)["findings"][0]["rule"] == IMPOSSIBLE
