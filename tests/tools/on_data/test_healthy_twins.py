"""Healthy data sets that look suspicious: nothing above a remark is told of them, whatever the seed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import data_making as making
import numpy as np
import pytest
from data_making import Rows, classes, pictures, records, series, split, texts

from traindx_tools.on_data import examine

Rng = np.random.Generator


def heavy_tails(folder: Path, rng: Rng) -> None:
    for i in range(5):
        np.savez(folder / f"part_{i}.npz", x=rng.standard_t(1.5, (2000, 8)), y=rng.integers(0, 3, 2000))


def lognormal_prices(folder: Path, rng: Rng) -> None:
    rows = ["rooms,area,price"] + [
        f"{rng.integers(1, 9)},{60 * rng.lognormal(0, 0.5):.1f},{1e5 * rng.lognormal(0, 1.5):.0f}" for _ in range(1500)
    ]
    (folder / "houses.csv").write_text("\n".join(rows))


def rare_class(folder: Path, rng: Rng) -> None:
    series(
        folder,
        "npz",
        lambda i, r, g: {**r, "y": (g.random(len(r["y"])) < 0.01).astype(np.int64)},
        rows=400,
        seed=int(rng.integers(99)),
    )


def long_tail_of_classes(folder: Path, rng: Rng) -> None:
    for i in range(5):
        y = np.minimum(rng.zipf(1.6, 1000) - 1, 150)
        np.savez(folder / f"part_{i}.npz", x=rng.normal(size=(1000, 10)) + y[:, None] % 7, y=y)


def sorted_by_class(folder: Path, rng: Rng) -> None:
    rows = classes(1200, rng)
    order = np.argsort(rows["y"], kind="stable")
    making.npy(folder / "train", {k: v[order] for k, v in rows.items()})


def a_shard_a_class(folder: Path, rng: Rng) -> None:
    rows = classes(1800, rng)
    for k in range(6):
        np.savez(folder / f"part_{k}.npz", **{n: v[rows["y"] == k] for n, v in rows.items()})


def sources_of_other_difficulty(folder: Path, rng: Rng) -> None:
    for i, noise in enumerate((0.5, 0.8, 1.2, 2.0, 3.0, 1.0)):
        np.savez(folder / f"source_{i}.npz", **classes(300, rng, noise=noise))


def one_hard_source(folder: Path, rng: Rng) -> None:
    for i in range(6):
        np.savez(folder / f"source_{i}.npz", **classes(300, rng, noise=3.5 if i == 2 else 1.0))


def sources_of_other_level(folder: Path, rng: Rng) -> None:
    for i in range(6):
        rows = classes(300, rng)
        np.savez(folder / f"site_{i}.npz", x=rows["x"] * rng.uniform(0.7, 1.5) + rng.normal(), y=rows["y"])


def small_last_shard(folder: Path, rng: Rng) -> None:
    for i in range(7):
        np.savez(folder / f"part_{i:03d}.npz", **classes(37 if i == 6 else 400, rng))


def tiny_last_shard(folder: Path, rng: Rng) -> None:
    for i in range(6):
        np.savez(folder / f"part_{i:03d}.npz", **classes(3 if i == 5 else 200, rng))


def padded_to_buckets(folder: Path, rng: Rng) -> None:
    for i in range(6):
        ids = rng.integers(5, 900, (300, 64))
        length = np.minimum(rng.integers(8, 64, 300) // 8 * 8 + 8, 64)
        ids[np.arange(64) >= length[:, None]] = 0
        np.savez(
            folder / f"part_{i}.npz",
            input_ids=ids,
            attention_mask=(ids != 0).astype(np.int64),
            labels=np.where(ids != 0, ids, -100),
        )


def augmented_training_data(folder: Path, rng: Rng) -> None:
    rows = pictures(300, rng)
    x = np.concatenate([rows["x"], rows["x"][:, :, ::-1], rows["x"] * 1.1])
    split(folder, "npz", {"x": x, "y": np.tile(rows["y"], 3)}, pictures(200, rng))


def repeated_on_purpose(folder: Path, rng: Rng) -> None:
    rows = classes(600, rng)
    rare = np.flatnonzero(rows["y"] == 0)
    index = np.concatenate([np.arange(600), np.repeat(rare, 4)])
    split(folder, "npz", {k: v[index] for k, v in rows.items()}, classes(200, rng))


def small_categorical_table(folder: Path, rng: Rng) -> None:
    for name, count in (("train", 900), ("test", 300)):
        rows = ["a,b,c,y"] + [",".join(map(str, (*rng.integers(0, 4, 3), rng.integers(0, 2)))) for _ in range(count)]
        (folder / f"{name}.csv").write_text("\n".join(rows))


def missing_cells(folder: Path, rng: Rng) -> None:
    for i in range(4):
        rows = ["age,income,y"] + [
            f"{'' if rng.random() < 0.1 else rng.integers(18, 90)},"
            f"{'' if rng.random() < 0.2 else round(float(rng.lognormal(10, 1)), 2)},"
            f"{rng.integers(0, 2)}"
            for _ in range(300)
        ]
        (folder / f"part_{i}.csv").write_text("\n".join(rows))


def gaps_with_a_mask(folder: Path, rng: Rng) -> None:
    x = rng.normal(size=(300, 40, 3))
    mask = rng.random(x.shape) < 0.1
    x[mask] = np.nan
    np.savez(folder / "train.npz", x=x, missing=mask, y=rng.integers(0, 2, 300))


def dead_pixels_at_the_border(folder: Path, rng: Rng) -> None:
    def framed(i: int, rows: Rows, g: Rng) -> Rows:
        x = np.clip(rows["x"] * 30 + 128, 0, 255).astype(np.uint8)
        x[:, :2] = x[:, -2:] = 0
        return {"x": x, "y": rows["y"]}

    series(folder, "npz", framed, make=pictures, seed=int(rng.integers(99)))


def blank_pictures_everywhere(folder: Path, rng: Rng) -> None:
    def some_blank(i: int, rows: Rows, g: Rng) -> Rows:
        rows["x"][g.random(len(rows["x"])) < 0.1] = 0
        return rows

    series(folder, "npz", some_blank, make=pictures, seed=int(rng.integers(99)))


def sparse_counts(folder: Path, rng: Rng) -> None:
    for i in range(5):
        x = rng.poisson(0.02, (400, 200)) * rng.integers(1, 30, (400, 200))
        np.savez(folder / f"part_{i}.npz", x=x.astype(np.float32), y=rng.integers(0, 4, 400))


def forecasting_windows(folder: Path, rng: Rng) -> None:
    walk = rng.normal(size=3000).cumsum()
    x = np.lib.stride_tricks.sliding_window_view(walk, 25)
    cut = 2000
    np.savez(folder / "train.npz", x=x[:cut, :24], y=x[:cut, 24])
    np.savez(folder / "val.npz", x=x[cut + 30 :, :24], y=x[cut + 30 :, 24])


def smooth_series(folder: Path, rng: Rng) -> None:
    t = np.linspace(0, 60, 3000)
    x = np.stack([np.sin(t * k / 3) for k in range(1, 9)], axis=1) + 0.05 * rng.normal(size=(3000, 8))
    np.savez(folder / "train.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))


def labels_no_model_sees(folder: Path, rng: Rng) -> None:
    def parity(i: int, rows: Rows, g: Rng) -> Rows:
        x = g.normal(size=(300, 10)).astype(np.float32)
        return {"x": x, "y": (x > 0).sum(axis=1) % 2}

    series(folder, "npz", parity, seed=int(rng.integers(99)))


def texts_of_many_lengths(folder: Path, rng: Rng) -> None:
    for i in range(5):
        records(folder / f"part_{i}", texts(200, rng))
    records(folder / "val", texts(100, rng))


def short_answers(folder: Path, rng: Rng) -> None:
    for name in ("train", "val"):
        rows = [
            {
                "q": f"is {rng.integers(1e9)} larger than {rng.integers(1e9)} or not",
                "answer": str(rng.choice(["yes", "no"])),
            }
            for _ in range(300)
        ]
        records(folder / name, rows)


def tokens_of_a_text(folder: Path, rng: Rng) -> None:
    for name, count in (("train", 60_000), ("val", 6_000)):
        (rng.zipf(1.3, count) % 50_000).astype(np.uint16).tofile(folder / f"{name}.bin")
    (folder / "meta.json").write_text(json.dumps({"vocab_size": 50_304}))


def a_graph_with_directions(folder: Path, rng: Rng) -> None:
    pairs = np.unique(rng.integers(0, 200, (4000, 2)), axis=0)
    pairs = rng.permutation(np.concatenate([pairs, pairs[rng.random(len(pairs)) < 0.12][:, ::-1]]))
    np.savez(folder / "train.npz", edges=pairs[:3000])
    np.savez(folder / "test.npz", edges=pairs[3000:])


def subjects_kept_apart(folder: Path, rng: Rng) -> None:
    subject = rng.integers(0, 40, 900)
    x = rng.normal(size=(40, 12))[subject] + rng.normal(size=(900, 12))
    for name, rows in (("train", subject < 30), ("val", subject >= 30)):
        np.savez(folder / f"{name}.npz", x=x[rows], subject_id=subject[rows], y=rng.integers(0, 2, int(rows.sum())))


def ignored_marks(folder: Path, rng: Rng) -> None:
    for i in range(4):
        masks = rng.integers(0, 5, (60, 16, 16)).astype(np.uint8)
        masks[rng.random(masks.shape) < 0.05] = 255
        np.savez(folder / f"part_{i}.npz", image=rng.normal(size=(60, 16, 16, 3)), mask=masks)


def unlabelled_test_data(folder: Path, rng: Rng) -> None:
    for i in range(4):
        np.savez(folder / f"train_{i}.npz", **classes(200, rng))
    np.savez(folder / "test.npz", x=classes(200, rng)["x"])


def harder_held_out_data(folder: Path, rng: Rng) -> None:
    split(folder, "npz", classes(900, rng), classes(300, rng, noise=2.5))


def a_record_a_file(folder: Path, rng: Rng) -> None:
    for part, count in (("train", 30), ("val", 12)):
        for label in ("cat", "dog", "owl"):
            (folder / part / label).mkdir(parents=True)
            for i in range(count):
                side = 16 + 4 * int(rng.integers(0, 5))
                values = rng.integers(0, 255, (side, side)).astype(np.uint8)
                (folder / part / label / f"{i}.png").write_bytes(making.png(values))


def sounds_of_many_lengths(folder: Path, rng: Rng) -> None:
    for i in range(30):
        frames = rng.normal(size=int(rng.integers(500, 9000))) * 1000
        (folder / f"clip_{i}.wav").write_bytes(making.sound(16_000, frames))


def learning_by_regression(folder: Path, rng: Rng) -> None:
    w = rng.normal(size=10)
    for i in range(5):
        x = rng.normal(size=(400, 10))
        np.savez(folder / f"part_{i}.npz", x=x, y=x @ w + 0.3 * rng.normal(size=400))


def one_hot_and_ids(folder: Path, rng: Rng) -> None:
    for i in range(4):
        y = rng.integers(0, 8, 300)
        np.savez(folder / f"part_{i}.npz", onehot=np.eye(8)[y], row=np.arange(300) + 300 * i, weight=np.ones(300))


def drifting_in_time(folder: Path, rng: Rng) -> None:
    for i in range(8):
        rows = classes(300, rng)
        np.savez(
            folder / f"month_{i:02d}.npz", x=rows["x"] + 0.3 * i, y=rows["y"], time=np.sort(rng.uniform(i, i + 1, 300))
        )


def stays_of_many_lengths(folder: Path, rng: Rng) -> None:
    """Days that thin out from many short stays to a few very long ones: no classes with strangers among them."""
    for year in range(4):
        x = rng.standard_normal((2500, 6))
        days = np.minimum(rng.exponential(np.exp(1.1 + 0.4 * x[:, 0])), 120).astype(np.int64)
        np.savez(folder / f"stays_{2018 + year}.npz", x=x.astype(np.float32), days=days)


def replies_of_many_lengths(folder: Path, rng: Rng) -> None:
    """Ids padded to one length, with held-out texts that are a little longer: places in a sequence are no features."""
    for part, shards, ends in (("train", 3, 0.11), ("test", 1, 0.04)):
        for shard in range(shards):
            lengths = np.minimum(6 + rng.geometric(ends, 400), 96)
            ids = rng.integers(5, 300, (400, 96)) * (np.arange(96) < lengths[:, None])
            np.savez(folder / f"{part}-{shard}.npz", input_ids=ids.astype(np.int32),
                     attention_mask=(ids > 0).astype(np.int8))


SETS: list[Callable[[Path, Rng], None]] = [
    heavy_tails,
    lognormal_prices,
    rare_class,
    long_tail_of_classes,
    sorted_by_class,
    a_shard_a_class,
    sources_of_other_difficulty,
    one_hard_source,
    sources_of_other_level,
    small_last_shard,
    tiny_last_shard,
    padded_to_buckets,
    augmented_training_data,
    repeated_on_purpose,
    small_categorical_table,
    missing_cells,
    gaps_with_a_mask,
    dead_pixels_at_the_border,
    blank_pictures_everywhere,
    sparse_counts,
    forecasting_windows,
    smooth_series,
    labels_no_model_sees,
    texts_of_many_lengths,
    short_answers,
    tokens_of_a_text,
    a_graph_with_directions,
    subjects_kept_apart,
    ignored_marks,
    unlabelled_test_data,
    harder_held_out_data,
    a_record_a_file,
    sounds_of_many_lengths,
    learning_by_regression,
    one_hot_and_ids,
    drifting_in_time,
    stays_of_many_lengths,
    replies_of_many_lengths,
]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", SETS, ids=lambda make: make.__name__)
def test_nothing_is_told(tmp_path: Path, make: Callable[[Path, Rng], None], seed: int) -> None:
    make(tmp_path, np.random.default_rng(seed))
    report = examine([tmp_path])
    assert report.notes == ()
    assert report.sets
    assert [f"{f.rule}: {f.statement}" for f in report.wrong] == []
