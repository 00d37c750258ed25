"""The environment for Gymnasium, and figures of rule files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

import podium
from builders import node, pod
from podium.errors import PodiumError
from podium_research import Trace, TraceNode, TracePod
from podium_research.sweeps.placement_env import INVALID_REWARD, PlacementEnv
from podium_research.sweeps.runs import evaluate_rules


def trace(pods: int = 12) -> Trace:
    nodes = [TraceNode(node(name, cpu=cpu)) for name, cpu in (("a", "4"), ("b", "2"))]
    waiting = [
        TracePod(pod(f"p{number}", requests={"cpu": str(1 + number % 2)}), float(number))
        for number in range(pods)
    ]
    return Trace("small", tuple(nodes), tuple(waiting))


def environment(**more: object) -> PlacementEnv:
    return PlacementEnv(trace(), podium.default_profile(), **more)  # type: ignore[arg-type]


def episode(env: PlacementEnv, seed: int) -> tuple[list[int], float]:
    """The actions of an agent that takes the first valid node, and the return."""
    _, info = env.reset(seed=seed)
    actions, total, done = [], 0.0, False
    while not done:
        action = int(np.argmax(info["action_mask"]))
        actions.append(action)
        _, reward, done, _, info = env.step(np.int64(action))
        total += float(reward)
    return actions, total


@pytest.mark.filterwarnings("ignore::UserWarning")  # that it was not made by its name
def test_it_passes_the_checker_of_gymnasium() -> None:
    check_env(environment(), skip_render_check=True)


def test_equal_seeds_have_equal_episodes() -> None:
    env = environment()

    assert episode(env, 3) == episode(env, 3)
    assert len({tuple(episode(env, seed)[0]) for seed in range(6)}) > 1


def test_nodes_without_room_are_masked_and_an_invalid_action_costs() -> None:
    env = environment(shuffled=False)
    _, info = env.reset(seed=0)
    b = env._position["b"]
    for _ in range(2):
        assert info["action_mask"][b] == 1
        _, _, _, _, info = env.step(np.int64(b))
        if not info["action_mask"][b]:
            break

    assert info["action_mask"][b] == 0
    _, reward, _, _, after = env.step(np.int64(b))
    assert reward == INVALID_REWARD
    assert after["unplaced"] == info["unplaced"] + 1


def test_the_return_is_the_allocated_share() -> None:
    env = environment(resources=("cpu",))
    _, total = episode(env, 1)
    used = env._simulation.cache.columns.pods.requested[0][env._order].sum()

    assert total == pytest.approx(used / 6000)
    assert total > 0.8


def test_what_is_observed_follows_the_placements() -> None:
    env = environment(resources=("cpu",), shuffled=False)
    before, info = env.reset(seed=0)
    after, *_ = env.step(np.int64(int(np.argmax(info["action_mask"]))))

    assert before["nodes"][:, 0].tolist() == [1.0, 1.0]
    assert after["nodes"][:, 0].min() < 1.0
    assert after["left"][0] < before["left"][0]


def test_several_run_at_once() -> None:
    with_two = SyncVectorEnv([environment, environment])
    seen, info = with_two.reset(seed=5)

    assert seen["nodes"].shape == (2, 2, 5)
    assert info["action_mask"].shape == (2, 2)
    with_two.close()


RULE = """
from podium.rules import priority

@priority("Pack", depends="node")
def pack(pod, node):
    return {score}
"""


def test_a_file_of_rules_has_figures(tmp_path: Path) -> None:
    file = tmp_path / "pack.py"
    file.write_text(RULE.format(score='10 if node.name == "b" else 0'))

    found = evaluate_rules(str(file), trace(), seeds=(0, 1))

    assert 0 < found["placed"] < 12
    assert found == evaluate_rules(str(file), trace(), seeds=(0, 1))
    file.write_text("def (:\n")
    with pytest.raises(PodiumError, match=r"pack\.py"):
        evaluate_rules(str(file), trace())
