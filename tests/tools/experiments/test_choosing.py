"""From a person's words or the log's findings to what is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.experiments.arms import Design
from traindx_tools.experiments.arms import Run as Run_
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.choosing import choose, chosen_for
from traindx_tools.experiments.design import following
from traindx_tools.experiments.outcome import Outcome, better_high, parse_outcome
from traindx_tools.experiments.reading import number, read_from, said_of
from traindx_tools.experiments.trace import Curve, Trace
from traindx_tools.experiments.verdict import Verdict
from traindx_tools.experiments.watch import curves_of
from traindx_tools.on_logs.each_run import read_last_run
from traindx_tools.on_logs.run import Run


@pytest.mark.parametrize(("words", "outcome"), [
    ("the loss is NaN after a few steps", "nonfinite"),
    ("training hangs", "hang"),
    ("it crashes", "exit"),
    ("CUDA out of memory", "error:out of memory"),
    ("memory grows every epoch", "memory-growth"),
    ("each step is slow", "step-time"),
    ("the loss does not go down", "fall>0.1"),
    ("accuracy stuck at chance", "fall:accuracy>0.1"),
    ("loss explodes", "rise"),
    ("validation loss rises", "rise:validation loss"),
    ("training accuracy is much higher than validation accuracy", "gap:accuracy"),
])
def test_words_name_what_is_measured(words: str, outcome: str) -> None:
    made = choose(words, Run())
    assert f"{made}{'>0.1' if made.kind == 'fall' else ''}" == outcome


def test_without_words_it_is_where_the_loss_ends() -> None:
    assert str(choose("", Run())) == "level"


def test_what_the_log_shows_decides_what_words_mean(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"step {i} loss {2.3 - 0.02 * min(i, 60):.4f}\n" for i in range(1, 101)))
    assert str(chosen_for([log], "the loss is stuck")) == "level", "it fell by half and then stayed: where it ends"
    log.write_text("".join(f"step {i} loss {2.3 + 0.001 * (i % 2):.4f}\n" for i in range(1, 101)))
    assert chosen_for([log], "the loss is stuck").kind == "fall"


def test_a_log_with_nan_speaks_for_itself(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"step {i} loss {'nan' if i > 20 else 2.0 / i}\n" for i in range(1, 41)))
    assert str(chosen_for([log], "")) == "nonfinite"


def test_an_error_is_looked_for_by_its_type(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text('step 1 loss 2.0\nTraceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
                   "    x[9]\nIndexError: index out of range\n")
    assert str(chosen_for([log], "it crashes")) == "error:IndexError"


def test_a_folder_without_artifacts_goes_by_the_words(tmp_path: Path) -> None:
    assert str(chosen_for([tmp_path], "loss is nan")) == "nonfinite"


def _printed(folder: Path, line: str) -> Path:
    log = folder / "log.txt"
    log.write_text("".join(line.format(i=i, a=2.0 / i, b=0.5 + i / 200) + "\n" for i in range(1, 61)))
    return log


def test_of_several_statements_the_first_that_has_a_value_is_measured(tmp_path: Path) -> None:
    """Seen: a third of all symptoms named a metric that no run printed, and every control was made for nothing."""
    log = _printed(tmp_path, "step {i} loss {a:.4f} val_accuracy {b:.4f}")
    assert str(chosen_for([log], "weight norm is poor and validation accuracy is poor")) == "level:validation accuracy"


def test_a_metric_is_found_by_the_words_in_its_name(tmp_path: Path) -> None:
    log = _printed(tmp_path, "step {i} td_loss {a:.4f} mean_q {i}")
    assert chosen_for([log], "the Q values climb past 1").metric == "mean_q"


def test_words_that_are_not_understood_are_measured_by_a_held_out_score(tmp_path: Path) -> None:
    log = _printed(tmp_path, "step {i} loss {a:.4f} val_accuracy {b:.4f}")
    assert str(chosen_for([log], "Has the community drifted?")) == "level:validation accuracy"
    assert str(chosen_for([log], "")) == "level"


def test_a_crash_that_the_run_does_not_show_is_not_measured(tmp_path: Path) -> None:
    run = read_last_run([str(_printed(tmp_path, "step {i} loss {a:.4f} val_accuracy {b:.4f}"))])
    ended = Trace(tmp_path, curves_of(run), ended=True, exit_code=0)
    assert choose("it crashes", run, (), ended).kind == "level"
    failed = Trace(tmp_path, curves_of(run), ended=True, exit_code=1)
    assert choose("it crashes", run, (), failed).kind == "exit"


def test_a_rank_at_ten_is_a_score() -> None:
    assert better_high("validation hr_10")
    assert better_high("ndcg@10")
    assert not better_high("loss_10")


@pytest.mark.parametrize(("words", "percent", "outcome"), [
    ("val acc is 0.60, 0.90 expected", 1, "level:validation accuracy>0.84"),
    ("val acc is 60% instead of 90%", 100, "level:validation accuracy>84"),
    ("val loss 0.40, 0.20 expected", 1, "level:validation loss<0.24"),
])
def test_an_expected_value_says_when_it_is_well(tmp_path: Path, words: str, percent: int, outcome: str) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"epoch {i} val_loss 0.4000 val_acc {0.6 * percent:.4f}\n" for i in range(1, 31)))
    assert str(chosen_for([log], words)) == outcome


def test_a_score_of_which_nobody_says_the_rows_is_that_of_those_held_out(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"epoch {i} loss {3.9 - 0.001 * i:.4f} c-index train 0.5{i % 3} test 0.4{i % 3}\n"
                           for i in range(20)))
    assert str(chosen_for([log], "the c-index is too low")) == "fall:test c_index"
    log.write_text("".join(f"epoch {i} loss {3.9 - 0.001 * i:.4f} c-index 0.5{i % 3}\n" for i in range(20)))
    assert str(chosen_for([log], "the c-index is too low")) == "fall:c_index"


def finals(value: float) -> dict[str, Curve]:
    return {"test accuracy": Curve(np.array([np.nan]), np.array([value])),
            "loss": Curve(np.arange(1.0, 9.0), np.linspace(2.0, 1.0, 8))}


@pytest.mark.parametrize("words", ["test accuracy falls", "test accuracy jumps around", "the test accuracy is stuck"])
def test_what_is_printed_once_is_measured_by_its_value(words: str) -> None:
    """Seen: a metric that was printed once at the end was measured as a rise of 0."""
    trace = Trace(Path(), finals(0.3), ended=True)
    outcome = choose(words, Run(), (), trace)
    assert str(outcome) == "level:test accuracy"
    assert said_of(outcome, trace) == "the only value of test accuracy"
    assert read_from(outcome, trace) == "the only value"


@pytest.mark.parametrize("kind", ["rise", "fall"])
def test_one_value_has_no_trend(kind: str) -> None:
    outcome = parse_outcome(f"{kind}:test accuracy")
    trace = Trace(Path(), finals(0.3), ended=True)
    assert number(outcome, trace) is None
    verdict = following(Design(Change("x"), outcome), [Run_(False, 0, trace)])
    assert isinstance(verdict, Verdict)
    assert (verdict.lacks, "one value alone" in verdict.why) == ("symptom", True)


def test_a_curve_is_said_to_be_read_from_its_last_values() -> None:
    trace = Trace(Path(), finals(0.3), ended=True)
    assert read_from(Outcome("level"), trace) == "the mean of the last 3 of 8 values"
    assert read_from(Outcome("level", "nothing"), trace) == ""


def test_a_value_that_a_loss_has_passed_is_of_another_quantity(tmp_path: Path) -> None:
    """Seen: "far from the 2 min we need" made a training loss of 1.6 better where it is higher."""
    log = tmp_path / "log.txt"
    log.write_text("".join(f"step {i} loss {2.6 - 0.01 * i:.4f}\n" for i in range(1, 101)))
    outcome = chosen_for([log], "the loss should be 2")
    assert (outcome.bound, outcome.up) == (None, False)
    better = chosen_for([log], "the loss should be 0.5")
    assert better.bound is not None
    assert not better.up


def test_a_statement_that_the_record_denies_gives_way_to_the_next(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"epoch {i} loss {2.0 - 0.05 * i:.4f} val_acc {0.33 + 0.002 * i:.4f}\n" for i in range(12)))
    assert chosen_for([log], "the model does not learn, validation accuracy is poor").metric == "validation accuracy"
