"""What is published: the wheel, the image, the archives and the workflows that make them."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import podium
from podium.cli.check import check

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
KREW = ROOT / ".krew.yaml"
#: Examples that need podium-research.
FOR_RESEARCH = ("gym/", "openb/")
ARCHIVE = f"podium-v{podium.__version__}-linux-amd64.tar.gz"


def copied_by_the_image() -> Iterator[tuple[Path, str]]:
    """What the Containerfile copies from the repository into the stage that builds."""
    for line in (ROOT / "Containerfile").read_text("utf-8").splitlines():
        words = line.split()
        if words[:1] == ["COPY"] and not words[1].startswith("--"):
            *sources, target = words[1:]
            for source in sources:
                yield ROOT / source, f"{target}/{source}" if target == "./" else target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from exactly what the Containerfile copies."""
    folder = tmp_path_factory.mktemp("image")
    ignored = shutil.ignore_patterns("__pycache__")
    for source, target in copied_by_the_image():
        if source.is_dir():
            shutil.copytree(source, folder / target, ignore=ignored)
        else:
            shutil.copy(source, folder / target)
    built = folder / "built"
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    [made] = built.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the package as pip unpacks it."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(installed: Path, *arguments: str) -> str:
    """What the installed package prints; the source tree is not on the path."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-m", "podium", *arguments],
        env=environment,
        cwd=installed,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def tree(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "inside"),
    [("src/podium", "podium"), ("docs", "podium/web/docs"), ("examples", "podium/examples")],
)
def test_the_wheel_of_the_image_is_complete(installed: Path, source: str, inside: str) -> None:
    missing = tree(ROOT / source) - tree(installed / inside)

    assert {each for each in missing if not each.startswith(FOR_RESEARCH)} == set()


def test_the_examples_of_research_are_in_its_own_wheel() -> None:
    project = tomllib.loads((ROOT / "research" / "pyproject.toml").read_text("utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

    assert {f"../examples/{each}" for each in ("gym", "openb")} <= included.keys()
    assert all((ROOT / "research" / source).exists() for source in included)


@pytest.mark.slow
def test_the_wheel_decides(installed: Path) -> None:
    assert run(installed, "version").startswith(f"podium {podium.__version__} ")
    pod = "api-5d4f8c7b6-w4m9t"
    assert f"default/{pod} goes to worker-2" in run(
        installed, "explain", pod, "podium/examples/dump.json"
    )


@pytest.mark.slow
def test_the_wheel_names_its_home(installed: Path) -> None:
    [metadata] = installed.glob("podium-*.dist-info/METADATA")
    text = metadata.read_text("utf-8")
    assert re.findall(r"^Project-URL: (\w+),", text, re.MULTILINE) == [
        "Homepage",
        "Documentation",
        "Changelog",
        "Issues",
    ]
    assert re.search(r"^Author: .+", text, re.MULTILINE)


#: Module -> distribution, where the names differ.
DISTRIBUTIONS = {
    "cel_expr_python": "cel-expr-python",
    "highspy": "highspy",
    "markdown_it": "markdown-it-py",
    "prometheus_client": "prometheus_client",
    "re2": "google-re2",
    "yaml": "pyyaml",
}
#: Of the extras `mcp` and `tracing`: modules that come with the distribution of the extra.
WITH_EXTRAS = {"mcp_types", "opentelemetry", "pydantic"}


def declared(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w.-]+", each) for each in requirements)
    return {each[0].lower().replace("_", "-") for each in found if each is not None}


def imported(package: str) -> set[str]:
    """The modules of others that the source of a package imports anywhere."""
    found: set[str] = set()
    for file in (ROOT / "src" / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - sys.stdlib_module_names - {"podium", "podium_research"}


@pytest.mark.parametrize(
    ("package", "file"),
    [("podium", "pyproject.toml"), ("podium_research", "research/pyproject.toml")],
)
def test_everything_that_is_imported_is_declared(package: str, file: str) -> None:
    project = tomllib.loads((ROOT / file).read_text("utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).items()
    known = declared(project["dependencies"]).union(
        *(declared(each) for name, each in extras if name not in {"test", "lint", "release"})
    )
    if package == "podium_research":
        scheduler = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        known |= declared(scheduler["dependencies"])  # it depends on podium
    names = {
        DISTRIBUTIONS.get(module, module).lower().replace("_", "-")
        for module in imported(package) - WITH_EXTRAS
    }

    assert names - known == set()


#: The most packages that an installation of the scheduler brings, itself not counted.
MOST_PACKAGES = 15


def brought(requirement: Requirement) -> Iterator[str]:
    """The package of a requirement, and those that it requires in turn."""
    if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
        yield canonicalize_name(requirement.name)
        for each in distribution(requirement.name).requires or ():
            yield from brought(Requirement(each))


def test_the_scheduler_brings_few_packages_and_none_for_research() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {name for each in project["dependencies"] for name in brought(Requirement(each))}

    assert len(asked) <= MOST_PACKAGES
    assert asked & {"distributed", "gymnasium", "pyarrow"} == set()
    assert project["optional-dependencies"].keys() & {"dask", "gym", "parquet"} == set()


def test_the_image_runs_as_an_ordinary_user() -> None:
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    [user] = [line.split()[1] for line in lines if line.startswith("USER")]
    deployment = yaml.safe_load((ROOT / "deploy" / "deployment.yaml").read_text("utf-8"))
    pod = deployment["spec"]["template"]["spec"]

    assert user == f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def krew_manifest(archive: str) -> subprocess.CompletedProcess[str]:
    tool, tag = str(ROOT / "tools" / "krew-manifest"), f"v{podium.__version__}"
    command = [tool, str(KREW), tag, archive, "0" * 64]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_plugin_manifest_names_the_archive_and_its_checksum() -> None:
    manifest: dict[str, Any] = yaml.safe_load(krew_manifest(ARCHIVE).stdout)

    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["spec"]["version"] == f"v{podium.__version__}"
    [platform] = manifest["spec"]["platforms"]
    assert platform["uri"].endswith(f"/v{podium.__version__}/{ARCHIVE}")
    assert platform["sha256"] == "0" * 64
    assert platform["selector"]["matchLabels"] == {"os": "linux", "arch": "amd64"}
    assert Path(platform["bin"]).name == "kubectl-podium"
    assert len(manifest["spec"]["shortDescription"]) <= 80


def test_an_archive_that_the_manifest_does_not_know_is_refused() -> None:
    refused = krew_manifest("podium-v0-plan9-mips.tar.gz")

    assert refused.returncode == 1
    assert refused.stderr == (
        "krew-manifest: no platform of the template has the archive podium-v0-plan9-mips.tar.gz\n"
    )


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_verbs_that_exist(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    jobs = yaml.safe_load(text)["jobs"]

    assert set(re.findall(r"\bmake ([a-z]+)$", text, re.MULTILINE)) <= verbs
    steps = [each for job in jobs.values() for each in job["steps"]]
    assert all(each.get("run") or each.get("uses") for each in steps)
    assert all((ROOT / script).exists() for script in re.findall(r"bash (\S+)", text))


def test_the_action_and_the_hook_call_a_command_that_exists() -> None:
    action = yaml.safe_load((ROOT / "action.yaml").read_text("utf-8"))
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    command = next(
        each["run"] for each in action["runs"]["steps"] if "podium check" in each.get("run", "")
    )
    flags = {option for parameter in check.params for option in parameter.opts}

    assert set(re.findall(r"(?<= )--?[a-z-]+", command)) <= flags
    assert hook["entry"] == "podium check"
    given = {
        name for name in action["inputs"] if f"inputs.{name}" in (ROOT / "action.yaml").read_text()
    }
    assert given == set(action["inputs"])


def test_three_workflows_stand_behind_the_project() -> None:
    assert [each.stem for each in WORKFLOWS] == ["ci", "release", "soak"]


def test_the_citation_knows_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

    assert citation["version"] == podium.__version__
    assert citation["license"] == "Apache-2.0"


@pytest.mark.slow
@pytest.mark.parametrize("folder", [".", "shadow", "monitoring"])
def test_the_manifests_are_rendered_by_kubectl(folder: str) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    where = ROOT / "deploy" / folder
    listed = yaml.safe_load((where / "kustomization.yaml").read_text("utf-8"))["resources"]
    written = [
        each["kind"]
        for name in listed
        for each in yaml.safe_load_all((where / name).read_text("utf-8"))
    ]

    done = subprocess.run(
        [kubectl, "kustomize", str(where)], capture_output=True, text=True, check=True
    )

    rendered = [each["kind"] for each in yaml.safe_load_all(done.stdout)]
    dashboard = ["ConfigMap"] if folder == "monitoring" else []
    assert sorted(rendered) == sorted([*written, *dashboard])
