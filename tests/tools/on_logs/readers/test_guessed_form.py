"""Templates for `--line` guessed from lines of which nothing was used, and what is told of such lines."""

from __future__ import annotations

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.readers.guessed_form import guessed
from traindx_tools.on_logs.run import Run


def read(text: str, *lines: str) -> Run:
    return read_run(["-"], stdin=text.encode(), lines=lines)


GUESSES = [
    (["0 | 2.5386 | 1.00e-03", "10 | 2.4681 | 9.90e-04"], "{step} | {loss} | {lr}"),
    (["[0000/1000] 2.49 (2.52)  1.0e-03", "[0010/1000] 2.44 (2.50)  9.9e-04"],
     "[{step}/1000] {loss} ({metric_1})  {lr}"),
    (["0;2.53;0.500", "10;2.42;0.503", "20;2.36;0.507"], "{step};{loss};{metric_1}"),
    (["trainer 0 2.53 1.0e-03 1.2GB", "trainer 1 2.51 1.0e-03 1.2GB"], "trainer {step} {loss} {lr}"),
    (["ep 3 ~ 0.5", "ep 4 ~ 0.4"], "ep {epoch} ~ {loss}"),
]


@pytest.mark.parametrize(("lines", "template"), GUESSES, ids=[t for _, t in GUESSES])
def test_a_template_is_guessed_from_how_the_numbers_go(lines: list[str], template: str) -> None:
    assert guessed(lines, ()) == template


def test_what_the_log_gave_by_itself_is_not_named_again() -> None:
    assert guessed([">> 0: 0.30 / 0.57", ">> 10: 0.31 / 0.2"], {"loss"}) == ">> {step}: {metric_1} / {metric_2}"


@pytest.mark.parametrize("lines", [["<0> ~ 0.5"], ["a {0} 0.5", "a {1} 0.4"], ["pid 7 8", "pid 7 8"],
                                   ["x 1.2.3", "x 1.2.4"]],
                         ids=["a single line", "braces of its own", "no fraction", "a version"])
def test_where_nothing_can_be_guessed_there_is_no_template(lines: list[str]) -> None:
    assert guessed(lines, ()) == ""


def test_the_template_reads_the_lines_that_it_was_guessed_from() -> None:
    text = "".join(f"2026-01-01 0:00:{i:02d} INFO {i} | {2 - i / 100:.3f} | {1e-3 - i * 1e-6:.2e}\n" for i in range(50))
    (artifact,) = read(text).artifacts
    assert artifact.lost is not None
    assert (artifact.lost.count, artifact.lost.of, artifact.lost.line) == (50, 50, 1)
    names = {s.name: len(s) for s in read(text, artifact.lost.form).series}
    assert names == {"loss": 50, "learning_rate": 50}


def test_a_heading_that_holds_a_value_is_a_line_that_was_not_used() -> None:
    (artifact,) = read("".join(f"[{i}/1000] {2 - i / 100:.3f}\n" for i in range(40))).artifacts
    assert artifact.lost is not None
    assert artifact.lost.form == "[{step}/1000] {loss}"


def test_a_log_that_is_read_lost_nothing() -> None:
    (artifact,) = read("<3> ~ 4.5\n" + "".join(f"step {i} loss {2 - i / 100:.2f}\n" for i in range(40))).artifacts
    assert artifact.lost is None


def test_full_bars_of_several_epochs_are_records_of_their_own() -> None:
    bar = "Epoch {}: 100%|##########| 391/391 [00:12<00:00, 31.0it/s, loss={:.3f}]\n"
    losses = [s for s in read("".join(bar.format(e, 2 / (1 + e)) for e in range(9))).series if s.name == "loss"]
    assert [len(s) for s in losses] == [9]
