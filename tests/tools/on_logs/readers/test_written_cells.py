"""Tables whose numbers are written with words: units, percent signs, separators; and columns that are no numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from traindx_tools import extract_training_metrics
from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Run


def of(folder: Path, text: str) -> Run:
    path = folder / "metrics.csv"
    path.write_text(text, encoding="utf-8")
    return read_run([path])


def column(folder: Path, name: str, *cells: str) -> list[float]:
    """The values of one column beside an epoch and a loss."""
    rows = "".join(f'{k},{2.0 - k / 10},"{cell}"\n' for k, cell in enumerate(cells))
    found = [s for s in of(folder, f"epoch,loss,{name}\n{rows}").series if s.original == name]
    return found[0].values.tolist() if found else []


@pytest.mark.parametrize(("name", "cells", "values"), [
    ("val acc", ("12.3%", "12.4 %", "nan"), [12.3, 12.4, math.nan]),
    ("tokens", ("1,234,567", "2,469,134", "-"), [1234567, 2469134]),
    ("val loss", ("2.1 nats", "1.9 nats", "n/a"), [2.1, 1.9]),
    ("time", ("3.2s", "980ms", "1.5 min"), [3.2, 0.98, 90.0]),
    ("gpu_mem", ("2G", "2048MB", "2 GiB"), [2048, 2048, 2048]),
    ("mem_gb", ("2GB", "3GB", ""), [2048, 3072]),
    ("val loss", ("0,693", "0,512", "0,4"), [0.693, 0.512, 0.4]),
    ("val loss", ("1,5", "1,25", "-1,75 nats"), [1.5, 1.25, -1.75]),
])
def test_a_plain_number_with_its_unit_is_read(tmp_path: Path, name: str, cells: tuple[str, ...],
                                              values: list[float]) -> None:
    assert column(tmp_path, name, *cells) == pytest.approx(values, nan_ok=True)


@pytest.mark.parametrize(("name", "cells"), [
    ("val loss", ("2.1 nats", "1.9 bits", "1.8 dits")),  # only what has the column's own unit
    ("commit", ("3fa", "9b", "12e")), ("note", ("3 warm", "4 cold", "5 cold")),
    ("val loss", ("about 2", "0x1F", "3of9")),
])
def test_what_is_no_number_is_not_taken_for_one(tmp_path: Path, name: str, cells: tuple[str, ...]) -> None:
    assert column(tmp_path, name, *cells) in ([], [2.1])


def test_a_metric_column_of_words_is_named_with_an_example_and_what_to_do(tmp_path: Path) -> None:
    run = of(tmp_path, "epoch,loss,acc,lr\n" + "".join(f"{k},about {2 - k / 10},good,0.1\n" for k in range(5)))
    (artifact,) = run.artifacts
    assert artifact.unread == (
        'column "loss" was not read: 5 of its cells are text around numbers, first "about 2.0" in line 2: write the '
        'number alone, or one unit behind it; column "acc" was not read: 5 of its cells are words, first "good" in '
        "line 2: write its values as numbers")
    assert [s.name for s in run.series] == ["learning_rate"]


@pytest.mark.parametrize("text", [
    "epoch,loss,model\n" + "".join(f"{k},{2 - k / 10},resnet\n" for k in range(5)),  # a text that is no metric
    "epoch,loss,precision\n" + "".join(f"{k},{2 - k / 10},bf16\n" for k in range(5)),  # and one that is a setting
    "epoch,loss,acc\n" + "".join(f"{k},{2 - k / 10},{'-' if k % 2 else k / 10}\n" for k in range(9)),  # none yet
    "epoch,loss,acc\n" + "".join(f"{k},{2 - k / 10},{'bad' if k == 3 else k / 10}\n" for k in range(9)),
    "epoch,loss,acc\n",
])
def test_a_table_that_is_read_says_nothing(tmp_path: Path, text: str) -> None:
    assert [a.unread for a in of(tmp_path, text).artifacts] == [""]


def test_cells_of_a_broken_table_do_no_harm(tmp_path: Path) -> None:
    try:
        run = of(tmp_path, 'epoch,loss\n1,"2.1 nats\n2,' + "9" * 5000 + "kg\n3,\0\ufffd\n")
    except UnreadableInput:
        return
    assert all(len(s) < 4 for s in run.series)


JSON_CELLS = [("step_time", ("12 ms", "13 ms", "14.5 ms"), [0.012, 0.013, 0.0145]),
              ("tokens_per_second", ("1.2k", "1.25k", "900"), [1200.0, 1250.0, 900.0]),
              ("accuracy", ("35%", "36 %", "37.5%"), [35.0, 36.0, 37.5]),
              ("memory", ("11.2 GiB", "512 MB", "9G"), [11468.8, 512.0, 9216.0]),
              ("wait_for_data", ("3 ms", "0.2s", "4 ms"), [0.003, 0.2, 0.004])]


@pytest.mark.parametrize("form", ["lines", "document", "history"])
@pytest.mark.parametrize(("name", "cells", "values"), JSON_CELLS)
def test_units_in_json(tmp_path: Path, form: str, name: str, cells: tuple[str, ...], values: list[float]) -> None:
    records = [{"step": i, "loss": 2.0 - i / 10, name: cell} for i, cell in enumerate(cells)]
    path = tmp_path / "log.jsonl"
    lines = "".join(f"{json.dumps(r)}\n" for r in records)
    path.write_text(lines if form == "lines" else json.dumps(records, indent=1))
    table = extract_training_metrics(records if form == "history" else path)
    assert [s.values.tolist() for s in table.series if s.original == name] == [pytest.approx(values)]


@pytest.mark.parametrize(("name", "cells"), [
    ("model", ("7B", "7B", "7B")), ("run", ("3b", "3b", "3b")), ("note", ("3 warm", "4 cold", "5 cold")),
    ("host", ("10.0.0.1", "10.0.0.2", "10.0.0.3")), ("event", ("12 shards opened", "checkpoint", "-")),
    ("date", ("2026-01-02", "2026-01-02", "2026-01-02"))])
def test_texts_in_json_stay_texts(tmp_path: Path, name: str, cells: tuple[str, ...]) -> None:
    records = [{"step": i, "loss": 2.0 - i / 10, name: cell} for i, cell in enumerate(cells)]
    table = extract_training_metrics(records)
    assert [s.original for s in table.series] == ["loss"]


def test_a_metric_in_json_that_could_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps({"step": i, "loss": f"{i}of9", "lr": 0.1}) + "\n" for i in range(5)))
    (artifact,) = read_run([path]).artifacts
    assert artifact.unread.startswith('column "loss" was not read: 5 of its cells are text around numbers')
