"""The table of a fix: the symptom's own metric first, no clocks, units, and better, worse or unchanged."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from scripted import Scripted, approve, diagnosis, make_workspace

from traindx.at_terminal import describe
from traindx.before_after import Ended, asked_about, rows
from traindx.effect import Level
from traindx.session import run_debug_session_sync
from traindx.two_runs import Curve, curves_of, draw
from traindx_tools.on_logs.each_run import read_last_run
from traindx_tools.plots import before_after as picture


def told(before: dict[str, float], after: dict[str, float], **asked: object) -> list[tuple[str, ...]]:
    found = rows([{n: Level(v) for n, v in before.items()}], [{n: Level(v) for n, v in after.items()}], **asked)
    return [(r.name, r.before, r.after, r.unit, r.change) for r in found]


def test_the_symptoms_metric_is_first_then_what_matters_and_clocks_are_left_out() -> None:
    before = {"step_time": 0.1, "throughput": 9.0, "elapsed": 30.0, "grad_norm": 3.0, "loss": 2.3, "learning_rate": 0.1,
              "validation accuracy": 0.1}
    after = {**before, "step_time": 0.4, "elapsed": 90.0, "loss": 0.3, "validation accuracy": 0.87, "grad_norm": 0.5}
    assert told(before, after, symptom="the validation accuracy stays at chance") == [
        ("validation accuracy", "10", "87", "%", "better"), ("loss", "2.3", "0.3", "", "better"),
        ("grad_norm", "3", "0.5", "", "changed")]


def test_a_clock_is_compared_where_the_symptom_is_about_it() -> None:
    shown = told({"step_time": 0.4, "loss": 1.0}, {"step_time": 0.1, "loss": 1.0}, promised="step_time falls by half")
    assert shown == [("step_time", "0.4", "0.1", "s", "better"), ("loss", "1", "1", "", "unchanged")]


def test_worse_is_said_and_a_setting_is_only_another() -> None:
    assert told({"loss": 0.2, "learning_rate": 0.1}, {"loss": 0.9, "learning_rate": 0.01}) == [
        ("loss", "0.2", "0.9", "", "worse"), ("learning_rate", "0.1", "0.01", "", "changed")]


def test_what_lies_within_the_spread_is_unchanged() -> None:
    noisy = Level(1.0, noise=0.3)
    [row] = rows([{"loss": noisy}], [{"loss": Level(0.6, noise=0.3)}])
    assert row.change == "unchanged"
    [row] = rows([{"loss": noisy}], [{"loss": Level(0.2, noise=0.3)}])
    assert row.change == "better"


@pytest.mark.parametrize(("before", "after", "change"), [
    (math.nan, 0.1, "better"), (0.1, math.nan, "worse"), (math.nan, math.inf, "unchanged")])
def test_what_is_finite_is_better_than_what_is_not(before: float, after: float, change: str) -> None:
    assert told({"grad_norm": before}, {"grad_norm": after})[0][-1] == change


def test_the_promise_says_which_way_is_better_where_the_metric_does_not() -> None:
    assert told({"grad_norm": 90.0}, {"grad_norm": 1.0}, promised="grad_norm falls below 5")[0][-1] == "better"


def test_a_metric_of_the_symptom_that_is_missing_is_shown_as_missing_and_others_are_not() -> None:
    assert told({"loss": 1.0, "kl": 2.0}, {}, symptom="the loss explodes") == [("loss", "1", "-", "", "")]
    assert rows([], [{"loss": Level(1.0)}]) == ()


def test_how_a_run_ended_is_compared_where_one_broke_off() -> None:
    found = rows([{"loss": Level(1.0)}], [{"loss": Level(1.0)}], ended=Ended(before="RuntimeError at step 130"))
    assert (found[0].name, found[0].before, found[0].after, found[0].change) == (
        "how it ends", "RuntimeError at step 130", "ran through", "better")


def test_what_a_text_asks_about() -> None:
    assert asked_about("the loss turns nan", "grad_norm stays finite")[0] == "loss"
    assert "grad_norm" in asked_about("the loss turns nan", "grad_norm stays finite")
    assert asked_about("it feels odd", "") == ()


@pytest.mark.slow
def test_a_session_draws_both_runs_and_keeps_the_picture_of_the_old_one(tmp_path: Path) -> None:
    work = make_workspace(tmp_path / "work")
    steps = [(n, 10.0 * 1.5 ** n) for n in range(60)]
    (work / "log.txt").write_text("".join(f"step {n} loss {v:.4g}\n" for n, v in steps))
    at_the_gate: list[bytes] = []

    def ask(shown):
        [folder] = (work / "scratch/debug").glob("2*")
        at_the_gate.append((folder / "plots/loss.png").read_bytes())
        return approve()(shown)

    result = run_debug_session_sync("the loss explodes", work, investigator=Scripted([diagnosis()]), approve=ask,
                                    verify="python train.py | tee log.txt", allow_run=True, artifacts=["log.txt"])
    plots = Path(result.folder) / "plots"
    assert (plots / "loss.png").read_bytes() == at_the_gate[0], "the files of the workspace hold the new run by now"
    assert (plots / "before_after_1.png").stat().st_size > 10_000
    page = Path(result.documents["report.html"]).read_text()
    assert "The run before the change and with it" in page
    assert "the run that was diagnosed, before any change" in page
    assert any(row.strip().startswith("loss ") and row.endswith("better") for row in describe(result))


def test_curves_keep_their_spikes_and_where_they_stop_being_finite(tmp_path: Path) -> None:
    values = ["0.5"] * 5000
    values[2500], values[4000:] = "70", ["nan"] * 1000
    (tmp_path / "log.txt").write_text("".join(f"step {n} loss {v}\n" for n, v in enumerate(values)))
    curve = curves_of(read_last_run([str(tmp_path / "log.txt")]))["loss"]
    assert len(curve.at) < 700
    assert curve.values[curve.at.index(2500.0)] == 70.0
    first = next(at for at, v in zip(curve.at, curve.values, strict=True) if v is None)
    assert (first, curve.at[-1]) == (4000.0, 4999.0)
    assert Curve.from_json(curve.to_json()) == curve


def test_a_picture_without_values_is_none_and_one_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    assert draw({}, {}, ["loss"], tmp_path / "a.png") is None
    (tmp_path / "file").write_text("")
    one = {"loss": Curve((1.0, 2.0), (0.5, None))}
    assert draw(one, {}, ["loss"], tmp_path / "file" / "a.png") is None
    assert draw(one, {}, ["loss"], tmp_path / "b.png") == tmp_path / "b.png"
    assert picture.plot_before_after([], tmp_path / "c.png") is None
