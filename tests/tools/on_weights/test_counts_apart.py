"""Counts of steps in a training state that do not go on with the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.examine import examine as diagnose
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import of_run
from traindx_tools.on_weights.counters import counters_of, named_step
from traindx_tools.on_weights.formats.reading import read_checkpoint

serialization = pytest.importorskip("flax.serialization")
torch = pytest.importorskip("torch")
Counts = dict[str, int]


def flax_state(path: Path, counts: Counts) -> Path:
    """A training state as flax writes it: the run's step, Adam's count and the schedule's."""
    rng = np.random.default_rng(counts["step"])
    weights = {f"Dense_{i}": {"kernel": rng.normal(size=(16, 16)).astype(np.float32)} for i in range(3)}
    moments = {k: {"kernel": np.abs(v["kernel"]) * 1e-3} for k, v in weights.items()}
    state = {"step": counts["step"], "params": weights, "opt_state": {
        "0": {"count": np.int32(counts["adam"]), "mu": moments, "nu": moments},
        "1": {"count": np.int32(counts["schedule"])}, "2": {"mini_step": np.int32(counts["step"] % 3)}}}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(serialization.msgpack_serialize(state))
    return path


def torch_state(path: Path, counts: Counts) -> Path:
    torch.manual_seed(counts["step"])
    weights = {f"layers.{i}.weight": torch.randn(16, 16) for i in range(3)}
    state = {i: {"step": torch.tensor(float(counts["adam"])), "exp_avg": 1e-3 * w, "exp_avg_sq": 1e-6 * w**2 + 1e-9}
             for i, w in enumerate(weights.values())}
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"model": weights, "global_step": counts["step"], "scheduler": {"last_epoch": counts["schedule"]},
                "optimizer": {"state": state, "param_groups": [{"lr": 1e-3, "params": [0, 1, 2]}]}}, path)
    return path


def counts(step: int, **apart: int) -> Counts:
    return {"step": step, "adam": step, "schedule": step, **apart}


def told(files: list[Path]) -> list[Finding]:
    return [f for f in of_run([str(f) for f in files]).findings if f.rule == "W140"]


WRITE: dict[str, Any] = {"msgpack": flax_state, "pt": torch_state}


@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize(("apart", "said"), [
    ({"schedule": 300}, "started anew"), ({"schedule": 400}, "stood still"), ({"adam": 17}, "not kept"),
])
def test_a_count_that_agreed_before(form: str, apart: Counts, said: str, tmp_path: Path) -> None:
    files = [WRITE[form](tmp_path / f"step_{c['step']:06d}.{form}", c) for c in (counts(400), counts(700, **apart))]
    found = told(files)
    assert [f.severity for f in found] == [Severity.HIGH]
    assert (said in found[0].statement, found[0].measured["count"]) == (True, next(iter(apart.values())))


@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize("apart", [{}, {"schedule": 3}, {"schedule": 100}])
def test_counts_that_go_on_or_never_agreed(form: str, apart: Counts, tmp_path: Path) -> None:
    files = [WRITE[form](tmp_path / f"step_{c['step']}.{form}", c)
             for c in (counts(400, **apart), counts(700, **{k: v + 2 for k, v in apart.items()}))]
    assert told(files) == []


def test_a_count_beside_the_name_of_a_single_file(tmp_path: Path) -> None:
    (found,) = told([flax_state(tmp_path / "step_700.msgpack", counts(700, schedule=299))])
    assert (found.severity, found.measured["kind"]) == (Severity.MEDIUM, "name")
    assert told([flax_state(tmp_path / "a" / "step_700.msgpack", counts(700, schedule=175))]) == []  # every fourth step
    assert told([flax_state(tmp_path / "best.msgpack", counts(700, schedule=299))]) == []


def test_all_counts_behind_the_name(tmp_path: Path) -> None:
    files = [flax_state(tmp_path / str(n) / "state.msgpack", counts(n - late)) for n, late in ((400, 0), (700, 300))]
    assert [f.measured["kind"] for f in told(files)] == ["name"]


@pytest.mark.parametrize(("path", "step"), [
    ("run/global_step400", 400), ("ckpt/600", 600), ("state_000350.msgpack", 350), ("x/checkpoint-70/model.pt", 70),
    ("resnet50.pt", None), ("epoch_04.pt", None), ("model.pt", None),
])
def test_the_step_that_a_path_says(path: str, step: int | None) -> None:
    assert named_step(f"/{path}") == step


def test_counts_that_are_no_numbers(tmp_path: Path) -> None:
    torch.save({"model": {"a.weight": torch.randn(4, 4)}, "step": float("nan"), "count": [1], "steps": "x",
                "optimizer": {"state": {0: {"step": torch.ones(2)}, 1: 3}, "param_groups": [{"params": [0]}]}},
               tmp_path / "step_9.pt")
    assert counters_of(read_checkpoint(tmp_path / "step_9.pt")) == {}


@pytest.mark.parametrize("schedule", [300, 700])
def test_folders_of_orbax_within_a_run(schedule: int, tmp_path: Path) -> None:
    orbax = pytest.importorskip("orbax.checkpoint")
    pytest.importorskip("tensorstore")
    jnp = pytest.importorskip("jax.numpy")
    saver = orbax.StandardCheckpointer()
    for c in (counts(400), counts(700, schedule=schedule)):
        weights = {f"Dense_{i}": {"kernel": (i + c["step"] / 100.0) * jnp.eye(8)} for i in range(3)}
        saver.save(tmp_path / "ckpt" / str(c["step"]), {
            "step": jnp.int32(c["step"]), "params": weights, "opt_state": [
                None, {"count": jnp.int32(c["adam"]), "mu": weights, "nu": weights},
                {"count": jnp.int32(c["schedule"])}]})
        saver.wait_until_finished()
    report = diagnose([tmp_path])
    found = [f for f in report.findings if f.rule == "W140"]
    assert [(f.measured["what"], f.measured["count"]) for f in found] == [("schedule", 300)] * (schedule == 300)
    assert not read_checkpoint(tmp_path / "ckpt" / "700").notes
