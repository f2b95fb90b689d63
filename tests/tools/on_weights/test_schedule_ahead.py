"""Schedules that run several times too fast, or are over long before the training is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")


def saved(home: Path, steps: int, times: int = 1, *, length: int = 1000, lowest: float = 0.0, planned: int = 1000,
          accumulated: int = 4, kind: str = "cosine", config: str = "config.yaml") -> Path:
    """A training state whose schedule was stepped `times` times in each of `steps` steps."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    made: Any = {
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, length, lowest),
        "restarts": lambda: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, length),
        "linear": lambda: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: max(0.0, 1 - n / length)),
    }[kind]()
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).pow(2).mean().backward()
        optimizer.step()
        for _ in range(times):
            made.step()
    home.mkdir(parents=True, exist_ok=True)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": made.state_dict(),
             "step": steps}
    torch.save(state, home / "ckpt.pt")
    settings = {"train": {"max_steps": planned, "grad_accum": accumulated}, "sampler": {"steps": 10}}
    text = (json.dumps(settings) if config.endswith(".json") else
            f"train:\n  max_steps: {planned:_}  # updates\n  grad_accum: {accumulated}\nsampler: {{steps: 10}}\n")
    (home / config).write_text(text)
    return home / "ckpt.pt"


def told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not [n for n in report.notes if "failed" in n]
    return [f for f in report.findings if f.rule == "W142"]


@pytest.mark.parametrize("config", ["config.yaml", "config.json"])
@pytest.mark.parametrize(("kind", "steps"), [("cosine", 250), ("cosine", 100), ("linear", 250),
                                             ("linear", 100)])
def test_a_schedule_that_steps_in_every_small_batch(kind: str, steps: int, config: str, tmp_path: Path) -> None:
    (found,) = told(saved(tmp_path, steps, 4, kind=kind, config=config))
    assert (found.measured["kind"], found.measured["k"], found.measured["count"]) == ("several", 4, 4 * steps)
    assert "accumulates" in found.statement


@pytest.mark.parametrize(("steps", "times", "more"), [
    (250, 1, {}), (950, 1, {}), (250, 4, {"length": 4000}), (250, 4, {"planned": 250}), (10, 4, {}),
    (100, 4, {"length": 4000, "kind": "linear"}), (100, 1, {"kind": "linear"}),
    (250, 1, {"length": 250, "kind": "restarts"}), (250, 1, {"length": 250, "lowest": 1e-4}),
])
def test_schedules_that_fit_their_training(steps: int, times: int, more: dict[str, Any], tmp_path: Path) -> None:
    assert told(saved(tmp_path, steps, times, **more)) == []


def test_a_schedule_that_is_over_before_the_training(tmp_path: Path) -> None:
    (found,) = told(saved(tmp_path, 250, length=250))
    assert (found.measured["kind"], found.severity) == ("over", Severity.MEDIUM)


def test_configurations_that_say_nothing_or_are_broken(tmp_path: Path) -> None:
    path = saved(tmp_path, 250, 4)
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe max_steps 1000 : {")
    assert told(path) == []
    (tmp_path / "config.yaml").unlink()
    assert told(path) == []
