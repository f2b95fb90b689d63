"""Runs that look suspicious and are not broken, and their faulty twins."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.judge import judge_run


def serious(tmp_path: Path, lines: list[str]) -> list[Finding]:
    (tmp_path / "log.txt").write_text("\n".join(lines) + "\n")
    return [f for f in judge_run(read_run([tmp_path / "log.txt"])) if f.severity.rank >= Severity.MEDIUM.rank]


def flat(accuracy: float) -> list[str]:
    rng = np.random.default_rng(3)
    lines = []
    for epoch in range(5):
        losses = 0.79 + 0.15 * rng.standard_normal(8)
        lines += [f"round {epoch} upd={i * 10} nll={v:.4f} lr=1.0e-04" for i, v in enumerate(losses, 1)]
        lines.append(f"after round {epoch}: val nll 0.79 val acc {accuracy + 0.002 * rng.standard_normal():.4f}")
    return lines


def test_a_flat_loss_with_a_fair_accuracy_may_be_a_good_start(tmp_path: Path) -> None:
    assert [f.rule for f in serious(tmp_path, flat(0.70)) if f.rule == "L201"] == []


def test_a_flat_loss_with_the_accuracy_of_guessing_is_not(tmp_path: Path) -> None:
    assert "L201" in [f.rule for f in serious(tmp_path, flat(0.25))]


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/home/me/train.py", line 57, in main',
    "    tracker.send(n)",
    '  File "/home/me/train.py", line 19, in send',
    '    raise ConnectionError("gone")',
    "ConnectionError: gone",
]


def test_an_error_that_was_caught_again_and_again_is_survived_to_the_end(tmp_path: Path) -> None:
    lines = []
    for i in range(1, 61):
        lines.append(f"step {i * 20} loss {1.2 * 0.98**i:.4f}")
        lines += TRACEBACK if i % 10 == 0 else []
    assert serious(tmp_path, lines) == []


def test_an_error_at_the_end_is_not(tmp_path: Path) -> None:
    lines = [f"step {i * 20} loss {1.2 * 0.98**i:.4f}" for i in range(1, 61)] + TRACEBACK
    assert [f.severity for f in serious(tmp_path, lines)] == [Severity.CRITICAL]


def test_a_policy_that_no_longer_explores_is_seen(tmp_path: Path) -> None:
    def log(entropy: list[float]) -> list[str]:
        return [f"n_updates={25 * i} ep_rew_mean={30.3 + 0.1 * (i % 3):.2f} entropy={h:.4f} policy_loss={2 / i:.3f}"
                for i, h in enumerate(entropy, 1)]

    assert "L603" in [f.rule for f in serious(tmp_path, log([0.9] + [0.06] * 12))]
    assert "L603" not in [f.rule for f in serious(tmp_path, log([0.9 - 0.03 * i for i in range(13)]))]
