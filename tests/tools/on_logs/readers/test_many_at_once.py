"""What is read many lines at a time is what is read line by line, on every fixture and on mangled ones."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.artifact import Artifact
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.plain_text import as_text, is_binary
from traindx_tools.on_logs.readers import (
    arrow_cells,
    arrow_rows,
    block_source,
    columns,
    delimited,
    head_of,
    json_blocks,
    json_records,
    line_blocks,
    line_columns,
    line_families,
    tensorboard,
    text_log,
    tfrecord,
    tfrecord_blocks,
)
from traindx_tools.on_logs.readers.line_numbers import numbers, place
from traindx_tools.on_logs.readers.lines import LineStats, read_lines
from traindx_tools.on_logs.readers.numbers import has_decimal_commas, with_points
from traindx_tools.on_logs.readers.recorder import Key, Recorder
from traindx_tools.on_logs.readers.tensorboard_beside import Beside
from traindx_tools.on_logs.run import ErrorEvent, Ints, Run
from traindx_tools.on_logs.tracebacks import read_errors
from traindx_tools.on_logs.tracebacks.parse import ErrorReading

CASES = Path(__file__).parents[3] / "evals" / "cases"
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_INSERTED = (
    b"", b"Epoch 3/10", b"Traceback (most recent call last):", b'  File "x.py", line 3, in f', b"ValueError: x",
    b"| epoch | loss |", b"# x", b"2024-13-45 99:99:99 loss 3", b"nan,inf,1", b'{"step": 007, "loss": 1}',
    b"loss 3\rloss 4", b"  acc 0.5 loss nan", b"\x1b[31mloss 2\x1b[0m", b"CUDA error: an illegal memory access",
    b"[rank1]: step 3 loss 4", "Schritt 3 Verlust 0,5 é".encode())  # fmt: skip


def _told(run: Run) -> tuple[object, ...]:
    series = [(s.name, s.original, s.group, s.rank, s.values.tobytes(), s.step.tobytes(), s.epoch.tobytes(),
               s.time.tobytes(), s.line.tobytes()) for s in run.series]  # fmt: skip
    return series, repr(run.notes), run.planned_steps, run.planned_unit, run.world_size, run.artifacts


def _line_by_line(source: Source) -> tuple[Run, tuple[ErrorEvent, ...]]:
    stats, reading = LineStats(), text_log.TextReading(source.name)
    commas = has_decimal_commas(head_of(source).text)
    for number, text in text_log.lines_of(source, stats):
        reading.line(number, with_points(text) if commas else text)
    note = f"{stats.cut} lines longer than 64 KiB were cut" if stats.cut else ""
    return reading.finish(note), read_errors(text_log.lines_of(source), source.name)


def _mangled(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(max(2, len(lines) // 20)):
        at, kind = rng.randrange(len(lines)), rng.random()
        if kind < 0.4 and lines[at]:
            i = rng.randrange(len(lines[at]))
            sign = bytes([rng.choice(b'0123456789naeE.-+ ,:|="{}[]#\r\xc3\xa9')])
            lines[at] = lines[at][:i] + sign + lines[at][i + 1:]
        elif kind < 0.6:
            lines[at] = lines[at][: rng.randint(0, len(lines[at]))]
        elif kind < 0.7 and len(lines) > 1:
            del lines[at]
        else:
            lines.insert(at, rng.choice([*_INSERTED, lines[at], rng.choice(lines)]))
    return b"\n".join(lines)


def _files(*patterns: str, most: int) -> list[Path]:
    found = sorted(p for pattern in patterns for p in CASES.glob(f"*/input/{pattern}") if p.stat().st_size < 2**20)
    return found[:: max(1, len(found) // most)]


def _variants(path: Path, count: int) -> Iterator[Source]:
    data, rng = path.read_bytes(), random.Random(path.name)
    yield Source(path.name, data=data)
    yield from (Source(path.name, data=_mangled(data, rng)) for _ in range(count))


def _same_text(source: Source) -> None:
    errors = ErrorReading(source.name)
    run = text_log.read(source, errors)
    expected, expected_errors = _line_by_line(source)
    assert _told(run) == _told(expected)
    assert errors.finish() == expected_errors


@pytest.fixture(autouse=True)
def _however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_columns, "FEWEST", 1)
    monkeypatch.setattr(line_families, "FEWEST", 1)
    monkeypatch.setattr(arrow_rows, "FEWEST", 2)
    monkeypatch.setattr(arrow_rows, "MOST_ODD", 1.0)
    monkeypatch.setattr(json_blocks, "FEWEST", 1)
    monkeypatch.setattr(arrow_cells, "FEWEST", 1)
    monkeypatch.setattr(json_blocks, "MOST_REFUSED", 10**9)
    monkeypatch.setattr(line_families, "MOST_REFUSED", 10**9)


@pytest.mark.parametrize("chunk", [300, 1 << 22])
def test_logs(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_source, "CHUNK", chunk)
    for path in _files("*.log", "*.txt", "*.out", most=12):
        for source in _variants(path, 2):
            if not is_binary(source.head):
                _same_text(source)


@pytest.mark.slow
def test_all_logs() -> None:
    for path in _files("*.log", "*.txt", "*.out", most=10_000):
        for source in _variants(path, 3):
            if not is_binary(source.head):
                _same_text(source)


def test_headings_indented_lines_words_for_numbers_and_many_shapes() -> None:
    rng = random.Random(0)
    lines = []
    for step in range(1_500):
        if step % 700 == 0:
            lines.append(f"--- Epoch {step // 700 + 1}/6 ---")
        loss = "nan" if step % 97 == 0 else repr(rng.random() * 10 ** rng.randint(-6, 3))
        lines.append(f"2026-01-02 10:{step // 60 % 60:02d}:{step % 60:02d},{step % 1000:03d} step {step} loss {loss} "
                     f"lr {rng.random():.{rng.randint(1, 20)}e}")
        if step % 5 == 0:
            lines.append(f"    grad_norm {rng.random():.3f} acc {rng.random() * 100:.2f}%")
        if step % 400 == 399:
            lines.append(f"validation: val_loss {rng.random():.4f} (epoch {step // 700 + 1})")
    data = "\n".join(lines).encode()
    _same_text(Source("a.log", data=data))
    run = text_log.read(Source("a.log", data=data))
    assert max(len(s) for s in run.series) == 1_500


_NUMBERS = st.one_of(
    st.floats(allow_nan=False).map(repr), st.integers(0, 10**25).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=6).map(lambda d: f"{d:f}"),
    st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,26})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["nan", "-inf", "Infinity", ".5", "5.", "-0.0", "9007199254740993", "0.000123456789012345678"]))


@given(st.lists(_NUMBERS, min_size=1, max_size=40))
def test_numbers_to_the_last_bit(written: list[str]) -> None:
    data = ("x" + "\nx".join(written)).encode()
    starts = np.array([0, *(i + 1 for i, c in enumerate(data) if c == 10)], np.int64)
    places = [place(1, 1 + len(w), w.encode().translate(_DIGITS)) for w in written]
    told = numbers(data, starts, [p for p in places if p is not None], [1] * len(written))
    expected = np.array([float(w) for w in written])
    assert [struct.pack("d", v) for v in told] == [struct.pack("d", v) for v in expected]


@pytest.mark.parametrize("mask", [b"", b".", b"0x0", b"e0", b"0_0", b"--0", b"0.0.0"])
def test_what_is_no_number(mask: bytes) -> None:
    assert place(0, len(mask), mask) is None


@given(st.lists(st.sampled_from([b"a1", b"b", b"\n", b"\r\n", b"\r", b"\x08\x08", b"\x1b[0m", b"\0", b"\xff",
                                 b"\xc3\xa9",
                                 b"x" * 25_000, b"12:30 step 4"]), max_size=30), st.integers(3, 50))
def test_blocks_hold_the_lines_of_a_text(parts: list[bytes], chunk: int) -> None:
    data = b"".join(parts)
    seen: list[tuple[int, str]] = []

    def block(lines: line_blocks.Block) -> None:
        at = [i for i in range(len(lines)) if lines.ends[i] > lines.starts[i]]
        grouped = sorted([i for _, places in lines.groups for i in places.tolist()] + lines.long.tolist())
        assert grouped == at
        seen.extend((lines.first + i, lines.text(i)) for i in at)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(block_source, "CHUNK", chunk * 1_000)
        line_blocks.each_block(Source("a", data=data), block, lambda number, text: seen.append((number, text)))
    text = data if is_binary(data) else as_text(data)[0]
    assert seen == list(read_lines(io.BytesIO(text), "utf-8-sig"))


def _with(module: object, name: str, value: object, read: Callable[[], Run]) -> Run:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, name, value)
        return read()


def test_tables() -> None:
    pytest.importorskip("pyarrow")
    for path in _files("*.csv", "*.tsv", most=8):
        for source in _variants(path, 4):
            if delimited.sniff(head_of(source)):
                expected = _with(arrow_rows, "_pyarrow", lambda: None, lambda s=source: delimited.read(s))  # type: ignore[misc]
                assert _told(delimited.read(source)) == _told(expected)


@pytest.mark.parametrize(("more", "expected"), [
    ("", [100]), ("100,0.25,\n101,0.5,cut", [101]), ("100,0.25,\n\n102,7\n103,0.5,\n104,0.5,\n", [101, 2])])
def test_a_plain_table_is_read_by_pyarrow(more: str, expected: list[int]) -> None:
    """A truncated last line, an empty one or one of too few cells costs the others nothing."""
    pytest.importorskip("pyarrow")
    text = "step,loss,note\n" + "".join(f"{i},{1 / (i + 1)!r},\n" for i in range(100)) + more
    calls: list[int] = []
    with pytest.MonkeyPatch.context() as patched:
        whole = columns.RowReading.rows

        def counted(self: columns.RowReading, lines: Ints, *more: Any) -> None:
            calls.append(len(lines))
            whole(self, lines, *more)

        patched.setattr(columns.RowReading, "rows", counted)
        run = delimited.read(Source("m.csv", data=text.encode()))
    assert calls == expected
    assert len(run.series[0]) == sum(expected) + more.endswith("cut")


def test_tables_with_odd_cells() -> None:
    pytest.importorskip("pyarrow")
    rng = random.Random(0)
    odd = ("nan", " 0.5", "0.5 ", "", "N/A", "1e-3", "0x1F", "+1.5", "inf", "1,5", "12%", "-", "1_0", "٣")
    for share in (0.0, 0.01, 0.3):
        rows = [f"{i},{rng.choice(odd) if rng.random() < share else rng.random()!r},{i // 9 if i % 3 else ''}"
                for i in range(400)]
        source = Source("m.csv", data=("step,loss,epoch\n" + "\n".join(rows)).encode())
        expected = _with(arrow_rows, "_pyarrow", lambda: None, lambda s=source: delimited.read(s))  # type: ignore[misc]
        assert _told(delimited.read(source)) == _told(expected)


def test_json_lines() -> None:
    for path in _files("*.jsonl", "*.json", most=12):
        for source in _variants(path, 3):
            if json_records.sniff_lines(head_of(source)):
                expected = _with(json_blocks, "FEWEST", 10**9, lambda s=source: json_records.read_lines(s))  # type: ignore[misc]
                assert _told(json_records.read_lines(source)) == _told(expected)


def test_json_that_looks_alike() -> None:
    values = ["1.5", "NaN", "-Infinity", "null", "true", "007", '"0.25"', "1e3", "[1]", "{}"] * 9
    lines = [f'{{"step": {i}, "layer{i % 3}": 0.5, "loss": {v}, "at": "run {i % 2}"}}' for i, v in enumerate(values)]
    source = Source("a.jsonl", data="\n".join(lines).encode())
    expected = _with(json_blocks, "FEWEST", 10**9, lambda: json_records.read_lines(source))
    assert _told(json_records.read_lines(source)) == _told(expected)


def _record_by_record(source: Source) -> Run:
    recorder, stats, beside = Recorder(source.name), tfrecord.RecordStats(), Beside(source.name)
    keys: dict[str, Key] = {}
    with source.open() as stream:
        for number, record in enumerate(tfrecord.records(stream, stats), 1):
            try:
                tensorboard._read_event(record, number, recorder, keys, beside)
            except (ValueError, struct.error, TypeError):
                stats.damaged += 1
    artifact = Artifact(source.name, "tensorboard", rows=len(recorder),
                                    note=tensorboard._note(stats, recorder, beside))
    return Run(series=recorder.series(), notes=tuple(beside.notes), config=beside.config, artifacts=(artifact,))


def _events(count: int) -> bytes:
    def record(data: bytes) -> bytes:
        head = struct.pack("<Q", len(data))
        return (head + struct.pack("<I", tfrecord.masked_crc(head)) + data
                + struct.pack("<I", tfrecord.masked_crc(data)))

    def sized(key: bytes, data: bytes) -> bytes:
        return key + bytes([len(data)]) + data

    made = record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2")
    for i in range(count):
        step = b"\x10" + bytes([i & 127 | 128, i >> 7]) if i > 127 else b"\x10" + bytes([i]) if i else b""
        for tag in (b"train/loss", b"val/loss", b"epoch" if i % 50 == 49 else b"lr"):
            value = sized(b"\x0a", tag) + b"\x15" + struct.pack("<f", 1 / (i + 1))
            made += record(b"\x09" + struct.pack("<d", 1.7e9 + i) + step + sized(b"\x2a", sized(b"\x0a", value)))
        if i == 60:
            made += record(b"\0" * 70_000)
    return made


@pytest.mark.parametrize("chunk", [700, 1 << 22])
def test_event_files(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfrecord_blocks, "CHUNK", chunk)
    rng, data = random.Random(0), _events(150)
    for turn in range(25):
        broken = bytearray(data)
        for _ in range(turn % 4):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        if turn % 3 == 2:
            del broken[rng.randrange(len(broken)):]
        source = Source("events.out.tfevents.1", data=bytes(broken))
        assert _told(tensorboard.read(source)) == _told(_record_by_record(source))


def test_events_of_one_scalar_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[int] = []
    monkeypatch.setattr(tensorboard, "_read_event", lambda record, number, *_: alone.append(number))
    run = tensorboard.read(Source("events.out.tfevents.1", data=_events(40)))
    assert set(alone) <= {1, 2, 3, 4}  # the version, and the three of step 0, which states none
    assert {s.original for s in run.series if len(s) >= 39} == {"train/loss", "val/loss", "lr"}
