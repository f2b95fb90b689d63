"""Whatever a log holds: no exception, no hang, bounded memory, time linear in its length."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.on_logs.run import Run
from traindx_tools.on_logs.tracebacks import read_errors
from traindx_tools.rules import rules_in

ERRORS = Path(__file__).parents[3] / "fixtures" / "errors"
TEXTS = [p.read_text(errors="replace") for p in ERRORS.rglob("*.log")]
LINES = sorted({line for text in TEXTS for line in text.splitlines() if len(line) < 400})
ASSERT = ("../aten/src/ATen/native/cuda/Indexing.cu:1308: indexSelectLargeIndex: block: [{},0,0], thread: [{},0,0] "
          "Assertion `srcIndex < srcSelectDimSize` failed.")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=60)), max_size=40),
       st.sampled_from(["", "[rank3]: ", "7: ", "  | "]))
def test_any_mixture_of_lines_is_read_and_judged(lines: list[str], prefix: str) -> None:
    errors = read_errors(enumerate((prefix + line for line in lines), 1), "log.txt")
    run = Run(errors=errors)
    for module in rules_in("traindx_tools.on_logs.tracebacks"):
        for finding in module.check(run):
            assert finding.statement
    for event in errors:
        assert 1 <= event.line <= event.end_line <= len(lines)
        assert len(event.message) <= 4_000


@pytest.mark.parametrize("text", [
    "step 2 loss 1.0 val_e degrees of freedom is <= 0. Correction should be strictly less than the reduction factor",
    "Traceback (most recent call last):\n  File \"run.py\", line 9, in launch\n    raise ChildFailedError(\ntorch.",
    "Traceback (most recent call last):\n  File \"run.py\", line 9, in launch\n    raise ChildFailedError(\ntorch..: ",
], ids=["warning without its function", "name cut behind a dot", "dots alone"])
def test_lines_that_were_cut_have_a_statement(text: str) -> None:
    run = Run(errors=read_errors(enumerate(text.splitlines(), 1), "log.txt"))
    found = [f for module in rules_in("traindx_tools.on_logs.tracebacks") for f in module.check(run)]
    assert all(f.statement for f in found)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    read_errors(enumerate(text.split("\n"), 1), "log.txt")


def _seconds(lines: Iterator[tuple[int, str]]) -> float:
    start = time.process_time()
    read_errors(lines, "log.txt")
    return time.process_time() - start


def _asserts(count: int) -> Iterator[tuple[int, str]]:
    return ((i, ASSERT.format(i % 97, i % 64)) for i in range(1, count))


def test_thirty_thousand_asserts_are_one_event() -> None:
    (event,) = read_errors(_asserts(30_001), "log.txt")
    assert event.count == 30_000


@pytest.mark.slow
def test_fifty_megabytes_of_asserts_take_seconds() -> None:
    assert _seconds(_asserts(50_000_000 // len(ASSERT))) < 30


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):" + "a" * 5_000, "E" * 200_000, "RuntimeError: " + "(" * 200_000,
        'File "' + "x/" * 50_000, "| " * 50_000 + "Error", "size mismatch for " * 9_000, "Error: " + "\x1b[" * 50_000,
        "Assertion `" * 20_000, "a.b." * 50_000 + "Error: x", "╭" + "─" * 100_000, "(pid=" * 40_000,
        "\r" * 100_000 + "Killed",
    ],
    ids=lambda line: line[:12],
)
def test_no_line_takes_long(line: str, within: Any) -> None:
    def lines() -> Iterator[tuple[int, str]]:
        for number in range(1, 40, 4):
            yield from ((number, line), (number + 1, "Traceback (most recent call last):"), (number + 2, line),
                        (number + 3, line))

    with within(5):
        run = Run(errors=read_errors(lines(), "log.txt"))
        for module in rules_in("traindx_tools.on_logs.tracebacks"):
            list(module.check(run))


def test_ten_thousand_different_errors_are_bounded() -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line {0}, in f\n    g()\nValueError: row {1} is bad\n'
    lines = "".join(text.format(i % 700, "x" * (i % 50)) for i in range(10_000)).splitlines()
    errors = read_errors(enumerate(lines, 1), "log.txt")
    assert len(errors) <= 500


@pytest.mark.slow
def test_a_traceback_with_a_million_frames_is_bounded() -> None:
    lines = ["Traceback (most recent call last):", *['  File "a.py", line 3, in f', "    f()"] * 100_000,
             "RecursionError: too deep"]
    (event,) = read_errors(enumerate(lines, 1), "log.txt")
    assert (event.type, len(event.frames) <= 200) == ("RecursionError", True)
