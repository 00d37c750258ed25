"""`docs/parity.md` is what `benchmarks/parity.py` writes about the recordings in the tree."""

from __future__ import annotations

import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from podium.releases import RELEASES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "parity.md").read_text("utf-8")


@pytest.fixture(scope="module")
def parity() -> ModuleType:
    spec = spec_from_file_location("parity", ROOT / "benchmarks" / "parity.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["parity"] = module
    spec.loader.exec_module(module)
    return module


def test_the_page_is_about_the_recordings_in_the_tree(parity: ModuleType) -> None:
    date = re.search(r"Written by that command on (\d{4}-\d\d-\d\d)\.", PAGE)
    assert date is not None

    assert parity.page(parity.recorded(), parity.sources(), date[1]) == PAGE, "run `make parity`"


def test_every_release_has_its_recordings(parity: ModuleType) -> None:
    about = parity.sources()

    assert set(about) == {release.name for release in RELEASES}
    for name, source in about.items():
        assert [version.startswith(f"{name}.") for version in source.versions] == [True]


def test_the_readme_has_the_number_of_attempts(parity: ModuleType) -> None:
    steps = sum(each.steps for each in parity.recorded())
    section = (ROOT / "README.md").read_text("utf-8").partition("## How exact it is\n")[2]

    assert section.strip().startswith("[docs/parity.md](docs/parity.md)")
    assert f"{steps:,} attempts" in section.partition("\n## ")[0]


def test_differences_are_told(parity: ModuleType) -> None:
    first, *others = parity.recorded()

    text = parity.page([first._replace(differences=3), *others], parity.sources(), "2026-01-01")

    assert "3 differences were found." in text
    assert f"| {first.folder}, {first.name} | {first.scenarios} | {first.steps} | 3 |" in text
    assert "No difference was found." not in text


def test_what_is_counted_is_what_is_replayed(parity: ModuleType) -> None:
    folder = ROOT / "tests" / "golden" / "v1.34-devices"

    assert parity.verified(folder) == parity.recorded(folder)
