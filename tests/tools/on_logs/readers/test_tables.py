"""CSV, JSON lines and JSON documents, in wide and long form, and the canonical table."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.on_logs import Run, extract_training_metrics, read_run
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.readers.lines import MAX_LINE


def read(tmp_path: Path, text: str, name: str = "data") -> Run:
    (tmp_path / name).write_text(text)
    return read_run([tmp_path / name])


def found(run: Run) -> dict[tuple[str, str], list[float]]:
    return {(s.group, s.name): s.values.tolist() for s in run.series}


def test_csv_with_empty_cells_nan_and_units_in_names(tmp_path: Path) -> None:
    run = read(tmp_path, "iter,train/loss,val/acc,iter_time_ms,rss_gb\n1,0.5,,12,1.5\n2,nan,0.9,13,2\n")
    assert found(run)["validation", "accuracy"] == [0.9]
    assert found(run)["train", "step_time"] == pytest.approx([0.012, 0.013])
    assert found(run)["train", "memory"] == [1536, 2048]
    loss = run.loss
    assert loss is not None
    assert math.isnan(loss.values[1])
    assert (loss.step.tolist(), loss.line.tolist(), loss.original) == ([1, 2], [2, 3], "train/loss")


def test_csv_in_long_form(tmp_path: Path) -> None:
    run = read(tmp_path, "step,metric,value\n1,loss,0.5\n1,val_loss,0.6\n2,loss,0.4\n")
    assert found(run) == {("train", "loss"): [0.5, 0.4], ("validation", "loss"): [0.6]}


def test_tsv_and_a_split_column(tmp_path: Path) -> None:
    run = read(tmp_path, "epoch\tsplit\tloss\n1\ttrain\t0.5\n1\tval\t0.6\n")
    assert found(run) == {("train", "loss"): [0.5], ("validation", "loss"): [0.6]}
    assert run.artifacts[0].format == "tsv"


def test_repeated_header_and_damaged_lines_are_no_rows(tmp_path: Path) -> None:
    run = read(tmp_path, "step,loss\n1,0.5\n2,0.4,9,9\nstep,loss\n3,0.3\n4")
    assert found(run) == {("train", "loss"): [0.5, 0.3]}
    assert "2 damaged" in run.artifacts[0].note


def test_data_set_is_not_taken_for_a_log(tmp_path: Path) -> None:
    run = read(tmp_path, "rooms,price,street\n3,100,High\n4,120,Low\n")
    assert run.series == ()
    assert "taken for data" in run.artifacts[0].note


def test_json_lines_nested_and_mixed(tmp_path: Path) -> None:
    run = read(tmp_path, '{"step": 1, "train": {"loss": 0.5}, "val": {"loss": "0.6"}}\nnot json\n'
                         '{"step": 2, "train": {"loss": NaN}, "ok": true}\n')
    assert found(run)["validation", "loss"] == [0.6]
    assert math.isnan(found(run)["train", "loss"][1])
    assert "1 damaged" in run.artifacts[0].note
    assert all(s.original != "ok" for s in run.series)


def test_json_lines_of_a_data_set_are_no_log(tmp_path: Path) -> None:
    run = read(tmp_path, '{"text": "a b", "label": 1}\n{"text": "c d", "label": 0}\n')
    assert run.series == ()


@pytest.mark.parametrize("document", [
    {"history": [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}]},
    [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.4}],
    {"step": [1, 2], "loss": [0.5, 0.4]},
])
def test_json_documents(tmp_path: Path, document: object) -> None:
    run = read(tmp_path, json.dumps(document, indent=1))
    assert found(run) == {("train", "loss"): [0.5, 0.4]}
    assert run.loss is not None
    assert run.loss.step.tolist() == [1, 2]


def test_both_the_rounded_and_the_precise_series_stay_and_the_precise_leads(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("step 1 loss 0.123\nstep 2 loss 0.234\n")
    (tmp_path / "metrics.csv").write_text("step,loss\n1,0.12345678\n2,0.23456789\n")
    run = read_run([tmp_path])
    assert len(list(run.find("loss"))) == 2
    assert run.loss is not None
    assert run.loss.source.endswith("metrics.csv")


def test_the_table_in_three_forms(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("step 1 train_loss 0.5 val_loss nan\nstep 2 train_loss 0.25 val_loss inf\n")
    table = extract_training_metrics(tmp_path / "log")
    assert len(table) == 4
    rows = list(csv.DictReader(io.StringIO(table.render("csv"))))
    assert rows[0] == {"step": "1", "epoch": "", "time": "", "group": "train", "metric": "loss",
                       "original": "train_loss", "value": "0.5", "line": "1", "source": str(tmp_path / "log"),
                       "rank": ""}
    assert [r["value"] for r in json.loads(table.render("json"))] == [0.5, 0.25, "nan", "inf"]
    text = table.render()
    assert "names: train_loss -> loss" in text
    assert "0.25" in text
    with pytest.raises(BadUsage, match="table, csv, json"):
        table.render("xml")


def test_a_person_is_shown_some_rows_of_a_long_table_with_its_ends_and_the_first_that_is_not_finite(
        tmp_path: Path) -> None:
    rows = [f"{i},{'nan' if i > 41 else i / 7:}" for i in range(200)]
    (tmp_path / "m.csv").write_text("step,loss\n" + "\n".join(rows) + "\n")
    table = extract_training_metrics(tmp_path / "m.csv")
    shown = table.render("table", 10).splitlines()
    steps = [row.split()[1] for row in shown if row.split()[0].isdigit() and len(row.split()) == 3]
    assert (steps[0], steps[-1], len(steps)) == ("0", "199", 11)
    assert "42" in steps
    assert shown[-1] == "11 of 200 rows, evenly spread: --rows 0 shows all"
    assert len(table.render().splitlines()) >= 200
    assert table.render("csv", 10) == table.render("csv"), "a program gets everything"
    few = extract_training_metrics(tmp_path / "m.csv").render("table", 500)
    assert "evenly spread" not in few


def _wide(columns: int, rows: int) -> str:
    """A table of so many losses without any course; its header is longer than all that is kept of another line."""
    rng = np.random.default_rng(4)
    names = [f"layers.{i}.attention.output/loss" for i in range(columns)]
    return ",".join(["step", *names]) + "\n" + "".join(
        ",".join([str(step), *map("{:.6f}".format, rng.uniform(0.5, 2, columns))]) + "\n" for step in range(rows))


def test_a_table_of_thousands_of_columns_is_one(tmp_path: Path) -> None:
    text = _wide(3_000, 40)
    assert text.index("\n") > MAX_LINE
    run = read(tmp_path, text, "metrics.csv")
    assert run.artifacts[0].format == "csv"
    assert len(run.series) == 3_000
    assert all(len(s) == 40 for s in run.series)
    assert run.series[-1].values[-1] == float(text.rstrip().rpartition(",")[2])
    assert [f for f in judge_run(run) if f.rule == "L214"] == [], "of so many some fall by half by chance"


def test_of_more_names_than_are_kept_it_is_said(tmp_path: Path) -> None:
    run = read(tmp_path, _wide(5_010, 3), "metrics.csv")
    assert len(run.series) == 5_000
    assert "only the first 5,000 metrics were kept" in run.artifacts[0].note


def test_a_long_first_line_that_is_no_header_is_no_table(tmp_path: Path) -> None:
    run = read(tmp_path, "3.5,2.25," * 20_000 + "\nstep 1 loss 0.5\nstep 2 loss 0.4\n", "train.log")
    assert found(run)["train", "loss"] == [0.5, 0.4]


def test_rows_longer_than_a_line_that_are_cut_are_told(tmp_path: Path) -> None:
    text = _wide(3_000, 8)
    run = read(tmp_path, text[: text.rindex(",0", 0, -20_000)], "metrics.csv")
    assert all(len(s) == 7 for s in run.series)
    assert "1 damaged lines skipped" in run.artifacts[0].note


FORMS_OF_BATCHES = {"csv": "{e},{b},{v}\n", "jsonl": '{{"epoch": {e}, "batch": {b}, "loss": {v}}}\n'}


@pytest.mark.parametrize("form", FORMS_OF_BATCHES)
def test_batches_of_an_epoch_count_on_in_tables_too(tmp_path, form):
    rows = [(e, b, 3 - e / 5 - b / 500) for e in range(5) for b in range(0, 100, 10)]
    path = tmp_path / f"metrics.{form}"
    path.write_text(("epoch,batch,loss\n" if form == "csv" else "") + "".join(
        FORMS_OF_BATCHES[form].format(e=e, b=b, v=v) for e, b, v in rows))
    run = read_run([path])
    (loss,) = run.series
    assert loss.step.tolist() == [e * 100 + b for e, b, _ in rows]
    assert loss.epoch.tolist() == [e for e, _, _ in rows]
    assert loss.values.tolist() == pytest.approx([v for _, _, v in rows])
    assert "starts over with each epoch" in run.artifacts[0].note


@pytest.mark.parametrize("form", FORMS_OF_BATCHES)
def test_a_counter_that_goes_back_for_another_reason_stays(tmp_path, form):
    rows = [*((s // 40, s) for s in range(0, 120, 10)), *((s // 40, s) for s in range(60, 200, 10))]  # it was resumed
    path = tmp_path / f"metrics.{form}"
    path.write_text(("epoch,batch,loss\n" if form == "csv" else "") + "".join(
        FORMS_OF_BATCHES[form].format(e=e, b=b, v=2 - b / 500) for e, b in rows))
    (loss,) = read_run([path]).series
    assert loss.step.tolist() == [b for _, b in rows]


def test_batches_beside_cells_that_are_none_change_nothing(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("epoch,batch,loss\n" + "".join(f"{e},{'' if b == 3 else b},{2 - e / 5}\n,x,\n"
                                                   for e in range(4) for b in range(5)))
    (loss,) = read_run([path]).series
    assert len(loss) == 20


def test_columns_of_a_document_on_one_line_are_read(tmp_path):
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"history": {"loss": [3 - i / 5 for i in range(8)], "val_loss": [3.1] * 8}}))
    assert {(s.group, len(s)) for s in read_run([path]).series} == {("train", 8), ("validation", 8)}
