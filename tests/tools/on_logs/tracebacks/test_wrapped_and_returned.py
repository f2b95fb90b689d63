"""Launchers that say how a process ended, and errors that stand behind another one's name."""

from __future__ import annotations

import pytest

from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.exception_lines import exception_line
from traindx_tools.on_logs.tracebacks.parse import read_errors

DEEPSPEED = "[2026-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', 'main.py', " \
            "'--local_rank=0'] exits with return code = {code}"


@pytest.mark.parametrize("text", [
    DEEPSPEED.format(code=-9), DEEPSPEED.format(code=137), "worker 3: returncode: -9", "child: return code is 137",
    "process exited with return code -9", "exit code: 137",
])
def test_a_killed_process_is_known_by_what_it_returned(text: str) -> None:
    (event,) = read_errors([(1, text)], "train.log")
    assert event.type == fatal_lines.KILLED


@pytest.mark.parametrize("text", [
    DEEPSPEED.format(code=1), DEEPSPEED.format(code=0), "return code = 1370", "returncode: -90",
    "return code = 137.5 points", "def f(): return code", "",
])
def test_other_codes_are_no_kill(text: str) -> None:
    assert all(e.type != fatal_lines.KILLED for e in read_errors([(1, text)], "train.log"))


def test_the_error_behind_the_unfiltered_trace_is_told() -> None:
    line = "jax._src.traceback_util.UnfilteredStackTrace: jax._src.errors.ConcretizationTypeError: Abstract tracer"
    assert exception_line(line, right_after_frames=True) == ("jax._src.errors.ConcretizationTypeError",
                                                             "Abstract tracer")


@pytest.mark.parametrize("line", ["jax._src.traceback_util.UnfilteredStackTrace",
                                  "jax._src.traceback_util.UnfilteredStackTrace: 12 frames were left out"])
def test_a_wrapper_around_nothing_stays_itself(line: str) -> None:
    told = exception_line(line, right_after_frames=True)
    assert told is not None
    assert told[0].endswith("UnfilteredStackTrace")
