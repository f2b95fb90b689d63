"""Groups in both splits, stretches of another file, changed copies of files, headers, pairs in both directions."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_making import Array, png, sound, split

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine

Rng = np.random.Generator


def table(path: Path, columns: Mapping[str, Any]) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))


def parquet(path: Path, columns: Mapping[str, Any]) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(dict(columns)), path)


def found_by(folder: Path, rule: str) -> list[Finding]:
    report = examine([folder])
    assert report.notes == ()
    return [f for f in report.findings if f.rule == rule]


WRITERS: dict[str, Any] = {"csv": table, "parquet": parquet}


@pytest.mark.parametrize(
    ("form", "name", "per_label"), [("parquet", "patient_id", True), ("csv", "cid", False), ("csv", "userId", False)]
)
def test_rows_of_a_group_are_in_both_splits(tmp_path: Path, form: str, name: str, per_label: bool) -> None:
    rng = np.random.default_rng(0)
    group, own, label = rng.integers(0, 120, 1600), rng.normal(size=(120, 4)), rng.integers(0, 2, 120)
    x = own[group] + rng.normal(size=(1600, 4))
    y = label[group] if per_label else rng.integers(0, 2, 1600)
    train = rng.random(1600) < 0.8
    for part, rows in (("train", train), ("test", ~train)):
        WRITERS[form](tmp_path / f"{part}.{form}", {name: group[rows] * 7 + 1000,
                      **{f"f{j}": x[rows, j].round(4) for j in range(4)}, "y": y[rows]})  # fmt: skip
    (found,) = found_by(tmp_path, "D115")
    assert found.severity is Severity.MEDIUM
    assert found.measured["overlap"] == 1.0
    assert found.measured["rows"]
    assert "row " in found.statement


def test_stores_and_users_with_items(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    user, item, store = rng.integers(0, 200, 3000), rng.integers(0, 100, 3000), rng.integers(0, 10, 3000)
    rating = np.clip(np.round(3 + rng.normal(size=200)[user] + rng.normal(size=3000)), 1, 5).astype(int)
    train = rng.random(3000) < 0.8
    for part, rows in (("train", train), ("test", ~train)):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "b").mkdir(exist_ok=True)
        table(tmp_path / "a" / f"{part}.csv", {"user_id": user[rows], "item_id": item[rows], "rating": rating[rows]})
        table(tmp_path / "b" / f"{part}.csv", {"store_id": store[rows], "sold": (store + rng.normal(size=3000))[rows],
                                               "price": rng.normal(size=int(rows.sum()))})  # fmt: skip
    assert all(f.severity is Severity.INFO for f in found_by(tmp_path, "D115"))


def floats_and_words(rng: Rng, n: int) -> dict[str, Any]:
    return {**{f"f{j}": rng.normal(size=n).round(5) for j in range(4)}, "city": rng.choice(["Rome", "Bern", "Kyiv"], n)}


def counts(rng: Rng, n: int) -> dict[str, Any]:
    return {f"c{j}": rng.poisson(50, n) for j in range(5)}


@pytest.mark.parametrize(("form", "make"), [("csv", floats_and_words), ("parquet", counts)])
def test_a_stretch_of_another_file_under_new_ids(tmp_path: Path, form: str, make: Any) -> None:
    rng = np.random.default_rng(0)
    parts = [make(rng, 400) for _ in range(5)]
    for name in parts[3]:
        parts[3][name][100:160] = parts[1][name][20:80]
    for i, rows in enumerate(parts):
        ids = [f"{k:032x}" for k in rng.integers(0, 2**62, 400)]
        WRITERS[form](tmp_path / f"part_{i}.{form}", {"uuid": ids, "created": 1.7e9 + rng.random(400) * 1e6, **rows})
    (found,) = found_by(tmp_path, "D122")
    assert (found.measured["rows"], found.measured["source"]) == ((100, 159), (20, 79))
    assert (found.measured["shard"], found.measured["other"]) == (f"part_3.{form}", f"part_1.{form}")


def test_files_of_overlapping_windows(tmp_path: Path) -> None:
    whole = np.random.default_rng(0).normal(size=(2000, 4))
    for i in range(6):
        np.savez(tmp_path / f"part_{i}.npz", x=whole[300 * i:300 * i + 360])
    assert all(f.severity is Severity.INFO for f in found_by(tmp_path, "D122"))


def drawn(rng: Rng, n: int, side: int = 40) -> Array:
    x = rng.normal(size=(n, side, side)).cumsum(1).cumsum(2)
    x -= x.min(axis=(1, 2), keepdims=True)
    return np.asarray(x / x.max(axis=(1, 2), keepdims=True) * 255)


def lit(a: Array, rng: Rng) -> Array:
    return np.clip(a * 1.3 + 20, 0, 255)


def shifted_with_noise(a: Array, rng: Rng) -> Array:
    return np.roll(a, 1, 2) + rng.normal(size=a.shape) * 3


CHANGES: list[tuple[Any, str]] = [
    (lambda a, rng: a[:, :, ::-1], "mirrored"),
    (lambda a, rng: np.rot90(a, 1, (1, 2)), "turned by 270 degrees"),
    (lit, "as it is"),
    (shifted_with_noise, "as it is"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "turn"), CHANGES)
def test_pictures_of_a_folder_that_are_changed_copies(tmp_path: Path, change: Any, turn: str) -> None:
    pytest.importorskip("PIL")
    rng = np.random.default_rng(0)
    train, held = drawn(rng, 120), drawn(rng, 60)
    held[:12] = change(train[7:19], rng)
    pictures_in(tmp_path, train, held)
    (found,) = found_by(tmp_path, "D114")
    assert found.measured["turn"] == turn
    assert "0000.png" in found.statement


def pictures_in(folder: Path, train: Array, held: Array, kinds: int = 2) -> None:
    for part, images in (("train", train), ("test", held)):
        for k, image in enumerate(images):
            below = folder / part / f"class_{k % kinds}"
            below.mkdir(parents=True, exist_ok=True)
            (below / f"{k:04d}.png").write_bytes(png(np.clip(image, 0, 255).astype(np.uint8)))


@pytest.mark.slow
def test_pictures_of_a_class_that_are_alike(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    base = drawn(rng, 4)
    train, held = (base[np.arange(n) % 4] + 0.35 * (drawn(rng, n) - 128) for n in (160, 60))
    pictures_in(tmp_path, train, held, kinds=4)
    assert not found_by(tmp_path, "D114")


@pytest.mark.slow
def test_pictures_in_an_array_with_another_gamma(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, held = drawn(rng, 200, 32), drawn(rng, 80, 32)
    held[:12] = np.clip((train[7:19] / 255) ** 0.5 * 300, 0, 255)
    split(tmp_path, "npz", {"x": train.astype(np.uint8), "y": rng.integers(0, 3, 200)},
          {"x": held.astype(np.uint8), "y": rng.integers(0, 3, 80)})
    (found,) = found_by(tmp_path, "D114")
    assert set(found.measured["rows"]) <= set(range(12))  # type: ignore[arg-type]


def clips(rng: Rng, n: int) -> Array:
    out = 60 * rng.normal(size=(n, 9000))
    for row in out:
        for _ in range(6):
            at = int(rng.integers(0, 7500))
            row[at:at + 1500] += 4000 * np.hanning(1500) * np.sin(np.arange(1500) * rng.uniform(0.05, 2.5))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("faulty", [True, False])
def test_sounds_that_are_copies_with_another_gain(tmp_path: Path, faulty: bool) -> None:
    rng = np.random.default_rng(0)
    train, held = clips(rng, 100), clips(rng, 40)
    if faulty:
        held[:10] = 0.5 * train[5:15] + 30 * rng.normal(size=(10, 9000))
    for part, sounds in (("train", train), ("val", held)):
        (tmp_path / part).mkdir()
        for k, frames in enumerate(sounds):
            (tmp_path / part / f"{k:03d}.wav").write_bytes(sound(16_000, frames))
    assert bool(found_by(tmp_path, "D114")) is faulty


def recorded(folder: Path, rate_of: Any, follows: bool, name: Any) -> None:
    rng = np.random.default_rng(0)
    for k in range(60):
        rate = rate_of(k)
        frames = int(rng.integers(9000, 11000)) // (2 if follows and rate == 8000 else 1)
        (folder / name(k)).write_bytes(sound(rate, rng.normal(size=frames) * 1000))


def by_recorder(k: int) -> str:
    return f"rec{'ABC'[k % 3]}_{k:03d}.wav"


@pytest.mark.parametrize(("follows", "severity"), [(False, Severity.HIGH), (True, Severity.INFO)])
def test_sounds_of_one_recorder_with_another_rate(tmp_path: Path, follows: bool, severity: Severity) -> None:
    recorded(tmp_path, lambda k: 8000 if k % 3 == 1 else 16_000, follows, by_recorder)
    (found,) = found_by(tmp_path, "D131")
    assert (found.severity, found.measured["count"]) == (severity, 20)
    assert "recB" in found.statement
    assert "recB_001.wav" in found.statement


def test_a_manifest_names_the_recorder(tmp_path: Path) -> None:
    recorded(tmp_path, lambda k: 8000 if k % 4 == 1 else 16_000, False, lambda k: f"{k:03d}.wav")
    table(tmp_path / "manifest.csv", {"file": [f"{k:03d}.wav" for k in range(60)],
                                      "device": [("zoom", "phone")[k % 4 == 1] for k in range(60)]})  # fmt: skip
    (found,) = found_by(tmp_path, "D131")
    assert "device in manifest.csv phone" in found.statement


@pytest.mark.parametrize(("form", "rate"), [("json", 22050), ("yaml", 22050), ("json", 16_000)])
def test_the_configuration_says_another_rate(tmp_path: Path, form: str, rate: int) -> None:
    recorded(tmp_path, lambda k: 16_000, False, by_recorder)
    (tmp_path / f"config.{form}").write_text(json.dumps({"audio": {"sample_rate": rate}}))
    assert [f.measured["kind"] for f in found_by(tmp_path, "D131")] == ["configuration"] * (rate != 16_000)


def test_single_files_of_another_depth_are_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    recorded(tmp_path, lambda k: 8000 if k in (3, 17) else 16_000, False, by_recorder)
    (tmp_path / "broken.wav").write_bytes(b"RIFF" + rng.bytes(40))
    assert not found_by(tmp_path, "D131")


def pairs(rng: Rng, words: bool) -> tuple[Array, Array]:
    u, v = rng.integers(0, 250, 900), rng.integers(0, 250, 900)
    names = np.array([f"gene{k}" for k in range(250)]) if words else np.arange(250)
    return names[u[u != v]], names[v[u != v]]


@pytest.mark.parametrize("words", [False, True])
def test_an_edge_list_in_both_directions(tmp_path: Path, words: bool) -> None:
    rng = np.random.default_rng(0)
    u, v = pairs(rng, words)
    order = rng.permutation(2 * len(u))
    table(tmp_path / "edges.csv", {"a": np.r_[u, v][order], "b": np.r_[v, u][order]})
    (found,) = found_by(tmp_path, "D116")
    assert found.severity is Severity.INFO
    assert "random split by row" in found.statement


@pytest.mark.parametrize("make", [pairs, lambda rng, words: (rng.poisson(50, 800), rng.poisson(50, 800))])
def test_directed_edges_and_two_counts(tmp_path: Path, make: Any) -> None:
    u, v = partial(make, np.random.default_rng(0))(False)
    table(tmp_path / "edges.csv", {"a": u, "b": v})
    assert not found_by(tmp_path, "D116")


def bursts(rng: np.random.Generator) -> Array:
    """A second of chirps at places and pitches of its own."""
    t = np.arange(1500) / 8000
    x = 0.003 * rng.normal(size=8000)
    for start, pitch, slope in zip(rng.integers(0, 6500, 6), rng.uniform(200, 3000, 6), rng.uniform(-2, 2, 6),
                                   strict=True):
        x[start:start + 1500] += 0.2 * np.sin(2 * np.pi * (pitch + 900 * slope * t) * t) * np.hanning(1500)
    return np.asarray(x)


@pytest.mark.parametrize(("cut", "gain", "copied"), [(1200, 1.0, 15), (2000, 0.5, 15), (0, 1.6, 15), (0, 1.0, 0)])
def test_sounds_that_are_parts_of_others_across_the_split(cut: int, gain: float, copied: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    train = [bursts(rng) for _ in range(200)]
    held = [bursts(rng) for _ in range(60)]
    for i in range(copied):
        start = int(rng.integers(0, cut + 1))
        held[i] = gain * train[i * 7][start:8000 - cut + start]
    for part, sounds in (("train", train), ("test", held)):
        (tmp_path / part).mkdir()
        for k, x in enumerate(sounds):
            (tmp_path / part / f"{k:03d}.wav").write_bytes(sound(8000, 12000 * x))
    found = [f for f in examine([tmp_path]).findings if f.severity is not Severity.INFO]
    assert [f.rule for f in found] == ["D114"] * bool(copied)
