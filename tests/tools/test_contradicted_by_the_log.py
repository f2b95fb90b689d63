"""What the log shows against a suspect counts: it is told, and the suspect falls behind."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.examine import examine
from traindx_tools.weighing import Hypothesis

RNG = np.random.default_rng(4)
OOM = """Traceback (most recent call last):
  File "/home/me/proj/train.py", line 121, in main
    history.append({0}(model, loader, opt))
  File "/home/me/proj/train.py", line 77, in {0}
    {1}
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 392.00 MiB. GPU 0 has a total capacity of 23.64 GiB \
of which 211.06 MiB is free. Of the allocated memory 22.61 GiB is allocated by PyTorch, and 341.72 MiB is reserved by \
PyTorch but unallocated.
"""


def suspects(folder: Path, text: str, symptom: str = "") -> dict[str, Hypothesis]:
    (folder / "train.log").write_text(text, encoding="utf-8")
    return {h.mode.id: h for h in examine([folder / "train.log"], symptom=symptom, root=folder).verdict.hypotheses}


def rates(after: float) -> str:
    """NaN some records after the learning rate went to `after` at record 120."""
    lines = []
    for i in range(170):
        up = math.exp(0.7 * max(0, i - 120))
        loss = (0.35 + 1.95 * math.exp(-i / 30)) * up + RNG.normal(0, 0.01)
        rate = 3e-4 if i < 120 else after
        lines.append(f"step {10 * i} | loss {loss if i < 127 else math.nan:.4f} | lr {rate:.2e} | "
                     f"grad_norm {(1 + RNG.normal(0, 0.1)) * up**2 if i < 127 else math.nan:.3f}")
    return "\n".join(lines) + "\n"


def test_the_rate_that_rose_first_stands_first(tmp_path: Path) -> None:
    found = suspects(tmp_path, rates(1.2e-2))
    assert next(iter(found)) == "lr.too-high"
    assert any(w.finding.rule == "L802" for w in found["lr.too-high"].speaks_for)
    missing = found.get("lr.missing-warmup")
    assert missing is None or any(w.finding.rule == "L802" for w in missing.speaks_against)


def test_a_rate_that_stays_moves_nobody(tmp_path: Path) -> None:
    found = suspects(tmp_path, rates(3e-4))
    assert not any(w.finding.rule == "L802" for h in found.values() for w in (*h.speaks_for, *h.speaks_against))


@pytest.mark.parametrize(("function", "code", "possible"), [
    ("train_epoch", "loss.backward()", False), ("evaluate", "scores.append(model(x))", True)])
def test_memory_that_ran_out_in_training_is_no_evaluation(function: str, code: str, possible: bool,
                                                          tmp_path: Path) -> None:
    lines = [f"[{e:3d}/100] loss {0.5 + 1.2 * math.exp(-e / 8):.2f} mem {9.1 + 0.45 * e:.1f}G" for e in range(1, 31)]
    found = suspects(tmp_path, "\n".join(lines) + "\n" + OOM.format(function, code))
    first = next(iter(found))
    kept = found.get("mem.evaluation-kept")
    if possible:
        assert first in ("mem.evaluation-kept", "eval.with-gradients")
    else:
        assert first == "mem.graph-kept"
        assert kept is None or kept.unshown or kept.speaks_against


def test_a_short_wait_for_data_speaks_against_a_slow_loader(tmp_path: Path) -> None:
    lines = [f"step {i} loss {2 + 3 * math.exp(-i / 30):.4f} step_time {0.4 + 0.004 * i:.3f} data_time 0.010"
             for i in range(200)]
    found = suspects(tmp_path, "\n".join(lines) + "\n", "it gets slower and slower")
    loader = found.get("loader.input-bound")
    assert loader is None or any(w.finding.rule == "L404" for w in loader.speaks_against)


def test_a_rate_that_goes_on_is_no_restart(tmp_path: Path) -> None:
    loss = [1.2 + 2.8 * math.exp(-i / 45) + (1.1 * math.exp(-(i - 150) / 25) if i >= 150 else 0) + RNG.normal(0, 0.03)
            for i in range(300)]
    lines = [f"step {20 * i} loss {v:.4f} lr 1.00e-03" for i, v in enumerate(loss)]
    lines.insert(150, "Resuming from checkpoint ckpt/step_3000.pt")
    found = suspects(tmp_path, "\n".join(lines) + "\n")
    assert found
    restart = found.get("lr.restart-on-resume")
    assert restart is None or restart.speaks_against
