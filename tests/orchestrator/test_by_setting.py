"""Changes that a program's own settings make: which keys are taken, and when an experiment falls back to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from traindx.by_setting import by_settings, settings_in
from traindx.diagnose import diagnose
from traindx.proving import MOST_VAIN, Planned
from traindx_tools.catalog.decisions import load_decisions
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.preparing import preparing
from traindx_tools.experiments.trace import LIVE, Applied, Curve, Trace

PROGRAM = """
import json
import jax, jax.numpy as jnp
import numpy as np
hp = json.load(open("hp.json"))
w = jnp.zeros((6, 3))
rng = np.random.default_rng(0)
def bent(x):
    if hp["augment"]["reverse"]:
        x = x[:, ::-1]
    return x + hp["augment"]["noise"] * rng.normal(size=x.shape)
for step in range(60):
    x = bent(rng.normal(size=(32, 6)))
    loss, g = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    w = w - hp["optim"]["lr"] * g
    print(f"step {step} loss {loss:.4f}")
"""
SETTINGS = """{"optim": {"lr": 0.02, "weight_decay": 0.0}, "augment": {"reverse": true, "noise": 0.3, "crop": 0},
 "model": {"lr_head": 3}, "name": "augment"}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "hp.json").write_text(SETTINGS)
    (tmp_path / "train.log").write_text("\n".join(f"step {i} loss {1.5 + 0.001 * (i % 7):.4f}" for i in range(60)))
    return tmp_path


def made(folder: Path) -> list[str]:
    return [str(d.change) for d in by_settings(load_decisions(), settings_in("python train.py", folder))]


def test_a_rate_is_multiplied_and_a_section_of_augmentations_is_off(folder: Path) -> None:
    assert made(folder) == [
        "set:hp.json:optim.lr=0.002", "set:hp.json:optim.lr=0.2",
        "set:hp.json:augment.reverse=false,hp.json:augment.noise=0.0"]


def test_what_is_off_or_named_otherwise_or_unreadable_is_left_alone(folder: Path) -> None:
    (folder / "hp.json").write_text('{"optim": {"lr": "auto", "rate": 0.1}, "augment": {"noise": 0}}')
    assert made(folder) == []
    (folder / "hp.json").write_text("{not json")
    assert made(folder) == []
    assert settings_in("python nowhere.py", folder) == []


@dataclass
class ByHand:
    """An optimizer without hooks: changes of the instruments take hold nowhere; `cure`: the setting that helps."""

    cure: str = ""
    workspace: Path = Path()
    fingerprint: str = ""
    runs: list[str] = field(default_factory=list)

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        inside = [c for c in prepared.inside if c.name != "seed"]
        changed = ",".join(f"{n}:{t.decode()}" for n, t in prepared.files.items()) or ",".join(map(str, inside))
        self.runs.append(changed or "control")
        low = bool(self.cure) and self.cure in changed
        noise = np.random.default_rng(len(self.runs)).normal(0, 0.005, 60)
        curve = Curve(np.arange(1.0, 61.0), (np.linspace(1.5, 0.1, 60) if low else np.full(60, 1.5)) + noise)
        applied = {str(c): Applied(0, problem="optax was not imported") for c in inside}
        return Trace(Path(), {f"{LIVE}loss": curve}, ended=True, exit_code=0, seconds=1.0, changes=applied)


def planned(folder: Path, place: ByHand) -> tuple[Planned, Sequence[str]]:
    report = diagnose([folder], symptom="the loss stays where it is, nothing is learned")
    engine = Engine(place, preparing("python train.py", folder))
    return Planned(report, engine, Outcome("level"), Budget(100.0), folder / "x", 1.0, lambda _: None,
                   "python train.py", folder, screens=False), place.runs


def test_what_takes_hold_nowhere_is_no_vain_guess_and_the_setting_takes_its_place(
        folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx_tools.experiments.picture.draw_experiment", lambda result, out: None)
    plan, runs = planned(folder, ByHand('"lr": 0.2'))
    told = plan.done()
    assert sum(r.startswith("learning-rate") for r in runs) <= 1, "the other factor would take hold nowhere either"
    assert any('"lr": 0.2' in r for r in runs)
    (found,) = [f for f in told.seen.findings if f.rule in ("X101", "X102")]
    assert "setting hp.json:optim.lr=0.2" in found.statement


def test_a_setting_that_changes_nothing_is_a_vain_guess_as_any_other(
        folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx_tools.experiments.picture.draw_experiment", lambda result, out: None)
    plan, _ = planned(folder, ByHand())
    told = plan.done()
    assert not [f for f in told.seen.findings if f.rule in ("X101", "X102")]
    assert f"{MOST_VAIN} changes that were the likeliest" in " ".join(told.remarks) or "change would tell" in " ".join(
        told.remarks)


def test_a_change_of_a_setting_is_prepared(folder: Path) -> None:
    (change,) = [Change("set", {"hp.json:augment.reverse": False, "hp.json:augment.noise": 0.0})]
    text = preparing("python train.py", folder)(change, 0).files["hp.json"].decode()
    assert '"reverse": false, "noise": 0.0' in text
