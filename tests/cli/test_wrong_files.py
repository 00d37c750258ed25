"""Every command refuses a file that it cannot use: one sentence, which names the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Podium

DUMP = str(Path(__file__).parents[2] / "examples" / "dump.json")
#: The name of a file -> what it holds; None for a folder without files.
FILES: dict[str, bytes | None] = {
    "empty.yaml": b"",
    "text.yaml": b"hello world\n",
    "list.json": b"[1, 2, 3]\n",
    "broken.yaml": b"a: [1,\n",
    "binary.yaml": b"\x00\x01\xfe\xff" * 100,
    "folder": None,
}
#: Command lines in which FILE stands for the file.
COMMANDS = (
    "explain a FILE",
    "fix a FILE",
    "capacity a FILE",
    "compare v1.36 v1.37 FILE",
    "plan --drain a FILE",
    f"plan {DUMP} --apply FILE",
    f"plan {DUMP} --requests FILE",
    f"check {DUMP} -f FILE",
    "config check FILE",
    f"schedule {DUMP} --config FILE",
    f"schedule {DUMP} --policy FILE",
    f"schedule {DUMP} --rules FILE",
    "history replay FILE",
    "history judge FILE",
    "history verify FILE",
    "history anonymize FILE copy",
    "history import csv copy --nodes FILE --pods FILE",
    "snapshot --kubeconfig FILE --out copy.json",
    "sweep FILE",
    "bench -f FILE",
    "explain a --scheduler https://127.0.0.1:1 --certificate-authority FILE",
)
#: A token may be any text.
TOKEN = "explain a --scheduler http://127.0.0.1:1 --token-file FILE"  # noqa: S105  a flag, no secret
CASES = [
    *((command, file) for command in COMMANDS for file in (*FILES, "missing.yaml")),
    *((TOKEN, file) for file in ("empty.yaml", "binary.yaml", "folder", "missing.yaml")),
]


@pytest.mark.parametrize(("command", "file"), CASES)
def test_a_file_that_cannot_be_used(
    podium: Podium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, file: str
) -> None:
    monkeypatch.chdir(tmp_path)
    content = FILES.get(file, b"")
    if content is None:
        (tmp_path / file).mkdir()
    elif file in FILES:
        (tmp_path / file).write_bytes(content)

    result = podium(*command.replace("FILE", file).split())

    assert result.code == 2
    [sentence] = [line for line in result.err.splitlines() if "podium: note: " not in line]
    assert sentence.startswith("podium: ")
    assert "internal error" not in sentence
    assert file.partition(".")[0] in result.err
