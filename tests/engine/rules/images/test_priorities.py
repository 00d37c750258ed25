"""v1.13 ImageLocalityPriority: names, sizes, spread, and the history of image sizes."""

from __future__ import annotations

import pytest

from builders import (
    container,
    node,
    pod,
    profile,
    scored,
    simulation,
    view,
)
from podium.cluster.cache.columns import Columns
from podium.engine.rules.images import ImageLocalityPriority, tagged
from podium.objects.kinds.node import Node

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "nginx:latest"),
        ("nginx:1", "nginx:1"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"),
        ("a/b@sha256:0", "a/b@sha256:0"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, name: str) -> None:
    assert tagged(image) == name


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(46, 0, id="below the least: half of 46 MiB is 23"),
        pytest.param(250, 1, id="the worked value"),
        pytest.param(2000, 10, id="the most"),
        pytest.param(9000, 10, id="more than the most"),
    ],
)
def test_image_sizes(size: int, expected: int) -> None:
    columns = view(node("a", images={"i:1": size * MEBIBYTE}), node("b"))

    assert scored(ImageLocalityPriority(), pod(image="i:1"), columns) == {"a": expected, "b": 0}


def test_containers_count_each_and_init_containers_not() -> None:
    columns = view(node("a", images={"i:latest": 250 * MEBIBYTE}), node("b"))
    rule = ImageLocalityPriority()
    twice = pod(containers=[container(image="i"), container(image="i:latest")])

    assert scored(rule, twice, columns)["a"] == 10 * (250 - 23) // 977
    assert scored(rule, pod(init=[container(image="i")]), columns)["a"] == 0


class TestImageHistory:
    """A node remembers how many nodes held an image when it was itself last updated."""

    def scores(self, made: object, **options: object) -> dict[str, int]:
        return scored(ImageLocalityPriority(), pod(image="i:1"), made, **options)  # type: ignore[arg-type]

    def holding(self, name: str, size: int = 900) -> Node:
        return node(name, images={"i:1": size * MEBIBYTE})

    def listed(self) -> Columns:
        """Three nodes that hold the image, as after the first list of the scheduler."""
        columns = view()
        for name in "abc":
            columns.put_node(self.holding(name))
        return columns

    def test_nodes_that_came_later_know_of_more(self) -> None:
        columns = self.listed()

        expected = [10 * (900 * known // 3 - 23) // 977 for known in (1, 2, 3)]
        assert list(self.scores(columns).values()) == expected == [2, 5, 8]

    def test_an_update_refreshes_the_count(self) -> None:
        columns = self.listed()

        columns.put_node(self.holding("a"))

        assert self.scores(columns) == {"a": 8, "b": 5, "c": 8}

    def test_a_node_that_leaves_is_still_remembered(self) -> None:
        columns = self.listed()

        columns.drop_node("b")

        # Two nodes now; c still believes in three holders.
        assert self.scores(columns) == {"a": 10 * (450 - 23) // 977, "c": 10}

    def test_the_first_size_counts_until_no_node_has_the_image(self) -> None:
        columns = view(self.holding("a", 100), self.holding("b", 900))
        assert self.scores(columns) == {"a": 0, "b": 0}

        columns.drop_node("a")
        columns.put_node(self.holding("c", 900))
        # The size is still the one that a reported.
        assert self.scores(columns) == {"b": 0, "c": 0}

        columns.put_node(node("b"))
        columns.put_node(node("c"))
        columns.put_node(self.holding("c", 900))
        assert self.scores(columns) == {"b": 0, "c": 10 * (450 - 23) // 977}

    def test_all_names_of_an_image_count(self) -> None:
        columns = view(node("a", images={"i:1": 900 * MEBIBYTE, "other:1": 900 * MEBIBYTE}))

        assert self.scores(columns) == {"a": 8}

    def test_placing_pods_refreshes_nothing(self) -> None:
        made = simulation(
            *(self.holding(name) for name in "abc"),
            profile=profile(priorities=[ImageLocalityPriority()]),
        )
        before = self.scores(made.cache.columns)

        list(made.run([pod("x", image="i:1"), pod("y", image="i:1")]))

        assert self.scores(made.cache.columns) == before


STRANGER = pod("stranger", node="ghost")


def test_an_unknown_node_dilutes_the_spread_of_images() -> None:
    mebibyte = 1 << 20
    wide = [node("a", images={"i:1": 500 * mebibyte}), node("b")]

    two = scored(ImageLocalityPriority(), pod(image="i:1"), view(*wide))
    three = scored(ImageLocalityPriority(), pod(image="i:1"), view(*wide, STRANGER))

    assert two["a"] == 10 * (250 - 23) // 977
    assert three["a"] == 10 * (166 - 23) // 977
