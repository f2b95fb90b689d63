"""Checkpoints of one run that lie beside each other: the last is compared with the one before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_weights import of_run

save_file = pytest.importorskip("safetensors.numpy").save_file
RNG = np.random.default_rng(0)
START = {f"layers.{k}.{n}.weight": RNG.normal(size=(64, 64)).astype(np.float32) * 0.05
         for k in range(6) for n in ("q", "up", "down")}


def series(folder: Path, names: tuple[str, str], far: float) -> list[str]:
    """Two checkpoints of three shards; in the second the last third of the layers moved `far` times as far."""
    files = []
    for step, name in enumerate(names):
        rng = np.random.default_rng(5)
        held = {n: w + step * rng.normal(size=w.shape).astype(np.float32) * 0.002 * (far if n[7] in "45" else 1.0)
                for n, w in START.items()}
        home = folder / name
        home.mkdir(parents=True)
        index = {n: f"model-0000{1 + int(n[7]) // 2}-of-00003.safetensors" for n in held}
        for file in set(index.values()):
            save_file({n: w for n, w in held.items() if index[n] == file}, home / file)
        (home / "model.safetensors.index.json").write_text(
            '{"metadata": {}, "weight_map": ' + str(index).replace("'", '"') + "}")
        files.append(str(home / "model.safetensors.index.json"))
    return files


@pytest.mark.parametrize("names", [("checkpoint-700", "checkpoint-1000"), ("step_2", "step_10"), ("3", "20")])
def test_a_shard_of_another_step_is_seen_without_being_asked(names: tuple[str, str], tmp_path: Path) -> None:
    found = of_run(series(tmp_path, names, 6.0))
    assert [f.rule for f in found.findings] == ["W118"]
    assert "model-00003-of-00003.safetensors" in found.findings[0].statement


def test_a_run_that_goes_on_evenly_and_models_of_other_names_are_quiet(tmp_path: Path) -> None:
    assert of_run(series(tmp_path / "a", ("checkpoint-700", "checkpoint-1000"), 1.0)).findings == ()
    assert of_run(series(tmp_path / "b", ("resnet18", "resnet50"), 6.0)).findings == ()
