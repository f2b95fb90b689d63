"""Checkpoints of one run that lie beside each other: the last is compared with the one before it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.examine import examine as diagnose
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


def blocks(step: int, still: bool) -> dict[str, dict[str, np.ndarray]]:
    """Six blocks that all move with the step, but for the fourth where `still`."""
    rng = np.random.default_rng(step)
    return {f"block_{k}": {n: (START[f"layers.{k}.{m}.weight"] * (1 + j) + (0.0 if still and k == 3 else 0.004) * step
                               / 300 * rng.normal(size=(64, 64))).astype(np.float32)
                           for j, (n, m) in enumerate((("query", "q"), ("in", "up"), ("out", "down")))}
            for k in range(6)}


def flax_state(path: Path, params: dict[str, dict[str, np.ndarray]]) -> Path:
    serialization = pytest.importorskip("flax.serialization")
    kernels = {k: {n: {"kernel": w} for n, w in v.items()} for k, v in params.items()}
    path.with_suffix(".msgpack").write_bytes(serialization.msgpack_serialize({"params": kernels}))
    return path.with_suffix(".msgpack")


def npz_state(path: Path, params: dict[str, dict[str, np.ndarray]]) -> Path:
    np.savez(path, **{f"params/{k}/{n}/kernel": w for k, v in params.items() for n, w in v.items()})
    return path.with_suffix(".npz")


def orbax_state(path: Path, params: dict[str, dict[str, np.ndarray]]) -> Path:
    orbax = pytest.importorskip("orbax.checkpoint")
    kernels = {k: {n: {"kernel": w} for n, w in v.items()} for k, v in params.items()}
    with orbax.StandardCheckpointer() as saver:
        saver.save(path.resolve(), {"params": kernels})
    return path


@pytest.mark.parametrize(("write", "name"), [
    (flax_state, "state_{:06}"), (npz_state, "params-{:04}"), (orbax_state, "state_{:06}"),
    *(pytest.param(*p, marks=pytest.mark.slow) for p in (
        (flax_state, "params-{:04}"), (npz_state, "state_{:06}"), (orbax_state, "params-{:04}")))])
def test_a_block_that_stood_still_in_files_of_any_name(write: Callable[..., Path], name: str, tmp_path: Path) -> None:
    for still in (True, False):
        home = tmp_path / str(still)
        home.mkdir()
        for step in (300, 600):
            write(home / name.format(step), blocks(step, still))
        found = {f.rule for f in diagnose([home]).findings if f.rule in ("W112", "W118")}
        assert found == ({"W112", "W118"} if still else set())


@pytest.mark.parametrize("name", ["seed_{}", "fold-{}", "model_{}", "rank{}", "width{}", "v{}"])
def test_numbers_that_tell_models_apart_are_no_series(name: str, tmp_path: Path) -> None:
    for step in (300, 600):
        npz_state(tmp_path / name.format(step), blocks(step, True))
    assert not [f for f in of_run(map(str, tmp_path.iterdir())).findings if f.rule in ("W112", "W118")]


def test_models_of_two_sizes_are_no_series(tmp_path: Path) -> None:
    small = {k: v for k, v in blocks(300, True).items() if k != "block_5"}
    npz_state(tmp_path / "net_101", small)
    npz_state(tmp_path / "net_152", blocks(600, True))
    assert of_run(map(str, tmp_path.iterdir())).findings == ()


def test_a_series_with_a_file_that_is_cut(tmp_path: Path) -> None:
    for step in (300, 600):
        npz_state(tmp_path / f"state_{step:06}", blocks(step, True))
    (tmp_path / "state_000300.npz").write_bytes((tmp_path / "state_000300.npz").read_bytes()[:5000])
    found = of_run(map(str, sorted(tmp_path.iterdir())))
    assert [Path(f).name for f in found.read] == ["state_000600.npz"]
    assert not [f for f in found.findings if f.rule in ("W112", "W118")]
