"""Files of one model in two libraries: squares that were not turned (W161), inputs behind a flatten (W172)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import write, write_msgpack, write_npz, write_safetensors

from traindx_tools.code_audit import audit
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project
from traindx_tools.on_weights import of_run

Arrays = dict[str, Any]
FORMS = [("msgpack", "safetensors"), ("npz", "torch"), ("npz", "npz")]


def told(rule: str, *files: Path, code: Any = ()) -> list[Finding]:
    return [f for f in of_run([str(f) for f in files], code=code).findings if f.rule == rule]


def drawn(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32) / 8


def mixer(blocks: int = 3, width: int = 24, classes: int = 7) -> Arrays:
    """As flax names and lays them: inputs by outputs."""
    rng = np.random.default_rng(1)
    made = {"stem.kernel": drawn(rng, 18, width), "stem.bias": drawn(rng, width), "head.kernel": drawn(
        rng, width, classes), "head.bias": drawn(rng, classes)}
    for i in range(blocks):
        for name in ("mix", "gate", "out"):
            made |= {f"layer_{i}.{name}.kernel": drawn(rng, width, width), f"layer_{i}.{name}.bias": drawn(rng, width)}
    return made


def ported(source: Arrays, left: tuple[str, ...] = ()) -> Arrays:
    made = {}
    for name, values in source.items():
        own = name.replace("layer_", "layers.").replace("kernel", "weight")
        turned = values.T if values.ndim == 2 and not any(w in name for w in left) else values
        made[own] = np.ascontiguousarray(turned)
    return made


@pytest.mark.parametrize(("first", "second"), FORMS)
@pytest.mark.parametrize("left", [("gate",), ("mix", "gate", "out"), ("layer_1.gate",)])
def test_squares_that_were_not_turned(first: str, second: str, left: tuple[str, ...], tmp_path: Path) -> None:
    if second == "torch":
        pytest.importorskip("torch")
    source = write(first, tmp_path, mixer(), "theirs")
    found = told("W161", source, write(second, tmp_path, ported(mixer(), left), "ours"))
    named = {n for f in found for n in (f.measured.get("names") or (f.measured["name"],))}  # type: ignore[union-attr]
    odd = {n.replace("layers.", "layer_").replace("weight", "kernel") for n in named}
    assert odd == {n for n in mixer() if any(w in n for w in left) and n.endswith("kernel")}
    assert {f.severity for f in found} == {Severity.HIGH}


def test_ports_that_are_whole(tmp_path: Path) -> None:
    source = mixer()
    theirs = write_msgpack(tmp_path / "theirs.msgpack", source)
    assert told("W161", theirs, write_npz(tmp_path / "turned.npz", ported(source))) == []
    assert told("W161", theirs, write_npz(tmp_path / "same.npz", ported(source, ("kernel",)))) == []


def test_symmetric_squares(tmp_path: Path) -> None:
    source = mixer()
    for name in source:
        if "gate.kernel" in name:
            source[name] = (source[name] + source[name].T) / 2
    theirs = write_npz(tmp_path / "theirs.npz", source)
    assert told("W161", theirs, write_npz(tmp_path / "ours.npz", ported(source, ("gate",)))) == []


def test_tables_that_keep_their_axes(tmp_path: Path) -> None:
    source = mixer() | {"embed.embedding": drawn(np.random.default_rng(4), 24, 24)}
    theirs = write_npz(tmp_path / "theirs.npz", source)
    assert told("W161", theirs, write_npz(tmp_path / "ours.npz", ported(source, ("embed",)))) == []


def heads(odd: bool, blocks: int = 2) -> tuple[Arrays, Arrays]:
    """Projections to heads (width, heads, values), put together to matrices; `odd`: the values of a key interleave."""
    rng, source, made = np.random.default_rng(2), {}, {}
    for i in range(blocks):
        for name in ("query", "key", "value"):
            kernel = drawn(rng, 24, 4, 6)
            axes = (2, 1, 0) if odd and name == "key" else (1, 2, 0)
            source[f"block_{i}.{name}.kernel"] = kernel
            made[f"block_{i}.{name}.weight"] = kernel.transpose(axes).reshape(24, 24)
        source[f"block_{i}.up.kernel"] = drawn(rng, 24, 60)
        made[f"block_{i}.up.weight"] = np.ascontiguousarray(source[f"block_{i}.up.kernel"].T)
    return source, made


def test_heads_that_interleave(tmp_path: Path) -> None:
    for odd in (True, False):
        source, made = heads(odd)
        found = told("W161", write_npz(tmp_path / "a.npz", source), write_npz(tmp_path / "b.npz", made))
        assert [f.measured["names"] for f in found] == ([("block_0.key.weight", "block_1.key.weight")] if odd else [])


def network(places: int = 9, channels: int = 12) -> Arrays:
    rng = np.random.default_rng(3)
    return {"c1.w": drawn(rng, 3, 3, 2, 8), "c1.b": drawn(rng, 8), "c2.w": drawn(rng, 3, 3, 8, channels),
            "c2.b": drawn(rng, channels), "d1.w": drawn(rng, places * channels, 40), "d1.b": drawn(rng, 40),
            "d2.w": drawn(rng, 40, 5), "d2.b": drawn(rng, 5)}


def to_torch(source: Arrays, reordered: bool, channels: int = 12) -> Arrays:
    made = {}
    for name, values in source.items():
        if values.ndim == 4:
            values = values.transpose(3, 2, 0, 1)
        elif values.ndim == 2:
            if reordered and name.startswith("d1"):
                values = values.reshape(-1, channels, values.shape[1]).transpose(1, 0, 2).reshape(values.shape)
            values = values.T
        made[name.replace(".w", ".weight").replace(".b", ".bias")] = np.ascontiguousarray(values)
    return made


MODEL = '''
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(2, 8, 3), nn.Conv2d(8, 12, 3)
        self.d1, self.d2 = nn.Linear(108, 40), nn.Linear(40, 5)
    def forward(self, x):
        x = self.c2(self.c1(x).relu()).relu()
        return self.d2(self.d1({flat}).relu())
net = Net()
net.load_state_dict(torch.load("ours.pt"))
print(net(torch.zeros(1, 2, 7, 7)))
'''


def program(folder: Path, flat: str) -> Sequence[Project]:
    file = folder / "train.py"
    file.write_text(MODEL.format(flat=flat))
    return audit([file], rules=("C206",)).projects


@pytest.mark.parametrize(("flat", "severity", "bearing"), [
    ("x.flatten(1)", Severity.HIGH, Bearing.CAUSE),
    ("x.permute(0, 2, 3, 1).flatten(1)", Severity.MEDIUM, Bearing.SIGN)])
def test_inputs_behind_a_flatten(flat: str, severity: Severity, bearing: Bearing, tmp_path: Path) -> None:
    source = write_npz(tmp_path / "theirs.npz", network())
    made = write_safetensors(tmp_path / "ours.safetensors", to_torch(network(), False))
    (found,) = told("W172", source, made, code=program(tmp_path, flat))
    assert (found.measured["name"], found.severity, found.bearing) == ("d1.weight", severity, bearing)
    assert (found.measured["inputs"], found.measured["channels"]) == (108, 12)


def test_inputs_in_the_other_order_and_a_mean_over_places(tmp_path: Path) -> None:
    source = write_npz(tmp_path / "theirs.npz", network())
    code = program(tmp_path, "x.flatten(1)")
    assert told("W172", source, write_npz(tmp_path / "ours.npz", to_torch(network(), True)), code=code) == []
    mean = network(places=1)
    assert told("W172", write_npz(tmp_path / "mean.npz", mean), write_npz(tmp_path / "port.npz", to_torch(mean, False)),
                code=code) == []


def test_one_library_and_broken_files(tmp_path: Path) -> None:
    source = write_npz(tmp_path / "a.npz", to_torch(network(), True))
    assert told("W172", source, write_npz(tmp_path / "b.npz", to_torch(network(), True))) == []
    cut = tmp_path / "cut.npz"
    cut.write_bytes(source.read_bytes()[:900])
    empty = write_npz(tmp_path / "none.npz", {"c.weight": np.zeros((3, 3, 2, 0), np.float32), "d.weight": np.zeros(
        (4, 4), np.float32)})
    assert told("W172", source, cut, empty) + told("W161", source, cut, empty) == []


def decoder(layers: int = 4, width: int = 24) -> Arrays:
    """As torch lays them: queries, keys and values packed, outputs by inputs."""
    rng, made = np.random.default_rng(7), {}
    for i in range(layers):
        made |= {f"h.{i}.qkv.weight": drawn(rng, 3 * width, width), f"h.{i}.qkv.bias": drawn(rng, 3 * width),
                 f"h.{i}.up.weight": drawn(rng, 2 * width, width), f"h.{i}.down.weight": drawn(rng, width, 2 * width),
                 f"h.{i}.o.weight": drawn(rng, width, width)}
    return made


def as_pairs(values: Any, heads: int = 3) -> Any:
    """Rows of each head from halves to pairs, as rotary positions want them."""
    split = values.reshape(heads, 2, -1, *values.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(values.shape)


def unpacked(source: Arrays, pairs: tuple[str, ...]) -> Arrays:
    """Queries, keys and values apart; those whose name holds one of `pairs` with their rows as pairs."""
    made = {}
    for name, values in source.items():
        parts = zip("qkv", np.split(values, 3), strict=True) if ".qkv." in name else [("", values)]
        for part, own in parts:
            called = name.replace("qkv", f"{part}_proj")
            made[called] = as_pairs(own) if any(p in called for p in pairs) else np.ascontiguousarray(own)
    return made


@pytest.mark.parametrize(("pairs", "odd"), [
    (("q_proj.weight", "k_proj.weight"), "h.0.q_proj.bias"), (("q_proj",), "h.0.k_proj.weight"),
    (("q_proj", "k_proj"), ""), ((), "")])
def test_rows_of_queries_in_another_order(pairs: tuple[str, ...], odd: str, tmp_path: Path) -> None:
    source = write_npz(tmp_path / "packed.npz", decoder())
    found = told("W161", source, write_npz(tmp_path / "apart.npz", unpacked(decoder(), pairs)))
    assert [f.measured["name"] for f in found] == ([odd] if odd else [])


def test_queries_of_one_layer_in_another_order(tmp_path: Path) -> None:
    source = write_npz(tmp_path / "packed.npz", decoder())
    made = unpacked(decoder(), ("h.2.q_proj", "h.2.k_proj"))
    found = told("W161", source, write_npz(tmp_path / "apart.npz", made))
    assert {f.measured["name"] for f in found} >= {"h.2.q_proj.weight", "h.2.k_proj.weight"}
    assert all("h.2" in str(f.measured["name"]) for f in found)


def moved(source: Arrays, by: int, layers: int = 4) -> Arrays:
    return {n if not n.startswith("h.") else f"h.{(int(n.split('.')[1]) + by) % layers}.{n.split('.', 2)[2]}":
            v.astype(np.float16) for n, v in source.items()}


def test_layers_that_are_one_place_off(tmp_path: Path) -> None:
    source = write_npz(tmp_path / "theirs.npz", decoder())
    (found,) = told("W161", source, write_npz(tmp_path / "ours.npz", moved(decoder(), 1)))
    assert (found.measured["kind"], found.measured["off"]) == ("layers", -1)
    assert told("W161", source, write_npz(tmp_path / "same.npz", moved(decoder(), 0))) == []


def test_layers_that_are_counted_from_one(tmp_path: Path) -> None:
    source = write_npz(tmp_path / "theirs.npz", decoder())
    later = {n.replace(f"h.{n[2]}", f"h.{int(n[2]) + 1}"): v.astype(np.float16) for n, v in decoder().items()}
    assert told("W161", source, write_npz(tmp_path / "ours.npz", later)) == []
