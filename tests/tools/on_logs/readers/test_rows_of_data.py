"""A table with a column of a metric's name is a log only where its rows stand in an order and its columns move."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs.readers.rows_of_data import NOTE
from traindx_tools.on_logs.reading import read_run

ROWS = 200
Row = dict[str, object]


def essays(i: int, r: np.random.Generator) -> Row:
    return {"essay_id": i, "words": int(r.normal(350, 80)), "errors": int(r.poisson(6)), "score": int(r.integers(1, 7))}


def answers(i: int, r: np.random.Generator) -> Row:
    return {"prompt": f"question {i}", "answer": f"it is {r.integers(99)}", "reward": round(float(r.normal()), 3)}


def walks(_: int, r: np.random.Generator) -> Row:  # a column named like a counter, in no order
    return {"age": int(r.integers(20, 80)), "sex": str(r.choice(["f", "m"])), "step": int(r.integers(99, 9000)),
            "pulse": int(r.normal(70, 9))}


def falling(i: int, r: np.random.Generator) -> Row:  # no step, most names unknown
    return {"run": "a", "alpha": 0.1, "beta_term": round(float(r.normal()), 3), "kappa": i % 3,
            "loss": round(3 * 0.99**i + 0.1 * float(r.normal()), 4)}


def numbered(i: int, r: np.random.Generator) -> Row:  # it does not learn: noise, but at steps
    return {"step": 10 * i, "zeta": 0.1, "kappa": int(r.integers(9)), "eta": 4, "reward": round(float(r.normal()), 3)}


def metrics_alone(_: int, r: np.random.Generator) -> Row:
    return {"loss": round(0.69 + 0.01 * float(r.normal()), 4), "accuracy": round(float(r.random()), 3)}


def newest_first(i: int, r: np.random.Generator) -> Row:
    return {"note": "x", "zeta": 0.2, "kappa": 3, "epoch": ROWS - i, "reward": round(float(r.normal()), 3)}


def written(path: Path, make: Callable[[int, np.random.Generator], Row], rows: int = ROWS) -> Path:
    r = np.random.default_rng(5)
    records = [make(i, r) for i in range(rows)]
    lines = ([json.dumps(record) for record in records] if path.suffix == ".jsonl" else
             [",".join(records[0]), *(",".join(map(str, record.values())) for record in records)])
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path) -> int:
    """How many values were read, none where the file was taken for data."""
    run = read_run([path])
    values = sum(map(len, run.series))
    assert (values == 0) == any(a.note == NOTE for a in run.artifacts)
    return values


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("make", [essays, answers])
def test_rows_in_no_order_are_data(make: Callable[[int, np.random.Generator], Row], suffix: str, tmp_path: Path
                                   ) -> None:
    assert not read(written(tmp_path / f"table{suffix}", make))


def test_a_counter_in_no_order_places_nothing(tmp_path: Path) -> None:
    assert not read(written(tmp_path / "table.csv", walks))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
@pytest.mark.parametrize("make", [falling, numbered, metrics_alone, newest_first])
def test_records_of_a_run_are_a_log(make: Callable[[int, np.random.Generator], Row], suffix: str, tmp_path: Path
                                    ) -> None:
    assert read(written(tmp_path / f"table{suffix}", make)) >= ROWS


def test_a_few_rows_decide_nothing(tmp_path: Path) -> None:
    assert read(written(tmp_path / "table.csv", essays, 20))


def test_damaged_rows_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "table.csv", essays)
    path.write_bytes(path.read_bytes().replace(b"\n7,", b"\n\x00,,,,,") + b"201,3")
    assert not read(path)


def test_a_person_says_that_it_is_a_log(tmp_path: Path) -> None:
    run = read_run([written(tmp_path / "table.csv", essays)], names={"score": "reward"})
    assert [len(s) for s in run.series if s.name == "reward"] == [ROWS]
