"""Pages about the library are programs: every block runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import podium
from test_examples import pattern

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / name for name in ("library.md", "fit.md")]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line, code and output of each block."""
    text = page.read_text("utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield line, match["code"], match["output"] or ""


@pytest.fixture
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that looks like the project but may be written to."""
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_project")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_prints_what_the_page_says(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for line, code, expected in blocks(page):
        # Errors name the line of the page.
        program = compile("\n" * (line - 1) + code, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, names)  # noqa: S102  that is what the page is for
        said = printed.getvalue()
        assert pattern(expected.splitlines()).fullmatch(said), f"{page.name}:{line}\n{said}"


def test_every_public_name_is_in_a_block() -> None:
    code = "\n".join(code for page in PAGES for _, code, _ in blocks(page))
    used = set(re.findall(r"\bpodium\.(\w+)", code))

    assert set(podium.__all__) <= used
    assert used <= {*podium.__all__, "rules"}
