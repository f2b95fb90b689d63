"""A run that goes back to an earlier step at a resume has the loss that it had there: nothing was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import examine


def resumed(folder: Path, lost: float = 0.0, back_to: int = 500) -> list[dict[str, object]]:
    """Died at step 699, went on from a checkpoint; `lost` is added to the loss and fades."""
    def loss(step: int) -> float:
        return 0.5 + 3.0 * 0.9967**step + 0.03 * ((step * 7919) % 13 - 6) / 6

    lines = [f"step: {s} loss: {loss(s):.4f}" for s in range(700)] + [f"Resuming from checkpoint step {back_to}"]
    lines += [f"step: {s} loss: {loss(s) + lost * 0.99 ** (s - back_to):.4f}" for s in range(back_to + 1, 1500)]
    (folder / "run.log").write_text("\n".join(lines) + "\n")
    return [f.measured for f in examine([folder / "run.log"], root=folder).findings if f.rule == "L207"]


@pytest.mark.parametrize("back_to", [300, 500, 650])
def test_the_loss_of_that_step_is_no_step(tmp_path: Path, back_to: int) -> None:
    assert resumed(tmp_path, back_to=back_to) == []


@pytest.mark.parametrize("lost", [0.6, 2.0])
def test_a_loss_above_that_of_the_step_is_one(tmp_path: Path, lost: float) -> None:
    (measured,) = resumed(tmp_path, lost)
    assert measured["steps_back"] is True


def test_a_counter_that_begins_anew_beside_a_loss_that_does(tmp_path: Path) -> None:
    lines = [f"step: {s} loss: {0.5 + 3.0 * 0.99**s:.4f}" for s in range(700)] + ["Resuming from checkpoint last.pt"]
    lines += [f"step: {s} loss: {0.5 + 3.0 * 0.99**s:.4f}" for s in range(700)]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    assert any(f.rule == "L207" for f in examine([tmp_path / "run.log"], root=tmp_path).findings)


def test_steps_that_are_no_numbers(tmp_path: Path) -> None:
    lines = ["step: nan loss: 1.0", "step: -5 loss: 1.1", "step: 1e999 loss: 0.9", "Resuming from checkpoint",
             "step: nan loss: 2.0", "step: -5 loss: 2.1", "step: 3 loss: 0.9"]
    (tmp_path / "run.log").write_text("\n".join(lines) + "\n")
    examine([tmp_path / "run.log"], root=tmp_path)
