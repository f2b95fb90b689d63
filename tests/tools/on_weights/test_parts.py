"""Parts of tensors and of files that are copies, stale, or in other places; and their healthy twins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

NEW = ("W104", "W117", "W118", "W119")


def _found(path: Path, other: Path | None = None) -> list[Any]:
    seen = examine(path, other)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.severity is not Severity.INFO]


def _moved(arrays: Any, names: Callable[[str], bool] = lambda n: True, seed: int = 40) -> Any:
    rng = np.random.default_rng(seed)
    return {n: (w * (1 + 0.02 * rng.standard_normal(w.shape))).astype(w.dtype) if names(n) else w
            for n, w in arrays.items()}


def _rows(a: Any) -> None:
    a["head.weight"][100:120] = a["head.weight"][40:60]


def _columns(a: Any) -> None:
    a["h.2.mlp.down.weight"][:, 64:80] = a["h.2.mlp.down.weight"][:, :16]


def _fused(a: Any) -> None:
    a["h.5.mlp.up.weight"][32:64] = a["h.5.mlp.up.weight"][:32]


@pytest.mark.parametrize(("change", "name", "text"), [
    (_rows, "head.weight", "rows 100..119"), (_columns, "h.2.mlp.down.weight", "columns 64..79"),
    (_fused, "h.5.mlp.up.weight", "rows 32..63")])  # fmt: skip
def test_a_part_that_repeats_another(change: Callable[[Any], None], name: str, text: str, tmp_path: Path) -> None:
    a = planted.stack()
    change(a)
    found = [f for f in _found(planted.write("npz", tmp_path, a)) if f.rule == "W117"]
    assert [(f.measured["name"], text in f.statement) for f in found] == [(name, True)]


def _all_heads(a: Any) -> None:
    for i in range(8):
        for kind in "kv":
            w = a[f"h.{i}.attn.{kind}.weight"]
            w[:] = np.repeat(w[::16].repeat(8, axis=0)[:16], 1, axis=0)[:16].repeat(2, axis=0)


def _whole_repeats(a: Any) -> None:
    a["head.weight"][160:] = a["head.weight"][:160]


def _mean_rows(a: Any) -> None:
    a["wte.weight"][300:] = a["wte.weight"][:300].mean(0)


def _zeros(a: Any) -> None:
    a["h.3.mlp.up.weight"][::3] = 0


@pytest.mark.parametrize("change", [_all_heads, _whole_repeats, _mean_rows, _zeros, lambda a: None])
def test_repeats_by_design_are_left_alone(change: Callable[[Any], None], tmp_path: Path) -> None:
    a = planted.stack()
    change(a)
    assert not [f for f in _found(planted.write("npz", tmp_path, a)) if f.rule == "W117"]


def _flax(blocks: int) -> Any:
    rng = np.random.default_rng(3)
    made: Any = {}
    for i in range(blocks):
        for norm in ("norm_1", "norm_2"):
            made[f"block_{i}/{norm}/scale"] = (1 + 0.1 * rng.standard_normal(32)).astype(np.float32)
            made[f"block_{i}/{norm}/bias"] = (0.1 * rng.standard_normal(32)).astype(np.float32)
        made[f"block_{i}/dense/kernel"] = (rng.standard_t(5, (32, 32)) * 0.13).astype(np.float32)
        made[f"block_{i}/dense/bias"] = (0.1 * rng.standard_normal(32)).astype(np.float32)
    return made


@pytest.mark.parametrize("blocks", [3, 6])
def test_scales_of_one_and_biases_of_zero_in_one_block(blocks: int, tmp_path: Path) -> None:
    a = _flax(blocks)
    for name, w in a.items():
        if name.startswith("block_2") and w.ndim == 1:
            w[:] = float(name.endswith("scale"))
    found = [f for f in _found(planted.write("npz", tmp_path, a)) if f.rule == "W104"]
    assert [f.measured["name"] for f in found] == ["block_2"]


def test_biases_that_no_block_has_are_left_alone(tmp_path: Path) -> None:
    a = _flax(4)
    for name, w in a.items():
        if name.endswith("bias"):
            w[:] = 0
    a["block_2/norm_1/scale"][:] = 1
    assert not [f for f in _found(planted.write("npz", tmp_path, a)) if f.rule == "W104"]


def test_a_shard_of_an_earlier_step(tmp_path: Path) -> None:
    a = planted.stack()
    late = list(a)[len(a) // 2:]
    one, two = tmp_path / "1", tmp_path / "2"
    planted.write_sharded(one, a)
    planted.write_sharded(two, _moved(a, lambda n: n not in late))
    found = [f for f in _found(one, two) if f.rule == "W118"]
    assert [f.measured["kind"] for f in found] == ["shard"]
    assert "00002-of-00002" in found[0].statement


def test_blocks_of_an_earlier_step(tmp_path: Path) -> None:
    a = planted.stack()
    one = planted.write("safetensors", tmp_path, a, "one")
    two = planted.write("safetensors", tmp_path, _moved(a, lambda n: not n.startswith(("h.5.", "h.6."))), "two")
    found = [f for f in _found(one, two) if f.rule == "W118"]
    assert [(f.measured["name"], f.measured["kind"]) for f in found] == [("h.5", "blocks")]


@pytest.mark.parametrize("moves", [
    lambda n: True, lambda n: n == "head.weight", lambda n: not n.startswith(("w", "h.0.", "h.1.", "h.2.")),
    lambda n: n.endswith("bias"), lambda n: "attn" in n])  # fmt: skip
def test_frozen_by_the_model_is_no_stale_part(moves: Callable[[str], bool], tmp_path: Path) -> None:
    a = planted.stack()
    planted.write_sharded(tmp_path / "1", a)
    planted.write_sharded(tmp_path / "2", _moved(a, moves))
    assert not [f for f in _found(tmp_path / "1", tmp_path / "2") if f.rule in ("W118", "W119")]


def test_a_frozen_beginning_that_fills_the_first_shard(tmp_path: Path) -> None:
    a = planted.stack()
    early = list(a)[:len(a) // 2]
    planted.write_sharded(tmp_path / "1", a)
    planted.write_sharded(tmp_path / "2", _moved(a, lambda n: n not in early))
    assert not [f for f in _found(tmp_path / "1", tmp_path / "2") if f.rule == "W118"]


def _transposed(a: Any) -> None:
    a["h.3.attn.q.weight"] = a["h.3.attn.q.weight"].T.copy()


def _rows_permuted(a: Any) -> None:
    a["h.3.mlp.up.weight"] = a["h.3.mlp.up.weight"][np.random.default_rng(0).permutation(128)]


def _heads(a: Any) -> None:
    w = a["h.2.attn.k.weight"]
    a["h.2.attn.k.weight"] = np.concatenate([w[8:16], w[:8], w[16:]])


def _columns_permuted(a: Any) -> None:
    a["h.1.mlp.down.weight"] = a["h.1.mlp.down.weight"][:, ::-1].copy()


def _exchanged(a: Any) -> None:
    a["h.4.attn.q.weight"], a["h.4.attn.v.weight"] = a["h.4.attn.v.weight"], a["h.4.attn.q.weight"]


@pytest.mark.parametrize(("change", "kind", "text"), [
    (_transposed, "transposed", "transpose"), (_rows_permuted, "rows", "128 rows"),
    (_heads, "rows", "in blocks of 8"), (_columns_permuted, "columns", "columns"),
    (_exchanged, "exchanged", "h.4.attn.v.weight")])  # fmt: skip
def test_values_in_other_places(change: Callable[[Any], None], kind: str, text: str, tmp_path: Path) -> None:
    a = planted.stack()
    b = _moved(a)
    change(b)
    found = [f for f in _found(planted.write("npz", tmp_path, a, "a"), planted.write("npz", tmp_path, b, "b"))
             if f.rule == "W119"]
    assert [f.measured["kind"] for f in found] == [kind]
    assert text in found[0].statement


def test_another_model_altogether_is_not_rearranged(tmp_path: Path) -> None:
    one = planted.write("npz", tmp_path, planted.stack(), "a")
    two = planted.write("npz", tmp_path, planted.stack(seed=9), "b")
    assert not [f for f in _found(one, two) if f.rule in ("W118", "W119")]


def test_values_that_are_not_finite_and_tiny_tensors(tmp_path: Path) -> None:
    a = planted.stack()
    a["h.3.attn.q.weight"][:] = np.nan
    a["one.weight"] = np.ones((2, 2), np.float32)
    b = _moved(a)
    _transposed(b)
    assert not [f for f in _found(planted.write("npz", tmp_path, a, "a"), planted.write("npz", tmp_path, b, "b"))
                if f.rule in ("W117", "W119")]
