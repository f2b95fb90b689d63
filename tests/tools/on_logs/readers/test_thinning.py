"""A log of more values than are kept: what stands out stays to the last bit, of the rest an even share."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.readers import arrow_cells, block_source, delimited, json_records, line_columns, text_log
from traindx_tools.on_logs.readers import recorder as recorder_module
from traindx_tools.on_logs.readers.recorder import Key, Recorder, keeping
from traindx_tools.on_logs.run import Run, Series

LINES = 40_000
MOST = 30_000
SPIKES = {7_013: 55.5, 21_777: 61.25, 21_790: 60.5}
NOT_A_NUMBER = range(30_000, 30_040)


def _loss(step: int, rng: random.Random) -> float:
    return SPIKES.get(step, 3.0 / (1 + step / 2_000) + 0.1 * rng.random())


def _records() -> Iterator[dict[str, float]]:
    rng = random.Random(0)
    for step in range(1, LINES + 1):
        loss = math.nan if step in NOT_A_NUMBER else round(_loss(step, rng), 4)
        yield {"step": step, "loss": loss, "grad_norm": round(rng.gauss(2.0, 0.1), 3),
               "lr": 3e-4 if step < 20_000 else 3e-5}


@cache
def _as_text() -> bytes:
    lines = []
    for r in _records():
        lines.append(f"step {r['step']} loss {r['loss']:.4f} grad_norm {r['grad_norm']:.3f} lr {r['lr']:.1e}")
        if r["step"] % 4_000 == 0:
            lines.append(f"validation step {r['step']} val_loss {r['step'] / 1e5:.4f}")
    return "\n".join(lines).encode()


@cache
def _as_json() -> bytes:
    return "\n".join(json.dumps(r) for r in _records()).encode()


@cache
def _as_csv() -> bytes:
    rows = [",".join(map(str, r.values())) for r in _records()]
    return "\n".join(["step,train_loss,grad_norm,lr", *rows]).encode()


FORMS: dict[str, tuple[Callable[[], bytes], Callable[[Source], Run]]] = {
    "text": (_as_text, text_log.read), "json": (_as_json, json_records.read_lines), "csv": (_as_csv, delimited.read)}


def _read(form: str, most: int = MOST) -> Run:
    make, read = FORMS[form]
    with keeping(most):
        return read(Source(f"a.{form}", data=make()))


def _train(run: Run, name: str) -> Series:
    found = run.first(name, group="train")
    assert found is not None
    return found


@pytest.mark.parametrize("form", FORMS)
def test_what_stands_out_is_kept_exactly(form: str) -> None:
    run = _read(form)
    assert sum(len(s) for s in run.series) <= MOST
    loss = _train(run, "loss")
    told = dict(zip(loss.step.tolist(), loss.values.tolist(), strict=True))
    assert {s: told[s] for s in SPIKES} == SPIKES
    assert all(s in told for spike in SPIKES for s in range(spike - 20, spike + 20)), "its surroundings"
    assert all(math.isnan(told[NOT_A_NUMBER[i]]) for i in (0, -1))
    assert all(math.isfinite(told[s]) for s in (NOT_A_NUMBER[0] - 1, NOT_A_NUMBER[-1] + 1))
    rate = _train(run, "learning_rate")
    assert {19_999, 20_000} <= set(rate.step.tolist()), "both sides of a change that is seldom"
    whole = _read(form, 10**9)
    for name in ("loss", "grad_norm"):
        values, all_of_them = _train(run, name).values, _train(whole, name).values
        assert (np.nanmin(values), np.nanmax(values)) == (np.nanmin(all_of_them), np.nanmax(all_of_them))


@pytest.mark.parametrize("form", FORMS)
def test_of_the_rest_an_even_share_is_kept(form: str) -> None:
    run, whole = _read(form), _read(form, 10**9)
    norm, every = _train(run, "grad_norm"), _train(whole, "grad_norm")
    shares, _ = np.histogram(norm.step, bins=10, range=(0, LINES))
    assert shares.max() < 2.5 * shares.min()
    assert abs(float(np.median(norm.values)) - float(np.median(every.values))) < 0.01
    assert abs(float(norm.values.std()) / float(every.values.std()) - 1) < 0.15
    assert np.diff(norm.step).max() <= 4 * np.median(np.diff(norm.step)) * 4, "no hole"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_decided_in_pieces_is_decided_alike(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a long log are thinned as they come: no more is kept, nothing that stands out is lost, no hole."""
    monkeypatch.setattr(recorder_module, "PIECE", 3_000)
    monkeypatch.setattr(block_source, "CHUNK", 50_000)
    run, whole = _read(form), _read(form, 10**9)
    assert sum(len(s) for s in run.series) <= MOST
    assert run.artifacts[0].rows == whole.artifacts[0].rows
    loss, every = _train(run, "loss"), _train(whole, "loss")
    assert dict(zip(loss.step.tolist(), loss.values.tolist(), strict=True)).items() >= SPIKES.items()
    assert (np.nanmin(loss.values), np.nanmax(loss.values)) == (np.nanmin(every.values), np.nanmax(every.values))
    told = dict(zip(every.line.tolist(), every.values.tolist(), strict=True))
    np.testing.assert_array_equal(loss.values, [told[line] for line in loss.line.tolist()])
    assert (np.diff(loss.line) > 0).all()
    rate = _train(run, "learning_rate")
    assert {19_999, 20_000} <= set(rate.step.tolist())
    shares, _ = np.histogram(_train(run, "grad_norm").step, bins=10, range=(0, LINES))
    assert shares.max() < 2.5 * shares.min()


def test_few_records_among_many_stay_whole() -> None:
    run = _read("text")
    held_out = run.first("loss", group="validation")
    assert held_out is not None
    assert held_out.step.tolist() == list(range(4_000, LINES + 1, 4_000))


@pytest.mark.parametrize("form", FORMS)
def test_what_is_said_of_it(form: str) -> None:
    note = _read(form).artifacts[0].note
    assert "were kept: all that stand out, and of the others one of" in note
    assert _read(form).artifacts[0].rows == _read(form, 10**9).artifacts[0].rows
    assert "kept" not in _read(form, 10**9).artifacts[0].note


@pytest.mark.parametrize("form", FORMS)
def test_the_same_faults_are_seen(form: str) -> None:
    def seen(run: Run) -> set[tuple[str, float | None]]:
        return {(f.rule, f.where.step) for f in judge_run(run) if f.rule in ("L101", "L107")}

    assert seen(_read(form)) == seen(_read(form, 10**9)) != set()


def test_one_way_of_reading_thins_as_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = _read("text")
    monkeypatch.setattr(arrow_cells, "FEWEST", 10**9)
    monkeypatch.setattr(line_columns, "FEWEST", 10**9)  # every line by itself
    slow = _read("text")
    for name in ("loss", "grad_norm", "learning_rate"):
        one, other = _train(fast, name), _train(slow, name)
        both = np.intersect1d(one.line, other.line)
        assert len(both) > 0
        np.testing.assert_array_equal(one.values[np.isin(one.line, both)], other.values[np.isin(other.line, both)])


def test_a_period_is_not_taken_for_a_course() -> None:
    """Every other record is high: one of two at even places would show a constant."""
    recorder = Recorder("x", most=1_000)
    for i in range(20_000):
        recorder.add(i + 1, [(Key("loss", "train"), float(i % 2))], step=float(i))
    values = recorder.series()[0].values
    assert 0.35 < float(values.mean()) < 0.65


def test_steps_of_a_counter_that_starts_over_are_settled_as_in_the_whole_log() -> None:
    lines = [f"Epoch {e} [{b}/1000] loss {1 / (e + b / 1000):.4f} acc {b % 7 / 7:.3f}"
             for e in range(1, 31) for b in range(1, 1001)]
    data = "\n".join(lines).encode()
    whole = text_log.read(Source("a.log", data=data))
    with keeping(6_000):
        part = text_log.read(Source("a.log", data=data))
    a, b = _train(whole, "loss"), _train(part, "loss")
    at = np.searchsorted(a.line, b.line)
    np.testing.assert_array_equal(a.step[at], b.step)
    assert part.planned_steps == whole.planned_steps


def test_nothing_that_may_be_dropped_is_said() -> None:
    recorder = Recorder("x", most=100)
    for i in range(200):
        recorder.add(i, [(Key(f"m{i}", "train"), 1.0)])
    assert recorder.full
    assert "only its first" in recorder.remark
