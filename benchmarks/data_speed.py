"""How fast data files are examined, beside the format's own reader iterating over the same rows once.

    python benchmarks/data_speed.py [MEGABYTES]

Writes synthetic files of about that size (default 64 MB) for each format to a temporary folder and prints seconds, MB/s
and the ratio of the reader's time to ours: 1.0 is as fast as the reader, 0.5 takes twice as long. Examining means
reading, all statistics, all observations.
"""

from __future__ import annotations

import argparse
import csv
import json
import signal
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

SHARDS = 4
WIDTH = 64


def rows_of(megabytes: float, bytes_per_row: int) -> int:
    return max(200, int(megabytes * 1e6 / SHARDS / bytes_per_row))


def made(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 10, rows)
    centres = np.random.default_rng(7).normal(size=(10, WIDTH))
    return (centres[y] + rng.normal(size=(rows, WIDTH))).astype(np.float32), y


def write(folder: Path, form: str, megabytes: float) -> None:
    rng = np.random.default_rng(0)
    for i in range(SHARDS):
        path = folder / f"part_{i}.{form}"
        if form == "npz":
            x, y = made(rows_of(megabytes, 4 * WIDTH), rng)
            np.savez(path, x=x, y=y)
        elif form == "npy":
            np.save(path, made(rows_of(megabytes, 4 * WIDTH), rng)[0])
        elif form == "bin":
            (rng.zipf(1.3, rows_of(megabytes, 2)) % 50_000).astype(np.uint16).tofile(path)
        elif form == "csv":
            x, y = made(rows_of(megabytes, 9 * WIDTH), rng)
            np.savetxt(path, np.column_stack([x, y]), fmt="%.5f", delimiter=",",
                       header=",".join([*(f"f{k}" for k in range(WIDTH)), "y"]), comments="")
        elif form == "jsonl":
            x, y = made(rows_of(megabytes, 21 * WIDTH), rng)
            with path.open("w") as out:
                out.writelines(json.dumps({"x": r.tolist(), "y": int(k)}) + "\n" for r, k in zip(x, y, strict=True))
        else:
            write_tar(path, *made(rows_of(megabytes, 2048 + 4 * WIDTH), rng))


def write_tar(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    with tarfile.open(path, "w") as archive:
        for i, (row, label) in enumerate(zip(x, y, strict=True)):
            held = BytesIO()
            np.save(held, row)
            for name, data in ((f"{i:07d}.x.npy", held.getvalue()), (f"{i:07d}.cls", str(int(label)).encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, BytesIO(data))


def iterate(path: Path) -> int:
    """What a training loop does at least: every row once, as the format's own reader gives it."""
    return sum(1 for _ in OWN[path.suffix](path))


def own_npz(path: Path) -> Iterator[object]:
    with np.load(path) as arrays:
        for name in arrays.files:
            yield from arrays[name]


def own_csv(path: Path) -> Iterator[object]:
    with path.open(newline="") as stream:
        for row in csv.reader(stream):
            yield [float(v) for v in row if v[:1] != "f" and v != "y"]


def own_jsonl(path: Path) -> Iterator[object]:
    with path.open() as lines:
        yield from map(json.loads, lines)


def own_tar(path: Path) -> Iterator[object]:
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            data = stream.read() if stream is not None else b""
            yield np.load(BytesIO(data)) if member.name.endswith(".npy") else int(data)


OWN: dict[str, Callable[[Path], Iterator[object]]] = {
    ".npz": own_npz,
    ".npy": lambda path: (row.sum() for row in np.load(path)),
    ".bin": lambda path: (block.sum() for block in np.array_split(np.memmap(path, "<u2", "r"), 1000)),
    ".csv": own_csv, ".jsonl": own_jsonl, ".tar": own_tar,
}


def main() -> None:
    from traindx_tools.on_data import examine

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("megabytes", type=float, nargs="?", default=64.0, help="of each format (default: 64)")
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as warm:
        write(Path(warm), "npz", 0.1)
        examine([warm])  # imports are paid once
    print(f"{'format':8}{'MB':>8}{'own s':>9}{'ours s':>9}{'MB/s':>8}{'ratio':>8}")
    for form in ("npz", "npy", "bin", "csv", "jsonl", "tar"):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), form, megabytes)
            files = sorted(Path(folder).iterdir())
            size = sum(f.stat().st_size for f in files) / 1e6
            start = time.perf_counter()
            for file in files:
                iterate(file)
            own = time.perf_counter() - start
            start = time.perf_counter()
            report = examine([folder])
            ours = time.perf_counter() - start
            told = "" if not report.wrong else f"  {report.wrong[0].rule}"
            print(f"{form:8}{size:8.1f}{own:9.2f}{ours:9.2f}{size / ours:8.0f}{own / ours:8.2f}{told}")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
