"""Stores of many runs, written by mlflow 3.17 and trackio 0.43 themselves, and the hostile ones a reader meets."""

from __future__ import annotations

import errno
import math
import os
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine
from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.each_run import run_of_each_file
from traindx_tools.on_logs.reading import read_parts
from traindx_tools.on_logs.several_runs import files_apart

FIXTURES = Path(__file__).parents[2] / "fixtures" / "trackers"


def parts(path: Path, form: str) -> list[Run]:
    return [p for p in read_parts(path).parts if p.artifacts[0].format == form]


def values(run: Run, original: str) -> tuple[list[float], list[float], str]:
    found = next(s for s in run.series if s.original == original)
    return list(found.values), list(found.step), found.group


@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"])
def test_every_run_of_mlflow_has_its_metrics_and_parameters(store: str) -> None:
    runs = {p.config["lr"]: p for p in parts(FIXTURES / store, "mlflow")}
    assert sorted(runs) == [0.01, 0.1]
    for rate, run in runs.items():
        loss = [2.0 / (i + 1) * (1 + rate) if i < 25 else math.nan for i in range(30)]
        np.testing.assert_array_equal(values(run, "train/loss")[0], loss)
        assert values(run, "train/loss")[1:] == (list(range(30)), "train")
        np.testing.assert_array_equal(values(run, "val/loss")[0], [1.5 / (i + 1) * (1 + rate) for i in (9, 19, 29)])
        assert values(run, "val/loss")[1:] == ([9, 19, 29], "validation")
        assert run.config["optim.name"] == "sgd"


def test_what_trackio_keeps_has_its_steps_and_configuration() -> None:
    run, = parts(FIXTURES / "trackio", "trackio")
    np.testing.assert_array_equal(values(run, "train/loss")[0],
                                  [2.0 / (i + 1) if i < 25 else math.nan for i in range(30)])
    assert values(run, "val/loss")[1:] == ([9, 19, 29], "validation")
    assert run.config["model.dim"] == 48


@pytest.mark.parametrize("store", ["mlruns", "mlflow.db"])
def test_each_run_is_judged_by_itself_and_the_newest_is_the_last(store: str) -> None:
    reading = read_parts(FIXTURES / store)
    apart = files_apart(read_run(FIXTURES / store))
    assert [one.reading.parts[-1].config["lr"] for one in run_of_each_file(reading, apart)] == [0.1, 0.01]


def test_two_runs_that_share_no_steps_stay_two(tmp_path: Path) -> None:
    store(tmp_path / "mlflow.db", [("a", 0, [1.0, 0.5]), ("b", 100, [1.0, 0.5])])
    assert len(examine([tmp_path / "mlflow.db"]).runs) == 2


def test_the_folder_of_one_run_is_that_run_alone() -> None:
    run = next((FIXTURES / "mlruns").glob("*/*/metrics")).parent
    assert len(parts(run, "mlflow")) == 1
    assert len(values(read_run(run / "metrics" / "train" / "loss"), "train/loss")[0]) == 30


def test_a_deleted_run_is_left_out_and_said(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    meta = next(p for p in tmp_path.glob("mlruns/*/*/meta.yaml"))
    meta.write_text(meta.read_text().replace("lifecycle_stage: active", "lifecycle_stage: deleted"))
    run = read_run(tmp_path)
    assert [a.note for a in run.artifacts if a.path == str(meta.parent)] == ["a deleted run: left out"]
    assert sum(a.format == "mlflow" and bool(a.rows) for a in run.artifacts) == 1


def test_damaged_lines_are_counted_and_steps_that_are_none_not_believed(tmp_path: Path) -> None:
    run = tmp_path / "mlruns" / "0" / "r"
    (run / "metrics" / "a").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: r\nlifecycle_stage: active\n")
    (run / "metrics" / "loss").write_text("1000 1.0 0\nnonsense\n2000 0.5 0\n3000 inf 0\n\xff\n")
    (run / "metrics" / "a" / "b").write_text(f"1000 {'9' * 5000} 1\n1000 1 {'9' * 5000}\n")
    read = parts(tmp_path, "mlflow")[0]
    loss = next(s for s in read.series if s.original == "loss")
    assert list(loss.values) == [1.0, 0.5, math.inf]
    assert np.isnan(loss.step).all()
    assert "2 damaged lines skipped; 2 lines longer than 4,096 bytes: not used" in read.artifacts[0].note


@pytest.mark.parametrize("torn", ["3000 0.25 2", "3000 0.25", "3000 0.2", "3", "3000 0.25 21"])
def test_a_last_line_that_a_writer_did_not_end_is_not_believed(tmp_path: Path, torn: str) -> None:
    run = tmp_path / "mlruns" / "0" / "r"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: r\nlifecycle_stage: active\n")
    (run / "metrics" / "loss").write_text(f"1000 1.0 19\n2000 0.5 20\n{torn}")
    read = parts(tmp_path, "mlflow")[0]
    assert [(list(s.values), list(s.step)) for s in read.series] == [([1.0, 0.5], [19, 20])]
    assert "1 damaged lines skipped" in read.artifacts[0].note


def test_a_file_that_is_only_named_like_a_part_of_a_database_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.log-wal").write_text("".join(f"step {t} loss {1 / (1 + t):.3f}\n" for t in range(9)))
    (tmp_path / "train.log").write_text("not a database\n")
    assert len(values(read_run(tmp_path), "loss")[0]) == 9


def store(path: Path, runs: list[tuple[str, int, list[float]]], before: str = "") -> Path:
    with sqlite3.connect(path) as database:
        database.executescript(
            before or "CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan);")
        database.execute("CREATE TABLE runs (run_uuid, start_time, lifecycle_stage)")
        for name, first, losses in runs:
            database.execute("INSERT INTO runs VALUES (?, ?, 'active')", (name, 1000 * first))
            database.executemany("INSERT INTO metrics VALUES ('loss', ?, 0, ?, ?, 0)",
                                 [(loss, name, first + i) for i, loss in enumerate(losses)])
    database.close()
    return path


def test_names_of_runs_lead_nowhere(tmp_path: Path) -> None:
    path = store(tmp_path / "mlflow.db", [("../../../etc/passwd\x1b[31m", 0, [1.0, 0.5])])
    assert values(read_run(path), "loss")[0] == [1.0, 0.5]
    assert [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]
    assert "\x1b" not in read_run(path).artifacts[0].path


@pytest.mark.parametrize("made", [
    "CREATE VIEW metrics AS SELECT 'x' AS key, 1.0 AS value, 0 AS timestamp, 'a' AS run_uuid, 0 AS step, 0 AS is_nan",
    "CREATE VIRTUAL TABLE metrics USING fts5(key, value, timestamp, run_uuid, step, is_nan)",
    "CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan AS (abs(step)))"])
def test_programs_in_a_database_are_not_run(tmp_path: Path, made: str) -> None:
    path = tmp_path / "mlflow.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE runs (run_uuid, start_time, lifecycle_stage)")
        database.execute(made)
    database.close()
    with pytest.raises(UnreadableInput, match="SQLite"):
        read_run(path)


def test_a_trigger_does_not_fire_and_nothing_is_written(tmp_path: Path) -> None:
    path = store(tmp_path / "mlflow.db", [("a", 0, [1.0, 0.5])])
    with sqlite3.connect(path) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON metrics BEGIN DELETE FROM runs; END")
    database.close()
    before = path.read_bytes()
    assert values(read_run(path), "loss")[0] == [1.0, 0.5]
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]


@pytest.mark.parametrize("damage", [
    lambda data: data[:100], lambda data: data[:5000], lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
    lambda data: data[:16] + b"\0" * 84 + data[100:]], ids=["head", "page", "filled", "header"])
def test_a_damaged_database_is_one_line_of_error(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "mlflow.db"
    path.write_bytes(damage((FIXTURES / "mlflow.db").read_bytes()))
    with pytest.raises(UnreadableInput) as told:
        read_run(path)
    assert "\n" not in str(told.value)


def test_rows_that_are_still_in_the_log_of_the_writer_are_read_and_it_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.close()
    store(path, [])
    writer = sqlite3.connect(path)
    writer.execute("INSERT INTO runs VALUES ('a', 0, 'active')")
    writer.executemany("INSERT INTO metrics VALUES ('loss', ?, 0, 'a', ?, 0)", [(1.0, 0), (0.5, 1)])
    writer.commit()
    before = {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in tmp_path.iterdir()}
    assert values(read_run(path), "loss")[0] == [1.0, 0.5]
    assert not [a.note for a in read_run(tmp_path).artifacts if "refused" in a.note]
    assert {p.name: (p.stat().st_size, p.stat().st_mtime_ns) for p in tmp_path.iterdir()} == before
    writer.close()


def test_without_room_for_its_copy_a_database_that_is_written_says_why(tmp_path: Path,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    path = store(tmp_path / "mlflow.db", [("a", 0, [1.0, 0.5])])
    path.with_name("mlflow.db-wal").write_bytes(b"x" * 100)

    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(UnreadableInput, match=r"could not be copied to be read \(No space left on device\): free room"):
        read_run(path)


def test_values_of_the_wrong_kind_are_counted(tmp_path: Path) -> None:
    path = store(tmp_path / "mlflow.db", [("a", 0, [1.0, 1.7976931348623157e308])])
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO metrics VALUES (7, 1.0, 0, 'a', 0, 0), ('x', 'text', 0, 'a', 0, 0)")
    database.close()
    read = read_run(path)
    assert values(read, "loss")[0] == [1.0, math.inf]
    assert "2 rows without a number: not used" in read.artifacts[0].note


def test_a_database_of_something_else_is_refused_as_before(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE metrics (name, value)")
    database.close()
    with pytest.raises(UnreadableInput, match="export its metrics as CSV"):
        read_run(path)


def test_a_link_out_of_the_store_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1000 1.0 0\n")
    run = tmp_path / "mlruns" / "0" / "r"
    (run / "metrics").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: r\n")
    os.symlink(secret, run / "metrics" / "loss")
    read = read_run(tmp_path / "mlruns")
    assert not read.series
    assert any(a.format == "link" for a in read.artifacts)


def test_a_line_without_end_is_counted_and_costs_no_memory(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    loss = next((tmp_path / "mlruns").glob("*/*/metrics/train/loss"))
    good = loss.read_bytes()
    with loss.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.truncate(len(good) + 200 * 2**20)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + good.splitlines(keepends=True)[0].replace(b" 0\n", b" 30\n"))
    tracemalloc.start()
    try:
        run = next(p for p in parts(tmp_path / "mlruns", "mlflow") if "longer than" in p.artifacts[0].note)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "1 lines longer than 4,096 bytes: not used" in run.artifacts[0].note
    assert values(run, "train/loss")[1] == list(range(31))
    assert peak < 50 * 2**20


def test_an_infinity_of_a_store_stays_one(tmp_path: Path) -> None:
    """A store has no text in which digits could stand for it; MLflow's database writes the largest double."""
    losses = [1.0, 2.0, 1.7976931348623157e308, -1.7976931348623157e308, 1e300]
    run = read_run(store(tmp_path / "mlflow.db", [("a", 0, losses)]))
    assert values(run, "loss")[0] == [1.0, 2.0, math.inf, -math.inf, 1e300]
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    metric = next((tmp_path / "mlruns").rglob("metrics/train/loss"))
    metric.write_text("".join(f"{1000 + i} {v} {i}\n" for i, v in enumerate(["1.5", "inf", "-inf", "nan", "1e400x"])))
    run = next(p for p in parts(metric.parents[2], "mlflow") if p.series)
    np.testing.assert_array_equal(values(run, "train/loss")[0], [1.5, math.inf, -math.inf, math.nan])
    assert not any("largest" in a.note for a in run.artifacts)
