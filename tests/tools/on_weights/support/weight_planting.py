"""Weights to plant faults into, as numpy arrays, and writers of the formats that the tests read."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]
"""Names and arrays; bfloat16 is float32 to the writers that take it as such."""


def stack(layers: int = 8, width: int = 32, seed: int = 0, vocab: int = 320) -> Arrays:
    """A decoder whose weights look trained: every tensor off its initialiser, blocks alike but not the same."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int, scale: float) -> Any:
        grown = rng.lognormal(0, 0.25, (rows, 1))  # units differ after training
        return (rng.standard_normal((rows, columns)) * scale * grown * rng.uniform(0.9, 1.1)).astype(np.float32)

    frequent = 0.3 + 1.2 / np.sqrt(1 + rng.permutation(vocab) / 20)
    made: Arrays = {"wte.weight": (rng.standard_normal((vocab, width)) * frequent[:, None] * 0.1).astype(np.float32),
                    "wpe.weight": matrix(128, width, 0.03)}
    for i in range(layers):
        for name in ("q", "k", "v", "o"):
            made[f"h.{i}.attn.{name}.weight"] = matrix(width, width, 0.11)
            made[f"h.{i}.attn.{name}.bias"] = (rng.standard_normal(width) * 0.02).astype(np.float32)
        made[f"h.{i}.mlp.up.weight"], made[f"h.{i}.mlp.down.weight"] = matrix(4 * width, width, 0.11), matrix(
            width, 4 * width, 0.06)
        made[f"h.{i}.mlp.up.bias"] = (rng.standard_normal(4 * width) * 0.02).astype(np.float32)
        made[f"h.{i}.norm.weight"] = (1 + rng.standard_normal(width) * 0.05).astype(np.float32)
        made[f"h.{i}.norm.bias"] = (rng.standard_normal(width) * 0.02).astype(np.float32)
    made["norm.weight"] = (1 + rng.standard_normal(width) * 0.05).astype(np.float32)
    made["head.weight"] = matrix(vocab, width, 0.07)
    return made


def convolutions(layers: int = 6, width: int = 24, seed: int = 1) -> Arrays:
    """Convolutions with batch normalisation whose variances follow the weights, as data make them."""
    rng = np.random.default_rng(seed)
    made: Arrays = {}
    for i in range(layers):
        scale = rng.lognormal(0, 0.4, width)
        weight = rng.standard_normal((width, width if i else 3, 3, 3)) * 0.08 * scale[:, None, None, None]
        squares = (weight**2).sum((1, 2, 3))
        made |= {f"layers.{i}.conv.weight": weight.astype(np.float32),
                 f"layers.{i}.bn.weight": (1 + rng.standard_normal(width) * 0.1).astype(np.float32),
                 f"layers.{i}.bn.bias": (rng.standard_normal(width) * 0.1).astype(np.float32),
                 f"layers.{i}.bn.running_mean": (rng.standard_normal(width) * np.sqrt(squares)).astype(np.float32),
                 f"layers.{i}.bn.running_var": (squares * 0.5 * rng.lognormal(0, 0.15, width)).astype(np.float32),
                 f"layers.{i}.bn.num_batches_tracked": np.array(400)}
    made["fc.weight"] = (rng.standard_t(4, (10, width)) * 0.2).astype(np.float32)
    made["fc.bias"] = (rng.standard_normal(10) * 0.3).astype(np.float32)
    return made


_SAFE = {"<f4": "F32", "<f2": "F16", "<f8": "F64", "<i8": "I64", "|b1": "BOOL", "|u1": "U8"}


def write_safetensors(path: Path, arrays: Mapping[str, Any]) -> Path:
    header, data = {}, b""
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        raw = array.tobytes()
        header[name] = {"dtype": _SAFE[array.dtype.str], "shape": list(np.shape(array)),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


def write_sharded(path: Path, arrays: Mapping[str, Any]) -> Path:
    """Two shards and their index, in a folder; the index is returned."""
    path.mkdir()
    names = list(arrays)
    half = len(names) // 2
    shards = {"model-00001-of-00002.safetensors": names[:half], "model-00002-of-00002.safetensors": names[half:]}
    for file, own in shards.items():
        write_safetensors(path / file, {n: arrays[n] for n in own})
    index = path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {n: f for f, own in shards.items() for n in own}}))
    return index


def write_npz(path: Path, arrays: Mapping[str, Any]) -> Path:
    with path.open("wb") as stream:
        np.savez(stream, **arrays)
    return path


def write_torch(path: Path, arrays: Mapping[str, Any], **beside: Any) -> Path:
    import torch

    tensors = {n: torch.from_numpy(np.array(a)) for n, a in arrays.items()}
    torch.save({"model": tensors, **beside} if beside else tensors, path)
    return path


def write_msgpack(path: Path, arrays: Mapping[str, Any]) -> Path:
    from flax import serialization, traverse_util

    tree = traverse_util.unflatten_dict({tuple(n.split(".")): a for n, a in arrays.items()})
    path.write_bytes(serialization.msgpack_serialize({"params": tree}))
    return path


WRITERS: dict[str, Callable[[Path, Mapping[str, Any]], Path]] = {
    "safetensors": write_safetensors, "sharded": write_sharded, "npz": write_npz, "torch": write_torch,
    "msgpack": write_msgpack,
}  # fmt: skip
SUFFIX = {"safetensors": ".safetensors", "sharded": "", "npz": ".npz", "torch": ".pt", "msgpack": ".msgpack"}


def write(form: str, folder: Path, arrays: Mapping[str, Any], name: str = "weights") -> Path:
    """A file of the format, or the index of one."""
    return WRITERS[form](folder / f"{name}{SUFFIX[form]}", arrays)
