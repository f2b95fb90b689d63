"""One series has one counter, and a value that is told twice is read once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.on_logs.table import table_of

COUNT = 600
LOSS = 5 * np.exp(-np.arange(COUNT) / 200) + 0.1 + np.random.default_rng(2026).normal(0, 0.02, COUNT)
Lines = Callable[[int], list[str]]


def loss(i: int) -> str:
    return f"loss {LOSS[i]:.4f}"


def bar(i: int) -> str:
    return f"Epoch 0:  {i // 6}%|##   | {i + 1}/600 [00:10<00:30, 1.5it/s, loss={LOSS[i]:.4f}]"


def record(i: int, **counter: int) -> str:
    return json.dumps({**counter, "loss": LOSS[i]})


OF_TWO_SCALES: dict[str, Lines] = {
    "samples": lambda i: [f"step {i} {loss(i)}", *([f"samples_seen {i * 64} {loss(i)}"] if i % 10 == 0 else [])],
    "batches": lambda i: [f"batch {i % 50} {loss(i)}", *([f"global_step {i} {loss(i)}"] if i % 10 == 0 else [])],
    "accumulated": lambda i: [f"iter {i} {loss(i)}", *([f"step: {i // 4}, {loss(i)}"] if i % 4 == 3 else [])],
    "bar": lambda i: [bar(i), *([f"step {i // 4}: {loss(i)} lr 1e-3"] if i % 4 == 3 else [])],
    "records": lambda i: [record(i, step=i), record(i, global_step=i * 4)],
}
TOLD_TWICE: dict[str, Lines] = {
    "one line": lambda i: [f"step {i} {loss(i)} train/loss {LOSS[i]:.4f}"],
    "two names": lambda i: [f"step {i} {loss(i)}", f"step {i}: train/loss={LOSS[i]:.6f}"],
    "one name": lambda i: [f"step {i} {loss(i)}", f"step {i} {loss(i)}"],
    "now and then": lambda i: [f"step {i} {loss(i)}", *([f"global_step {i} {loss(i)}"] if i % 10 == 0 else [])],
    "records": lambda i: [json.dumps({"step": i, "loss": LOSS[i]}), json.dumps({"step": i, "train/loss": LOSS[i]})],
}


def read(lines: Lines) -> Run:
    return read_run("-", stdin="".join(f"{line}\n" for i in range(COUNT) for line in lines(i)).encode())


def losses(run: Run) -> list[Series]:
    return list(run.find("loss", group="train"))


@pytest.mark.parametrize("form", OF_TWO_SCALES)
def test_counters_of_two_scales_are_two_series(form: str) -> None:
    run = read(OF_TWO_SCALES[form])
    one, other = losses(run)
    assert len(one) == COUNT
    assert all(np.count_nonzero(np.diff(s.step) < 0) in (0, COUNT // 50 - 1) for s in (one, other))
    assert one.counter != other.counter
    assert other.counter
    assert f"loss ({other.counter})" in table_of(run).render(rows=5)


@pytest.mark.parametrize("form", TOLD_TWICE)
def test_a_value_that_is_told_twice_is_read_once(form: str) -> None:
    run = read(TOLD_TWICE[form])
    (one,) = losses(run)
    assert one.step.tolist() == list(range(COUNT))
    assert one.values == pytest.approx(LOSS, abs=1e-4)


def test_it_is_told_that_a_name_says_the_same() -> None:
    assert "tells the values of" in read(TOLD_TWICE["two names"]).artifacts[0].note


def test_two_words_of_one_counter_are_one_series() -> None:
    run = read(lambda i: [f"{'step' if i % 2 else 'iter'} {i} {loss(i)}"])
    (one,) = losses(run)
    assert one.step.tolist() == list(range(COUNT))


def test_a_smoothed_loss_beside_the_loss_stays() -> None:
    mean = np.convolve(LOSS, np.ones(20) / 20)[:COUNT]
    run = read(lambda i: [f"step {i} {loss(i)} train/loss {mean[i]:.4f}"])
    assert [len(s) for s in losses(run)] == [COUNT, COUNT]


def test_parts_of_a_batch_at_one_step_stay() -> None:
    run = read(lambda i: [f"step {i // 2} {loss(i)}"])
    assert [len(s) for s in losses(run)] == [COUNT]
    run = read(lambda i: [f"step {i // 6} loss 2.5000"])
    assert [len(s) for s in losses(run)] == [COUNT]


def test_a_restart_is_no_other_counter() -> None:
    run = read(lambda i: [f"step {i if i < 300 else i - 100} {loss(i)}"])
    assert [len(s) for s in losses(run)] == [COUNT]


def test_counters_that_are_no_numbers_break_nothing() -> None:
    run = read(lambda i: [f"step {'nan' if i % 3 else 10**25} {loss(i)}", f"samples_seen {-i} loss nan"])
    assert all(math.isfinite(s.step[0]) or len(s) for s in run.series)


def test_names_that_come_once_are_looked_at_a_few_times_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of names that came once: each is compared with its own counters, not with all other names."""
    from traindx_tools.on_logs.readers import text_reading

    made = 0

    def counted(key: Any, **changes: Any) -> Any:
        nonlocal made
        made += 1
        return replace(key, **changes)

    monkeypatch.setattr(text_reading, "replace", counted)
    lines = [f"step {i} loss {2 / (i + 1):.4f} lr 0.001" for i in range(60)]
    lines += [f"step {60 + i} weird{i} probe_{i}x: 0.{i}" for i in range(500)]
    run = read_run("-", stdin="\n".join(lines).encode())
    assert {s.original for s in run.series} == {"loss", "lr"}
    assert made < 20 * len(lines)


@pytest.mark.filterwarnings("error")
def test_epochs_without_end_are_no_warning() -> None:
    text = "".join(f"epoch 1e999 step {i} loss {2 - i / 10:.2f}\n" * 2 for i in range(9))
    assert read_run(["-"], stdin=text.encode()).series


BEST = 7


def boosted(i: int) -> str:
    return f"[{i}]\ttrain's auc: {0.5 + i / 40:.6f}\tvalid's auc: {0.8 - abs(i - BEST) / 50:.6f}"


FORMS_OF_ROUNDS: dict[str, Callable[[int], str]] = {
    "text": boosted, "records": lambda i: json.dumps({"step": i, "loss": 1 / i, "val_auc": 0.8 - abs(i - BEST) / 50})}


@pytest.mark.parametrize("form", FORMS_OF_ROUNDS)
@pytest.mark.parametrize("last", [BEST, 12])
def test_the_best_round_that_is_told_again_at_the_end_is_no_record(tmp_path, form, last):
    one = FORMS_OF_ROUNDS[form]
    said = ["Early stopping, best iteration is:"] if form == "text" else []
    (tmp_path / "a.log").write_text("\n".join([*map(one, range(1, 13)), *said, one(last)]) + "\n")
    run = read_run(tmp_path / "a.log")
    assert {s.group for s in run.series} == {"train", "validation"}
    assert all(s.step.tolist() == list(range(1, 13)) for s in run.series)


@pytest.mark.parametrize("form", FORMS_OF_ROUNDS)
def test_a_record_that_goes_back_with_other_values_stays(tmp_path, form):
    one = FORMS_OF_ROUNDS[form]
    (tmp_path / "a.log").write_text("\n".join([*map(one, range(1, 13)), one(9).replace("0.7", "0.1")]) + "\n")
    assert all(s.step.tolist() == [*range(1, 13), 9] for s in read_run(tmp_path / "a.log").series)


def test_a_run_that_is_made_again_to_the_last_digit_stays(tmp_path):
    (tmp_path / "a.log").write_text("\n".join([*map(boosted, range(1, 13)), *map(boosted, range(1, 13))]) + "\n")
    assert {len(s) for s in read_run(tmp_path / "a.log").series} == {24}


def test_a_resumed_run_that_repeats_two_records_keeps_them(tmp_path):
    steps = [*range(1, 9), 7, 8, *range(9, 13)]
    (tmp_path / "a.log").write_text("\n".join(map(boosted, steps)) + "\n")
    assert {tuple(s.step) for s in read_run(tmp_path / "a.log").series} == {tuple(map(float, steps))}


@pytest.mark.parametrize("odd", ["step 2 loss nan", "step 2 loss", "step -2 loss inf", "step 2"])
def test_a_damaged_record_that_goes_back_changes_no_other(tmp_path, odd):
    lines = [f"step {i} loss {3 - i / 10}" for i in range(1, 9)]
    (tmp_path / "a.log").write_text("\n".join([*lines, odd]) + "\n")
    (series,) = [s for s in read_run(tmp_path / "a.log").series if s.name == "loss"]
    assert series.values[:8] == pytest.approx([3 - i / 10 for i in range(1, 9)])
    assert series.step[:8].tolist() == list(range(1, 9))
