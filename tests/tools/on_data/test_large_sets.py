"""Sets that are too large to be looked at row by row: a sample, one pass over all rows, and what both name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import DataReport, examine, set_samples
from traindx_tools.on_data.column import Column, at_rows
from traindx_tools.on_data.readers import plain_delimited, sampled_lines, shares, streamed
from traindx_tools.on_data.readers.bounds import Bounds, in_blocks
from traindx_tools.on_data.readers.streamed import Kept
from traindx_tools.on_data.set_samples import sampled_set, shared_out
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.whole_pass import MOST_POINTED, FieldWatch, usual_of

ROWS, WIDTH, HELD_OUT = 12_000, 16, 1_000
Part = dict[str, np.ndarray]
FORMS = ["npz", "npy", "csv", "parquet", "jsonl"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets that files of a test exceed."""
    monkeypatch.setattr(set_samples, "WHOLE_SET", 2**16)
    monkeypatch.setattr(set_samples, "SAMPLE", 2**15)
    monkeypatch.setattr(streamed, "SAMPLE", 2**16)
    monkeypatch.setattr(shares, "WHOLE_TEXT", 2**16)
    monkeypatch.setattr(shares, "WHOLE_VALUES", 2**16)
    monkeypatch.setattr(plain_delimited, "FEWEST_BYTES", 2**12)
    monkeypatch.setattr(sampled_lines, "SMALLEST", 2**14)
    monkeypatch.setattr(sampled_lines, "PARSED", 2**22)


def healthy() -> dict[str, Part]:
    rng, centres = np.random.default_rng(3), np.random.default_rng(7).normal(size=(5, WIDTH)).astype(np.float32)
    out = {}
    for name, count in (("train_0", ROWS), ("train_1", ROWS), ("train_2", ROWS), ("test", HELD_OUT)):
        y = rng.integers(0, 5, count)
        out[name] = {"x": 2 * centres[y] + rng.standard_normal((count, WIDTH), np.float32), "y": y}
    return out


def written(folder: Path, parts: dict[str, Part], form: str) -> DataReport:
    for name, part in parts.items():
        x, y = part["x"], part["y"]
        path = folder / f"{name}.{form}"
        if form == "npz":
            np.savez(path, **part)  # type: ignore[arg-type]
        elif form == "npy":
            for field, values in part.items():
                np.save(folder / f"{field}_{name}.npy", values)
        elif form == "jsonl":
            path.write_text("".join(json.dumps({"x": r.tolist(), "y": int(k)}) + "\n" for r, k in
                                    zip(x, y, strict=True)))
        elif form == "csv":
            head = ",".join([*(f"f{k}" for k in range(WIDTH)), "y"])
            np.savetxt(path, np.column_stack([x, y]), fmt=["%.5f"] * WIDTH + ["%d"], delimiter=",", header=head,
                       comments="")
        else:
            pa = pytest.importorskip("pyarrow")
            parquet = pytest.importorskip("pyarrow.parquet")
            parquet.write_table(pa.table({f"f{k}": x[:, k] for k in range(WIDTH)} | {"y": y}), path)
    return examine([folder])


def found(report: DataReport, rule: str) -> list[Finding]:
    assert not report.notes
    return [f for f in report.wrong if f.rule == rule]


def not_finite(parts: dict[str, Part]) -> None:
    parts["train_1"]["x"][7_777, 3] = np.nan


def extreme(parts: dict[str, Part]) -> None:
    parts["train_1"]["x"][7_777, 3] = 4e6


def outside(parts: dict[str, Part]) -> None:
    parts["train_1"]["y"][7_777] = 77


def leaked(parts: dict[str, Part]) -> None:
    for field in ("x", "y"):
        parts["test"][field][100:900:20] = parts["train_1"][field][7_777:9_377:40]


def scaled(parts: dict[str, Part]) -> None:
    parts["train_1"]["x"] *= 255


def permuted(parts: dict[str, Part]) -> None:
    parts["train_1"]["y"] = np.random.default_rng(0).permutation(parts["train_1"]["y"])


def shifted(parts: dict[str, Part]) -> None:
    parts["train_1"]["y"][6_000:7_200] = np.roll(parts["train_1"]["y"][6_000:7_200], 1)


def blank(parts: dict[str, Part]) -> None:
    parts["train_1"]["x"][7_777:7_807] = 0


@pytest.mark.parametrize("form", FORMS)
def test_a_healthy_set_is_silent_and_its_sample_is_told(tmp_path: Path, form: str) -> None:
    report = written(tmp_path, healthy(), form)

    assert not report.wrong
    assert not report.notes
    shards = [s for d in report.sets for s in d.shards if s.split == "train"]
    assert all(s.rows < s.total == ROWS for s in shards)
    assert all("of 12,000" in a.note for a in report.artifacts if "train" in a.path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("plant", "rule"), [(not_finite, "D101"), (extreme, "D102"), (outside, "D110")])
def test_a_single_row_is_named_wherever_it_stands(tmp_path: Path, form: str, plant: Callable[[dict[str, Part]], None],
                                                  rule: str) -> None:
    if form == "jsonl" and rule != "D101":
        pytest.skip("lines are not parsed to look for it")
    parts = healthy()
    plant(parts)

    told = found(written(tmp_path, parts, form), rule)

    assert len(told) == 1
    assert "train_1" in told[0].source
    assert "row 7777" in told[0].statement


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_training_in_the_test_file(tmp_path: Path, form: str) -> None:
    parts = healthy()
    leaked(parts)

    told = found(written(tmp_path, parts, form), "D113")

    assert len(told) == 1
    assert "40 of 1,000 rows of " in told[0].statement
    assert "row 100, row 120" in told[0].statement
    assert "row 7777, row 7817" in told[0].statement


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("plant", "rule"), [(scaled, "D104"), (permuted, "D109"), (shifted, "D123")])
def test_a_file_or_stretch_of_it_is_told_by_the_sample(tmp_path: Path, form: str,
                                                       plant: Callable[[dict[str, Part]], None], rule: str) -> None:
    parts = healthy()
    plant(parts)

    told = found(written(tmp_path, parts, form), rule)

    assert told
    assert all("train_1" in f.source for f in told)
    if rule == "D123":
        first, last = told[0].measured["rows"]
        assert 5_000 <= first < last <= 7_300  # to the last row of the block before
        assert last >= 6_000
        assert "(of those that were looked at)" in told[0].statement


@pytest.mark.parametrize("form", ["npz", "npy"])
def test_a_run_of_blank_rows_is_told_with_all_of_them(tmp_path: Path, form: str) -> None:
    parts = healthy()
    blank(parts)

    told = found(written(tmp_path, parts, form), "D119")

    assert len(told) == 1
    assert "30 of them in one run from row 7777" in told[0].statement


def test_all_rows_are_looked_at_on_demand(tmp_path: Path) -> None:
    parts = healthy()
    not_finite(parts)
    written(tmp_path, parts, "npz")

    report = examine([tmp_path], all_rows=True)

    assert all(s.rows == s.total and s.whole is None for d in report.sets for s in d.shards)
    assert "row 7777" in found(report, "D101")[0].statement
    assert not any(a.note for a in report.artifacts)


def test_rows_that_recur_by_nature_are_no_leak(tmp_path: Path) -> None:
    """Three rows in a hundred of all files are one of fifty: as often within training as across."""
    parts, rng = healthy(), np.random.default_rng(5)
    usual = rng.standard_normal((50, WIDTH), np.float32)
    for part in parts.values():
        some = rng.random(len(part["y"])) < 0.03
        part["x"][some] = usual[rng.integers(0, 50, some.sum())]

    assert not found(written(tmp_path, parts, "npz"), "D113")


def test_a_heavy_tail_has_no_extreme_rows(tmp_path: Path) -> None:
    """Its largest values are added to the sample together or not at all: no gap is made."""
    for name in ("train_0", "train_1", "train_2"):
        rng = np.random.default_rng(len(name) + ord(name[-1]))
        np.savez(tmp_path / f"{name}.npz", x=rng.pareto(1.3, (ROWS, WIDTH)).astype(np.float32),
                 y=rng.integers(0, 5, ROWS))

    assert not found(examine([tmp_path]), "D102")


def test_rare_large_labels_are_no_single_row(tmp_path: Path) -> None:
    """Counts with a long tail lie beyond those of the sample, and are told by nothing."""
    for name in ("train_0", "train_1", "train_2"):
        rng = np.random.default_rng(len(name) + ord(name[-1]))
        np.savez(tmp_path / f"{name}.npz", x=rng.standard_normal((ROWS, WIDTH), np.float32),
                 y=np.minimum(rng.zipf(2.5, ROWS), 10**6))

    report = examine([tmp_path])

    assert not [f for f in report.wrong if f.rule in ("D102", "D110")]


def test_ids_beyond_the_vocabulary_are_found_among_all_tokens(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    tokens = (rng.zipf(1.3, 300_000) % 5_000).astype(np.uint16)
    tokens[123_457] = 6_001
    tokens.tofile(tmp_path / "train.bin")

    report = examine([tmp_path], settings=[("config.json", "vocab_size", 5_000)])

    told = found(report, "D120")
    assert len(told) == 1
    assert "row 123457" in told[0].statement
    assert "of 300,000 tokens were looked at" in report.artifacts[0].note


def test_a_damaged_line_is_found_outside_of_the_parsed_ones(tmp_path: Path) -> None:
    written(tmp_path, {"train_0": healthy()["train_0"]}, "jsonl")
    path = tmp_path / "train_0.jsonl"
    lines = path.read_text().splitlines()
    lines[7_777] = lines[7_777][:40]
    path.write_text("\n".join(lines) + "\n")

    told = found(examine([tmp_path]), "D118")

    assert len(told) == 1
    assert "line 7778" in told[0].statement


@pytest.mark.parametrize("form", ["npz", "csv", "parquet", "jsonl"])
def test_a_file_that_is_cut_ends_without_an_exception(tmp_path: Path, form: str) -> None:
    written(tmp_path, healthy(), form)
    path = tmp_path / f"train_1.{form}"
    path.write_bytes(path.read_bytes()[:-5_000])

    assert not any("defect of traindx" in a.note for a in examine([tmp_path]).artifacts)


def test_time_that_is_used_up_is_told(tmp_path: Path) -> None:
    values = np.arange(200_000.0).reshape(-1, 2)
    shard = Shard("a.npy", "npy", {"x": Column("x", "number", values, "a.npy")}, len(values), len(values))

    sampled = sampled_set(DataSet("a", (shard,)), Bounds(ends=0.0)).shards[0]

    assert sampled.whole is not None
    assert sampled.whole.rows == 0
    assert "the first 0 rows (the time was used up)" in sampled.notes[0]


def test_small_shards_keep_all_rows_and_large_ones_share_the_rest() -> None:
    assert shared_out([10_000, 100, 20_000], 2_100) == [1_000, 100, 1_000]


def test_blocks_never_meet() -> None:
    rows = in_blocks(10_000, 640)

    assert len(np.unique(rows)) == len(rows) == 640
    assert rows[0] == 0
    assert rows[-1] == 9_999


def test_some_rows_of_a_sequence_and_of_texts() -> None:
    sequence = Column("t", "sequence", np.arange(6), "f", offsets=np.array([0, 1, 3, 6]))
    texts = Column("t", "text", np.array([1, 2, 3]), "f", digests=np.arange(3, dtype=np.uint64),
                   texts=("a", "bb", "ccc"))

    some = at_rows(sequence, np.array([0, 2]))

    assert some.offsets is not None
    assert some.values.tolist() == [0, 3, 4, 5]
    assert some.offsets.tolist() == [0, 1, 4]
    assert at_rows(texts, np.array([2])).texts == ("ccc",)


def test_of_many_rows_far_out_none_is_pointed_at() -> None:
    values = np.ones((5_000, 1))
    values[1::2] = 1.1
    watch = FieldWatch(usual_of(Column("x", "number", values, "f"), None))
    far = values.copy()
    far[: 2 * MOST_POINTED] = 1e9

    watch.take(0, far)

    assert not watch.pointed
    assert watch.far_count == 2 * MOST_POINTED


def test_rows_that_are_kept_of_blocks_are_those_of_the_file() -> None:
    kept = Kept(100)
    values = np.random.default_rng(0).standard_normal(10_000)
    values[4_321] = np.inf
    taken = [v[kept.of_block(len(v), 0.1, {"x": v})] for v in np.split(values, 10)]

    numbers = np.concatenate(kept.numbers)[kept.chosen()]

    assert np.array_equal(np.concatenate(taken)[kept.chosen()], values[numbers])
    assert 4_321 in numbers
    assert kept.whole().pointed.tolist() == [4_321]
