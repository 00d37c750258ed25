"""Files, folders and standard input."""

import gzip
import io
from pathlib import Path

import pytest

from cases import cases
from podium.errors import InputError
from podium.library.reading import load, read


def pod(name: str) -> str:
    return f"{{kind: Pod, metadata: {{name: {name}}}}}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "b.yaml": pod("b"),
        "a/z.yml": pod("z"),
        "a/c.json": '{"kind": "Pod", "metadata": {"name": "c"}}',
        "notes.txt": "not a manifest",
        ".hidden.yaml": "not: read",
        ".git/x.yaml": "not: read",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "packed.yaml.gz").write_bytes(gzip.compress(pod("packed").encode()))
    return tmp_path


def names(*paths: str | Path) -> list[str]:
    return [each.name for each in load([str(path) for path in paths]).pods]


def test_a_folder_is_read_in_the_order_of_its_paths(folder: Path) -> None:
    assert names(folder) == ["c", "z", "b", "packed"]


def test_files_are_read_in_the_order_given_and_once(folder: Path) -> None:
    assert names(folder / "b.yaml", folder / "a", folder) == ["b", "c", "z", "packed"]


def test_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(pod("piped").encode()))
    monkeypatch.setattr("sys.stdin", stream)

    assert names(folder / "b.yaml", "-", "-") == ["b", "piped"]


def test_packed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(gzip.compress(pod("piped").encode())))
    monkeypatch.setattr("sys.stdin", stream)

    assert names("-") == ["piped"]


@cases(
    ("make", "sentence"),
    {
        "gone": (lambda path: path / "gone.yaml", "gone.yaml: cannot be read: no such"),
        "a folder without manifests": (
            lambda path: path,
            ": holds no manifests; they end in .yaml, .yml or .json",
        ),
        "a truncated gzip file": (
            lambda path: _write(path / "a.gz", gzip.compress(b"kind: Pod")[:-9]),
            "a.gz: is not a whole gzip file",
        ),
        "no gzip file at all": (
            lambda path: _write(path / "a.gz", b"\x1f\x8bnonsense"),
            "a.gz: is not a whole gzip file",
        ),
        "a bad manifest": (
            lambda path: _write(path / "a.yaml", b"kind: Pod"),
            "a.yaml: Pod: metadata.name: has no name",
        ),
    },
)
def test_what_cannot_be_read(make, sentence: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    with pytest.raises(InputError) as error:
        read([str(make(tmp_path))])

    assert sentence in str(error.value)


def lots_of_yaml(folder: Path) -> Path:
    """Several files with many documents, a long list, other formats, and a file without objects."""
    pods = "".join(f"---\nkind: Pod\nmetadata:\n  name: p{n}\n" for n in range(300))
    items = "".join(f"- kind: Node\n  metadata:\n    name: n{n}\n" for n in range(300))
    (folder / "a.yaml").write_text(pods)
    (folder / "b.yaml.gz").write_bytes(gzip.compress(f"items:\n{items}kind: List\n".encode()))
    (folder / "c.json").write_text('{"kind": "Pod", "metadata": {"generateName": "made-"}}')
    (folder / "d.yaml").write_text("# nothing\n")
    (folder / "e.yaml").write_text(pods.replace("name: p", "nmae: x\n  name: q"))
    (folder / "f.yaml").write_text("kind: Pod\nmetadata: {generateName: made-}\n")
    return folder


@pytest.fixture
def much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes of YAML are enough for several processes, and for several pieces."""
    monkeypatch.setattr("podium.library.reading.MUCH", 1)
    monkeypatch.setattr("podium.library.reading._SMALLEST_PIECE", 64)


@pytest.mark.usefixtures("much")
def test_several_workers_read_the_same(tmp_path: Path) -> None:
    folder = str(lots_of_yaml(tmp_path))

    alone = read([folder])

    assert len(alone.pods) == 602
    assert len(alone.nodes) == 300
    assert read([folder], workers=2) == read([folder], workers=3) == alone


@pytest.mark.usefixtures("much")
@cases(
    "fault",
    {
        "no YAML": "kind: Pod\nmetadata: {name: [}\n",
        "a wrong value": "kind: Pod\nmetadata: {name: 1.5}\n",
        "no name": "kind: Pod\n",
        "a large number": f"kind: Pod\nmetadata: {{name: a, uid: {'9' * 40}}}\n",
    },
)
def test_several_workers_find_the_same_fault(tmp_path: Path, fault: str) -> None:
    folder = lots_of_yaml(tmp_path)
    pods = (folder / "a.yaml").read_text()
    (folder / "a.yaml").write_text(f"{pods}---\n{fault}{pods}")

    with pytest.raises(InputError) as alone:
        load([str(folder)])
    with pytest.raises(InputError) as several:
        load([str(folder)], workers=2)

    assert str(several.value) == str(alone.value)
    assert "a.yaml" in str(alone.value)


def test_little_yaml_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a process for so little")

    monkeypatch.setattr("podium.library.reading.in_parallel", refuse)

    assert len(load([str(lots_of_yaml(tmp_path))], workers=8).pods) == 602


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_no_paths_at_all() -> None:
    with pytest.raises(InputError, match="no input; name files, folders, or - for standard input"):
        read([])


def test_reading_checks_what_was_written_and_completes_it(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(
        "{kind: Deployment, metadata: {name: web}, spec: {replicas: 2, template: {spec: "
        "{containers: [{resources: {limits: {cpu: 500m}}}]}}}}"
    )

    objects = read([str(path)])

    assert len(objects.pods) == 2
    assert objects.where("Pod", 1) == str(path)
    assert objects.pods[0].spec is objects.pods[1].spec


def test_errors_speak_of_what_is_in_the_files(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text(
        "{kind: Deployment, metadata: {name: web}, spec: {replicas: 2, template: {spec: "
        "{containers: [{resources: {limits: {cpu: half}}}]}}}}"
    )

    with pytest.raises(
        InputError, match=r"Deployment default/web: spec\.template\.spec\.containers"
    ):
        read([str(path)])
