"""From the text of a log to the finding: several layouts, through the readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numerics_builder import findings

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run


def judged(tmp_path: Path, text: str, name: str = "log.txt") -> dict[str, Finding]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return {f.rule: f for f in findings(read_run([str(path)])) if f.severity is not Severity.INFO}


def test_trainer_dicts_with_a_schedule_that_ends_at_a_third(tmp_path: Path) -> None:
    lines = [f"{{'loss': '{0.4 + 2 / i:.4g}', 'grad_norm': '1.1', "
             f"'learning_rate': '{max(0.0, 5e-5 * (1 - i / 20)):.4g}', 'epoch': '{i / 20:.4g}'}}" for i in range(1, 61)]
    found = judged(tmp_path, "\n".join(lines))
    assert found["L306"].measured["k"] == 3
    assert found["L301"].measured["share"] == pytest.approx(1 / 3, abs=0.01)


def test_megatron_loss_scale_and_nan(tmp_path: Path) -> None:
    lines = []
    for i in range(1, 21):
        scale = 65536.0 if i < 10 else 65536.0 / 4 ** (i - 9)
        loss = 9 - 0.3 * i if i < 11 else float("nan")
        lines.append(
            f" [2026-11-02 10:{i:02d}:00] iteration {i * 10:8d}/ 100000 | consumed samples: {i * 640:12d} | elapsed "
            f"time per iteration (ms): 512.3 | learning rate: {1.5e-4:.6E} | global batch size:    64 | "
            f"lm loss: {loss:.6E} | loss scale: {scale:.1f} | grad norm: {1.2:.3f} | "
            "number of skipped iterations:   0 | "
            "number of nan iterations:   0 |")
    found = judged(tmp_path, "\n".join(lines))
    assert found["L101"].measured["position"] == 110.0
    assert found["L105"].measured["loss_nonfinite"] in ("after", "same")


def test_tables_of_epochs_with_a_resume(tmp_path: Path) -> None:
    lr = 0.05 * 0.5 * (1 + np.cos(np.pi * np.arange(40) / 40))
    lr[27:] = lr[:13]
    lines = [f"Epoch {e:3d} | train loss {1.5 * 0.93**e + (0.4 if e >= 27 else 0):.4f} | lr {lr[e]:.5f}"
             for e in range(40)]
    lines.insert(27, "=> resumed from checkpoint ckpt_26.pth (epoch 27)")
    found = judged(tmp_path, "\n".join(lines))
    assert found["L302"].measured["position"] == 27.0
    assert found["L302"].measured["at_resume"] is True


def test_jsonl_with_memory_that_grows(tmp_path: Path) -> None:
    lines = [f'{{"step": {i * 20}, "loss": {2 / (1 + i):.4f}, "gpu_mem_mb": {5000 + 130 * i}}}' for i in range(1, 31)]
    assert "L401" in judged(tmp_path, "\n".join(lines), "metrics.jsonl")


def test_csv_with_a_geometric_learning_rate(tmp_path: Path) -> None:
    rows = ["iteration,loss,lr"] + [f"{i * 10},{2 - 0.01 * i:.4f},{1e-2 * 0.9 ** (i * 10):.6e}" for i in range(1, 41)]
    found = judged(tmp_path, "\n".join(rows), "metrics.csv")
    assert found["L303"].measured["ratio"] == pytest.approx(0.9, rel=1e-3)


def test_nanogpt_that_is_noisy_and_healthy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"iter {i}: loss {0.8 + 2.6 * np.exp(-i / 90) + rng.normal(0, 0.06):.4f}, "
             f"time {abs(rng.normal(90, 40)) + 30:.2f}ms, mfu {rng.uniform(0.5, 4):.2f}%" for i in range(0, 600, 10)]
    assert judged(tmp_path, "\n".join(lines)) == {}
