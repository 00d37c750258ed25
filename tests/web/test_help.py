"""The documentation is part of the package, where the page "Help" looks for it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from podium.library.documentation import docs_folder

ROOT = Path(__file__).parents[2]


def test_a_wheel_has_the_documentation_beside_the_pages() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["force-include"]["docs"] == "podium/web/docs"
    included = build["targets"]["wheel"]["force-include"]
    assert included["examples/kube-scheduler"] == "podium/course"
    folder = docs_folder()
    assert folder is not None
    assert (ROOT / "docs" / "pages.md").read_bytes() == folder.joinpath("pages.md").read_bytes()
