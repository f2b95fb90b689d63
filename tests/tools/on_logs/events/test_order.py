"""Which association stands first, which is only a message about the anomaly, which threshold of a column separates."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.events.candidates import Candidate
from traindx_tools.on_logs.events.separating import round_between, separating
from traindx_tools.on_logs.judge import judge_events
from traindx_tools.on_logs.reading import joined, read_parts

STEPS = 2500
Lines = Callable[[int, bool, np.random.Generator], list[str]]


def found(text: str, tmp_path: Path, name: str = "train.log") -> list[Finding]:
    path = tmp_path / name
    path.write_text(text)
    reading, failures = read_parts([path]), []  # type: ignore[var-annotated]
    seen = judge_events(joined(reading), reading.sources, failures)
    assert failures == []
    return [f for f in seen if f.rule == "L801"]


def log(lines: Lines, seed: int = 0, metric: str = "loss") -> str:
    """Text with spikes of a metric; `lines` says what is written before the record of a step."""
    rng = np.random.default_rng(seed)
    values = 2 + 0.02 * rng.standard_normal(STEPS)
    at = rng.choice(np.arange(100, STEPS - 50), 24, replace=False)
    values[at] += 1.0
    spikes, out = set(at.tolist()), []
    for t in range(STEPS):
        out += [*lines(t, t in spikes, rng), f"step {t} {metric} {values[t]:.4f}"]
    return "\n".join(out) + "\n"


def bucket(spike: bool, rng: np.random.Generator) -> str:
    return f"batch of bucket={1536 if spike else rng.choice([128, 256, 512])} from worker {rng.integers(8)}"


def clipped(spike: bool, rng: np.random.Generator) -> list[str]:
    return [f"gradient clipped from {rng.uniform(5, 60):.2f}"] if spike else []


def test_a_value_of_a_usual_line_stands_before_a_message_about_the_anomaly(tmp_path: Path) -> None:
    (one,) = found(log(lambda t, s, rng: [bucket(s, rng), *clipped(s, rng)]), tmp_path)
    assert "bucket=1536" in str(one.measured["event"])
    assert one.severity is Severity.MEDIUM
    names, reasons = one.measured["ruled_out"], one.measured["ruled_out_why"]
    assert isinstance(names, tuple)
    assert isinstance(reasons, tuple)
    (said,) = [str(why) for name, why in zip(names, reasons, strict=True) if "clipped" in str(name)]
    assert said.startswith("stands at the same records as")


def test_a_message_about_the_anomaly_alone_is_a_remark(tmp_path: Path) -> None:
    (one,) = found(log(lambda t, s, rng: [bucket(False, rng), *clipped(s, rng)]), tmp_path)
    assert one.severity is Severity.INFO
    assert one.statement.endswith("it may be a message about them")


def test_what_happens_without_an_anomaly_too_is_no_message_about_it(tmp_path: Path) -> None:
    """The same line at the same record, but three times without any spike."""
    (one,) = found(log(lambda t, s, rng: clipped(s or t in (300, 900, 1700), rng)), tmp_path)
    assert one.severity is Severity.MEDIUM


def test_an_event_of_an_earlier_record_is_no_message_about_it(tmp_path: Path) -> None:
    said: list[int] = []
    text = log(lambda t, s, rng: said.append(t) or [] if s else [])  # type: ignore[func-returns-value]
    ahead = {t - 3 for t in said}
    lines = []
    for line in text.splitlines():
        if line.startswith("step ") and int(line.split()[1]) in ahead:
            lines.append("retry of object get")
        lines.append(line)
    (one,) = found("\n".join(lines) + "\n", tmp_path)
    assert (one.measured["near"], one.severity) == (3, Severity.MEDIUM)


def test_an_event_that_keeps_time_is_no_message(tmp_path: Path) -> None:
    """Slow steps at each evaluation: the evaluation comes with a clock, not with them."""
    rng = np.random.default_rng(3)
    out: list[str] = []
    for t in range(STEPS):
        out += ["validation pass started"] if t % 100 == 99 else []
        out.append(f"step {t} loss {2 + 0.02 * rng.standard_normal():.4f} step_time "
                   f"{0.4 + 0.01 * rng.random() + 2 * (t % 100 == 99):.4f}")
    told = [f for f in found("\n".join(out) + "\n", tmp_path) if "step_time" in f.statement]
    assert [f.severity for f in told] == [Severity.INFO]
    assert "message about them" not in told[0].statement


def table(column: Callable[[np.ndarray, np.random.Generator], np.ndarray], seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    loss = 2 + 0.02 * rng.standard_normal(STEPS)
    at = rng.choice(np.arange(100, STEPS - 50, 5), 25, replace=False)
    loss[at] += 1.0
    spike = np.zeros(STEPS, bool)
    spike[at] = True
    values = column(spike, rng)
    rows = [f"{t},{loss[t]:.5f},{values[t]:g}" for t in range(STEPS)]
    return "\n".join(["step,loss,seq_len", *rows]) + "\n"


def test_the_threshold_that_separates_is_told_with_both_counts(tmp_path: Path) -> None:
    text = table(lambda s, rng: np.where(s, rng.integers(8000, 8192, STEPS), rng.integers(128, 2048, STEPS)))
    (one,) = found(text, tmp_path, "metrics.csv")
    assert one.statement.startswith("`seq_len` >= 8,000 occurs at the same record as 24 of 24 upward spikes of loss "
                                    "and in 1 of 2,476 other rows")  # one of the 25 is lower than the scatter shows
    assert one.severity is Severity.MEDIUM
    assert len(one.measured["event_lines"]) == 25  # type: ignore[arg-type]


def test_a_low_side_separates_too(tmp_path: Path) -> None:
    text = table(lambda s, rng: np.where(s, rng.integers(2, 9, STEPS), rng.integers(128, 2048, STEPS)))
    (one,) = found(text, tmp_path, "metrics.csv")
    assert "`seq_len` <= " in one.statement
    assert one.measured["hits"] == one.measured["count"] == 24
    assert one.measured["otherwise"] == 1


def test_a_measured_number_that_rises_with_the_anomaly_is_told_low(tmp_path: Path) -> None:
    """A decoy: what is measured, not chosen, can show the anomaly itself."""
    text = table(lambda s, rng: np.where(s, 5 + rng.random(STEPS), rng.random(STEPS)))
    assert [f.severity for f in found(text, tmp_path, "metrics.csv")] in ([Severity.LOW], [])


@pytest.mark.parametrize("seed", range(3))
def test_a_column_without_a_part_in_it_is_not_told(seed: int, tmp_path: Path) -> None:
    assert found(table(lambda s, rng: rng.integers(128, 2048, STEPS), seed), tmp_path, "metrics.csv") == []


@pytest.mark.parametrize(("low", "high", "told"), [(2047, 8004, 8000), (2047, 2100, 2100), (-math.inf, 0.0, 0.0),
                                                   (0.0271, 0.0312, 0.03), (-12, -8.4, -9), (3, 3.0000001, 3.0000001)])
def test_a_threshold_has_few_digits(low: float, high: float, told: float) -> None:
    assert round_between(low, high) == pytest.approx(told, abs=1e-9)


def test_a_candidate_without_numbers_stays_as_it_is() -> None:
    none = Candidate("`x`", np.array([3, 4]), "column")
    assert separating(none, np.array([3, 4]), np.array([3]), 0, 0) is none


def test_a_row_of_a_table_is_no_message_about_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    loss, source = 2 + 0.02 * rng.standard_normal(STEPS), rng.choice(["wiki", "web", "code"], STEPS).astype(object)
    at = rng.choice(np.arange(100, STEPS - 50, 5), 25, replace=False)
    loss[at], source[at] = loss[at] + 1.0, "arxiv"
    rows = [f"{t},{loss[t]:.5f},3e-4,{source[t]},{rng.integers(128, 2048)}" for t in range(STEPS)]
    (one,) = found("\n".join(["step,loss,lr,source,seq_len", *rows]) + "\n", tmp_path, "metrics.csv")
    assert "arxiv" in str(one.measured["event"])
    assert one.severity is Severity.MEDIUM
