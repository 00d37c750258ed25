"""Results as columns."""

from __future__ import annotations

import numpy as np
import pytest

import podium
from podium.library.frames import frame


def test_a_decision_has_a_row_for_each_node() -> None:
    objects = podium.read(["examples/dump.json"])
    found = podium.explain(objects, "api-5d4f8c7b6-w4m9t", podium.default_profile())

    columns = frame(found.decision)

    assert {len(column) for column in columns.values()} == {3}
    rows = dict(zip(columns["node"], columns["total"], strict=True))
    assert rows == {"worker-1": 528, "worker-2": 602, "worker-3": 376}
    assert columns["node"][columns["chosen"]].tolist() == ["worker-2"]


def test_nodes_that_do_not_fit_have_reasons_and_no_score() -> None:
    objects = podium.read(["examples/dump.json"])
    found = podium.explain(objects, "warehouse-0", podium.default_profile())

    columns = frame(found.decision)

    assert not columns["fits"].any()
    assert all("Insufficient" in reasons for reasons in columns["reasons"])


def test_steps_and_plans_have_columns() -> None:
    objects = podium.read(["examples/dump.json"])
    steps = frame(podium.simulate(objects, podium.default_profile()))
    assert steps["node"].tolist() == ["worker-2", ""]
    assert "Insufficient" in steps["message"][1]

    plan = frame(podium.Plan())
    assert {len(column) for column in plan.values()} == {0}
    assert all(isinstance(column, np.ndarray) for column in plan.values())


def test_other_things_have_none() -> None:
    with pytest.raises(TypeError, match="int has no columns"):
        frame(3)
