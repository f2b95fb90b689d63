"""Relations of tensors with their partners that hold in all layers but one, each beside its healthy twin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import part_planting as planting
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")


PLANTED = {
    "fused_with_another_norm": ("W129", "convs.3.weight"),
    "moments_exchanged": ("W128", "blocks.1.up.weight and blocks.3.up.weight"),
    "wrapped": ("W130", "blocks.2.up.weight"),
    "gates_in_another_order": ("W131", "the 4 parts of rnn.bias_ih_l1"),
    "adapter_twice": ("W132", "blocks.3.q.weight"),
    "head_not_renumbered": ("W119", "head.weight, with as many rows, was not put in that order"),
}
NEW = frozenset(told for told, _ in PLANTED.values())


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    torch.set_num_threads(1)


def seen(folder: Path, files: dict[str, Any], against: str | None = None) -> list[Finding]:
    for name, value in files.items():
        torch.save(value, folder / name)
    report = examine(folder / "model.pt", against=folder / against if against else None)
    assert not report.notes
    return [f for f in report.findings if f.rule in NEW and f.severity is not Severity.INFO]


def second(name: str, files: dict[str, Any]) -> str | None:
    return "before.pt" if "before.pt" in files and name != "fused_with_another_norm" else None


def test_all_sets_are_asked_of() -> None:
    assert PLANTED.keys() == planting.SETS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_the_tensor_is_named(name: str, tmp_path: Path) -> None:
    files = planting.adapter_twice(True, True) if name == "adapter_twice" else planting.SETS[name](True)
    (finding,) = seen(tmp_path, files, second(name, files))
    assert finding.rule == PLANTED[name][0]
    assert PLANTED[name][1] in finding.statement


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_its_healthy_twin_is_left_alone(name: str, tmp_path: Path) -> None:
    files = planting.adapter_twice(False, True) if name == "adapter_twice" else planting.SETS[name](False)
    assert not seen(tmp_path, files, second(name, files))


@pytest.mark.slow
def test_the_norm_is_named_where_the_file_before_is_there(tmp_path: Path) -> None:
    (finding,) = seen(tmp_path, planting.fused_with_another_norm(True), "before.pt")
    assert "convs.3.weight" in finding.statement
    assert finding.measured["norm"] == "norms.2"


@pytest.mark.slow
def test_the_first_bias_of_a_fused_model_is_small_by_nature(tmp_path: Path) -> None:
    torch.save(planting.fused(lambda k: k), tmp_path / "model.pt")
    assert not [f for f in examine(tmp_path / "model.pt").findings if f.rule == "W103"]


@pytest.mark.slow
@pytest.mark.parametrize("pair", [("q", "k", 1, 1), ("o", "v", 2, 2), ("q", "q", 2, 3)])
def test_other_exchanged_moments(pair: tuple[str, str, int, int], tmp_path: Path) -> None:
    weights, state = planting.decoder()
    names, kept = list(weights), {k: dict(v) for k, v in state["state"].items()}
    one, other = (names.index(f"blocks.{b}.{n}.weight") for n, b in ((pair[0], pair[2]), (pair[1], pair[3])))
    for name in ("exp_avg", "exp_avg_sq"):
        kept[one][name], kept[other][name] = kept[other][name], kept[one][name]
    optimizer = {"state": kept, "param_groups": state["param_groups"]}
    found = seen(tmp_path, {"model.pt": {"model": weights, "optimizer": optimizer}})
    assert [f.rule for f in found] == ["W128"]


@pytest.mark.parametrize("odd", [None, 2])
def test_query_key_and_value_in_another_order(odd: int | None, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    files = {}
    for k in range(5):
        q, key, v = (torch.randn(32, 32, generator=generator) * s for s in (0.2, 0.2, 0.05))
        files[f"h.{k}.qkv.weight"] = torch.cat([v, q, key] if k == odd else [q, key, v])
    found = seen(tmp_path, {"model.pt": files})
    assert len(found) == (odd is not None)
    assert all("h.2.qkv.weight" in f.statement for f in found)


@pytest.mark.parametrize("wrap", [True, False])
def test_int8_of_heavy_tails(wrap: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = {}
    for k in range(6):
        values = np.round(rng.standard_t(5, (128, 128)) * 32)
        values = values if wrap and k == 3 else np.clip(values, -128, 127)
        files[f"h.{k}.weight"] = torch.tensor(values.astype(np.int64).astype(np.int8))
    found = seen(tmp_path, {"model.pt": files})
    assert len(found) == wrap
    assert all(f.rule == "W130" and "h.3.weight" in f.statement for f in found)


@pytest.mark.parametrize("make", [
    lambda rng: rng.integers(-128, 128, (64, 64)),  # packed halves
    lambda rng: np.tile(np.arange(-128, 128), 16).reshape(64, 64),
    lambda rng: np.where(rng.random((64, 64)) < 0.5, -127, 127),  # signs
], ids=["uniform", "codes", "signs"])
def test_whole_numbers_that_are_no_weights(make: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    assert not seen(tmp_path, {"model.pt": {f"h.{k}.weight": torch.tensor(make(rng).astype(np.int8))
                                            for k in range(5)}})


def large(folder: Path, times: tuple[int, ...], config: bool, rank: int = 4) -> None:
    """A merged model in as many shards of an index, with an adapter beside it and no base."""
    from safetensors.numpy import save_file

    rng = np.random.default_rng(2)
    adapter, index = {}, {}
    for shard, own in enumerate(times):
        held = {}
        for k in range(3):
            a, b = (rng.normal(size=s).astype(np.float32) * 0.05 for s in ((rank, 160), (160, rank)))
            name = f"layers.{3 * shard + k}.q_proj"
            adapter |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
            held[f"{name}.weight"] = rng.normal(size=(160, 160)).astype(np.float32) * 0.02 + own * 2.0 * b @ a
        file = f"model-{shard + 1:05d}-of-{len(times):05d}.safetensors"
        save_file(held, folder / file)
        index |= dict.fromkeys(held, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "adapter").mkdir()
    save_file(adapter, folder / "adapter" / "adapter_model.safetensors")
    if config:
        (folder / "adapter" / "adapter_config.json").write_text(json.dumps({"lora_alpha": 2 * rank, "r": rank}))


@pytest.mark.parametrize(("times", "config", "alarm"), [
    ((1, 1, 2), False, True), ((1, 2), True, True), ((1, 1, 1), False, False), ((0, 0, 0), True, False),
    ((2, 2, 2), False, False),
])
def test_an_adapter_in_shards_without_the_base(
    times: tuple[int, ...], config: bool, alarm: bool, tmp_path: Path
) -> None:
    pytest.importorskip("safetensors")
    large(tmp_path, times, config)
    found = [f for f in examine(tmp_path / "model.safetensors.index.json").findings if f.rule == "W132"]
    assert len(found) == alarm
    assert all("model-0000" in f.statement and f.measured["times"] == pytest.approx(2, abs=0.1) for f in found)


@pytest.mark.parametrize(("times", "rank", "alarm"), [
    ((2, 2, 2), 8, True), ((3, 3), 8, True), ((1, 1, 1), 8, False), ((0, 0), 8, False), ((1.4, 1.4), 8, False),
    ((2, 2, 2), 4, False),  # alpha over the root of the rank
    ((8, 8), 8, True),  # alpha, not divided by the rank
    ((6, 6), 8, False), ((8, 8), 64, False), ((16, 16), 8, False),
])
def test_an_adapter_that_was_merged_twice_into_all(times: Any, rank: int, alarm: bool, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    large(tmp_path, times, True, rank)
    found = [f for f in examine(tmp_path / "model.safetensors.index.json").findings if f.rule == "W132"]
    assert [f.measured["times"] for f in found] == ([float(times[0])] if alarm else [])
    assert all(("not divided by the rank" in f.statement) == (times[0] == rank) for f in found)


def test_an_adapter_that_was_merged_transposed(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    large(tmp_path, (1, 1), True)
    adapter = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    file = tmp_path / "model-00001-of-00002.safetensors"
    held = load_file(file)
    module = "base_model.model.layers.1.q_proj"
    product = 2.0 * adapter[f"{module}.lora_B.weight"] @ adapter[f"{module}.lora_A.weight"]
    held["layers.1.q_proj.weight"] += product.T - product
    save_file(held, file)
    (found,) = [f for f in examine(tmp_path / "model.safetensors.index.json").findings if f.rule == "W132"]
    assert found.measured["kind"] == "turned"
    assert "was merged transposed into 1 of 6 tensors" in found.statement
    assert "layers.1.q_proj.weight" in found.statement


@pytest.mark.parametrize("config", ['{"lora_alpha": "x"}', "[1]", "{", '{"lora_alpha": 8, "r": 0}', "[" * 9999])
def test_a_broken_adapter_is_none(config: str, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    large(tmp_path, (1, 1), False)
    (tmp_path / "adapter" / "adapter_config.json").write_text(config)
    (tmp_path / "lora.bin").write_bytes(b"no weights")
    (tmp_path / "adapter" / "adapter.pt").write_bytes(b"")
    report = examine(tmp_path / "model.safetensors.index.json")
    assert not report.notes
    assert not report.findings


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_trained_models_are_left_alone(seed: int, tmp_path: Path) -> None:
    """Moments after few and many steps, models with and without biases, recurrent ones with two layers."""
    nn = torch.nn
    for bias, steps in ((True, 4), (seed % 2 == 0, 60)):
        weights, state = planting.decoder(bias, seed, steps)
        assert not seen(tmp_path, {"model.pt": {"model": weights, "optimizer": state}})
    torch.manual_seed(seed)
    for model in (nn.GRU(24, 32, 4), nn.LSTM(24, 32, 4, bidirectional=True), nn.Sequential(
            *[nn.Linear(48, 48) for _ in range(6)])):
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        for _ in range(40):
            x = torch.randn(6, 20, 48 if isinstance(model, nn.Sequential) else 24)
            out = model(x) if isinstance(model, nn.Sequential) else model(x)[0]
            optimizer.zero_grad()
            ((out.mean(-1) - torch.tanh(x.cumsum(1)).mean(-1)) ** 2).mean().backward()
            optimizer.step()
        assert not seen(tmp_path, {"model.pt": {"model": model.state_dict(), "optimizer": optimizer.state_dict()}})


def test_two_codes_of_four_bits_in_a_byte(tmp_path: Path) -> None:
    """Bytes of packed halves thin out nowhere: no value wrapped."""
    rng = np.random.default_rng(0)
    files = {}
    for k in range(8):
        halves = np.clip(np.round(rng.normal(7.5, 2.6 + 0.3 * (k % 3), (128, 256))), 0, 15).astype(np.uint8)
        files[f"h.{k}.qweight"] = torch.tensor(halves[:, ::2] | (halves[:, 1::2] << 4))
    assert seen(tmp_path, {"model.pt": files}) == []
