"""Files, folders and standard input."""

import gzip
import io
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(
            lambda path: path / "gone.yaml", "gone.yaml: cannot be read: no such", id="gone"
        ),
        pytest.param(
            lambda path: path,
            ": holds no manifests; they end in .yaml, .yml or .json",
            id="a folder without manifests",
        ),
        pytest.param(
            lambda path: _write(path / "a.gz", gzip.compress(b"kind: Pod")[:-9]),
            "a.gz: is not a whole gzip file",
            id="a truncated gzip file",
        ),
        pytest.param(
            lambda path: _write(path / "a.gz", b"\x1f\x8bnonsense"),
            "a.gz: is not a whole gzip file",
            id="no gzip file at all",
        ),
        pytest.param(
            lambda path: _write(path / "a.yaml", b"kind: Pod"),
            "a.yaml: Pod: metadata.name: has no name",
            id="a bad manifest",
        ),
    ],
)
def test_what_cannot_be_read(make, sentence: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    with pytest.raises(InputError) as error:
        read([str(make(tmp_path))])

    assert sentence in str(error.value)


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
