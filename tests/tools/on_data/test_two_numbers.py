"""One text under two numbers between splits and files, caches that are behind, and columns that mean something else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d162_two_numbers

Seen = Callable[[ModuleType, Path], list[Finding]]
Writer = Callable[[Path, str, Sequence[str], Mapping[str, int], int], None]
NAMES = ["bird", "cat", "dog", "frog", "ship"]
SORTED = {n: i for i, n in enumerate(NAMES)}
OTHER = {n: i for i, n in enumerate(["dog", "bird", "ship", "cat", "frog"])}


def drawn(rows: int, seed: int, names: Sequence[str] = NAMES) -> list[str]:
    return [str(n) for n in np.random.default_rng(seed).choice(names, rows)]


def table_and_arrays(folder: Path, part: str, texts: Sequence[str], numbers: Mapping[str, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    (folder / f"{part}.csv").write_text("path,label\n" + "".join(f"{part}/{i}.png,{t}\n" for i, t in enumerate(texts)))
    np.savez(folder / f"{part}.npz", x=rng.normal(size=(len(texts), 8)), y=np.array([numbers[t] for t in texts]))


def one_table(folder: Path, part: str, texts: Sequence[str], numbers: Mapping[str, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = "".join(f"{rng.normal():.4f},{t},{numbers[t]}\n" for t in texts)
    (folder / f"{part}.csv").write_text("size,label,label_id\n" + rows)


def records(folder: Path, part: str, texts: Sequence[str], numbers: Mapping[str, int], seed: int) -> None:
    (folder / f"{part}.jsonl").write_text("".join(
        json.dumps({"text": f"row {i}", "label": t}) + "\n" for i, t in enumerate(texts)))
    np.save(folder / f"labels_{part}.npy", np.array([numbers[t] for t in texts], np.int32))


def parquet(folder: Path, part: str, texts: Sequence[str], numbers: Mapping[str, int], seed: int) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"label": list(texts), "id": [numbers[t] for t in texts]})
    pytest.importorskip("pyarrow.parquet").write_table(table, folder / f"{part}.parquet")


FORMS = [table_and_arrays, one_table, records, parquet]


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


@pytest.mark.parametrize("write", FORMS)
def test_an_encoder_of_each_split(write: Writer, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "train", drawn(300, 0), SORTED, 0)
    write(tmp_path, "val", drawn(100, 1), OTHER, 1)
    (finding,) = alarms(seen_by(d162_two_numbers, tmp_path))
    assert (finding.measured["kind"], finding.measured["moved"], finding.measured["texts"]) == ("split", 5, 5)
    assert ("bird", 0, 1) in finding.measured["map"]  # type: ignore[operator]
    assert "'bird' is 0 in " in finding.statement


def test_a_class_that_is_missing_shifts_the_others(tmp_path: Path, seen_by: Seen) -> None:
    few = [n for n in NAMES if n != "cat"]
    table_and_arrays(tmp_path, "train", drawn(300, 0), SORTED, 0)
    table_and_arrays(tmp_path, "val", drawn(100, 1, few), {n: i for i, n in enumerate(few)}, 1)
    (finding,) = alarms(seen_by(d162_two_numbers, tmp_path))
    assert (finding.measured["moved"], finding.measured["texts"], finding.measured["shift"]) == (3, 4, -1)


def test_one_file_of_several(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(4):
        one_table(tmp_path, f"part_{k}", drawn(100, k), OTHER if k == 2 else SORTED, k)
    (finding,) = alarms(seen_by(d162_two_numbers, tmp_path))
    assert (finding.measured["kind"], finding.measured["shard"]) == ("file", "part_2.csv")


@pytest.mark.parametrize("write", FORMS)
def test_one_encoder_for_all(write: Writer, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, "train", drawn(300, 0), OTHER, 0)
    write(tmp_path, "val", drawn(100, 1, NAMES[1:]), OTHER, 1)
    assert not seen_by(d162_two_numbers, tmp_path)


def corrected(folder: Path, older: bool) -> None:
    """Three labels of 600 were corrected in the table; the arrays are as they were."""
    texts = drawn(600, 0)
    table_and_arrays(folder, "train", texts, SORTED, 0)
    for i in (7, 200, 511):
        texts[i] = NAMES[(SORTED[texts[i]] + 1) % 5]
    (folder / "train.csv").write_text("path,label\n" + "".join(f"{i}.png,{t}\n" for i, t in enumerate(texts)))
    os.utime(folder / "train.npz", (1e9, 1e9 if older else 2e9))
    os.utime(folder / "train.csv", (1.5e9, 1.5e9))


@pytest.mark.parametrize(("older", "kind", "severity"), [
    (True, "stale", Severity.MEDIUM), (False, "differs", Severity.INFO),
])
def test_a_cache_that_is_behind(older: bool, kind: str, severity: Severity, tmp_path: Path, seen_by: Seen) -> None:
    corrected(tmp_path, older)
    (finding,) = seen_by(d162_two_numbers, tmp_path)
    assert (finding.measured["kind"], finding.severity, finding.measured["count"]) == (kind, severity, 3)
    assert finding.measured["rows"] == (7, 200, 511)


def by_count(texts: Sequence[str]) -> dict[str, int]:
    """Counts in the split at hand, as count encoding makes them."""
    return {n: texts.count(n) for n in set(texts)}


def test_counts_of_each_split_are_no_encoding(tmp_path: Path, seen_by: Seen) -> None:
    for part, rows, seed in (("train", 300, 0), ("val", 100, 1)):
        texts = drawn(rows, seed)
        one_table(tmp_path, part, texts, by_count(texts), seed)
    assert not seen_by(d162_two_numbers, tmp_path)


def test_seasons_that_rank_anew(tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(3)
    for year in range(2015, 2020):
        ranks = {n: int(r) for n, r in zip(NAMES, rng.permutation(5), strict=True)}
        one_table(tmp_path, f"season_{year}", drawn(100, year), ranks, year)
    assert not alarms(seen_by(d162_two_numbers, tmp_path))


@pytest.mark.parametrize("noise", [0.05, 0.3, 1.0])
def test_columns_that_go_along_without_being_the_same(noise: float, tmp_path: Path, seen_by: Seen) -> None:
    for part, rows, seed in (("train", 400, 0), ("val", 150, 1)):
        rng = np.random.default_rng(seed)
        texts = drawn(rows, seed)
        numbers = np.where(rng.random(rows) < noise, rng.integers(0, 5, rows), [SORTED[t] for t in texts])
        (tmp_path / f"{part}.csv").write_text("label,guess\n" + "".join(
            f"{t},{n}\n" for t, n in zip(texts, numbers, strict=True)))
    assert not seen_by(d162_two_numbers, tmp_path)


def test_few_rows_agree_by_chance(tmp_path: Path, seen_by: Seen) -> None:
    for part, numbers in (("train", {"a": 0, "b": 1}), ("val", {"a": 1, "b": 0})):
        texts = ["a"] * 39 + ["b"]
        one_table(tmp_path, part, texts, numbers, 0)
    assert not seen_by(d162_two_numbers, tmp_path)


def test_files_of_other_lengths_and_broken_ones(tmp_path: Path) -> None:
    table_and_arrays(tmp_path, "train", drawn(300, 0), SORTED, 0)
    table_and_arrays(tmp_path, "val", drawn(100, 1), OTHER, 1)
    np.savez(tmp_path / "val.npz", x=np.zeros((90, 8)), y=np.zeros(90, np.int64))
    (tmp_path / "test.csv").write_bytes(b'path,label\n"a')
    (tmp_path / "test.npz").write_bytes((tmp_path / "train.npz").read_bytes()[:200])
    report = examine([tmp_path])
    assert not report.notes
    assert not [f for f in report.findings if f.rule == "D162"]
