"""Counters in thousands and millions: "step 12k", "iter 1.2M", "12k/40k"."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run

Line = Callable[[int], str]
FORMS: dict[str, tuple[Line, float, float | None]] = {
    "word": (lambda i: f"step {i / 10:g}k | loss {5 - i / 100:.4f} | lr 1.0e-4", 100, None),
    "colon": (lambda i: f"step: {i}K loss: {5 - i / 100:.4f}", 1e3, None),
    "millions": (lambda i: f"iter {i / 10:.1f}M, loss {5 - i / 100:.4f}", 1e5, None),
    "bar": (lambda i: f"train:  {i}%|##   | {i}k/40.0k [00:10<00:30, 1.52kit/s, loss={5 - i / 100:.4f}]", 1e3, 40e3),
    "plain, then in thousands": (
        lambda i: f"fit:  {i}%|#  | {i * 100 if i < 10 else f'{i / 10:.2f}k'}/4.00k "
                  f"[00:10<00:30, 1.52it/s, loss={5 - i / 100:.4f}]", 100, 4e3),
    "brackets": (lambda i: f"[{i / 10:.1f}k/40k] loss {5 - i / 100:.4f}", 100, 40e3),
    "box": (lambda i: f"-----------------\n| step | {i / 10:.1f}k |\n| loss | {5 - i / 100:.4f} |\n-----------------",
            100, None),
    "table": (lambda i: ("| step | loss | lr |\n" if i == 1 else "") + f"| {i / 10:.1f}k | {5 - i / 100:.4f} | 1e-3 |",
              100, None),
    "csv": (lambda i: ("step,loss\n" if i == 1 else "") + f"{i / 10:.1f}k,{5 - i / 100:.4f}", 100, None),
    "jsonl": (lambda i: json.dumps({"step": f"{i / 10:.1f}k", "loss": 5 - i / 100}), 100, None),
}


def read(line: Line, count: int = 39) -> Run:
    return read_run("-", stdin="".join(f"{line(i)}\n" for i in range(1, count + 1)).encode())


def of(run: Run, name: str) -> tuple[list[float], list[float]]:
    series = next(s for s in run.series if s.name == name)
    return series.step.tolist(), series.values.tolist()


@pytest.mark.parametrize("form", FORMS)
def test_a_counter_in_thousands_is_read(form: str) -> None:
    line, unit, planned = FORMS[form]
    run = read(line)
    step, values = of(run, "loss")
    assert step == [i * unit for i in range(1, 40)]
    assert values == pytest.approx([5 - i / 100 for i in range(1, 40)])
    assert planned is None or run.planned_steps == planned


def test_of_a_keras_bar_the_last_drawing_counts() -> None:
    run = read(lambda i: f"{i}k/40k [====>.....] - loss: {5 - i / 100:.4f} - ETA: 3s", 40)
    assert of(run, "loss") == ([40_000.0], [4.6])
    assert run.planned_steps == 40_000


def test_a_bar_tells_its_speed_in_thousands() -> None:
    assert set(of(read(FORMS["bar"][0]), "throughput")[1]) == {1520.0}


def test_many_lines_are_read_as_few() -> None:
    def line(i: int) -> str:
        return f"step {i / 1000:.3f}k | loss {5 - i / 10_000:.4f}"

    step, values = of(read(line, 3_000), "loss")
    assert step == [float(i) for i in range(1, 3_001)]
    assert values == pytest.approx([5 - i / 10_000 for i in range(1, 3_001)])


def test_an_example_of_a_line_may_say_it() -> None:
    text = "".join(f"{i / 10:.1f}k | {3 - i / 100:.3f} | 7\n" for i in range(60)).encode()
    step, _ = of(read_run("-", stdin=text, lines=["{step}k | {loss} | {}"]), "loss")
    assert step == [i * 100.0 for i in range(60)]


def test_units_and_names_stay_what_they_are() -> None:
    run = read(lambda i: f"step {i} took {i}ms, mem 12 KB, lr 1e-4k, top5k {i / 100:.2f} "
                         f"loss {3 - i / 100:.3f}, 3M params")
    assert of(run, "top5_k")[1] == pytest.approx([i / 100 for i in range(1, 40)])
    assert of(run, "time/took")[1] == pytest.approx([i / 1000 for i in range(1, 40)])
    assert of(run, "memory")[1][0] == pytest.approx(12 / 1024)
    assert of(run, "loss")[0] == [float(i) for i in range(1, 40)]
    assert "learning_rate" not in {s.name for s in run.series}


def test_a_download_plans_no_steps() -> None:
    bar = "".join(f"\r {i}%|##  | {i * 40}k/4.00M [00:01<00:10, 3.1MB/s]" for i in range(1, 100))
    run = read_run("-", stdin=(bar + "\n" + "".join(
        f"{{'loss': {3 - i / 100:.4f}, 'learning_rate': 1e-4, 'epoch': {i / 10}}}\n" for i in range(40))).encode())
    assert run.planned_steps != 4e6


@pytest.mark.parametrize("broken", ["step k", "step 1.2.3k", "step 12kk", "step 1e3k", "step -2k", "step 12k_ema"])
def test_what_is_no_count_is_no_step(broken: str) -> None:
    run = read(lambda i: f"{broken} loss {3 - i / 100:.3f}")
    assert not any((s.step == s.step).any() for s in run.series)
