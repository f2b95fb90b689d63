"""Blocks copied in part, shards of another step, and large matrices whose rows stand in other places."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine


def _found(rule: str, path: Path, other: Path | None = None) -> list[Any]:
    seen = examine(path, other)
    assert not [n for n in seen.notes if "failed" in n]
    return [f for f in seen.findings if f.rule == rule and f.severity is not Severity.INFO]


@pytest.mark.parametrize("form", ["safetensors", "npz"])
@pytest.mark.parametrize("layers", [3, 6])
def test_a_block_of_which_a_part_is_copied(form: str, layers: int, tmp_path: Path) -> None:
    a = planted.stack(layers, 16, vocab=40)
    assert _found("W115", planted.write(form, tmp_path, a, "sound")) == []
    for name in [n for n in a if n.startswith("h.2.attn.")]:
        a[name] = a[name.replace("h.2.", "h.1.")].copy()
    (found,) = _found("W115", planted.write(form, tmp_path, a))
    assert "blocks h.1 and h.2" in found.statement
    assert "4 matrices" in found.statement
    for name in [n for n in a if n.startswith("h.")]:
        a[name] = a["h.0." + name.split(".", 2)[2]].copy()
    assert _found("W115", planted.write(form, tmp_path, a, "shared")) == []


def _moved(arrays: Any, far: Callable[[str], float]) -> Any:
    rng = np.random.default_rng(5)
    return {n: (w * (1 + far(n) * rng.standard_normal(w.shape))).astype(w.dtype) for n, w in arrays.items()}


def _block(name: str) -> int:
    return int(name.split(".")[1]) if name.startswith("h.") else -1 if name[0] == "w" else 99


def _shards(folder: Path, a: Any, cuts: tuple[int, ...] = (3, 6), packed: bool = False) -> Path:
    """Blocks by file; torch files or safetensors."""
    folder.mkdir()
    weights: dict[str, str] = {}
    for at, (low, high) in enumerate(zip((-1, *cuts), (*cuts, 100), strict=True)):
        own = {n: w for n, w in a.items() if low <= _block(n) < high}
        file = f"model-{at + 1:05d}.{'bin' if packed else 'safetensors'}"
        (planted.write_torch if packed else planted.write_safetensors)(folder / file, own)
        weights |= dict.fromkeys(own, file)
    index = folder / f"{'pytorch_model.bin' if packed else 'model.safetensors'}.index.json"
    index.write_text(json.dumps({"weight_map": weights}))
    return index


DISTANCES: list[tuple[Callable[[str], float], bool]] = [
    (lambda n: 0.08 if 3 <= _block(n) < 6 else 0.02, True), (lambda n: 0.02, False),
    (lambda n: 0.01 * 1.6 ** max(0, min(8, _block(n))), False), (lambda n: 0.08 if _block(n) == 4 else 0.02, False)]


@pytest.mark.parametrize(("far", "told", "packed"), [
    pytest.param(*d, packed, marks=[pytest.mark.slow] * (packed and not d[1])) for d in DISTANCES
    for packed in (False, True)])
def test_a_shard_of_another_step(far: Callable[[str], float], told: bool, packed: bool, tmp_path: Path) -> None:
    """Rates that grow with depth, and one block inside of a shard, are something else."""
    a = planted.stack(9, 16, vocab=40)
    one, other = _shards(tmp_path / "a", a, packed=packed), _shards(tmp_path / "b", _moved(a, far), packed=packed)
    found = _found("W118", one, other)
    assert [f.measured["kind"] for f in found] == ["shard-distance"] * told
    assert all("model-00002" in f.statement and 3 < f.measured["factor"] < 5 for f in found)


def test_a_shard_that_is_gone(tmp_path: Path) -> None:
    index = _shards(tmp_path / "a", planted.stack(9, 16, vocab=40))
    (tmp_path / "a" / "model-00002.safetensors").unlink()
    assert [f.rule for f in examine(index, _shards(tmp_path / "b", planted.stack(9, 16, vocab=40))).findings][:1] == [
        "W116"]


def _large() -> Any:
    rng = np.random.default_rng(6)
    return {"wte.weight": rng.standard_normal((3000, 24)).astype(np.float32),
            "attn.qkv.weight": rng.standard_normal((1536, 32)).astype(np.float32),
            **{f"mlp.{i}.weight": rng.standard_normal((32, 32)).astype(np.float32) for i in range(4)}}


def _permuted(a: Any) -> None:
    a["wte.weight"] = a["wte.weight"][np.random.default_rng(7).permutation(3000)]


def _packed(a: Any) -> None:
    q, k, v = np.split(a["attn.qkv.weight"], 3)
    a["attn.qkv.weight"] = np.concatenate([k, v, q])


def _drawn(a: Any) -> None:
    a["wte.weight"] = np.random.default_rng(8).standard_normal((3000, 24)).astype(np.float32)


def _infinite(a: Any) -> None:
    _permuted(a)
    a["wte.weight"][5] = np.inf


@pytest.mark.parametrize("form", ["safetensors", "npz"])
@pytest.mark.parametrize(("change", "words"), [
    (_permuted, "rows of wte.weight that were looked at (of 3,000)"), (_packed, "by -512 or +1024"),
    (_drawn, ""), (_infinite, ""), (lambda a: None, "")])
def test_rows_of_large_matrices(change: Callable[[Any], None], words: str, form: str, tmp_path: Path) -> None:
    a = _large()
    b = _moved(a, lambda n: 0.02)
    change(b)
    found = _found("W119", planted.write(form, tmp_path, a, "a"), planted.write(form, tmp_path, b, "b"))
    assert [words in f.statement for f in found] == [True] * bool(words)
