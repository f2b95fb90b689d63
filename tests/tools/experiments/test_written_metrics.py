"""Metrics that a run writes to a file at its end are its outcome: by the file's own names, without being cut off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine, Result
from traindx_tools.experiments.outcome import Outcome, better_high, parse_outcome, usual_name
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.reading import curve_of, without_value
from traindx_tools.experiments.trace import Curve, Trace

STEPS = np.arange(12.0)


def curves() -> dict[str, Curve]:
    return {"loss": Curve(STEPS, 2 * 0.9 ** STEPS), "validation accuracy": Curve(STEPS, 1 - 0.9 ** STEPS)}


@pytest.mark.parametrize(("written", "kept"), [
    ("train_loss", "loss"), ("val_acc", "validation accuracy"), ("validation loss", "validation loss"),
    ("loss", "loss"), ("my score", "my score"), ("live/loss", "live/loss"), ("", "")])
def test_a_metric_is_found_by_the_name_that_the_file_gives_it(written: str, kept: str) -> None:
    if written != "live/loss":
        assert usual_name(written) == kept
    trace = Trace(Path(), {**curves(), "live/loss": Curve(STEPS, STEPS), "my score": Curve(STEPS, STEPS),
                           "validation loss": Curve(STEPS, STEPS)})
    if written:
        assert curve_of(trace, written) is trace.curves[kept]


def test_which_way_is_better_is_known_of_a_written_name() -> None:
    assert better_high("val_acc")
    assert not better_high("train_loss")


@pytest.mark.parametrize(("trace", "said"), [
    (Trace(Path(), curves(), ended=True, exit_code=0), "it shows loss, validation accuracy: name one of them, as in "
                                                       "--outcome 'level:validation accuracy'"),
    (Trace(Path(), {}, ended=True, exit_code=0), "it neither printed nor wrote a metric"),
    (Trace(Path(), {}, stopped="time", seconds=40.0), "in 40 s: give it longer with --budget SECONDS"),
    (Trace(Path(), {}, ended=True, exit_code=1, error="KeyError: 'lr'"), "it ended with KeyError: 'lr'"),
], ids=["other curves", "none", "too short", "broke"])
def test_why_there_is_no_value_and_what_to_do(trace: Trace, said: str) -> None:
    assert said in without_value(parse_outcome("level:mine"), trace)


@dataclass
class WritesAtItsEnd:
    """A program of some seconds whose metrics are in a file when it ends; `early`: it prints them all the time."""

    length: float
    early: bool = False
    workspace = Path("w")
    fingerprint = "w"
    given: list[float] = field(default_factory=list)

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        self.given.append(seconds)
        for now in np.arange(1.0, self.length):
            shown = curves() if self.early else {}
            if now > seconds:
                return Trace(Path(), shown, stopped="time", seconds=float(now))
            if enough(Trace(Path(), shown, seconds=float(now))):
                return Trace(Path(), shown, stopped="decided", seconds=float(now))
        return Trace(Path(), curves(), ended=True, exit_code=0, seconds=self.length)


def experiment(place: WritesAtItsEnd, budget: float) -> Result:
    prepare: Callable[[Change, int], Prepared] = lambda change, seed: Prepared("x")  # noqa: E731
    return Engine(place, prepare).experiment(Change("mine"), Outcome("level", "train_loss"), budget=Budget(budget))


def test_a_program_that_writes_at_its_end_is_given_the_time_that_there_is() -> None:
    result = experiment(WritesAtItsEnd(45.0), 200.0)
    assert [r.trace.stopped for r in result.runs][:1] == [""]
    assert "no value" not in result.verdict.why
    assert result.verdict.word == "no-effect"


def test_one_that_shows_its_curve_has_its_share_and_no_more() -> None:
    result = experiment(WritesAtItsEnd(190.0, early=True), 200.0)
    assert (result.runs[0].trace.stopped, result.runs[0].trace.seconds) == ("time", 40.0)


def test_where_the_time_is_up_the_next_step_is_more_of_it() -> None:
    result = experiment(WritesAtItsEnd(500.0), 100.0)
    assert result.verdict.word == "inconclusive"
    assert result.runs[0].trace.seconds > 99
    assert "--budget" in result.verdict.why
    assert result.wants > 0
