"""Histories that strangers wrote, or that lost a bit: a command ends with a sentence, never 70."""

from __future__ import annotations

import random
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import node, pod
from cli.conftest import Podium
from cli.test_history import recorded_history
from past.judge.driver import Driver
from podium.past.format.frames import SegmentReader, SegmentWriter
from scheduler.fakes import PROFILES

STRANGE: list[Any] = [
    None, True, 0, -1, 2**63, 1.5, float("nan"), "", "x", "default/web", b"", b"\xc1", [], [None],
    {}, {"metadata": None}, [["n1", []]], {"": {}}, "Pod", "Nothing",
]  # fmt: skip


def long_history(folder: Path) -> None:
    """Some nodes, pods that are placed, fail and go, and a second segment with a checkpoint."""
    profile, behaviour = PROFILES["v1.37"]
    driver = Driver(folder, profile, behaviour)
    for number in range(3):
        driver.put(node(f"n{number}", cpu=2))
    for number in range(6):
        driver.put(pod(f"p{number}", requests={"cpu": 1}))
        driver.turn()
    driver.recorder.reconfigured({})
    driver.put(pod("last", requests={"cpu": 5}))
    driver.turn()
    driver.recorder.close()


def mutated(value: Any, rng: random.Random) -> Any:
    """One place of a value changed."""
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        if rng.random() < 0.1:
            return value[:place] + value[place + 1 :]
        return [*value[:place], mutated(value[place], rng), *value[place + 1 :]]
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: mutated(value[key], rng)}
    return rng.choice(STRANGE)


def rewrite(folder: Path, target: Path, rng: random.Random) -> None:
    """A copy with right checksums, and one record of each segment changed."""
    target.mkdir()
    for path in sorted(folder.iterdir()):
        with SegmentReader(path) as reader:
            header = reader.header
            parts = [msgspec.msgpack.decode(part, strict=False) for part in reader.parts()]
        if rng.random() < 0.2:
            header = mutated(header, rng) if rng.random() < 0.5 else header
        elif parts:
            place = rng.randrange(len(parts))
            parts[place] = mutated(parts[place], rng)
        with SegmentWriter(target / path.name, header) as writer:
            for part in parts:
                writer.append(msgspec.msgpack.encode(part))


@pytest.mark.slow
def test_a_changed_record_is_followed_or_refused(podium: Podium, tmp_path: Path) -> None:
    long_history(tmp_path / "h")
    assert podium("history", "replay", str(tmp_path / "h")).code == 0
    rng = random.Random(0)  # noqa: S311
    refused = 0

    for number in range(150):
        target = tmp_path / f"copy{number}"
        rewrite(tmp_path / "h", target, rng)
        for command in (("history", "replay"), ("history", "judge")):
            result = podium(*command, str(target))
            assert result.code in {0, 1, 2}, (number, command, result.err)
            if result.code == 2:
                refused += 1
                assert result.err.count("\n") <= 3, result.err
                assert "Traceback" not in result.err

    assert refused > 20, "some of them cannot be followed"


def test_a_part_that_unpacks_to_very_much_is_refused(podium: Podium, tmp_path: Path) -> None:
    recorded_history(tmp_path / "h")
    (path,) = (tmp_path / "h").iterdir()
    with SegmentReader(path) as reader:
        header = reader.header
    path.unlink()
    packer = zlib.compressobj(9)
    huge = b"".join(packer.compress(b"\0" * (1 << 20)) for _ in range(300))
    huge += packer.flush(zlib.Z_SYNC_FLUSH)
    with SegmentWriter(path, header) as writer:
        writer._append(1, huge)
    assert path.stat().st_size < 1 << 20

    result = podium("history", "replay", str(tmp_path / "h"))

    assert result.code == 2
    assert "has a part that unpacks to more than 256 MiB" in result.err


def test_a_flipped_bit_is_said_and_is_no_success(podium: Podium, tmp_path: Path) -> None:
    long_history(tmp_path / "h")
    path = min((tmp_path / "h").iterdir())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    for command in ("replay", "judge"):
        result = podium(command, str(tmp_path / "h"))

        assert result.code == 2
        assert "000001.history is damaged after" in result.err


def test_an_end_that_is_missing_is_said(podium: Podium, tmp_path: Path) -> None:
    """The program was killed: what it wrote before is replayed."""
    recorded_history(tmp_path / "h")
    (path,) = (tmp_path / "h").iterdir()
    path.write_bytes(path.read_bytes()[:-3])

    result = podium("history", "replay", str(tmp_path / "h"))

    assert result.code == 0
    assert "it was not written to its end" in result.err


def test_verifying_nothing_is_no_success(podium: Podium, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()

    result = podium("history", "verify", str(empty))

    assert result.code == 2
    assert result.err == (f"podium: {empty}: has no scenario in it, so that nothing is verified\n")


def test_a_folder_of_empty_recordings_verifies_nothing(podium: Podium, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()

    result = podium("history", "verify", str(tmp_path))

    assert result.code == 2
    assert f"{tmp_path}: has no scenario in it, so that nothing is verified\n" in result.err


SNAPSHOT = """
apiVersion: podium/v1
kind: Snapshot
profile:
  config:
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    extenders: [{urlPrefix: "http://127.0.0.1:9/", filterVerb: filter}]
items:
- {apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: "4", pods: "9"}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: default}
  spec: {containers: [{name: a}]}
"""


@pytest.mark.parametrize("command", ["schedule", "explain", "fix"])
def test_extenders_of_a_snapshot_are_asked_only_if_told(
    podium: Podium, tmp_path: Path, command: str
) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(SNAPSHOT, "utf-8")
    arguments = [command, *(["default/web"] if command != "schedule" else []), str(file)]

    result = podium(*arguments)

    assert result.code == 2
    assert "the snapshot names extenders (http://127.0.0.1:9/)" in result.err
    assert "--ask-extenders" in result.err
    asked = podium(*arguments, "--ask-extenders")
    assert "the snapshot names extenders" not in asked.err
