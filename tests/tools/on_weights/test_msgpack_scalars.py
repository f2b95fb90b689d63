"""Arrays without axes in files of flax: the shorter forms of an extension, each of its lengths."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.formats.reading import read_checkpoint

FIXED = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}


def text(value: str) -> bytes:
    return bytes([0xA0 + len(value)]) + value.encode()


def extension(array: np.ndarray) -> bytes:
    shape = bytes([0x90 + array.ndim, *array.shape])
    body = b"\x93" + shape + text(str(array.dtype)) + b"\xc4" + bytes([array.nbytes]) + array.tobytes()
    head = bytes([FIXED[len(body)]]) if len(body) in FIXED else b"\xc7" + bytes([len(body)])
    return head + b"\x01" + body


def tree(values: dict[str, np.ndarray]) -> bytes:
    inner = bytes([0x80 + len(values)]) + b"".join(text(k) + extension(v) for k, v in values.items())
    return b"\x81" + text("params") + inner


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16", "bool", "uint8", "uint32"])
@pytest.mark.parametrize("shape", [(), (1,), (2,)])
def test_small_arrays_of_every_type(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    value = np.ones(shape, dtype)
    weights = np.arange(12, dtype=np.float32).reshape(3, 4)
    path = tmp_path / "params.msgpack"
    path.write_bytes(tree({"scale": value, "w": weights}))
    tensors = {n: t for part in read_checkpoint(str(path)).parts for n, t in part.tensors.items()}
    assert tensors["w"].load().tolist() == weights.tolist()
    assert np.asarray(tensors["scale"].load()).reshape(shape).tolist() == value.tolist()


def test_as_flax_writes_them(tmp_path: Path) -> None:
    serialization = pytest.importorskip("flax.serialization")
    path = tmp_path / "params.msgpack"
    path.write_bytes(serialization.msgpack_serialize({"params": {"logit_scale": np.array(2.5, np.float32),
                                                                 "w": np.ones((4, 3), np.float32)},
                                                      "step": np.array(900)}))
    parts = read_checkpoint(str(path)).parts
    assert {n for p in parts for n in p.tensors} >= {"logit_scale", "w", "step"}


@pytest.mark.parametrize("code", FIXED.values())
def test_one_that_is_cut(code: int, tmp_path: Path) -> None:
    path = tmp_path / "params.msgpack"
    path.write_bytes(b"\x81" + text("params") + b"\x81" + text("w") + bytes([code]) + struct.pack("b", 1) + b"\x93")
    with pytest.raises(UnreadableInput, match="msgpack"):
        read_checkpoint(str(path))
