"""Histories as files: what was written is read, wherever the file ends."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import node, pod
from podium.errors import InputError
from podium.objects.kinds.meta import Object
from podium.objects.kinds.registry import KINDS
from podium.past.format.deltas import changed, changed_fields, delta, with_fields
from podium.past.format.frames import SegmentReader
from podium.past.format.reading import History, ObjectChange, SegmentStart, Torn, decided_pod
from podium.past.format.records import Checkpoint, Decided, FieldsChanged, Put
from podium.past.format.writing import HistoryWriter, Limits
from random_clusters import ALL_EXTREMES, node_like, pod_like

NO_PAST = Checkpoint(9.0, msgspec.Raw(b"\x90"), [], {}, {}, [], [])


def decided(number: int) -> Decided:
    return Decided(float(number), f"default/p{number}", f"u{number}", 1, "s", "n1", number)


def contents(path: Path) -> list[ObjectChange | Decided]:
    return [each for each in History(path).entries() if isinstance(each, ObjectChange | Decided)]


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_an_object_follows_from_the_one_before_and_its_delta(data: st.DataObject) -> None:
    for kind, like in (("Pod", pod_like), ("Node", node_like)):
        old, new = data.draw(like("one", ALL_EXTREMES)), data.draw(like("one", ALL_EXTREMES))

        packed = msgspec.msgpack.encode(delta(old, new))
        whole = KINDS[kind].packed_decoder.decode(msgspec.msgpack.encode(new))

        assert changed(old, msgspec.msgpack.decode(packed)) == new
        assert whole == new
        assert delta(new, whole) == {}


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_a_pod_follows_from_the_one_before_and_the_fields_that_changed(
    data: st.DataObject,
) -> None:
    old, other = data.draw(pod_like("one", ALL_EXTREMES)), data.draw(pod_like("one", ALL_EXTREMES))
    again = replace(old.metadata, resource_version="another")
    for new in (other, old, replace(old, metadata=again), replace(old, spec=other.spec)):
        fields = changed_fields(old, new)
        packed = msgspec.msgpack.encode(FieldsChanged(1.0, "Pod", "one", fields))
        read = msgspec.msgpack.decode(packed, type=FieldsChanged)

        assert set(fields) == {
            name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)
        }
        assert with_fields(old, read.fields) == new


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_a_decision_about_an_earlier_version_of_a_pod_is_read(data: st.DataObject) -> None:
    about = data.draw(pod_like("p1", ALL_EXTREMES))
    with TemporaryDirectory() as folder:
        with HistoryWriter(folder) as writer:
            writer.write(replace(decided(1), object=about))
        [read] = contents(Path(folder))

    assert isinstance(read, Decided)
    assert read.object is not None
    assert decided_pod(read.object) == about


@given(st.data())
@settings(deadline=None, max_examples=40)
def test_what_is_written_is_read(data: st.DataObject) -> None:
    """A random sequence of changes, decisions and flushes."""
    known: dict[str, Object] = {}
    expected: list[ObjectChange | Decided] = []
    with TemporaryDirectory() as folder:
        with HistoryWriter(folder, limits=Limits(batch_records=3)) as writer:
            for step in range(data.draw(st.integers(1, 25))):
                act = data.draw(st.sampled_from(["put", "put", "put", "drop", "decide", "flush"]))
                if act == "put":
                    name = data.draw(st.sampled_from("abc"))
                    new = data.draw(pod_like(name, ALL_EXTREMES))
                    old = known.get(new.key)
                    writer.change(step, "Pod", old, new)
                    known[new.key] = new
                    expected.append(ObjectChange(float(step), "Pod", old, new))
                elif act == "drop" and known:
                    gone = known.pop(min(known))
                    writer.change(step, "Pod", gone, None)
                    expected.append(ObjectChange(float(step), "Pod", gone, None))
                elif act == "decide":
                    writer.write(decided(step))
                    expected.append(decided(step))
                else:
                    writer.flush()

        assert contents(Path(folder)) == expected


def written(folder: Path, count: int) -> list[ObjectChange | Decided]:
    """A history of some nodes, pods and decisions, in frames of a few records."""
    with HistoryWriter(folder, limits=Limits(batch_records=4)) as writer:
        for number in range(count):
            writer.change(number, "Node", None, node(f"n{number}"))
            writer.change(number, "Pod", None, pod(f"p{number}"))
            writer.change(number, "Pod", pod(f"p{number}"), pod(f"p{number}", node=f"n{number}"))
            writer.write(decided(number))
    return contents(folder)


def test_a_file_cut_at_any_byte_is_read_up_to_its_last_whole_frame(tmp_path: Path) -> None:
    whole = written(tmp_path, 6)
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    ends = []  # how many entries are readable at each length
    for length in range(len(data)):
        file.write_bytes(data[:length])
        with SegmentReader(file) as reader:
            has_header = bool(reader.header)
        if not has_header:
            with pytest.raises(InputError, match="has no whole record in it"):
                History(tmp_path)
            ends.append(0)
            continue
        found = contents(tmp_path)
        assert found == whole[: len(found)]
        torn = [each for each in History(tmp_path).entries() if isinstance(each, Torn)]
        ends.append(len(found))
        assert len(torn) == (length != boundary(data, length))
    assert len(whole) == 24
    assert ends == sorted(ends)
    assert set(ends) == set(range(0, 24, 4))


def boundary(data: bytes, length: int) -> int:
    """The end of the last whole frame within the first bytes."""
    position = len(b"podium history 1\n")
    while True:
        end = position + 9 + int.from_bytes(data[position : position + 4], "little")
        if end > length or position == len(data):
            return position
        position = end


def test_a_changed_byte_ends_what_is_read(tmp_path: Path) -> None:
    whole = written(tmp_path, 4)
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    first = boundary(data, len(data) // 3)
    for place in range(first, len(data)):
        file.write_bytes(data[:place] + bytes((data[place] ^ 0x55,)) + data[place + 1 :])

        found = contents(tmp_path)

        assert found == whole[: len(found)]
        assert len(found) < len(whole)


def test_each_run_writes_a_segment_of_its_own(tmp_path: Path) -> None:
    first = written(tmp_path, 1)
    both = written(tmp_path, 2)

    starts = [each for each in History(tmp_path).entries() if isinstance(each, SegmentStart)]

    assert both[: len(first)] == first
    assert [start.header["segment"] for start in starts] == [1, 2]
    assert all(start.empty for start in starts)
    assert contents(min(tmp_path.iterdir())) == first


def rotated(folder: Path, **limits: float) -> HistoryWriter:
    """Ten segments; each begins with a checkpoint of a node."""
    limit = Limits(segment_records=4, batch_records=2, **limits)  # type: ignore[arg-type]
    writer = HistoryWriter(folder, {"who": "me"}, limits=limit)
    for number in range(38):
        if writer.wants_checkpoint:
            writer.start_segment([writer.put_record(number, "Node", node("n")), NO_PAST])
        writer.write(decided(number))
    writer.close()
    return writer


def test_a_long_segment_is_followed_by_one_with_a_checkpoint(tmp_path: Path) -> None:
    rotated(tmp_path)

    history = History(tmp_path)
    entries = list(history.entries())

    assert [each.digest for each in history.decisions()] == list(range(38))
    assert len(history.segments) > 3
    starts = [i for i, each in enumerate(entries) if isinstance(each, SegmentStart)]
    for start in starts[1:]:
        begins, item, checkpoint = entries[start : start + 3]
        assert isinstance(begins, SegmentStart)
        assert begins.header["who"] == "me"
        assert not begins.empty
        assert isinstance(item, ObjectChange)
        assert item.old is None
        assert checkpoint == NO_PAST


def test_a_checkpoint_costs_a_quarter_of_what_follows_it_at_most(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path, limits=Limits(segment_records=1, batch_records=1))
    writer.start_segment([NO_PAST] * 10)
    wanted = []
    for number in range(40):
        writer.write(decided(number))
        wanted.append(writer.wants_checkpoint)
    writer.close()

    assert wanted == [False] * 39 + [True]


@pytest.mark.parametrize(
    ("limits", "first"), [({"total_bytes": 900}, 1), ({"age_seconds": -10.0}, 36)]
)
def test_the_oldest_segments_are_deleted(
    tmp_path: Path, limits: dict[str, float], first: int
) -> None:
    rotated(tmp_path, **limits)

    digests = [each.digest for each in History(tmp_path).decisions()]

    assert digests == list(range(digests[0], 38))
    assert digests[0] >= first
    if "total_bytes" in limits:
        sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
        # The last segment grew after the others were deleted.
        assert sum(sizes[:-1]) <= limits["total_bytes"]


def test_a_segment_without_its_whole_checkpoint_says_nothing(tmp_path: Path) -> None:
    rotated(tmp_path)
    last = max(tmp_path.iterdir())
    with SegmentReader(last) as reader:
        header = reader.read
    last.write_bytes(last.read_bytes()[: header + 20])

    entries = list(History(tmp_path).entries())

    assert isinstance(entries[-1], Torn)
    assert not isinstance(entries[-2], ObjectChange | SegmentStart)


def test_annotations_that_no_rule_reads_are_left_out(tmp_path: Path) -> None:
    secret, own = "kubectl.kubernetes.io/last-applied-configuration", "example.com/gpu"
    item = node("n", annotations={secret: "password", own: "1"})
    with HistoryWriter(tmp_path, annotations=frozenset({own})) as writer:
        writer.change(1.0, "Node", None, item)
        writer.change(2.0, "Node", item, node("n", annotations={secret: "other", own: "2"}))

    found = contents(tmp_path)

    assert [each.new.metadata.annotations for each in found] == [{own: "1"}, {own: "2"}]  # type: ignore[union-attr]
    records = [each for each in History(tmp_path).records() if isinstance(each, Put)]
    assert b"password" not in bytes(records[0].object)


def text_file(folder: Path) -> Path:
    (folder / "a.txt").write_text("hello, this is a text")
    return folder / "a.txt"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda path: path / "none", "cannot be read: no such file", id="missing"),
        pytest.param(lambda path: path, "has no history in it", id="an empty folder"),
        pytest.param(text_file, "is no history", id="another file"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, make: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        History(make(tmp_path))  # type: ignore[operator]


def test_where_no_file_can_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(InputError, match="no history can be written"):
        HistoryWriter(tmp_path / "file" / "folder")
