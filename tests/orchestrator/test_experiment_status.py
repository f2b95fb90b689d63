"""Progress: one line that is drawn over at a terminal, nothing in a pipe; lines that stay are for both."""

from __future__ import annotations

import pytest

from traindx.commands.experiment import Status


def test_a_pipe_hears_lines_alone(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status()
    status.terminal = False
    status.progress("X001 run 1: step 3")
    status.say("X001 run 1: control, own seed")
    status.clear()
    assert capsys.readouterr().err == "traindx: X001 run 1: control, own seed\n"


def test_a_terminal_sees_the_step_drawn_over(capsys: pytest.CaptureFixture[str]) -> None:
    status = Status()
    status.terminal = True
    status.progress("X001 run 1: step 3")
    status.progress("X001 run 1: step 4")
    status.say("X001 run 2")
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "\r\x1b[KX001 run 1: step 4\r\x1b[Ktraindx: X001 run 2\n" in err
