"""Data that are made so on purpose, each beside its faulty twin: pairs of one pool, a least reward, sorted kinds, keys.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine


def found(folder: Path, rule: str) -> list[Finding]:
    return [f for f in examine([folder]).findings if f.rule == rule and f.severity is not Severity.INFO]


def written(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(header)
        out.writerows(rows)


def pairs(folder: Path, pool: bool) -> None:
    """Pairs of pictures of 30 people, or of a picture and its mask; held-out rows name pictures of the training."""
    rng = np.random.default_rng(0)
    files = [f"p{i // 4:02d}/{i % 4:02d}.dcm" for i in range(120)]
    for name in (*files, *(f.replace("p", "mask") for f in files)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(rng.bytes(40))
    for name, rows in (("train", 600), ("val", 90)):
        left, right = rng.integers(0, 120, (2, rows))
        written(folder / f"{name}.csv", ["left", "right", "same"], [
            [files[a], files[b] if pool else files[a].replace("p", "mask"), int(a // 4 == b // 4)]
            for a, b in zip(left, right, strict=True)])


@pytest.mark.parametrize("pool", [True, False])
def test_pairs_of_one_pool_share_their_files(pool: bool, tmp_path: Path) -> None:
    pairs(tmp_path, pool)
    told = [f for f in found(tmp_path, "D134") if f.measured["kind"] == "two-splits"]
    assert bool(told) is not pool


def test_pairs_whose_files_are_gone_are_still_told(tmp_path: Path) -> None:
    pairs(tmp_path, pool=True)
    (tmp_path / "p07" / "02.dcm").unlink()
    assert {f.measured["kind"] for f in found(tmp_path, "D134")} == {"missing"}


def rewards(by_design: bool) -> np.ndarray:
    """What doing nothing costs is the least reward of a stretch; elsewhere it is one of many, or cut off only here."""
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.3, 6000)
    values[1000:2500] = np.maximum(np.abs(rng.normal(0, 0.3, 1500)) - 0.2, -0.02)
    if by_design:
        values[rng.random(6000) < np.where(np.arange(6000) < 2500, 0.05, 0.15)] = -0.02
        values[1000:2500] = np.maximum(values[1000:2500], -0.02)
    return values


@pytest.mark.parametrize("by_design", [True, False])
def test_a_value_of_its_own_is_no_clipping(by_design: bool, tmp_path: Path) -> None:
    np.savez(tmp_path / "replay.npz", reward=rewards(by_design))
    assert bool(found(tmp_path, "D132")) is not by_design


def test_two_stretches_that_are_clipped_alike(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=4000)
    for first in (500, 2500):
        values[first:first + 600] = np.minimum(values[first:first + 600], 0.4)
    np.savez(tmp_path / "train.npz", x=values)
    assert found(tmp_path, "D132")


@pytest.mark.parametrize(("words", "told"), [
    (("home", "shop", "workshop", "industry"), False),
    (("batch_1", "batch_2", "batch_3", "batch_4"), True),
    (("home", "home", "home", "home"), True),
])
def test_rows_sorted_by_kinds(words: tuple[str, ...], told: bool, tmp_path: Path) -> None:
    """The last three kinds are larger: words say so, and the numbers of batches stand in the order of rows anyway."""
    rng = np.random.default_rng(3)
    kind = np.repeat([0, 1, 2, 3], [3000, 250, 120, 80])
    size = np.exp(rng.normal(4.5, 0.4, len(kind)) + 1.8 * (kind > 0))
    written(tmp_path / "train.csv", ["segment", "area", "year"], [
        [words[k], f"{s:.3f}", f"{v:.4f}"] for k, s, v in zip(kind, size, rng.normal(size=len(kind)), strict=True)])
    assert bool(found(tmp_path, "D142")) is told


@pytest.mark.parametrize("crossed", [True, False])
def test_each_tune_in_each_key(crossed: bool, tmp_path: Path) -> None:
    """The held-out tunes stand in one key; where no tune stands in all keys, the key may be the label."""
    rng = np.random.default_rng(4)
    tunes, keys = np.repeat(np.arange(150), 5), np.tile([-4, -2, 0, 3, 5], 150)
    order = rng.permutation(750)
    keys = keys[order] if crossed else rng.permutation(keys)
    np.savez(tmp_path / "train.npz", tune=tunes[order], key=keys, x=rng.normal(size=(750, 6)))
    np.savez(tmp_path / "val.npz", tune=np.arange(150, 210), key=np.zeros(60, np.int64), x=rng.normal(size=(60, 6)))
    assert bool(found(tmp_path, "D128")) is not crossed


def test_tables_without_a_row(tmp_path: Path) -> None:
    written(tmp_path / "train.csv", ["left", "right", "segment"], [])
    (tmp_path / "val.npz").write_bytes(b"PK\x03\x04 torn")
    report = examine([tmp_path])
    assert not [f for f in report.wrong if f.rule in ("D128", "D132", "D134", "D142")]
