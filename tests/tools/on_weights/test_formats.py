"""Every format gives the names, shapes, types and values that its own writer wrote."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.formats.reading import read_checkpoint
from traindx_tools.on_weights.statistics import measure

torch = pytest.importorskip("torch")



@pytest.mark.parametrize("form", ["safetensors", "sharded", "npz", "torch", "msgpack"])
def test_what_is_written_is_read(form: str, tmp_path: Path) -> None:
    arrays = planted.stack(2)
    read = {t.name: t for t in read_checkpoint(planted.write(form, tmp_path, arrays)).tensors}
    assert read.keys() == arrays.keys()
    for name, tensor in read.items():
        assert tensor.load().shape == arrays[name].shape
        assert np.array_equal(tensor.load(), arrays[name])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
                                   torch.float8_e5m2, torch.int64, torch.uint8, torch.bool])
def test_every_type_of_torch_has_its_values(dtype: Any, tmp_path: Path) -> None:
    values = (torch.randn(40, 24) * 3).to(dtype)
    torch.save({"w": values, "view": values[3:9], "transposed": values.T, "one": values[0, 0], "none": values[:0]},
               tmp_path / "w.pt")
    read = {t.name: t for t in read_checkpoint(tmp_path / "w.pt").tensors}
    for name, expected in (("w", values), ("view", values[3:9]), ("transposed", values.T), ("one", values[0, 0])):
        assert read[name].shape == tuple(expected.shape)
        assert np.array_equal(np.asarray(read[name].load(), np.float64), expected.double().numpy())


def test_every_code_of_eight_bits_is_as_torch_has_it(tmp_path: Path) -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    kinds = {"a": codes.view(torch.float8_e4m3fn), "b": codes.view(torch.float8_e5m2)}
    torch.save(kinds, tmp_path / "w.pt")
    for tensor in read_checkpoint(tmp_path / "w.pt").tensors:
        expected = kinds[tensor.name].float().numpy()
        assert np.array_equal(tensor.load(), expected, equal_nan=True)


def test_shared_storages_are_one_and_parameters_are_tensors(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.randn(64, 8))
    torch.save(OrderedDict({"emb.weight": weight, "head.weight": weight, "other": torch.randn(3)}), tmp_path / "w.pt")
    one, two, _ = read_checkpoint(tmp_path / "w.pt").tensors
    assert one.storage == two.storage
    assert one.storage is not None


def test_statistics_are_those_of_numpy(tmp_path: Path) -> None:
    """Over chunks that end within rows, hold many rows, and rows that are longer than a chunk."""
    rng = np.random.default_rng(0)
    for shape in ((3, 200_000), (5000, 7), (100, 1000), (70_000,), (4, 3, 5, 5), (1, 1)):
        array = rng.standard_normal(shape).astype(np.float32)
        file = planted.write_safetensors(tmp_path / "w.safetensors", {"w": array})
        stats = measure(next(read_checkpoint(file).tensors))
        assert stats.low == array.min()
        assert stats.high == array.max()
        rows = array.reshape(len(array), -1) if array.ndim > 1 and array.size > 1 else array.reshape(1, -1)
        assert stats.row_squares == pytest.approx((rows.astype(np.float64) ** 2).sum(1), rel=1e-4)


def test_shards_of_ranks_are_joined(tmp_path: Path) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    state = {"model": {f"h.{i}.weight": torch.randn(64, 32) for i in range(6)}, "step": 3}
    state["model"]["h.3.weight"][5, 5] = float("nan")
    with pytest.warns(UserWarning, match="single process"):
        dcp.save(state, checkpoint_id=tmp_path / "dcp")
    seen = examine(tmp_path / "dcp")
    assert {t.name: t.shape for t in seen.checkpoint.tensors} == {f"h.{i}.weight": (64, 32) for i in range(6)} or {
        t.name for t in seen.checkpoint.tensors} == {f"model.h.{i}.weight" for i in range(6)}
    assert [f.rule for f in seen.findings] == ["W101"]
    assert "[5, 5]" in seen.findings[0].statement


def test_files_of_ranks_lie_side_by_side(tmp_path: Path) -> None:
    """As DeepSpeed writes them: one file a rank with the weights, one with flat parts of the optimizer."""
    for rank in range(2):
        module = {n: torch.from_numpy(a) for n, a in planted.stack(2).items()}
        torch.save({"module": module, "global_steps": 5, "ds_version": "0.14"},
                   tmp_path / f"mp_rank_{rank:02d}_model_states.pt")
        torch.save({"optimizer_state_dict": {"zero_stage": 1, "base_optimizer_state": [{"exp_avg": torch.randn(100)}]}},
                   tmp_path / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    seen = examine(tmp_path)
    assert seen.checkpoint.format == "folder"
    assert len([p for p in seen.checkpoint.parts if not p.auxiliary]) == 2
    assert seen.exit_code == 0


def test_orbax_is_read_through_tensorstore(tmp_path: Path) -> None:
    orbax = pytest.importorskip("orbax.checkpoint")
    pytest.importorskip("tensorstore")
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    kernels = [jnp.asarray(rng.standard_normal((16, 24)), jnp.float32) for _ in range(5)]
    tree = {"params": {f"Dense_{i}": {"kernel": k} for i, k in enumerate(kernels)}}
    tree["params"]["Dense_2"]["kernel"] = tree["params"]["Dense_2"]["kernel"] * 50
    saver = orbax.StandardCheckpointer()
    saver.save(tmp_path / "state", tree)
    saver.wait_until_finished()
    seen = examine(tmp_path / "state")
    assert [f.measured["name"] for f in seen.findings if f.rule == "W103"] == ["Dense_2.kernel"]


def test_orbax_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_METADATA").write_text("{}")
    monkeypatch.setitem(__import__("sys").modules, "tensorstore", None)
    with pytest.raises(MissingExtra, match="pip install 'tensorstore'"):
        examine(tmp_path)


def test_a_missing_shard_is_a_finding(tmp_path: Path) -> None:
    index = planted.write_sharded(tmp_path / "m", planted.stack(4))
    (index.parent / "model-00002-of-00002.safetensors").unlink()
    seen = examine(index)
    assert [f.rule for f in seen.findings if f.severity.value == "high"] == ["W116"]
    (index.parent / "model-00001-of-00002.safetensors").unlink()
    with pytest.raises(UnreadableInput, match="none of its 2 shards"):
        examine(index)


def test_a_file_of_one_tensor_and_nothing_around_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.arange(12.0), tmp_path / "one.pt")
    (tensor,) = read_checkpoint(tmp_path / "one.pt").tensors
    assert (tensor.name, tensor.shape) == ("tensor", (12,))
