"""How fast weights are examined, against mapping the same file and summing it, and in how much memory.

    python benchmarks/weights_speed.py [--gigabytes 1] [--sparse 20] [--type float32]

The file is random, of transformer blocks, and in the page cache for both; the ratio is the time of map and sum in one
thread over the time of `examine` on all processors, each the best of `ROUNDS` times three that take turns, each in a
process of its own. Beside it the ratio of the processor time of both: what one thread alone would come to. `--sparse`:
a file with holes of that many gigabytes, of which memory and time are told: 0 leaves it out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

_DTYPES = {"float32": ("F32", 4), "bfloat16": ("BF16", 2), "float16": ("F16", 2)}
_WIDTH = 2048
_WRITTEN = 2**22
"""Values written at a time."""
ROUNDS = 3


def _tensors(size: int, itemsize: int) -> dict[str, tuple[int, ...]]:
    """Shapes of blocks up to about `size` bytes."""
    shapes: dict[str, tuple[int, ...]] = {}
    block = {"attn.qkv": (3 * _WIDTH, _WIDTH), "attn.o": (_WIDTH, _WIDTH), "mlp.up": (4 * _WIDTH, _WIDTH),
             "mlp.down": (_WIDTH, 4 * _WIDTH), "norm": (_WIDTH,)}  # fmt: skip
    total = layer = 0
    while total < size:
        for name, shape in block.items():
            shapes[f"h.{layer}.{name}.weight"] = shape
            total += int(np.prod(shape)) * itemsize
        layer += 1
    return shapes


def write(path: Path, size: int, dtype: str, *, sparse: bool) -> None:
    """A safetensors file of about `size` bytes; a sparse one has holes for values."""
    code, itemsize = _DTYPES[dtype]
    header, at = {}, 0
    for name, shape in _tensors(size, itemsize).items():
        end = at + int(np.prod(shape)) * itemsize
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    rng = np.random.default_rng(0)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(head)) + head)
        if sparse:
            stream.truncate(8 + len(head) + at)
            return
        for start in range(0, at, _WRITTEN * itemsize):  # drawn anew: a file of copies has rows that truly repeat
            stream.write(_drawn(rng, dtype)[: at - start])


def _drawn(rng: np.random.Generator, dtype: str) -> bytes:
    values = rng.standard_normal(_WRITTEN, np.float32) * np.float32(0.02)
    stored = (values.view(np.uint32) >> 16).astype(np.uint16) if dtype == "bfloat16" else values.astype(dtype)
    return bytes(stored.data)


_MAPPED = """
import sys, numpy as np
from time import perf_counter, process_time
path, dtype = sys.argv[1:]
best = spent = 1e9
for _ in range(3):
    begin, worked = perf_counter(), process_time()
    offset = 8 + int.from_bytes(open(path, "rb").read(8), "little")
    values = np.memmap(path, np.float32 if dtype == "float32" else np.float16, "r", offset=offset)
    with np.errstate(all="ignore"):
        values.sum()
    best, spent = min(best, perf_counter() - begin), min(spent, process_time() - worked)
print(best, spent)
"""
_EXAMINED = """
import sys, resource
from time import perf_counter, process_time
from traindx_tools.on_weights import examine
best = spent = 1e9
for _ in range(int(sys.argv[2])):
    begin, worked = perf_counter(), process_time()
    examine(sys.argv[1])
    best, spent = min(best, perf_counter() - begin), min(spent, process_time() - worked)
print(best, spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def _measured(code: str, *arguments: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    return [float(x) for x in done.stdout.split()]


def main() -> None:
    """Prints a line for speed and one for memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--sparse", type=float, default=2.0)
    parser.add_argument("--type", choices=_DTYPES, default="float32")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "weights.safetensors"
        write(file, int(asked.gigabytes * 2**30), asked.type, sparse=False)
        rounds = [(*_measured(_MAPPED, str(file), asked.type), *_measured(_EXAMINED, str(file), "3"))
                  for _ in range(ROUNDS)]
        mapped, summed, examined, worked, memory = (min(column) for column in zip(*rounds, strict=True))
        size = file.stat().st_size / 2**30
        print(f"{size:.2f} GiB of {asked.type} on {os.cpu_count()} processors: map and sum {size / mapped:.2f} GiB/s, "
              f"examine {size / examined:.2f} GiB/s, ratio {mapped / examined:.2f} (goal 0.60), "
              f"of processor time {summed / worked:.2f}; "
              f"{memory:.2f} GiB of memory at most")
        file.unlink()
        if asked.sparse:
            write(file, int(asked.sparse * 2**30), asked.type, sparse=True)
            took, _, memory = _measured(_EXAMINED, str(file), "1")
            print(f"{file.stat().st_size / 2**30:.1f} GiB with holes: {memory:.2f} GiB of memory at most (goal 1), "
                  f"{took:.1f} s")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
