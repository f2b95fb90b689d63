"""Values before and behind the epochs of a series are a series of their own; a restart that goes on is no fault."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools import extract_training_metrics
from traindx_tools.examine import examine

EPOCHS = [f"epoch {i} train mse {1 / i:.4f} val mse {1.1 / i:.4f}" for i in range(1, 16)]


def series(tmp_path, lines):
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    found = extract_training_metrics(tmp_path / "train.log").series
    return {(s.group, s.name): s for s in found}


def test_a_baseline_in_the_last_line_is_no_further_epoch(tmp_path):
    found = series(tmp_path, ["check val mse 1.9", *EPOCHS, "persistence val mse 5.2"])
    assert len(found["validation", "mse"]) == 15
    assert found["validation", "mse"].unit == "epoch"
    assert found["validation", "mse/apart"].values.tolist() == [1.9, 5.2]
    assert [f.rule for f in examine([tmp_path / "train.log"]).findings if f.rule == "L203"] == []


@pytest.mark.parametrize("lines", [
    ["val mse 1.9", "val mse 1.8", *EPOCHS[:4]],  # too few epochs
    [f"train mse {1 / i:.4f}" for i in range(1, 9)],  # none has a place
    [*EPOCHS, *(f"val mse 0.{i}" for i in range(9))]])  # too many to be an addition
def test_anything_else_stays_one_series(lines, tmp_path):
    assert not any(name.endswith("/apart") for _, name in series(tmp_path, lines))


def rates(before, after, first):
    lr = [*before, *after]
    loss = [0.5 - 0.01 * i + (0.2 if i == len(before) else 0.0) for i in range(len(lr))]
    return [f"resume after epoch {first - 1}: lr {before[0] * 3:.6f}"] + [
        f"epoch {first + i} loss {v:.4f} lr {r:.6f}" for i, (v, r) in enumerate(zip(loss, lr, strict=True))]


def test_a_warm_restart_behind_a_resume_that_went_on_is_meant(tmp_path):
    lines = rates([7e-4, 3e-4, 4e-5], [8e-3 * np.cos(np.pi / 2 * i / 16) ** 2 + 4e-5 for i in range(16)], 8)
    series(tmp_path, lines)
    assert [f.rule for f in examine([tmp_path / "train.log"]).findings if f.rule == "L302"] == []


def test_a_rate_that_jumps_up_at_the_resume_is_told(tmp_path):
    decay = [8e-3 * np.cos(np.pi / 2 * i / 20) ** 2 for i in range(12)]
    lines = [f"epoch {i} loss {0.5 - 0.01 * i:.4f} lr {r:.6f}" for i, r in enumerate(decay, 1)]
    lines += ["Resuming from checkpoint epoch 12", *(
        f"epoch {12 + i} loss {0.6 - 0.01 * i:.4f} lr {r:.6f}" for i, r in enumerate(decay, 1))]
    series(tmp_path, lines)
    (found,) = [f for f in examine([tmp_path / "train.log"]).findings if f.rule == "L302"]
    assert "at the resume" in found.statement
