"""Streams as whole lines, and work on the next ones in threads."""

from __future__ import annotations

import io
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.readers import block_source
from traindx_tools.on_logs.readers.block_source import chunks, worked_ahead
from traindx_tools.on_logs.readers.line_blocks import Block, each_block


def _lines(seed: int) -> bytes:
    rng = random.Random(seed)
    longest = rng.choice((5, 80, 6_000))
    return b"".join(b"x" * rng.randint(0, longest) + b"\n" for _ in range(300)) + rng.choice((b"", b"no end"))


@pytest.mark.parametrize("seed", range(8))
def test_a_file_is_whole_lines(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "CHUNK", 3_000)
    data = _lines(seed)
    (tmp_path / "a.log").write_bytes(data)
    for stream in ((tmp_path / "a.log").open("rb"), io.BytesIO(data)):
        with stream:
            found = list(chunks(stream))
        assert b"".join(found) == data
        assert all(part.endswith(b"\n") for part in found[:-1])


def test_the_stream_stands_behind_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "CHUNK", 1_000)
    data = _lines(1)
    (tmp_path / "a.log").write_bytes(data)
    with (tmp_path / "a.log").open("rb") as stream:
        first = next(chunks(stream))
        assert first + stream.read() == data


def test_a_file_that_shrinks_meanwhile_ends_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "CHUNK", 1_000)
    path = tmp_path / "a.log"
    path.write_bytes(b"step 1 loss 2\n" * 1_000)
    with path.open("rb") as stream:
        parts = chunks(stream)
        next(parts)
        path.write_bytes(b"")
        assert list(parts) == []


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_items_come_in_order_and_worked_upon(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "_cores", lambda: cores)
    done: list[int] = []
    seen = []
    for item in worked_ahead(iter(range(40)), done.append):
        assert item in done or item == 0 or cores == 1
        seen.append(item)
    assert seen == list(range(40))
    assert threading.active_count() < 8 + 3


def test_what_goes_wrong_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "_cores", lambda: 2)

    def work(item: int) -> None:
        if item == 5:
            raise ZeroDivisionError

    def items() -> Iterator[int]:
        yield from range(20)

    with pytest.raises(ZeroDivisionError):
        list(worked_ahead(items(), work))


def test_what_goes_wrong_while_reading_is_raised_behind_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "_cores", lambda: 2)

    def items() -> Iterator[int]:
        yield from range(9)
        raise OSError("gone")

    ahead = worked_ahead(items(), lambda _: None)
    assert [next(ahead) for _ in range(9)] == list(range(9))
    with pytest.raises(OSError, match="gone"):
        next(ahead)


def test_who_takes_no_more_ends_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "_cores", lambda: 2)
    before, read = threading.active_count(), []
    items = worked_ahead(iter(range(1_000)), read.append)
    assert [next(items), next(items), next(items)] == [0, 1, 2]
    items.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
    assert len(read) < 12


@pytest.mark.parametrize("cores", [1, 3])
def test_lines_are_numbered_also_where_blocks_are_worked_ahead(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "_cores", lambda: cores)
    monkeypatch.setattr(block_source, "CHUNK", 500)
    data = b"".join(b"%d\n" % i for i in range(1, 2_000)) + b"long " * 30_000 + b"\n" + b"last\n"
    told: list[tuple[int, str]] = []

    def block(lines: Block) -> None:
        told.extend((lines.first + at, lines.text(at)) for at in range(len(lines)))

    each_block(Source("a", data=data), block, lambda number, text: told.append((number, text[:4])),
               ahead=lambda lines: None)
    assert told[:1_999] == [(i, str(i)) for i in range(1, 2_000)]
    assert told[-1] == (2_001, "last")
