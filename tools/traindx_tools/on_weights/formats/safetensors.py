"""safetensors: 8 bytes of length, a JSON header of that length, and the tensors behind it.

Format: https://huggingface.co/docs/safetensors, "Format".
"""

from __future__ import annotations

import json
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_weights.checkpoint import Checkpoint, Part
from traindx_tools.on_weights.tensor import Damaged, InFile, Tensor, fits, size_of

MOST_HEADER = 100_000_000
"""Bytes of a header: the bound of the reference implementation."""
DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
          "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8",
          "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool", "C64": "complex64"}  # fmt: skip


def is_safetensors(head: bytes) -> bool:
    """Whether the first bytes are a length and the beginning of a JSON object."""
    return len(head) >= 10 and 2 <= int.from_bytes(head[:8], "little") <= MOST_HEADER and head[8:9] == b"{"


def read(path: str) -> Checkpoint:
    """The tensors of a file, by its header alone. Raises UnreadableInput."""
    size = size_of(path)
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= min(MOST_HEADER, size - 8):
            raise Damaged(f"{path}: a header of {length:,} bytes in a file of {size:,}: it was cut or is no "
                                  "safetensors file")
        header = _header(stream.read(length), path)
    metadata = header.pop("__metadata__", {})
    tensors = {name: _tensor(name, told, path, 8 + length, size) for name, told in header.items()}
    ordered = dict(sorted(tensors.items(), key=lambda item: _offset(item[1])))
    values = {str(k): v for k, v in metadata.items() if isinstance(v, (str, int, float))} if isinstance(
        metadata, dict) else {}
    return Checkpoint(path, "safetensors", (Part("", ordered),), values=values)


def _offset(tensor: Tensor) -> int:
    return tensor.storage[1] if tensor.storage else 0


def _header(data: bytes, path: str) -> dict[str, Any]:
    try:
        header = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{path}: the header is no JSON ({type(error).__name__})") from None
    if not isinstance(header, dict):
        raise UnreadableInput(f"{path}: the header is no JSON object")
    return header


def _tensor(name: str, told: Any, path: str, base: int, size: int) -> Tensor:
    try:
        dtype, shape = DTYPES[told["dtype"]], tuple(told["shape"])
        start, end = told["data_offsets"]
        right = all(type(n) is int for n in (*shape, start, end)) and 0 <= start <= end
    except (KeyError, TypeError, ValueError):
        raise UnreadableInput(f"{path}: the header does not say dtype, shape and data_offsets of {name[:80]!r} in a "
                              "way that is known") from None
    if not right or not fits(shape, dtype, end - start) or base + end > size:
        raise (Damaged if right else UnreadableInput)(f"{path}: {name[:80]!r} of shape {list(shape)[:8]} does not fit "
                                                      "the bytes "
                              f"{start:,} to {end:,} of a file of {size:,}: it was cut, or the header is wrong")
    return Tensor(name, dtype, shape, InFile(path, base + start), path, (path, base + start), name)
