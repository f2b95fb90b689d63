"""Sequences bucketed by length in formats whose fields are bytes or arrays: their sizes are no measured values."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_making import example, framed, mds_shard, member

from traindx_tools.on_data.examination import examine

Rows = list[dict[str, Any]]
FIELDS = ("input_ids", "attention_mask", "labels")


def lengths(kind: str, shard: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Stored and real lengths: sorted over the shards; one full bucket; each shard padded to its own; two mixed."""
    if kind == "sorted":
        own = np.sort(rng.integers(8 + shard * 20, 9 + shard * 20 + 25 * (shard > 0), 120))
        return own, own
    if kind == "one-full":
        own = rng.integers(20, 129, 120) if shard != 5 else np.full(120, 128)
        return own, own
    if kind == "padded":
        side = (32, 64, 64, 128, 128, 256)[shard]
        return np.full(120, side), rng.integers(side // 2, side, 120)
    if shard == 5:
        return np.full(120, 128), rng.integers(64, 129, 120)
    stored = rng.choice([32, 64, 96], 120)
    return stored, np.minimum(stored, rng.integers(8, 96, 120))


@cache
def rows_of(kind: str, shard: int, dtype: str) -> Rows:
    rng = np.random.default_rng(shard)
    out = []
    for stored, real in zip(*lengths(kind, shard, rng), strict=True):
        ids = np.zeros(stored, dtype)
        ids[:real] = rng.zipf(1.3, real) % 30_000
        out.append({"input_ids": ids, "attention_mask": (np.arange(stored) < real).astype(dtype),
                    "labels": np.roll(ids, -1), "score": float(rng.normal())})
    return out


def as_mds(path: Path, rows: Rows) -> None:
    columns: list[tuple[str, str, int | None]] = [*((f, "bytes", None) for f in FIELDS), ("score", "float32", 4)]
    path.with_suffix(".mds").write_bytes(mds_shard(
        columns, [[*(r[f].tobytes() for f in FIELDS), struct.pack("<f", r["score"])] for r in rows]))


def as_tfrecord(path: Path, rows: Rows) -> None:
    path.with_suffix(".tfrecord").write_bytes(b"".join(
        framed(example({**{f: [r[f].tobytes()] for f in FIELDS}, "score": [r["score"]]})) for r in rows))


def as_members(path: Path, rows: Rows, npy: bool = False) -> None:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for i, row in enumerate(rows):
            for field in FIELDS:
                held = io.BytesIO()
                np.save(held, row[field])
                data = held.getvalue() if npy else row[field].tobytes()
                member(archive, f"{i:05d}.{field}.{'npy' if npy else 'bin'}", data)
            member(archive, f"{i:05d}.score.txt", str(row["score"]).encode())


def as_arrays(path: Path, rows: Rows) -> None:
    as_members(path, rows, npy=True)


def as_parquet(path: Path, rows: Rows) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({**{f: [r[f].tobytes() for r in rows] for f in FIELDS},
                             "score": [r["score"] for r in rows]}), path.with_suffix(".parquet"))


WRITERS = (as_mds, as_tfrecord, as_members, as_arrays, as_parquet)
KINDS = ("sorted", "one-full", "padded", "two-mixed")


def _cases() -> list[Any]:
    """Two kinds of buckets for each format, two formats and more for each kind; the other pairs are slow."""
    return [pytest.param(k, w, marks=[] if (i - j) % len(KINDS) < 2 else pytest.mark.slow)
            for i, w in enumerate(WRITERS) for j, k in enumerate(KINDS)]


@pytest.mark.parametrize(("kind", "write"), _cases())
def test_buckets_by_length_are_quiet(kind: str, write: Callable[[Path, Rows], None], tmp_path: Path) -> None:
    for shard in range(6):
        write(tmp_path / f"shard_{shard}", rows_of(kind, shard, "<i4"))
    report = examine([tmp_path])
    assert [f.statement for f in report.wrong] == []
    assert not report.notes


def test_numbers_of_two_bytes_are_no_texts(tmp_path: Path) -> None:
    for shard in range(6):
        as_tfrecord(tmp_path / f"shard_{shard}", rows_of("two-mixed", shard, "<u2"))
    report = examine([tmp_path])
    assert report.findings == ()
    shard = report.sets[0].shards[0]
    assert shard.columns["input_ids.content"].texts == ()
    assert (shard.sizes["input_ids"] % 2 == 0).all()


def test_what_is_measured_beside_serialised_fields_is_told(tmp_path: Path) -> None:
    for shard in range(6):
        rows = rows_of("one-full", shard, "<i4")
        as_mds(tmp_path / f"shard_{shard}", [{**r, "score": r["score"] * (1000 if shard == 2 else 1)} for r in rows])
    assert {f.measured["field"] for f in examine([tmp_path]).wrong} == {"score"}


def test_a_damaged_text_among_texts_stays_a_text(tmp_path: Path) -> None:
    texts = [f"a plain sentence number {i}".encode() for i in range(20)]
    texts[4] = b"caf\xe9 in another encoding"
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(framed(example({"text": [t]})) for t in texts))
    column = examine([path]).sets[0].shards[0].columns["text"]
    assert column.texts[3] == "a plain sentence number 3"
    assert column.texts[4] == ""


def test_a_mask_of_ones_in_rows_without_padding_is_a_remark(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for shard in range(4):
        np.savez(tmp_path / f"part_{shard}.npz", ids=rng.integers(0, 5000, (100, 64)), mask=np.ones((100, 64), int))
    assert examine([tmp_path]).wrong == ()
