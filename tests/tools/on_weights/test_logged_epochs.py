"""W140: the epoch of `trainer_state.json` beside what its own history says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.logged_epochs import epochs_apart

torch = pytest.importorskip("torch")


def state(epoch: Any, steps: int = 400, each: float = 200.0, **more: Any) -> dict[str, Any]:
    history = [{"step": s, "epoch": s / each, "loss": 2.0} for s in range(20, steps + 1, 20)]
    return {"global_step": steps, "epoch": epoch, "max_steps": 1000, "log_history": history, **more}


@pytest.mark.parametrize(("epoch", "told"), [(0.8, True), (4.0, True), (2.0, False), (2.02, False)])
def test_an_epoch_of_another_place(epoch: float, told: bool, tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(8, 8).state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "trainer_state.json").write_text(json.dumps(state(epoch)))
    found = [f for f in examine(tmp_path).findings if f.rule == "W140"]
    assert [(f.severity, f.measured["kind"]) for f in found] == ([(Severity.MEDIUM, "epoch")] if told else [])


@pytest.mark.parametrize("made", [
    state(2.5, log_history=[{"step": s, "epoch": s / (100 if s < 200 else 300)} for s in range(20, 401, 20)]),
    state(2.5, log_history=[{"step": 20, "epoch": 0.1}]), state(2.5, log_history=None), state(None), state("two"),
    state(True), state(1.0, log_history=[{"step": "a", "epoch": []}] * 8), state(2.5, steps=0), [], 3])
def test_histories_that_say_nothing(made: Any, tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text(json.dumps(made))
    assert epochs_apart(str(tmp_path)) is None
    (tmp_path / "trainer_state.json").write_text("{")
    assert epochs_apart(str(tmp_path)) is None
