"""Numbers of one file in the other byte order, as numbers and as plain bytes, and what looks like it."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from data_making import example, framed

from traindx_tools.finding import Finding
from traindx_tools.on_data.rules import d137_byte_order

Seen = Callable[[ModuleType, Path], list[Finding]]


def as_tar(path: Path, rows: list[bytes], labels: Any) -> None:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for i, (data, label) in enumerate(zip(rows, labels, strict=True)):
            for ending, content in (("bin", data), ("cls", str(label).encode())):
                member = tarfile.TarInfo(f"{i:05d}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def write(path: Path, rows: list[bytes], form: str) -> None:
    if form == "tar":
        as_tar(path, rows, [i % 3 for i in range(len(rows))])
    elif form == "npz":
        np.savez(path.with_suffix(".npz"), record=np.stack([np.frombuffer(r, np.uint8) for r in rows]))
    else:
        path.with_suffix(".tfrecord").write_bytes(b"".join(framed(example({"signal": [r]})) for r in rows))


@pytest.mark.parametrize("kind", ["i2", "f4", "f8"])
@pytest.mark.parametrize("form", ["tar", "tfrecord", "npz"])
def test_plain_bytes(kind: str, form: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(4):
        x = 300 * rng.normal(size=(60, 64))
        write(tmp_path / f"train_{i}", [r.astype((">" if i == 2 else "<") + kind).tobytes() for r in x], form)
    (told,) = seen_by(d137_byte_order, tmp_path)
    assert told.measured["shard"].startswith("train_2.")
    assert told.measured["width"] == int(kind[1])


@pytest.mark.parametrize("kind", ["int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("form", ["npz", "npy in tar"])
def test_numbers(kind: str, form: str, seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for i in range(4):
        x = (50 + 20 * rng.normal(size=(80, 12))).astype(kind)
        x = x.byteswap() if i == 1 else x
        if form == "npz":
            np.savez(tmp_path / f"part_{i}.npz", x=x)
            continue
        with tarfile.open(tmp_path / f"part_{i}.tar", "w") as archive:
            for k, row in enumerate(x):
                npy = io.BytesIO()
                np.save(npy, row)
                member = tarfile.TarInfo(f"{k:05d}.npy")
                member.size = len(npy.getvalue())
                archive.addfile(member, io.BytesIO(npy.getvalue()))
    (told,) = seen_by(d137_byte_order, tmp_path)
    assert told.measured["shard"].startswith("part_1.")
    assert told.measured["width"] == np.dtype(kind).itemsize


def test_an_order_that_is_declared(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for i in range(4):
        np.save(tmp_path / f"part_{i}.npy", rng.normal(size=(200, 8)).astype(">f4" if i == 1 else "<f4"))
    assert seen_by(d137_byte_order, tmp_path) == []


def test_another_scale_and_wild_values(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for i in range(4):
        x = rng.normal(size=(200, 8)).astype(np.float32)
        np.save(tmp_path / f"part_{i}.npy", x * np.float32(1e30) if i == 1 else x)
    assert seen_by(d137_byte_order, tmp_path) == []


def test_false_alarms_over_many_sets(seen_by: Seen, tmp_path: Path) -> None:
    """Twenty sets of bytes that mean nothing, of numbers of another size, and of few values: none is told."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        for i in range(4):
            x = rng.normal(size=(40, 32)) * rng.uniform(0.5, 4)
            rows = [rng.bytes(128) if seed % 3 == 0 else r.astype("<f4").tobytes() for r in x]
            write(folder / f"train_{i}", rows, "tar")
            np.savez(folder / f"number_{i}.npz", a=rng.integers(0, 3, 100), b=rng.integers(0, 2**15, 100, np.int16),
                     c=rng.lognormal(0, rng.uniform(1, 5), 100))
        alarms += len(seen_by(d137_byte_order, folder))
    assert alarms == 0


def test_records_of_many_lengths_and_a_cut_archive(seen_by: Seen, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    for i in range(4):
        order = ">" if i == 2 else "<"
        rows = [struct.pack(f"{order}{n}f", *rng.normal(size=n)) for n in rng.integers(20, 60, 40)]
        write(tmp_path / f"train_{i}", rows, "tar")
    whole = (tmp_path / "train_0.tar").read_bytes()
    (tmp_path / "train_0.tar").write_bytes(whole[: len(whole) // 2 + 100])
    assert seen_by(d137_byte_order, tmp_path) == []
