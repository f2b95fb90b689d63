"""A loss that falls back towards its beginning, whatever the log calls the place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.curves.l207_step_at_boundary import check
from traindx_tools.on_logs.reading import read_run

T = np.arange(300.0)
AT = 150


def course(back: float, seed: int = 3) -> np.ndarray:
    """From 4.0 to 1.2; at record `AT` higher by `back`, and down again."""
    again = np.where(T >= AT, back * np.exp(-(T - AT) / 25), 0.0)
    return np.asarray(1.2 + 2.8 * np.exp(-T / 45) + again + np.random.default_rng(seed).normal(0, 0.03, 300))


def text(loss: np.ndarray, rate: Callable[[int], float] = lambda i: 1e-3, at: str = "", more: str = "") -> str:
    lines = [f"step {20 * i} loss {v:.4f} lr {rate(i):.2e}{more.format(i // 75) if more else ''}" for i, v in
             enumerate(loss)]
    return "\n".join([*lines[:AT], *([at] if at else []), *lines[AT:]]) + "\n"


def seen(folder: Path, log: str, name: str = "train.log") -> list[Finding]:
    (folder / name).write_text(log, encoding="utf-8")
    return list(check(read_run([folder / name])))


def test_back_at_the_untrained_loss(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, text(course(2.9)))
    assert (found.measured["kind"], found.severity, found.measured["at"]) == ("elsewhere", Severity.MEDIUM, 3000.0)
    assert "step 3000, back where it began" in found.statement
    assert "then it falls again" in found.statement


@pytest.mark.parametrize(("back", "lost", "severity"), [(1.1, 0.42, Severity.MEDIUM), (0.8, 0.3, Severity.LOW)])
def test_part_of_the_way_back(back: float, lost: float, severity: Severity, tmp_path: Path) -> None:
    (found,) = seen(tmp_path, text(course(back)))
    assert (found.measured["kind"], found.severity) == ("elsewhere", severity)
    assert found.measured["lost"] == pytest.approx(lost, abs=0.03)


@pytest.mark.parametrize("back", [1.1, 2.9])
def test_an_event_in_json_lines_is_a_resume(back: float, tmp_path: Path) -> None:
    rows = [json.dumps({"step": 20 * i, "loss": round(v, 4)}) for i, v in enumerate(course(back))]
    rows.insert(AT, json.dumps({"event": "resume", "checkpoint": "ckpt/step_3000.pt"}))
    (found,) = seen(tmp_path, "\n".join(rows) + "\n", "run.jsonl")
    assert (found.measured["kind"], found.severity) == ("resume", Severity.MEDIUM)


def test_a_rate_that_stays_is_said_to(tmp_path: Path) -> None:
    (found,) = seen(tmp_path, text(course(1.1), at="Resuming from checkpoint ckpt/step_3000.pt"))
    assert found.statement.endswith("the learning rate stays at 0.001")


@pytest.mark.parametrize("log", [
    text(course(0.0)),
    text(course(2.0), rate=lambda i: 1e-3 * (0.5 + 0.5 * np.cos(np.pi * (i % AT) / AT))),
    text(course(2.0), at="curriculum: entering stage 2"),
    text(course(2.0), more=" seq_len {}"),
    text(3 + 2 * np.exp(-(T % 50) / 20) + np.random.default_rng(1).normal(0, 0.05, 300)),
    text(np.where(T == AT, 4.0, course(0.0))),
    text(course(2.0)).replace("loss", "d_loss") + "step 6000 g_loss 1.0\n",
    text(course(2.0)) + "step 6000 reward 1.0\n",
    "step 1 loss 2.0\nstep 2 loss 4.0\n",
    "step 1 loss nan\n" * 30,
], ids=["decay", "warm restart", "announced stage", "longer sequences", "teeth", "spike", "adversarial", "policy",
        "two records", "nothing finite"])
def test_what_explains_itself(log: str, tmp_path: Path) -> None:
    assert [f for f in seen(tmp_path, log) if f.measured["kind"] == "elsewhere"] == []
