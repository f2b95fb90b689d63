"""Faults of one channel, of marks for missing values, of columns that know the answer, of padding and of time."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_making import Array, records

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine

ODD = 3
Rng = np.random.Generator


def table(path: Path, columns: Mapping[str, Any]) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(zip(*columns.values(), strict=True))


def of_rule(folder: Path, rule: str) -> list[Finding]:
    """The findings of a rule above a remark; nothing else is above one, and no rule failed."""
    report = examine([folder])
    assert report.notes == ()
    assert {f.rule for f in report.wrong} <= {rule}, [f.statement for f in report.wrong]
    return [f for f in report.findings if f.rule == rule]


def quiet(folder: Path) -> None:
    report = examine([folder])
    assert report.notes == ()
    assert [f.statement for f in report.wrong] == []


def signals(rng: Rng) -> Array:
    return (rng.normal(size=(150, 30, 5)) * np.array([1, 2, 3, 4, 5])).astype(np.float32)


def pixels(rng: Rng) -> Array:
    return (rng.normal(size=(80, 4, 12, 12)) + 2).astype(np.float32)


@pytest.mark.parametrize(
    ("form", "make", "change", "axis", "index"),
    [
        ("npz", signals, lambda x: x * np.array([1, 1, 1000, 1, 1], np.float32), 2, 2),
        ("npy", pixels, lambda x: x * np.array([1, 100, 1, 1], np.float32)[:, None, None], 1, 1),
        ("hdf5", signals, lambda x: x + np.array([0, 0, 0, 273.15, 0], np.float32), 2, 3),
        ("npy", signals, lambda x: x * np.array([3.6, 1, 1, 1, 1], np.float32), 2, 0),
    ],
)
def test_one_channel_has_another_unit(
    tmp_path: Path, form: str, make: Callable[[Rng], Array], change: Callable[[Array], Array], axis: int, index: int
) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        x = make(rng)
        x = change(x) if i == ODD else x
        if form == "hdf5":
            h5py = pytest.importorskip("h5py")
            with h5py.File(tmp_path / f"part_{i}.h5", "w") as file:
                file["x"] = x
        elif form == "npz":
            np.savez(tmp_path / f"part_{i}.npz", x=x)
        else:
            np.save(tmp_path / f"part_{i}.npy", x)
    (found,) = of_rule(tmp_path, "D104")
    assert (found.measured["axis"], found.measured["feature"]) == (axis, index)
    assert f"part_{ODD}" in found.statement
    assert "channel [" in found.statement


def test_channels_of_sources_that_differ_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        np.save(tmp_path / f"site_{i}.npy", signals(rng) * rng.uniform(0.6, 1.6, 5).astype(np.float32))
    quiet(tmp_path)


def measured(i: int, rng: Rng, change: Callable[[int, dict[str, Array], Rng], None]) -> dict[str, Array]:
    rows = {
        "temp": rng.normal(15, 8, 600).round(2),
        "heart_rate": rng.normal(80, 12, 600).round(1),
        "z": rng.normal(size=600).round(3),
    }
    change(i, rows, rng)
    return rows


def stretch_of_999(i: int, rows: dict[str, Array], rng: Rng) -> None:
    if i == ODD:
        rows["temp"][300:360] = -999


def scattered_zeros(i: int, rows: dict[str, Array], rng: Rng) -> None:
    if i == ODD:
        rows["heart_rate"][rng.choice(600, 40, replace=False)] = 0


def beside_empty_cells(i: int, rows: dict[str, Array], rng: Rng) -> None:
    rows["temp"][rng.random(600) < 0.05] = np.nan
    if i == ODD:
        rows["temp"][100:130] = 99.9


@pytest.mark.parametrize("form", ["csv", "npz", "parquet"])
@pytest.mark.parametrize(
    ("change", "field", "value", "count"),
    [
        (stretch_of_999, "temp", -999.0, 60),
        (scattered_zeros, "heart_rate", 0.0, 40),
        (beside_empty_cells, "temp", 99.9, 30),
    ],
)
def test_a_number_stands_for_what_was_not_measured(
    tmp_path: Path, form: str, change: Any, field: str, value: float, count: int
) -> None:
    rng = np.random.default_rng(0)
    for i in range(5):
        rows = measured(i, rng, change)
        if form == "npz":
            np.savez(tmp_path / f"part_{i}.npz", **rows)  # type: ignore[arg-type]
        elif form == "parquet":
            pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            pq.write_table(pa.table(rows), tmp_path / f"part_{i}.parquet")
        else:
            table(tmp_path / f"part_{i}.csv", {k: ["" if np.isnan(x) else x for x in v] for k, v in rows.items()})
    report = examine([tmp_path])
    assert report.notes == ()
    (found,) = [f for f in report.findings if f.rule == "D130"]
    assert (found.measured["field"], found.measured["value"], found.measured["count"]) == (field, value, count)
    assert f"part_{ODD}" in str(found.measured["shard"])
    assert {f.rule for f in report.wrong} <= {"D130", "D101"}


def test_counts_tails_and_classes_are_no_marks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(5):
        rain = np.where(rng.random(2000) < 0.6, 0, rng.gamma(2, 5, 2000) + 4).round(1)
        table(tmp_path / f"part_{i}.csv", {
            "rain": rain, "price": rng.lognormal(3, 1.5, 2000).round(2), "state": rng.integers(-1, 4, 2000),
            "clipped": np.clip(rng.normal(size=2000), -1, 1).round(3)})  # fmt: skip
    quiet(tmp_path)


def test_a_mark_that_a_mask_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(4):
        x, seen = rng.normal(size=500), (rng.random(500) < 0.8).astype(np.int64)
        np.savez(tmp_path / f"part_{i}.npz", x=np.where(seen, x, -999.0), seen=seen)
    assert not [f for f in examine([tmp_path]).findings if f.rule == "D130"]


def answers(rng: Rng, leak: Callable[[Array], Any] | None, each: float = 0.2) -> dict[str, Any]:
    y = rng.integers(0, 2, 2000)
    rows: dict[str, Any] = {f"f{j}": (rng.normal(size=2000) + each * j * y).round(3) for j in range(5)}
    return {**rows, **({"late": leak(y)} if leak else {}), "churn": y}


@pytest.mark.parametrize(
    ("form", "leak", "kind"),
    [
        ("csv", lambda y: (np.random.default_rng(1).exponential(10, len(y)) + 60 * y).round(1), "values"),
        ("csv", lambda y: ["" if k == 0 else 3.5 for k in y], "empty-cells"),
        ("csv", lambda y: [("ab", "cd", "ef")[2 * k] if i % 9 else "cd" for i, k in enumerate(y)], "values"),
        ("jsonl", lambda y: [float(k + 0.1 * (i % 7)) for i, k in enumerate(y)], "values"),
    ],
)
def test_one_column_tells_the_target_alone(tmp_path: Path, form: str, leak: Any, kind: str) -> None:
    rows = answers(np.random.default_rng(0), leak)
    if form == "csv":
        table(tmp_path / "train.csv", rows)
    else:
        names = list(rows)
        records(tmp_path / "train", [
            dict(zip(names, (v.item() if hasattr(v, "item") else v for v in r), strict=True))
            for r in zip(*rows.values(), strict=True)])  # fmt: skip
    (found,) = of_rule(tmp_path, "D129")
    assert (found.measured["field"], found.measured["kind"]) == ("late", kind)
    assert found.severity is Severity.MEDIUM
    assert "was it known before" in found.statement


def test_several_strong_columns_and_a_number_of_sorted_rows(tmp_path: Path) -> None:
    rows = answers(np.random.default_rng(0), None, each=0.9)
    order = np.argsort(rows["churn"], kind="stable")
    table(tmp_path / "train.csv", {"row_id": np.arange(2000), **{k: v[order] for k, v in rows.items()},
                                   "churn_text": [("no", "yes")[k] for k in rows["churn"][order]]})  # fmt: skip
    assert not [f for f in examine([tmp_path]).findings if f.rule == "D129"]


def test_a_flag_that_nobody_calls_a_target(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).exponential(10, 2000)
    rows = answers(np.random.default_rng(0), lambda y: (noise + 60 * y).round(1))
    table(tmp_path / "train.csv", {("alarm" if n == "churn" else n): v for n, v in rows.items()})
    assert [f.severity for f in examine([tmp_path]).findings if f.rule == "D129"] == [Severity.LOW]


def test_classes_that_are_ranges_of_a_column(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = {f"f{j}": rng.normal(size=2000).round(3) for j in range(5)} | {"age": rng.integers(18, 85, 2000)}
    table(tmp_path / "train.csv", {**rows, "bonus_class": np.clip((rows["age"] - 18) // 12, 0, 4)})
    assert not [f for f in examine([tmp_path]).findings if f.rule == "D129"]


def padded(rng: Rng, where: Any) -> dict[str, Array]:
    mask = (np.arange(32) < rng.integers(5, 32, 300)[:, None]).astype(np.int64)
    mask[where] = 0
    return {"input_ids": rng.integers(3, 500, (300, 32)) * mask, "attention_mask": mask,
            "labels": rng.integers(0, 4, 300)}  # fmt: skip


@pytest.mark.parametrize(("where", "told"), [(slice(50, 90), True), (slice(7, 8), False)])
def test_rows_that_are_all_padding(tmp_path: Path, where: slice, told: bool) -> None:
    rng = np.random.default_rng(0)
    for i in range(4):
        rows = padded(rng, where if i == ODD else slice(0, 0))
        np.savez(tmp_path / f"part_{i}.npz", **rows)  # type: ignore[arg-type]
    found = [f for f in of_rule(tmp_path, "D119") if f.severity is not Severity.INFO]
    assert bool(found) is told
    if told:
        assert found[0].measured["run"] == (50, 89)
        assert "labels is set" in found[0].statement


def test_rows_of_padding_in_json_lines(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for k in range(300):
        length, on = int(rng.integers(5, 30)), int(not 200 <= k < 230)
        rows.append({"input_ids": (rng.integers(3, 500, length) * on).tolist(), "attention_mask": [on] * length,
                     "label": int(rng.integers(0, 3))})  # fmt: skip
    records(tmp_path / "train", rows)
    (found,) = [f for f in of_rule(tmp_path, "D119") if f.severity is not Severity.INFO]
    assert found.measured["run"] == (200, 229)


def test_a_class_of_empty_documents(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = padded(rng, slice(0, 0))
    empty = (rows["labels"] == 3) & (rng.random(300) < 0.7)
    for name in ("input_ids", "attention_mask"):
        rows[name][empty] = 0
    np.savez(tmp_path / "train.npz", **rows)  # type: ignore[arg-type]
    quiet(tmp_path)


def as_text(i: int, k: int) -> str:
    return (datetime(2024, 1, 1 + i) + timedelta(minutes=5 * k)).strftime("%d.%m.%Y %H:%M")


@pytest.mark.parametrize(
    ("moment", "change", "kind"),
    [
        (as_text, lambda t, rng: t[::-1], "reversed-time"),
        (lambda i, k: 1.7e9 + 1e5 * i + 60 * k, lambda t, rng: list(rng.permutation(t)), "no-time-order"),
        (lambda i, k: (datetime(2024, 1, 1) + timedelta(hours=k)).isoformat(), lambda t, rng: t[::-1], "reversed-time"),
    ],
)
def test_one_file_runs_against_the_time_of_the_others(tmp_path: Path, moment: Any, change: Any, kind: str) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        times = [moment(i, k) for k in range(150)]
        table(tmp_path / f"day_{i}.csv", {"when": change(times, rng) if i == ODD else times,
                                          "v": rng.normal(size=150).round(3), "w": rng.normal(size=150).round(3)})
    found = [f for f in of_rule(tmp_path, "D117") if f.severity is not Severity.INFO]
    assert [(f.measured["kind"], f.measured["shard"]) for f in found] == [(kind, f"day_{ODD}.csv")]


def test_files_that_are_all_shuffled(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(6):
        times = rng.permutation([as_text(i, k) for k in range(150)])
        table(tmp_path / f"day_{i}.csv", {"when": times, "v": rng.normal(size=150).round(3)})
    quiet(tmp_path)


def test_metrics_of_a_run_are_no_data(tmp_path: Path) -> None:
    import json

    history = [{"step": i, "loss": 1 / i} if i % 2 else {"step": i, "eval_loss": 2 / i} for i in range(1, 60)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    assert examine([tmp_path]).sets == ()


def test_remarks_of_a_table_are_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gaps = {f"g{j}": ["" if rng.random() < 0.1 else 1.5 + k for k in range(400)] for j in range(5)}
    table(tmp_path / "train.csv", {**{f"k{j}": rng.integers(0, 5, 400) for j in range(6)}, **gaps})
    remarks = examine([tmp_path]).findings
    assert [f.rule for f in remarks if f.rule in ("D101", "D109")] == ["D101"]
    assert set(remarks[0].measured["fields"]) == set(gaps)  # type: ignore[arg-type]


def test_a_table_of_one_column_and_a_broken_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n" + "\n".join("-999" for _ in range(50)) + "\n")
    (tmp_path / "b.csv").write_bytes(b"\x00\xff\x00")
    assert examine([tmp_path]).notes == ()
    with pytest.raises(UnreadableInput):
        examine([tmp_path / "missing.csv"])


@pytest.mark.parametrize(("dry", "told"), [((20, 25, 18, 22), ()), ((20, 150, 18, 22), (1,)), ((0, 30, 0, 0), (1,))])
def test_blank_frames_that_all_files_have_are_a_remark(dry: tuple[int, ...], told: tuple[int, ...], tmp_path: Path
                                                       ) -> None:
    rng = np.random.default_rng(7)
    for i, n in enumerate(dry):
        frames = rng.gamma(2, 9, (300, 12, 12)).astype(np.float32)
        frames[40:40 + n] = 0
        np.savez(tmp_path / f"part_{i}.npz", frames=frames)
    found = [f for f in examine([tmp_path]).findings if f.rule == "D119" and f.severity is not Severity.INFO]
    assert [f.measured["shard"] for f in found] == [f"part_{i}.npz" for i in told]


@pytest.mark.parametrize(("empty", "told"), [((12, 15, 10, 14), 0), ((0, 15, 0, 0), 1)])
def test_empty_texts_with_labels_that_all_files_have_are_a_remark(empty: tuple[int, ...], told: int, tmp_path: Path
                                                                  ) -> None:
    rng = np.random.default_rng(8)
    for i, n in enumerate(empty):
        words = [" ".join(rng.choice(["dry", "wet", "cold", "late", "old", "red"], 6)) for _ in range(240)]
        for row in rng.choice(240, n, replace=False):
            words[row] = ""
        records(tmp_path / f"part_{i}.jsonl", [{"text": w, "label": int(rng.integers(3))} for w in words])
    found = [f for f in examine([tmp_path]).findings if f.rule == "D119" and f.severity is not Severity.INFO]
    assert len(found) == told
