"""A check of a fix that names a metric which the run does not log says what the run logs, or how it is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.diagnose import diagnose
from traindx.unlogged import with_how
from traindx_tools.on_logs.run import Run

CHECK, PROMISE = "200 steps: R2 > 0.1", "loss falls below the target's variance; R2 above 0"


def run_of(tmp_path: Path, text: str) -> Run:
    (tmp_path / "log.txt").write_text(text)
    return diagnose([tmp_path / "log.txt"]).seen.run


def logged(tmp_path: Path, line: str) -> Run:
    return run_of(tmp_path, "".join(f"step {i} {line}\n" for i in range(20)))


def test_a_metric_that_is_not_logged_is_explained_and_one_that_is_logged_named(tmp_path: Path) -> None:
    said = with_how(CHECK, PROMISE, logged(tmp_path, "loss 0.5"))
    assert said.startswith(f"{CHECK} (this run logs no R2: R2 is 1 - (squared error")
    assert "what is logged and tells as well: loss goes down" in said


@pytest.mark.parametrize("line", ["loss 0.5 r2 0.1", "r2_score 0.2 loss 0.3"])
def test_a_metric_that_is_logged_needs_no_word(tmp_path: Path, line: str) -> None:
    assert with_how(CHECK, PROMISE, logged(tmp_path, line)) == CHECK


@pytest.mark.parametrize("check", [
    "print the KL", "a unit test per reward", "log the perplexity", "loss at step 0 against the known perplexity",
    "balanced accuracy is printed by `traindx log`", "200 steps: the loss falls", ""])
def test_a_check_that_says_how_it_is_made_or_names_no_metric_stays(tmp_path: Path, check: str) -> None:
    assert with_how(check, PROMISE, logged(tmp_path, "loss 0.5")) == check


def test_where_nothing_is_logged_it_is_not_known_what_is(tmp_path: Path) -> None:
    assert with_how(CHECK, PROMISE, run_of(tmp_path, "Traceback (most recent call last):\nValueError: odd\n")) == CHECK
