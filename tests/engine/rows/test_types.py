"""The type checker refuses rules that mix the numbers of two forms of rows.

Each case is a rule as its author might write it, checked by mypy with the project's configuration.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

RIGHT = """
from podium.engine.framework.rule import BitFilter
from podium.engine.rows.rows import Ints, K, Rows
from podium.engine.state.pod_class import Incoming


class Roomy(BitFilter):
    name = "Roomy"

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        {body}
"""

CASES = {
    "an expression over the rows": ("return (at.pod_count() + 1 > at.allowed_pods()) * 1", ""),
    "a plain number where a number of each row is wanted": ("return 0", "return-value"),
    "an array among numbers of any form": (
        "import numpy as np\n        return at.pod_count() + np.arange(3)",
        "operator",
    ),
    "numbers of one row among those of any form": (
        (
            "from podium.engine.rows.rows import OneRow\n"
            "        return at.pod_count() + OneRow(at.view, 0).row * at.has_label('a')"
        ),
        "operator",
    ),
    "the index that only many rows have": ("return at.index * 1", "attr-defined"),
    "a negation that is wrong for plain flags": ("return ~at.has_label('a') * 1", "operator"),
}


def test_mixing_forms_of_rows_is_a_type_error(tmp_path: Path) -> None:
    for number, (body, _) in enumerate(CASES.values()):
        (tmp_path / f"case_{number}.py").write_text(RIGHT.format(body=body), "utf-8")

    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    for number, (what, (_, error)) in enumerate(CASES.items()):
        told = [line for line in run.stdout.splitlines() if f"case_{number}.py" in line]
        found = any(f"[{error}]" in line for line in told) if error else not told
        assert found, f"{what}: {told or run.stdout[-500:] + run.stderr[-500:]}"
