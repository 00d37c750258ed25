"""The forms a snapshot is written in: by the ending of its file, or as asked."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import podium
from podium.kube.access import Access
from podium.library.snapshots import writing
from podium.library.snapshots.writing import Listed

ACCESS = Access("http://127.0.0.1:1")
OBJECTS = {
    "Node": b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"acme-1"}}\n',
    "Namespace": b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"acme"}}\n',
}


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster with one node and one namespace."""

    async def list_objects(access: Access, folder: Path) -> Listed:
        for kind, line in OBJECTS.items():
            (folder / kind).write_bytes(line)
        return Listed(dict.fromkeys(OBJECTS, 1))

    monkeypatch.setattr(writing, "list_objects", list_objects)


@pytest.mark.parametrize(
    ("name", "form", "first"),
    [
        ("s.json", None, '{"apiVersion":"v1","kind":"List","items":['),
        ("s", None, '{"apiVersion":"v1","kind":"List","items":['),
        ("s.yaml", None, "apiVersion: podium/v1"),
        ("s.yml.gz", None, "apiVersion: podium/v1"),
        ("s.json", "yaml", "apiVersion: podium/v1"),
        ("s.yaml", "json", '{"apiVersion":"v1","kind":"List","items":['),
    ],
)
def test_a_snapshot_is_read_again(tmp_path: Path, name: str, form: str | None, first: str) -> None:
    out = tmp_path / name

    listed = writing.write_snapshot(
        ACCESS, str(out), {"provider": "DefaultProvider"}, written_as=form
    )

    data = out.read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text.splitlines()[0] == first
    assert listed.counts == {"Node": 1, "Namespace": 1}
    objects = podium.read([str(out)])
    assert [node.name for node in objects.nodes] == ["acme-1"]
    assert [profile.name for profile in podium.snapshot_profiles(objects)] == [
        "v1.13 DefaultProvider"
    ]


def test_an_anonymous_snapshot_says_so(tmp_path: Path) -> None:
    out = tmp_path / "s.json"

    writing.write_snapshot(ACCESS, str(out), {"profile": "v1.36"}, anonymize=True)

    objects = podium.read([str(out)])
    assert objects.snapshot is not None
    assert objects.snapshot["anonymized"] is True
    assert "acme" not in out.read_text()


def test_nothing_is_left_of_a_snapshot_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_write_json", failing)

    with pytest.raises(podium.InputError, match="cannot be written: no space left on device"):
        writing.write_snapshot(ACCESS, str(tmp_path / "s.json"), {})

    assert list(tmp_path.iterdir()) == []


def test_objects_without_a_snapshot_get_the_default_profile() -> None:
    [profile] = podium.snapshot_profiles(podium.Objects())

    assert profile.name == "v1.37 default-scheduler"


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ([], "Snapshot: profile: is no profile"),
        ({"provider": 7}, "Snapshot: profile.provider: is not text"),
        ({"featureGates": {"A": "on"}}, "Snapshot: profile.featureGates: is not a map of gates"),
    ],
)
def test_a_profile_that_cannot_be_read(profile: object, sentence: str) -> None:
    objects = podium.Objects(snapshot={"kind": "Snapshot", "profile": profile})

    with pytest.raises(podium.InputError) as refused:
        podium.snapshot_profiles(objects)

    assert str(refused.value) == sentence
