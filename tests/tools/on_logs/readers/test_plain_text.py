"""Logs with zeros in them, in two encodings one after the other, or in one without a mark; and what is no text."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import sqlite3
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools import extract_training_metrics
from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import plain_text
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.encoding import encoding_of
from traindx_tools.on_logs.plain_text import PlainText, as_text, is_binary
from traindx_tools.on_logs.readers.text_log import lines_of
from traindx_tools.on_logs.reading import read_run

FIRST = "".join(f"step {i} loss {2 / (1 + i):.4f}\n" for i in range(40))
LATER = "".join(f"step {i} loss {2 / (1 + i):.4f}\n" for i in range(40, 80))
TEXT = (FIRST + LATER).encode()
WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
WRITTEN = {
    "a zero at each end": TEXT.replace(b"\n", b"\0\n"),
    "a zero at each beginning": TEXT.replace(b"step", b"\0step"),
    "zeros between words": TEXT.replace(b" loss", b"\0loss"),
    **{name: TEXT.decode().encode(name) for name in (*WIDE, "utf-16", "utf-32")},
    **{f"UTF-8, then {name}": FIRST.encode() + LATER.encode(name) for name in (*WIDE, "utf-16")},
    **{f"{name}, then UTF-8": FIRST.encode(name) + LATER.encode() for name in (*WIDE, "utf-16")},
    "three times": FIRST.encode() + LATER[:600].encode("utf-16-le") + LATER[600:].encode(),
    "a hole first": bytes(200_000) + TEXT,
    "a hole first, UTF-16 behind it": bytes(70_000) + TEXT.decode().encode("utf-16-le"),
    "a hole between lines": FIRST.encode() + bytes(3_000_001) + LATER.encode(),
    "a hole and another encoding": FIRST.encode() + bytes(999) + LATER.encode("utf-16-le"),
    "made longer than it is": TEXT + bytes(100_000),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("packed", [False, True])
def test_it_reads_as_the_plain_text_does(name: str, packed: bool, tmp_path: Path) -> None:
    (tmp_path / "plain.log").write_bytes(TEXT)
    path = tmp_path / f"a.log{'.gz' * packed}"
    path.write_bytes(gzip.compress(WRITTEN[name]) if packed else WRITTEN[name])
    run = read_run([str(path)])
    (loss,), (plain,) = run.series, read_run([str(tmp_path / "plain.log")]).series
    assert [*map(list, (loss.values, loss.step, loss.line))] == [*map(list, (plain.values, plain.step, plain.line))]
    assert ("bytes of zeros at one place: what was written there is lost" in run.artifacts[0].note) == ("hole" in name)


def test_a_hole_in_a_line_does_not_join_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(FIRST[:-6].encode() + bytes(5_000) + LATER.encode())
    (loss,) = read_run([str(path)]).series
    assert (loss.step.tolist(), loss.line.tolist()[-1]) == (list(range(80)), 79)


@pytest.mark.parametrize("words", [("шаг", "потери"), ("步", "损失")])
@pytest.mark.parametrize("encoding", WIDE)
def test_other_scripts_without_a_mark(words: tuple[str, str], encoding: str, tmp_path: Path) -> None:
    text = "".join(f"{words[0]} {i}: {words[1]} {2 / (1 + i):.4f}\n" for i in range(50))
    (tmp_path / "a.log").write_bytes(text.encode(encoding))
    (tmp_path / "b.log").write_bytes(text.encode())
    read, plain = (extract_training_metrics(str(tmp_path / name)) for name in ("a.log", "b.log"))
    assert encoding_of(text.encode(encoding)) == encoding
    assert [s.values.tolist() for s in read.series] == [s.values.tolist() for s in plain.series] != []


def test_tables_and_records_too(tmp_path: Path) -> None:
    rows = "".join(f"{i},{2 / (1 + i)!r}\n" for i in range(50))
    records = "".join(f'{{"step": {i}, "loss": {2 / (1 + i)!r}}}\n' for i in range(50))
    for name, text in (("a.csv", "step,loss\n" + rows), ("a.jsonl", records)):
        for written in (text.encode("utf-16-le"), text.replace("\n", "\0\n").encode(),
                        bytes(100_000) + text.encode(), text[:500].encode() + text[500:].encode("utf-16")):
            (tmp_path / name).write_bytes(written)
            found = {s.name: s.values.tolist() for s in extract_training_metrics(str(tmp_path / name)).series}
            assert found.get("loss") == [2 / (1 + i) for i in range(50)], (name, written[:20])


def _numbers() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    normal, printable = rng.normal(size=5_000), rng.integers(32, 127, 5_000)
    return {
        "int64, printable": printable.astype("<i8").tobytes(), "int32, printable": printable.astype("<i4").tobytes(),
        "uint16, printable": printable.astype("<u2").tobytes(), "int64, to 126": rng.integers(9, 127, 5_000).tobytes(),
        "float32": normal.astype("<f4").tobytes(), "float16": normal.astype("<f2").tobytes(),
        "float64": normal.tobytes(), "ones": np.ones(5_000, "<f4").tobytes(),
        "bfloat16": (normal.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes(),
        "sound": (300 * normal).astype("<i2").tobytes(), "ids": rng.integers(0, 50_000, 9_000).astype("<u2").tobytes(),
        "names": np.array([f"name{i}" for i in range(3_000)], "S16").tobytes(),
        "pickle": pickle.dumps([f"word{i}" for i in range(3_000)]),
        "picture": b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 64, 64) + rng.bytes(4_000),
    }


NUMBERS = _numbers()


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("before", [0, 70_000])
def test_numbers_are_no_text(name: str, before: int, tmp_path: Path) -> None:
    assert is_binary(bytes(before) + NUMBERS[name])
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(before) + NUMBERS[name])
    with pytest.raises(UnreadableInput, match="refused"):
        read_run([str(path)])


def test_a_database_is_no_text(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as base:
        base.execute("create table t (name text, loss real)")
        base.executemany("insert into t values (?, ?)", [(f"step {i}", i / 7) for i in range(500)])
    assert is_binary((tmp_path / "a.db").read_bytes())


PARTS = st.lists(st.one_of(
    st.sampled_from([FIRST.encode(), FIRST.encode("utf-16-le"), FIRST.encode("utf-32-be"), bytes(700), b"\n", b"\0",
                     b"step 1\0 loss 2\n", b"\xff\xfe", "步 1 损失 2\n".encode("utf-16-be"), b"no end"]),
    st.binary(max_size=40)), max_size=8)


@given(PARTS, st.integers(1_000, 9_000), st.integers(1, 700))
def test_any_bytes_in_any_pieces(parts: list[bytes], chunk: int, size: int) -> None:
    """Nothing raises or stalls; and what is read does not depend on how much of it is asked for at once."""
    data = b"".join(parts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plain_text, "CHUNK", chunk)
        whole = PlainText(io.BytesIO(data), data).read()
        pieces, lines = PlainText(io.BytesIO(data), data), PlainText(io.BytesIO(data), data)
        assert b"".join(iter(lambda: pieces.read(size), b"")) == whole == b"".join(lines)
    if b"\0" not in data and encoding_of(data) == "utf-8-sig":
        assert whole == data == as_text(data)[0]


@given(st.lists(st.sampled_from([FIRST, LATER, "loss 3\n"]), min_size=1, max_size=6),
       st.sampled_from(WIDE), st.booleans())
def test_by_turns(texts: list[str], encoding: str, wide_first: bool) -> None:
    data = b"".join(t.encode(encoding if (i + wide_first) % 2 else "utf-8") for i, t in enumerate(texts))
    assert as_text(data)[0].decode() == "".join(texts)


ADDED = {"English": "step 5 loss 0.25 done", "German": "Größe 3 über 0.25"}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("times", [1, 3, 40])
@pytest.mark.parametrize("language", ADDED)
@pytest.mark.parametrize(("glued", "unended"), [(False, False), (True, False), (False, True), (True, True)])
def test_no_word_is_lost_where_another_encoding_begins_or_ends_within_a_line(
        encoding: str, ends: str, times: int, language: str, glued: bool, unended: bool) -> None:
    first = f"line über step 1 loss 3.0 {'glued ' if glued else ends}"
    added = ends.join([ADDED[language]] * times) + ("" if unended else ends)
    last = f"step 9 loss 0.1 last größe{ends}"
    told = " ".join(t for _, t in lines_of(Source("a.log", data=first.encode() + added.encode(encoding)
                                                  + last.encode() * 3)))
    assert "".join(re.findall(r"\w+", told)) == "".join(re.findall(r"\w+", first + added + last * 3))


@pytest.mark.parametrize("text", ["轮次 3 损失 0.25 完成\n", "损失上升 0.25 上一次\n", "эпоха 3 потери 0.25\n"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_letters_that_hold_the_byte_of_a_line_end_are_no_end(text: str, encoding: str) -> None:
    assert [t for _, t in lines_of(Source("a.log", data=(text * 5).encode(encoding)))] == [text[:-1]] * 5
