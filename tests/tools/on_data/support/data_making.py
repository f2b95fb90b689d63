"""Small seeded data sets in every format, and the ways to write them."""

from __future__ import annotations

import csv
import io
import json
import struct
import tarfile
import wave
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rows = dict[str, Array]


def classes(rows: int, rng: np.random.Generator, kinds: int = 6, width: int = 12, noise: float = 1.0) -> Rows:
    """Gaussian clouds, one a class: x float32 (rows, width), y int64 (rows,)."""
    centres = np.random.default_rng(7).normal(size=(kinds, width)) * 2
    y = rng.integers(0, kinds, rows)
    return {"x": (centres[y] + noise * rng.normal(size=(rows, width))).astype(np.float32), "y": y}


def pictures(rows: int, rng: np.random.Generator, side: int = 12) -> Rows:
    """Smooth random pictures, brighter on a side that the label names."""
    y = rng.integers(0, 2, rows)
    x = rng.normal(size=(rows, side, side)).cumsum(1).cumsum(2)
    x -= x.mean(axis=(1, 2), keepdims=True)
    x[:, :, : side // 2] += 6.0 * (y * 2 - 1)[:, None, None]
    return {"x": x.astype(np.float32), "y": y}


WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "or",
    "had",
    "an",
    "they",
    "which",
    "one",
    "you",
    "were",
    "her",
    "all",
    "she",
    "there",
    "would",
    "their",
    "we",
    "him",
    "been",
    "has",
    "when",
    "who",
    "will",
    "more",
    "no",
    "if",
    "out",
    "so",
    "said",
    "what",
    "up",
    "its",
    "about",
]


def sentence(rng: np.random.Generator, label: int) -> str:
    """Ten to thirty words; those of one class come from its own third of the list more often."""
    part = len(WORDS) // 3
    own = WORDS[label * part : (label + 1) * part]
    return " ".join(rng.choice(own if rng.random() < 0.6 else WORDS) for _ in range(int(rng.integers(12, 30))))


def texts(rows: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Records with a text, a label and token ids of many lengths."""
    out = []
    for _ in range(rows):
        label = int(rng.integers(0, 3))
        ids = (rng.zipf(1.4, int(rng.integers(10, 60))) % 5000).tolist()
        out.append({"text": sentence(rng, label), "label": label, "input_ids": ids})
    return out


def npz(path: Path, rows: Rows) -> None:
    np.savez_compressed(path.with_suffix(".npz"), **rows)  # type: ignore[arg-type]


def npy(path: Path, rows: Rows) -> None:
    for name, values in rows.items():
        np.save(path.with_name(f"{name}_{path.name}.npy"), values)


def as_csv(path: Path, rows: Rows) -> None:
    x = rows["x"].reshape(len(rows["x"]), -1)
    with path.with_suffix(".csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*(f"f{i}" for i in range(x.shape[1])), "y"])
        out.writerows([*(f"{v:.6g}" for v in r), int(k)] for r, k in zip(x, rows["y"], strict=True))


def jsonl(path: Path, rows: Rows) -> None:
    x = rows["x"].reshape(len(rows["x"]), -1)
    lines = (json.dumps({"x": [float(v) for v in r], "y": int(k)}) for r, k in zip(x, rows["y"], strict=True))
    path.with_suffix(".jsonl").write_text("\n".join(lines) + "\n")


def records(path: Path, rows: list[dict[str, Any]]) -> None:
    path.with_suffix(".jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def member(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def tar(path: Path, rows: Rows) -> None:
    with tarfile.open(path.with_suffix(".tar"), "w") as archive:
        for i, (x, y) in enumerate(zip(rows["x"], rows["y"], strict=True)):
            held = io.BytesIO()
            np.save(held, x)
            member(archive, f"{i:05d}.x.npy", held.getvalue())
            member(archive, f"{i:05d}.cls", str(int(y)).encode())


def pt(path: Path, rows: Rows) -> None:
    import torch

    torch.save({k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in rows.items()}, path.with_suffix(".pt"))


def parquet(path: Path, rows: Rows) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    x = rows["x"].reshape(len(rows["x"]), -1)
    pq.write_table(pa.table({"x": [r.tolist() for r in x], "y": rows["y"].tolist()}), path.with_suffix(".parquet"))


def hdf5(path: Path, rows: Rows) -> None:
    import h5py

    with h5py.File(path.with_suffix(".h5"), "w") as file:
        for name, values in rows.items():
            file[name] = values


def tfrecord(path: Path, rows: Rows) -> None:
    with path.with_suffix(".tfrecord").open("wb") as file:
        for x, y in zip(rows["x"], rows["y"], strict=True):
            file.write(framed(example({"x": np.asarray(x, np.float32).reshape(-1).tolist(), "y": [int(y)]})))


def framed(data: bytes) -> bytes:
    """A record as TFRecord frames it."""
    from traindx_tools.on_data.readers.tfrecord import crc32c

    def masked(part: bytes) -> bytes:
        crc = crc32c(part)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    head = struct.pack("<Q", len(data))
    return head + masked(head) + data + masked(data)


def example(features: Mapping[str, list[Any]]) -> bytes:
    """A `tf.train.Example`: lists of bytes, floats or integers by name."""

    def sized(number: int, data: bytes) -> bytes:
        return varint(number << 3 | 2) + varint(len(data)) + data

    def varint(value: int) -> bytes:
        value &= 2**64 - 1
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    def feature(values: list[Any]) -> bytes:
        if isinstance(values[0], bytes):
            return sized(1, b"".join(sized(1, v) for v in values))
        if isinstance(values[0], float):
            return sized(2, sized(1, struct.pack(f"<{len(values)}f", *values)))
        return sized(3, sized(1, b"".join(map(varint, values))))

    entries = [sized(1, sized(1, k.encode()) + sized(2, feature(v))) for k, v in features.items()]
    return sized(1, b"".join(entries))


def mds(path: Path, rows: Rows) -> None:
    x = np.ascontiguousarray(rows["x"], np.float32).reshape(len(rows["x"]), -1)
    shape = f"ndarray:float32:{x.shape[1]}"
    path.with_suffix(".mds").write_bytes(mds_shard(
        [("x", shape, x[0].nbytes), ("y", "int", 8)],
        [[r.tobytes(), struct.pack("<q", int(y))] for r, y in zip(x, rows["y"], strict=True)]))


def mds_shard(columns: list[tuple[str, str, int | None]], samples: list[list[bytes]]) -> bytes:
    """A shard of encoded fields."""
    told = json.dumps({"column_names": [c[0] for c in columns], "column_encodings": [c[1] for c in columns],
                       "column_sizes": [c[2] for c in columns], "compression": None, "format": "mds", "hashes": [],
                       "size_limit": 1 << 26, "version": 2}, sort_keys=True).encode()
    bodies = [np.array([len(f) for f, c in zip(s, columns, strict=True) if c[2] is None], "<u4").tobytes() + b"".join(s)
              for s in samples]
    ends = np.array([0, *map(len, bodies)]).cumsum() + 4 + 4 * (len(samples) + 1) + len(told)
    return np.uint32(len(samples)).tobytes() + ends.astype("<u4").tobytes() + told + b"".join(bodies)


WRITERS: Mapping[str, Callable[[Path, Rows], None]] = {
    "npz": npz,
    "npy": npy,
    "csv": as_csv,
    "jsonl": jsonl,
    "tar": tar,
    "pt": pt,
    "parquet": parquet,
    "hdf5": hdf5,
    "tfrecord": tfrecord,
    "mds": mds,
}
NEEDS = {"pt": "torch", "parquet": "pyarrow", "hdf5": "h5py"}


def png(values: Array) -> bytes:
    """A grey picture, uint8 (height, width)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = values.shape
    raw = b"".join(b"\0" + row.tobytes() for row in values)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(raw))
        + chunk(b"IEND", b"")
    )


def sound(rate: int, frames: Array) -> bytes:
    """A wave file of 16 bits and one channel."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(frames.astype("<i2").tobytes())
    return out.getvalue()


Edit = Callable[[int, Rows, np.random.Generator], Rows]


def series(
    folder: Path,
    form: str,
    edit: Edit | None = None,
    shards: int = 6,
    rows: int = 200,
    seed: int = 0,
    make: Callable[[int, np.random.Generator], Rows] = classes,
) -> None:
    """`shards` files of one set; `edit` changes the rows of each before they are written."""
    rng = np.random.default_rng(seed)
    for i in range(shards):
        made = make(rows, rng)
        WRITERS[form](folder / f"part_{i:03d}", edit(i, made, rng) if edit is not None else made)


def split(folder: Path, form: str, train: Rows, held: Rows) -> None:
    """A training and a validation file."""
    WRITERS[form](folder / "train", train)
    WRITERS[form](folder / "val", held)
