"""A later checkpoint of a run without a state that the earlier one has, or with an old loss scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")


def _state(step: int, **beside: Any) -> dict[str, Any]:
    """A training state after so many steps."""
    generator = torch.Generator().manual_seed(0)
    weights = {f"net.{i}.weight": torch.randn(16, 16, generator=generator) * (1 + step / 1000) for i in range(3)}
    moments = {i: {"step": torch.tensor(float(step)), "exp_avg": w * 1e-3 / step, "exp_avg_sq": w**2 * 1e-4 / step}
               for i, w in enumerate(weights.values())}
    groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "params": [0, 1, 2]}]
    return {"model": weights, "optimizer": {"state": moments, "param_groups": groups}, "step": step, **beside}


def _scaler(count: int, scale: float = 65536.0) -> dict[str, Any]:
    return {"scale": scale, "growth_factor": 2.0, "growth_interval": 2000, "_growth_tracker": count}


def _rng(seed: int) -> dict[str, Any]:
    return {"torch": torch.arange(64, dtype=torch.uint8) + seed, "python": [3, seed]}


def _told(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> list[Finding]:
    torch.save(before, folder / "step_100.pt")
    torch.save(after, folder / "step_160.pt")
    report = examine(folder / "step_160.pt", folder / "step_100.pt")
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO and f.rule == "W149"]


@pytest.mark.parametrize(("entry", "value"), [("scaler", _scaler(40)), ("rng_state", _rng(1)), ("scheduler", {
    "last_epoch": 100, "base_lrs": [1e-3], "_step_count": 101})])
@pytest.mark.parametrize("left", ["absent", "empty"])
def test_a_state_that_is_gone(entry: str, value: Any, left: str, tmp_path: Path) -> None:
    after = _state(160) if left == "absent" else _state(160, **{entry: {}})
    (finding,) = _told(tmp_path, _state(100, **{entry: value}), after)
    assert (finding.measured["kind"], finding.measured["name"]) == ("gone", entry)


def test_a_loss_scale_that_stood_still(tmp_path: Path) -> None:
    (finding,) = _told(tmp_path, _state(100, scaler=_scaler(40)), _state(160, scaler=_scaler(40)))
    assert finding.measured["kind"] == "old"


@pytest.mark.parametrize(("before", "after"), [
    (_state(100, scaler=_scaler(40), rng=_rng(1)), _state(160, scaler=_scaler(100), rng=_rng(1))),
    (_state(100, scaler=_scaler(40)), _state(160, scaler=_scaler(40, 32768.0))),
    (_state(100, rng=_rng(1)), _state(160, random_state=_rng(2))),
    (_state(100, metrics={"loss": 1.0, "accuracy": 0.5}), _state(160)),
    (_state(100, scaler=_scaler(40), rng=_rng(1)), {"model": _state(160)["model"], "step": 160}),
    (_state(160, scaler=_scaler(40)), _state(100)),
])
def test_states_that_may_differ(before: Any, after: Any, tmp_path: Path) -> None:
    assert _told(tmp_path, before, after) == []


def test_a_loss_scale_that_is_no_number(tmp_path: Path) -> None:
    odd = {"scale": float("inf"), "_growth_tracker": float("nan"), "growth_interval": None}
    assert _told(tmp_path, _state(100, scaler=odd), _state(160, scaler=odd)) == []
