"""Faults that were put into data files are named with their file, field and rows; nothing else is above a remark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import data_making as making
import numpy as np
import pytest
from data_making import Rows, classes, pictures, records, series, split, texts

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data import examine, one_fault

ODD = 3
"""The shard that is changed."""


def edited(change: Callable[[Rows, np.random.Generator], Rows]) -> making.Edit:
    return lambda i, rows, rng: change(rows, rng) if i == ODD else rows


def with_nan(rows: Rows, rng: np.random.Generator) -> Rows:
    rows["x"][17].flat[5] = np.nan
    return rows


def with_infinity(rows: Rows, rng: np.random.Generator) -> Rows:
    rows["x"][40:43] = np.inf
    return rows


def as_bytes(rows: Rows, rng: np.random.Generator) -> Rows:
    return {**rows, "x": rows["x"] * 255}


def one_feature(rows: Rows, rng: np.random.Generator) -> Rows:
    rows["x"][:, 4] *= 1000
    return rows


def one_row(rows: Rows, rng: np.random.Generator) -> Rows:
    rows["x"][23] *= 1e5
    return rows


def dead_feature(rows: Rows, rng: np.random.Generator) -> Rows:
    rows["x"][:, 2] = 0.0
    return rows


def shifted_map(rows: Rows, rng: np.random.Generator) -> Rows:
    return {**rows, "y": (rows["y"] + 1) % (rows["y"].max() + 1)}


def swapped_classes(rows: Rows, rng: np.random.Generator) -> Rows:
    return {**rows, "y": np.where(rows["y"] == 1, 4, np.where(rows["y"] == 4, 1, rows["y"]))}


def shuffled(rows: Rows, rng: np.random.Generator) -> Rows:
    return {**rows, "y": rng.permutation(rows["y"])}


def one_late(rows: Rows, rng: np.random.Generator) -> Rows:
    return {**rows, "y": np.roll(rows["y"], 1)}


def noisy_labels(rows: Rows, rng: np.random.Generator) -> Rows:
    wrong = rng.random(len(rows["y"])) < 0.35
    return {**rows, "y": np.where(wrong, rng.integers(0, 6, len(wrong)), rows["y"])}


def beyond_classes(rows: Rows, rng: np.random.Generator) -> Rows:
    rows["y"][[5, 9]] = 60
    return rows


def two_classes_only(rows: Rows, rng: np.random.Generator) -> Rows:
    kept = np.isin(rows["y"], (0, 1))
    return {
        k: np.tile(v[kept], (4,) + (1,) * (v.ndim - 1))[:200] + (0.01 * rng.normal(size=v[:1].shape)).astype(v.dtype)
        for k, v in rows.items()
    }


SHARD_FAULTS: list[tuple[str, str, Any, str, dict[str, Any]]] = [
    ("npz", "D101", with_nan, "row 17", {"field": "x"}),
    ("csv", "D101", with_nan, "row 17", {"field": "f5"}),
    ("jsonl", "D101", with_nan, "row 17", {"field": "x"}),
    ("npy", "D101", with_infinity, "row 40", {"inf": 36}),
    ("tar", "D101", with_nan, "row 17", {}),
    ("npz", "D104", as_bytes, "times the spread", {"kind": "scale"}),
    ("npy", "D104", as_bytes, "times the spread", {"kind": "scale"}),
    ("tar", "D104", as_bytes, "times the spread", {"kind": "scale"}),
    ("pt", "D104", one_feature, "feature 4", {"feature": 4}),
    ("jsonl", "D104", one_feature, "feature 4", {"feature": 4}),
    ("csv", "D104", one_feature, "f4", {"field": "f4"}),
    ("npz", "D102", one_row, "row 23", {"rows": (23,)}),
    ("pt", "D102", one_row, "row 23", {"rows": (23,)}),
    ("npz", "D103", dead_feature, "feature 2", {"features": (2,)}),
    ("csv", "D103", dead_feature, "f2", {"field": "f2"}),
    ("npz", "D108", shifted_map, "shifted by 1", {"how": "shifted by 1"}),
    ("csv", "D108", shifted_map, "shifted by 1", {"how": "shifted by 1"}),
    ("pt", "D108", swapped_classes, "1 for 4, 4 for 1", {"map": (("1", "4"), ("4", "1"))}),
    ("tar", "D108", swapped_classes, "1 for 4, 4 for 1", {"map": (("1", "4"), ("4", "1"))}),
    ("npz", "D109", shuffled, "does not belong", {"kind": "shuffled"}),
    ("jsonl", "D109", shuffled, "does not belong", {"kind": "shuffled"}),
    ("npy", "D109", one_late, "off by 1 row", {"lag": -1}),
    ("csv", "D109", one_late, "off by 1 row", {"lag": -1}),
    ("npz", "D112", noisy_labels, "contradicts", {}),
    ("npz", "D110", beyond_classes, "60", {"values": (60,)}),
    ("parquet", "D104", as_bytes, "times the spread", {"kind": "scale"}),
    ("parquet", "D108", shifted_map, "shifted by 1", {}),
    ("hdf5", "D101", with_nan, "row 17", {}),
    ("tfrecord", "D108", swapped_classes, "1 for 4, 4 for 1", {}),
    ("tfrecord", "D101", with_nan, "row 17", {}),
    ("mds", "D104", as_bytes, "times the spread", {"kind": "scale"}),
    ("mds", "D109", shuffled, "does not belong", {"kind": "shuffled"}),
    ("hdf5", "D108", shifted_map, "shifted by 1", {}),
]


def _cases() -> list[Any]:
    """Each fault in its first format and each format with its first fault; the other pairs of both are slow."""
    known: set[object] = set()
    cases = []
    for case in SHARD_FAULTS:
        own = {case[0], case[1:3]}
        cases.append(pytest.param(*case, marks=[pytest.mark.slow] if own <= known else []))
        known |= own
    return cases


def only(folder: Path, rule: str) -> Finding:
    """The one finding above a remark."""
    report = examine([folder])
    assert report.notes == ()
    assert [f.rule for f in report.wrong] == [rule], [f.statement for f in report.wrong]
    return report.wrong[0]


@pytest.mark.parametrize(("form", "rule", "change", "words", "measured"), _cases())
def test_the_odd_shard_is_named(
    tmp_path: Path, form: str, rule: str, change: Any, words: str, measured: dict[str, Any]
) -> None:
    if form in making.NEEDS:
        pytest.importorskip(making.NEEDS[form])
    series(tmp_path, form, edited(change))
    found = only(tmp_path, rule)
    assert f"{ODD:03d}" in Path(found.where.file or "").name
    assert words in found.statement
    assert {k: found.measured[k] for k in measured} == measured


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.slow) for n in range(5)])
@pytest.mark.parametrize(("rule", "change"), [("D104", as_bytes), ("D108", swapped_classes), ("D109", shuffled)])
def test_whatever_the_seed(tmp_path: Path, rule: str, change: Any, seed: int) -> None:
    series(tmp_path, "npz", edited(change), seed=seed)
    only(tmp_path, rule)


@pytest.mark.parametrize("form", ["npz", "npy", "csv", "jsonl", "tar", "pt", "parquet", "hdf5", "tfrecord", "mds"])
def test_the_same_without_the_fault_is_left_alone(tmp_path: Path, form: str) -> None:
    if form in making.NEEDS:
        pytest.importorskip(making.NEEDS[form])
    series(tmp_path, form)
    assert examine([tmp_path]).wrong == ()


def test_held_out_rows_that_were_trained_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, held = classes(800, rng), classes(300, rng)
    held["x"][:20] = train["x"][100:120]
    split(tmp_path, "npz", train, held)
    found = only(tmp_path, "D113")
    assert found.measured["rows"] == tuple(range(20))
    assert "20 of 300" in found.statement
    assert "row 100" in found.statement


def test_held_out_texts_that_were_trained_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, held = texts(400, rng), texts(100, rng)
    held[30:40] = train[5:15]
    records(tmp_path / "train", train)
    records(tmp_path / "dev", held)
    assert only(tmp_path, "D113").measured["kind"] == "across-splits"


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (lambda x: x[:, :, ::-1], "mirrored"),
        (lambda x: x[:, ::-1], "upside down"),
        (lambda x: 3 * x + 1, "as it is"),
        (lambda x: np.rot90(x, 1, (1, 2)), "turned by 270 degrees"),
    ],
)
def test_held_out_pictures_that_are_changed_copies(tmp_path: Path, turn: Any, told: str) -> None:
    rng = np.random.default_rng(0)
    train, held = pictures(600, rng), pictures(200, rng)
    held["x"][:30] = turn(train["x"][50:80])
    split(tmp_path, "npz", train, held)
    found = only(tmp_path, "D114")
    assert found.measured["turn"] == told
    assert "row 50 of train.npz" in found.statement


def test_held_out_labels_with_another_map(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    split(tmp_path, "npy", classes(800, rng), shifted_map(classes(300, rng), rng))
    assert only(tmp_path, "D108").measured["kind"] == "split"


def test_held_out_data_of_another_scale(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    split(tmp_path, "npz", classes(500, rng), as_bytes(classes(300, rng), rng))
    assert only(tmp_path, "D104").measured["kind"] == "split"


def test_labels_off_by_one_in_the_only_file(tmp_path: Path) -> None:
    making.npy(tmp_path / "all", one_late(classes(1500, np.random.default_rng(0)), np.random.default_rng(0)))
    assert only(tmp_path, "D109").measured["lag"] == -1


def test_a_field_that_is_a_row_short(tmp_path: Path) -> None:
    rows = classes(500, np.random.default_rng(0))
    np.savez(tmp_path / "train.npz", x=rows["x"], z=rows["x"][:, :3], y=rows["y"][1:])
    found = only(tmp_path, "D107")
    assert found.measured["field"] == "y"
    assert "499" in found.statement


def test_a_shard_with_fewer_rows_than_the_manifest_says(tmp_path: Path) -> None:
    series(tmp_path, "npz")
    said = {"shards": [{"file": f"part_{i:03d}.npz", "rows": 250 if i == 2 else 200} for i in range(6)]}
    (tmp_path / "index.json").write_text(json.dumps(said))
    found = only(tmp_path, "D107")
    assert "part_002.npz holds 200 rows" in found.statement


@pytest.mark.parametrize(("counted", "told"), [((50,) * 6, 0), ((50, 50, 40, 50, 50, 50), 6)])
def test_a_manifest_that_counts_blocks_of_rows_is_no_fault_unless_one_file_is_otherwise(
        tmp_path: Path, counted: tuple[int, ...], told: int) -> None:
    series(tmp_path, "npz")
    said = {"shards": [{"file": f"part_{i:03d}.npz", "blocks": n} for i, n in enumerate(counted)]}
    (tmp_path / "index.json").write_text(json.dumps(said).replace("blocks", "rows"))
    found = [f for f in examine([tmp_path]).findings if f.rule == "D107"]
    assert len(found) == told


def test_a_shard_in_the_middle_that_is_short(tmp_path: Path) -> None:
    series(tmp_path, "npz", lambda i, rows, rng: {k: v[:120] for k, v in rows.items()} if i == 2 else rows)
    assert only(tmp_path, "D107").measured["kind"] == "short"


def test_a_shard_with_another_mix_of_labels(tmp_path: Path) -> None:
    series(tmp_path, "npz", edited(two_classes_only))
    assert only(tmp_path, "D106").measured["kind"] == "labels"


def test_texts_that_were_cut_in_one_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        rows = texts(150, rng)
        records(
            tmp_path / f"part_{i}",
            [{"text": r["text"][:40] if i == ODD else r["text"], "n": k} for k, r in enumerate(rows)],
        )
    found = only(tmp_path, "D106")
    assert found.measured["kind"] == "lengths"


def test_a_shard_that_is_a_copy_of_another(tmp_path: Path) -> None:
    series(tmp_path, "npz")
    (tmp_path / "part_004.npz").write_bytes((tmp_path / "part_001.npz").read_bytes())
    found = only(tmp_path, "D113")
    assert found.measured["kind"] == "copied-shard"
    assert "part_001.npz" in found.statement


def test_bytes_among_fractions(tmp_path: Path) -> None:
    def whole(rows: Rows, rng: np.random.Generator) -> Rows:
        return {**rows, "x": np.clip(rows["x"] * 20 + 120, 0, 255).astype(np.uint8)}

    series(tmp_path, "npz", edited(whole))
    rules = {f.rule for f in examine([tmp_path]).wrong}
    assert rules == {"D104", "D105"}


def test_rows_of_another_shape(tmp_path: Path) -> None:
    series(tmp_path, "npz", edited(lambda rows, rng: {**rows, "x": rows["x"].reshape(-1, 3, 4)}))
    assert only(tmp_path, "D105").measured["kind"] == "shape"


def test_tokens_beyond_the_vocabulary(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = (rng.zipf(1.2, 20_000) % 1000).astype(np.uint16)
    ids[777] = 1003
    ids.tofile(tmp_path / "train.bin")
    (tmp_path / "meta.json").write_text(json.dumps({"vocab_size": 1000}))
    found = only(tmp_path, "D120")
    assert found.measured["highest"] == 1003
    assert "row 777" in found.statement


def test_ids_beyond_the_vocabulary_in_one_record(tmp_path: Path) -> None:
    rows = texts(200, np.random.default_rng(0))
    rows[12]["input_ids"][3] = 5001
    records(tmp_path / "train", rows)
    (tmp_path / "config.json").write_text(json.dumps({"model": {"vocab_size": 5000}}))
    assert "row 12" in only(tmp_path, "D120").statement


def test_sequences_longer_than_the_positions(tmp_path: Path) -> None:
    rows = texts(200, np.random.default_rng(0))
    rows[3]["input_ids"] = [1] * 300
    records(tmp_path / "train", rows)
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 256, "vocab_size": 5000}))
    assert only(tmp_path, "D120").measured["kind"] == "positions"


def test_rows_whose_labels_are_all_ignored(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 500, (300, 20))
    labels[:, :8] = -100
    labels[[4, 90]] = -100
    np.savez(tmp_path / "train.npz", input_ids=rng.integers(0, 500, (300, 20)), labels=labels)
    found = only(tmp_path, "D119")
    assert found.measured["rows"] == (4, 90)


def test_empty_texts_in_one_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(5):
        rows = texts(150, rng)
        records(
            tmp_path / f"part_{i}",
            [{"text": "" if i == ODD and k % 8 == 0 else r["text"], "id": k + 1000 * i} for k, r in enumerate(rows)],
        )
    assert only(tmp_path, "D119").measured["kind"] == "text"


def test_pairs_the_other_way_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    pairs = np.unique(np.sort(rng.integers(0, 300, (3000, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    both = rng.permutation(np.concatenate([pairs, pairs[:, ::-1]]))
    np.savez(tmp_path / "train.npz", edges=both[: int(0.8 * len(both))])
    np.savez(tmp_path / "test.npz", edges=both[int(0.8 * len(both)) :])
    found = only(tmp_path, "D116")
    assert found.measured["share"] > 0.6


def test_subjects_in_both_splits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    subject = rng.integers(0, 40, 900)
    x = (rng.normal(size=(40, 12))[subject] * 2 + rng.normal(size=(900, 12))).astype(np.float32)
    order = rng.permutation(900)
    for name, rows in (("train", order[:700]), ("val", order[700:])):
        np.savez(tmp_path / f"{name}.npz", x=x[rows], subject_id=subject[rows], y=rng.integers(0, 2, len(rows)))
    assert only(tmp_path, "D115").measured["kind"] == "groups"


def test_a_picture_that_ends_early(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(10):
            data = making.png(rng.integers(0, 255, (16, 16)).astype(np.uint8))
            (tmp_path / label / f"{i}.png").write_bytes(data[:-20] if (label, i) == ("dog", 4) else data)
    found = only(tmp_path, "D118")
    assert "dog/4.png" in found.statement


def test_the_same_picture_in_both_splits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for part, count in (("train", 40), ("val", 20)):
        for label in ("cat", "dog"):
            (tmp_path / part / label).mkdir(parents=True)
            for i in range(count):
                values = rng.integers(0, 255, (16, 16)).astype(np.uint8)
                (tmp_path / part / label / f"{i}.png").write_bytes(making.png(values))
    for i in range(6):
        (tmp_path / "val" / "cat" / f"{i}.png").write_bytes((tmp_path / "train" / "cat" / f"{i + 9}.png").read_bytes())
    found = only(tmp_path, "D113")
    assert "cat/0.png" in found.statement


def test_a_sound_whose_samples_are_missing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(10):
        data = making.sound(16_000, rng.normal(size=400) * 1000)
        (tmp_path / f"{i}.wav").write_bytes(data[:200] if i == 7 else data)
    assert "7.wav" in only(tmp_path, "D118").statement


@pytest.mark.parametrize(
    ("form", "name", "keep"),
    [("npy", "x_part_003.npy", 0.6), ("tar", "part_003.tar", 0.6), ("npz", "part_003.npz", 0.6)],
)
def test_a_file_that_was_cut(tmp_path: Path, form: str, name: str, keep: float) -> None:
    series(tmp_path, form)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[: int(keep * len(data))])
    found = [f for f in examine([tmp_path]).wrong if f.rule == "D118"]
    assert len(found) == 1
    assert name in found[0].statement


def test_lines_that_are_no_json(tmp_path: Path) -> None:
    rows = [json.dumps(r) for r in texts(100, np.random.default_rng(0))]
    rows[50] = rows[50][:30]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    found = only(tmp_path, "D118")
    assert "line 51" in found.statement


def test_a_record_without_its_label(tmp_path: Path) -> None:
    import tarfile

    with tarfile.open(tmp_path / "train.tar", "w") as archive:
        for i in range(60):
            making.member(archive, f"{i:04d}.txt", f"a caption with the number {i}".encode())
            if i != 31:
                making.member(archive, f"{i:04d}.cls", str(i % 3).encode())
    assert "0031" in only(tmp_path, "D118").statement


@pytest.mark.parametrize("form", ["npz", "tar", "pt"])
def test_inputs_that_were_negated_in_one_shard(tmp_path: Path, form: str) -> None:
    if form in making.NEEDS:
        pytest.importorskip(making.NEEDS[form])
    series(tmp_path, form, edited(lambda rows, rng: {**rows, "x": -rows["x"]}))
    found = only(tmp_path, "D142")  # names the operation; that labels follow otherwise (D109) is a remark then
    assert found.severity is Severity.HIGH
    assert found.measured["repair"] == "negate"
    assert str(found.measured["field"]).startswith("x")
    assert f"part_{ODD:03d}" in found.statement
    remarks = [f.measured["kind"] for f in examine([tmp_path]).findings if f.rule == "D109"]
    assert remarks == ["other-relation"]


def test_reordered_features_are_not_told_as_negated(tmp_path: Path) -> None:
    series(tmp_path, "npz", edited(lambda rows, rng: {**rows, "x": rows["x"][:, ::-1].copy()}))
    parts = [f for f in examine([tmp_path]).wrong if f.rule == "D142"]
    assert [f.measured["repair"] for f in parts] == [""]


@pytest.mark.parametrize(("effect", "severities"), [(0.7, ["medium", "info"]), (0.3, ["medium", "medium"])])
def test_an_odd_part_is_a_remark_where_the_mix_of_labels_makes_all_of_it(effect: float, severities: list[str]) -> None:
    at: dict[str, Any] = {"where": Location(file="a.npz"), "source": "a.npz", "bearing": Bearing.SIGN}
    at["severity"] = Severity.MEDIUM
    mix = Finding("D106", "mix", statement="y is mixed otherwise", **at,
                  measured={"field": "y", "kind": "labels", "effect": effect})
    part = Finding("D142", "part", statement="x is otherwise", **at,
                   measured={"field": "x", "kind": "shard", "apart": 0.6, "repair": "", "statistic": "feature 2"})
    assert [f.severity.value for f in one_fault.once([part, mix])[::-1]] == severities
    elsewhere = replace(mix, source="b.npz")
    assert [f.severity.value for f in one_fault.once([part, elsewhere])] == ["medium", "medium"]


def test_classes_numbered_from_one_in_one_shard(tmp_path: Path) -> None:
    series(tmp_path, "npz", edited(lambda rows, rng: {**rows, "y": rows["y"] + 1}))
    told = only(tmp_path, "D108")
    assert (told.measured["how"], told.measured["shift"]) == ("shifted", 1)
    assert "is 1 more, as if it counted from another number, against its siblings" in told.statement


def test_rows_that_were_never_filled_in_one_shard(tmp_path: Path) -> None:
    def unfilled(rows: Rows, rng: np.random.Generator) -> Rows:
        rows["x"][rng.random(len(rows["x"])) < 0.3] = 0
        return rows

    series(tmp_path, "npz", edited(unfilled))
    assert only(tmp_path, "D119").measured["kind"] == "blank"


def test_held_out_texts_that_are_reworded_training_texts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    train, held = texts(400, rng), texts(100, rng)
    for row, source in zip(held[:20], train[7:], strict=False):
        row["text"] = source["text"].upper() + " indeed"
    records(tmp_path / "train", [{"text": r["text"], "label": r["label"]} for r in train])
    records(tmp_path / "val", [{"text": r["text"], "label": r["label"]} for r in held])
    found = only(tmp_path, "D114")
    assert found.measured["rows"] == tuple(range(20))


def test_label_names_that_were_exchanged_in_one_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        rows = texts(200, rng)
        names = ["neu", "neg", "pos"] if i == ODD else ["neg", "neu", "pos"]
        records(tmp_path / f"part_{i}", [{"text": r["text"], "label": names[r["label"]]} for r in rows])
    found = only(tmp_path, "D108")
    assert "'neu' for 'neg'" in found.statement
