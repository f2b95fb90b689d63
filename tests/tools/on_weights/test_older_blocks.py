"""A shard, a run of blocks or their moments that are of another step than the rest of one checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redundancy_planting as planting
import weight_planting as planted

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.block_runs import apart

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")




def _mixed(seed: int, old: Sequence[int], part: str = "model") -> dict[str, Any]:
    """Weights of step 80 with some blocks of step 20."""
    made = planting.snapshots(seed=seed)
    heads = tuple(f"blocks.{b}." for b in old)
    return {n: made[20][part][n] if n.startswith(heads) else t for n, t in made[80][part].items()} if heads else dict(
        made[80][part])


def _shards(folder: Path, weights: Mapping[str, Any], cuts: Sequence[float], packed: bool = False,
            said: Mapping[int, str] | None = None) -> Path:
    """Files by block; a cut of 4.5 lies behind the norm of block 4."""
    files: dict[int, dict[str, Any]] = {}
    for name, value in weights.items():
        at = float(name.split(".")[1]) + 0.6 * ("norm" not in name) if name.startswith("blocks") else 99.0
        files.setdefault(sum(at >= c for c in cuts), {})[name] = value.contiguous()
    index: dict[str, str] = {}
    for number, own in files.items():
        file = f"model-{number + 1:05d}-of-{len(files):05d}.{'bin' if packed else 'safetensors'}"
        if packed:
            torch.save(own, folder / file)
        else:
            safetensors.save_file(own, folder / file, {"step": said[number]} if said else None)
        index |= dict.fromkeys(own, file)
    path = folder / f"{'pytorch_model.bin' if packed else 'model.safetensors'}.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return path


def _told(path: Path) -> list[Finding]:
    report = examine(path)
    assert not report.notes
    return [f for f in report.findings if f.rule == "W136" and f.severity is not Severity.INFO]


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True], ids=["safetensors", "bin"])
@pytest.mark.parametrize(("cuts", "old", "seeds"), [
    ((3, 6), (3, 4, 5), (0, 1)), ((5,), (5, 6, 7, 8), (0,)), ((2.5, 6), (3, 4, 5), (0, 1)), ((3, 6), (), (0, 1)),
    ((4,), (), (0, 1)), ((2.5, 5.5), (), (0, 1))])
def test_a_shard_of_another_step(cuts: Sequence[float], old: Sequence[int], seeds: Sequence[int], packed: bool,
                                 tmp_path: Path) -> None:
    """With one edge the scatter of few narrow blocks may hide it."""
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        found = _told(_shards(tmp_path / str(seed), _mixed(seed, old), cuts, packed))
        assert [(f.measured["first"], f.measured["last"]) for f in found] == ([(old[0], old[-1])] if old else [])
        assert all("model-00002" in f.statement and "an earlier step" in f.statement for f in found)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["torch", "npz"])
@pytest.mark.parametrize(("old", "told"), [((4, 5, 6), True), ((), False)])
def test_a_run_of_blocks_in_one_file(old: Sequence[int], told: bool, form: str, tmp_path: Path) -> None:
    weights = {n: t.numpy() for n, t in _mixed(1, old).items()}
    assert len(_told(planted.write(form, tmp_path, weights))) == told


@pytest.mark.slow
@pytest.mark.parametrize("old", [(), (4, 5)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_blocks_that_their_average_does_not_follow(seed: int, old: Sequence[int], tmp_path: Path) -> None:
    torch.save({"model": _mixed(seed, old), "ema": planting.snapshots(seed=seed)[80]["ema"]}, tmp_path / "c.pt")
    assert len(_told(tmp_path / "c.pt")) == bool(old)


@pytest.mark.slow
@pytest.mark.parametrize("old", [(), (3, 4)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_moments_of_another_step(seed: int, old: Sequence[int], tmp_path: Path) -> None:
    made = planting.snapshots(seed=seed)
    weights, late, early = made[80]["model"], made[80]["optimizer"], made[20]["optimizer"]["state"]
    names = list(weights)
    heads = tuple(f"blocks.{b}." for b in old)
    state = {k: {**early[k], "step": s["step"]} if heads and names[k].startswith(heads) else s
             for k, s in late["state"].items()}
    torch.save({"model": weights, "optimizer": {**late, "state": state}}, tmp_path / "c.pt")
    found = _told(tmp_path / "c.pt")
    assert len(found) == bool(old)
    assert all("squared gradients" in f.statement for f in found)


def _arrays() -> dict[str, Any]:
    return {n.replace("h.", "blocks."): torch.from_numpy(a) for n, a in planted.stack(9, 16, vocab=40).items()}


@pytest.mark.parametrize(("said", "told"), [({0: "400", 1: "400", 2: "300"}, True), ({0: "4", 1: "4", 2: "4"}, False)])
def test_what_shards_say_of_themselves(said: dict[int, str], told: bool, tmp_path: Path) -> None:
    found = _told(_shards(tmp_path, _arrays(), (3, 6), said=said))
    assert len(found) == told
    assert all("step 300" in f.statement and "model-00003" in f.statement for f in found)


def test_synthetic_blocks_without_steps_are_left_alone(tmp_path: Path) -> None:
    assert _told(_shards(tmp_path, _arrays(), (3, 6))) == []


def test_a_shard_that_is_no_shard(tmp_path: Path) -> None:
    path = _shards(tmp_path, _arrays(), (3, 6))
    (tmp_path / "model-00002-of-00003.safetensors").write_bytes(b"nothing")
    report = examine(path)
    assert not [f for f in report.findings if f.rule == "W136"]
    assert not [n for n in report.notes if "failed" in n]


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_drift_and_alternation_are_no_jump(shift: float) -> None:
    rng = np.random.default_rng(0)
    files = [[f"f{b // 4}" for b in range(12)]] * 3
    blocks = np.arange(12)
    for values in (0.5 * blocks, (blocks % 2) * 1.0, np.where(blocks == 0, 3.0, 0.0), np.where(blocks > 9, 1.0, 0.0)):
        table = values + 0.05 * rng.standard_normal((3, 12))
        assert apart(table, files) is None
    table = 0.3 * blocks + 0.05 * rng.standard_normal((3, 12)) + shift * ((blocks >= 4) & (blocks < 8))
    found = apart(table, files)
    assert (found is not None) == bool(shift)
    assert found is None or (found.first, found.last, found.file) == (4, 7, "f1")
    assert apart(np.full((3, 12), np.nan), files) is None
