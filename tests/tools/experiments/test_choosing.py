"""From a person's words or the log's findings to what is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.experiments.choosing import choose, chosen_for
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
