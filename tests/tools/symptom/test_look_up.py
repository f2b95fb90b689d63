"""Stated symptoms looked up in synthetic runs: seen with place and values, not seen, refuted, not understood."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.run import ErrorEvent, Frame, Note, Run, Series
from traindx_tools.symptom import Cause, SymptomAnswer, answers_to, explained, left_open, shown

RNG = np.random.default_rng(0)
STEPS = np.arange(0, 6000, 10.0)


def series(
    name: str,
    values: Sequence[float] | np.ndarray,
    *,
    steps: np.ndarray | None = None,
    group: str = "train",
    original: str = "",
    rank: int | None = None,
) -> Series:
    """A series as a reader gives it."""
    n = len(values)
    step = np.arange(n, dtype=np.float64) if steps is None else steps
    unknown = np.full(n, np.nan)
    return Series(
        name,
        original or name,
        group,
        "run.log",
        np.asarray(values, dtype=np.float64),
        step,
        unknown,
        unknown,
        np.arange(1, n + 1),
        rank,
    )


def falling(n: int = 600, noise: float = 0.05, to: float = 2.0) -> np.ndarray:
    """A loss that learns, with noise."""
    s = np.arange(n) * 10.0
    return to + 8 * np.exp(-s / 350) + 0.9 * np.exp(-s / 2500) + np.random.default_rng(1).normal(0, noise, n)


def spiked() -> Run:
    """The run of a public report: a spike of 1.4 nats at step 3700 that is back after 100 steps."""
    bump = 1.4 * np.exp(-(STEPS - 3700) / 30) * (STEPS >= 3700)
    return Run(
        series=(
            series("loss", falling() + bump, steps=STEPS),
            series("grad_norm", 0.45 + 6.4 * bump + RNG.normal(0, 0.02, 600), steps=STEPS),
            series("learning_rate", np.full(600, 1e-3), steps=STEPS),
        )
    )


def value(found: SymptomAnswer, name: str) -> float:
    """A number of the answer."""
    told = found.values[name]
    assert isinstance(told, (int, float))
    return float(told)


def answer(words: str, run: Run, findings: Sequence[Finding] = ()) -> SymptomAnswer:
    """The one answer to words that state one symptom."""
    found = answers_to(words, run, findings)
    assert len(found) == 1, found
    return found[0]


HEALTHY = Run(
    series=(
        series("loss", falling(), steps=STEPS),
        series("grad_norm", np.full(600, 0.4), steps=STEPS),
        series("accuracy", np.linspace(0.1, 0.97, 60), group="validation", original="val_acc"),
    )
)


def test_a_spike_at_a_step_is_seen_there_with_its_size() -> None:
    found = answer("loss spike at step 3700", spiked())
    assert found.answer == "seen"
    assert found.is_open
    assert "step 3700" in found.where
    assert found.values["step"] == 3700
    assert value(found, "peak") > 3.5
    assert value(found, "times_scatter") > 10


def test_a_spike_elsewhere_is_not_the_one_that_was_said() -> None:
    found = answer("loss spike at step 1500", spiked())
    assert found.answer == "not_seen"


def test_a_spike_in_a_smooth_run_is_refuted() -> None:
    assert answer("loss spike at step 3700", HEALTHY).refuted


def test_a_step_beyond_the_record_is_not_judged() -> None:
    found = answer("loss spike at step 90000", HEALTHY)
    assert found.answer == "not_seen"
    assert not found.refuted
    assert "outside" in found.statement


def test_flat_for_the_first_steps_only() -> None:
    steps = np.arange(0, 1500, 10.0)
    late = np.where(steps <= 200, 2.3, 2.3 * np.exp(-(steps - 200) / 400)) + RNG.normal(0, 0.003, 150)
    run = Run(
        series=(
            series("loss", late, steps=steps),
            series("learning_rate", np.where(steps <= 200, 0, 1e-3), steps=steps),
        )
    )
    assert answer("loss does not move for the first 200 steps", run).answer == "seen"
    assert answer("lr is 0.0 for the first 200 steps", run).answer == "seen"
    assert answer("the loss is flat", run).refuted
    assert answer("loss does not move for the first 200 steps", HEALTHY).refuted


@pytest.mark.parametrize(
    ("words", "seen"), [("loss stays at 0.6931", True), ("loss is stuck at 0.7", True), ("loss is always -1", False)]
)
def test_a_value_that_is_named(words: str, seen: bool) -> None:
    run = Run(series=(series("loss", 0.6931 + RNG.normal(0, 0.001, 50)),))
    assert (answer(words, run).answer == "seen") == seen


def test_a_percentage_is_compared_in_the_scale_of_the_record() -> None:
    run = Run(series=(series("accuracy", np.full(8, 23.3), group="test", original="test_acc"),))
    found = answer("the test accuracy stays at 23 %", run)
    assert found.answer == "seen"
    assert found.values["value"] == 23


def test_never_below_a_value() -> None:
    run = Run(series=(series("loss", np.linspace(2, 0.87, 40)),))
    assert answer("the loss never gets below 0.86", run).answer == "seen"
    assert answer("the loss never gets below 1.5", run).refuted


def test_nan_is_seen_at_its_onset_and_refuted_where_all_is_finite() -> None:
    values = falling(50)
    values[40:] = np.nan
    found = answer("loss is NaN", Run(series=(series("loss", values),)))
    assert found.answer == "seen"
    assert found.values["first"] == 40
    assert "step 40" in found.where
    assert answer("loss is NaN", HEALTHY).refuted
    assert left_open(answers_to("loss is NaN", HEALTHY)) == ()


def test_nan_in_the_split_that_was_said() -> None:
    run = Run(
        series=(
            series("loss", falling(50)),
            series("loss", np.full(5, np.nan), group="validation", original="val_loss"),
        )
    )
    assert answer("val_loss is NaN at every evaluation", run).answer == "seen"
    assert answer("the training loss is NaN", Run(series=(series("loss", falling(50)),))).refuted


def test_rising_and_falling() -> None:
    rising = Run(
        series=(
            series(
                "loss", np.r_[np.linspace(2, 1, 20), np.linspace(1, 1.8, 20)], group="validation", original="val_loss"
            ),
        )
    )
    found = answer("the validation loss goes up", rising)
    assert found.answer == "seen"
    assert found.values["from"] == pytest.approx(1, abs=0.1)
    assert answer("the training loss goes up", HEALTHY).refuted


def test_the_gap_between_splits() -> None:
    run = Run(
        series=(
            series("accuracy", np.linspace(0.2, 0.99, 20), original="train_acc"),
            series("accuracy", np.full(20, 0.3), group="validation", original="val_acc"),
        )
    )
    found = answer("it overfits", run)
    assert found.answer == "seen"
    assert found.values["train"] == pytest.approx(0.99, abs=0.05)
    twin = Run(series=(run.series[0], series("accuracy", np.linspace(0.2, 0.98, 20), group="validation")))
    assert answer("it overfits", twin).refuted


def test_memory_that_grows_and_memory_that_levels_off() -> None:
    grows = Run(series=(series("memory", np.linspace(400, 900, 40)),))
    assert answer("memory grows", grows).answer == "seen"
    assert answer("memory grows", grows).is_open
    off = Run(series=(series("memory", np.r_[np.linspace(300, 550, 20), np.full(25, 551.0)]),))
    assert "does not grow" in answer("memory grows", off).expected
    assert answer("memory grows", HEALTHY).answer == "not_seen"
    assert answer("memory grows", HEALTHY).is_open


def test_a_jump_at_the_resume() -> None:
    values = np.r_[np.linspace(3, 1, 30), np.linspace(2.8, 1.2, 30)]
    run = Run(series=(series("loss", values),), notes=(Note("resume", "Resuming from ckpt.pt", "run.log", 31),))
    found = answer("after the resume the loss jumps up", run)
    assert found.answer == "seen"
    assert value(found, "after") > value(found, "before")


def test_a_warm_restart_is_expected() -> None:
    rate = np.tile(np.linspace(0.1, 0.001, 20), 3)
    loss = np.concatenate([np.linspace(2, 1, 20), np.linspace(1.6, 0.7, 20), np.linspace(1.2, 0.4, 20)])
    run = Run(series=(series("loss", loss), series("learning_rate", rate)))
    found = answer("the loss jumps up at step 20", run)
    assert found.answer == "seen"
    assert "restart" in found.expected
    assert not found.is_open


def test_a_crash_is_seen_with_its_place_and_refuted_where_the_run_ends_as_planned() -> None:
    error = ErrorEvent("exception", "ValueError", "bad shape", "run.log", 12, 14, (Frame("train.py", 7, "main"),))
    found = answer("the run crashes", Run(series=HEALTHY.series, errors=(error,)))
    assert found.answer == "seen"
    assert "train.py:7" in found.statement
    assert found.where == "run.log:12"
    ended = Run(series=(series("loss", falling(), steps=STEPS),), planned_steps=6000)
    assert answer("the run crashes", ended).refuted
    assert answer("the run crashes", HEALTHY).is_open


def test_ranks_that_disagree() -> None:
    run = Run(series=(series("loss", [2, 1.0], rank=0), series("loss", [2, 1.5], rank=1)))
    assert answer("the two ranks report different losses", run).answer == "seen"


def test_what_no_metric_shows_says_what_would_show_it() -> None:
    found = answer("the generated text is garbled", HEALTHY)
    assert found.answer == "not_seen"
    assert not found.refuted
    assert "generated samples" in found.statement
    assert found.question


def test_what_is_not_understood_is_repeated_and_asked() -> None:
    found = answer("the blorb frobnicates", HEALTHY)
    assert found.answer == "not_understood"
    assert "blorb frobnicates" in found.statement
    assert found.question.endswith("?")


def test_a_finding_is_a_witness_too() -> None:
    finding = Finding(
        "L213", "t", Severity.HIGH, Bearing.CAUSE, "all 40 predictions are class 3", Location(file="p.csv"), "p"
    )
    found = answer("it always predicts the same class", HEALTHY, [finding])
    assert found.answer == "seen"
    assert "class 3" in found.statement


def test_a_worry_is_open_only_where_it_is_seen() -> None:
    assert not answer("is the loss NaN?", HEALTHY).is_open
    assert not answer("does the memory grow?", HEALTHY).is_open
    broken = Run(series=(series("loss", [2, 1, np.nan, np.nan, np.nan]),))
    assert answer("is the loss NaN?", broken).is_open


def test_a_sure_cause_explains_what_it_predicts_and_nothing_else() -> None:
    answers = answers_to("loss spike at step 3700", spiked())
    by = explained(answers, [Cause("mem.leak", ("memory",)), Cause("lr.too-high", ("divergence",))])
    assert by[0].explained_by == "lr.too-high"
    assert not by[0].is_open
    assert explained(answers, [Cause("mem.leak", ("memory",))])[0].is_open


def test_what_was_stated_and_measured_is_shown() -> None:
    assert shown(answers_to("loss spike at step 3700", spiked())) == {"divergence"}
    assert shown(answers_to("the loss is NaN and the samples are garbage", spiked())) == frozenset()


def test_an_answer_survives_json() -> None:
    values = falling(50)
    values[40:] = np.inf
    told = answer("loss is inf", Run(series=(series("loss", values),))).to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told.keys() >= {
        "said",
        "kind",
        "metric",
        "where",
        "answer",
        "statement",
        "values",
        "explained_by",
        "question",
    }


@pytest.mark.parametrize("values", [[], [np.nan] * 4, [np.inf, -np.inf], [1.0], [0.0] * 30, [1e300, -1e300] * 10])
@pytest.mark.parametrize(
    "words",
    [
        "loss spikes at step 5",
        "loss is flat",
        "loss is NaN",
        "loss rises after epoch 2",
        "it overfits",
        "loss oscillates",
        "loss jumps after the resume",
        "loss stays at 0.69",
        "memory grows",
    ],
)
def test_any_series_is_looked_at(words: str, values: list[float]) -> None:
    run = Run(series=(series("loss", values), series("loss", values, group="validation"), series("memory", values)))
    assert answers_to(words, run)[0].answer in ("seen", "not_seen")


def test_a_value_that_another_series_ends_at_is_seen_there_and_a_foreign_one_refutes_nothing():
    rising = 0.67 + 0.23 * np.arange(40) / 39
    valid = series("auc", rising, group="validation", original="valid_auc")
    held = series("auc", [0.6025], group="test", original="holdout_auc")
    words = "Validation AUC is 0.90 but on the applications of 2023 it falls to 0.60."
    answers = answers_to(words, Run(series=(valid, held)))
    assert any(a.answer == "seen" and a.metric == "test holdout_auc" for a in answers)
    assert not any(a.refuted for a in answers_to(words, Run(series=(valid,))))
    assert any(a.refuted for a in answers_to("validation auc falls to 0.80", Run(series=(valid,))))


def test_one_split_above_the_other_is_looked_up_as_that() -> None:
    train, held = np.linspace(4.07, 2.25, 12), np.linspace(2.1, 0.62, 12)
    words = "the training loss starts at 4 and stays above the validation loss"
    run = Run(series=(series("loss", train, original="train_loss"),
                      series("loss", held, group="validation", original="val_loss")))
    assert answer(words, run).answer == "seen"
    twin = Run(series=(run.series[1], series("loss", held + 0.3, group="validation", original="val_loss"),
                       series("loss", held, original="train_loss")))
    assert answer(words, twin).refuted


def test_words_of_degree_have_one_answer_on_one_curve() -> None:
    fallen = Run(series=(series("loss", np.linspace(4.07, 2.25, 12), original="train_loss"),))
    level = Run(series=(series("loss", np.linspace(4.07, 4.0, 12), original="train_loss"),))
    for words in ("the training loss hardly falls", "the loss falls far too slowly", "loss barely decreases"):
        found = answer(words, fallen)
        assert (found.answer, found.refuted) == ("not_seen", False), words
        assert answer(words, level).answer == "seen", words
