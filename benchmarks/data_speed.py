"""How fast data files are examined, beside the format's own reader iterating over the same rows once.

    python benchmarks/data_speed.py [MEGABYTES] [--only npz,csv] [--sizes npy=2048,csv=64]

Writes synthetic files of about that size (default 64 MB) for each format to a temporary folder and prints processor
time, MB per second of it, and the ratio of the reader's time to ours: 1.0 is as fast as the reader, 0.5 takes twice as
long. `loop` is the same rows through torch's DataLoader in batches of 64, which is what a training loop pays for them
("-" where torch is not installed). Examining means reading, all statistics and all observations; `wall` is how long
that took by the clock, `memory` the most megabytes that the process held, about 60 of them before anything was read.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

FORMS = ("npz", "npy", "bin", "csv", "jsonl", "parquet", "tar", "images")
WINDOW = 1024
"""Tokens of a file of tokens that are a row."""
SIDE = 64
"""Pixels of a side of a picture."""
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
        if form == "images":
            write_pictures(folder / f"class_{i}", rows_of(megabytes, 3 * SIDE * SIDE), rng)
            continue
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
        elif form == "parquet":
            write_parquet(path, *made(rows_of(megabytes, 4 * WIDTH), rng))
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


def write_parquet(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    import pyarrow
    import pyarrow.parquet

    table = {f"f{k}": x[:, k] for k in range(WIDTH)} | {"y": y}
    pyarrow.parquet.write_table(pyarrow.table(table), path)


def write_pictures(folder: Path, count: int, rng: np.random.Generator) -> None:
    from PIL import Image

    folder.mkdir()
    for i in range(count):
        Image.fromarray(rng.integers(0, 256, (SIDE, SIDE, 3), np.uint8)).save(folder / f"{i:06d}.png")


def iterate(path: Path) -> int:
    """What a training loop does at least: every row once, as the format's own reader gives it."""
    count = 0
    for row in OWN[path.suffix](path):
        if isinstance(row, np.ndarray):
            row.sum()  # of a mapped file nothing is read before
        count += 1
    return count


def own_npz(path: Path) -> Iterator[Any]:
    with np.load(path) as arrays:
        yield from zip(*(arrays[name] for name in arrays.files), strict=True)


def own_bin(path: Path) -> Iterator[Any]:
    tokens = np.memmap(path, "<u2", "r")
    yield from tokens[: len(tokens) // WINDOW * WINDOW].reshape(-1, WINDOW)


def own_csv(path: Path) -> Iterator[Any]:
    with path.open(newline="") as stream:
        for row in csv.reader(stream):
            if row[0][:1] != "f":
                yield [float(v) for v in row]


def own_jsonl(path: Path) -> Iterator[Any]:
    with path.open() as lines:
        yield from map(json.loads, lines)


def own_parquet(path: Path) -> Iterator[Any]:
    import pyarrow.parquet

    for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
        yield from zip(*(column.to_numpy() for column in batch.columns), strict=True)


def own_tar(path: Path) -> Iterator[Any]:
    with tarfile.open(path) as archive:
        array: Any = None
        for member in archive:
            stream = archive.extractfile(member)
            data = stream.read() if stream is not None else b""
            if member.name.endswith(".npy"):
                array = np.load(BytesIO(data))
            else:
                yield array, int(data)


def own_picture(path: Path) -> Iterator[Any]:
    from PIL import Image

    with Image.open(path) as picture:
        yield np.asarray(picture)


OWN: dict[str, Callable[[Path], Iterator[Any]]] = {
    ".npz": own_npz, ".npy": lambda path: iter(np.load(path)), ".bin": own_bin, ".csv": own_csv, ".jsonl": own_jsonl,
    ".parquet": own_parquet, ".tar": own_tar, ".png": own_picture,
}


def item(row: Any) -> Any:
    """A row as a data set gives it to the loader: arrays that can be stacked."""
    if isinstance(row, dict):
        return {name: np.asarray(value, np.float32) for name, value in row.items()}
    if isinstance(row, tuple) and len(row) == 2:
        return np.asarray(row[0]), np.asarray(row[1])
    array = np.asarray(row)
    return array.astype(np.int64) if array.dtype.kind == "u" and array.ndim == 1 else np.array(array)


def loop(files: list[Path]) -> None:
    """The same rows through torch's DataLoader."""
    from torch.utils.data import DataLoader, IterableDataset

    class Rows(IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Iterator[Any]:
            for file in files:
                yield from map(item, OWN[file.suffix](file))

    for _ in DataLoader(Rows(), batch_size=64):
        pass


def spent(work: Callable[[], object]) -> float:
    """Processor seconds, those of children included: a busy machine makes the clock run on."""
    def used() -> float:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system

    start = used()
    work()
    return used() - start


def compared(form: str, megabytes: float) -> str:
    """The line of one format."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), form, megabytes)
        files = sorted(p for p in Path(folder).rglob("*") if p.is_file())
        size = sum(f.stat().st_size for f in files) / 1e6
        own = spent(lambda: [iterate(file) for file in files])
        looped = spent(lambda: loop(files)) if find_spec("torch") is not None else None
        ours, wall, memory, told = alone(folder)
    by_loop = ("-", "-") if looped is None else (f"{looped:.2f}", f"{looped / ours:.2f}")
    return (f"{form:8}{size:8.1f}{own:9.2f}{by_loop[0]:>9}{ours:9.2f}{wall:9.2f}{memory:8.0f}{size / ours:8.0f}"
            f"{own / ours:8.2f}{by_loop[1]:>8}  {told}")


def alone(folder: str) -> tuple[float, float, float, str]:
    """Processor seconds, seconds by the clock, megabytes of memory and the worst finding, from a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--examine", folder], check=True, capture_output=True, text=True)
    used, wall, memory, told = json.loads(done.stdout)
    return used, wall, memory, told


def examined(folder: str) -> None:
    """What `alone` reads: imports and the first call are paid before the clock starts."""
    from traindx_tools.on_data import examine

    warmed()
    reports: list[Any] = []
    start = time.perf_counter()
    used = max(0.01, spent(lambda: reports.append(examine([folder]))))
    wall = time.perf_counter() - start
    print(json.dumps([used, wall, highest(), reports[0].wrong[0].rule if reports[0].wrong else ""]))


def highest() -> float:
    """The most megabytes that this process held. What getrusage says holds those of its parent before it began, too."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return float(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM"))) / 1e3


def warmed() -> None:
    from traindx_tools.on_data import examine

    with tempfile.TemporaryDirectory() as warm:
        write(Path(warm), "npz", 0.1)
        examine([warm])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("megabytes", type=float, nargs="?", default=64.0, help="of each format (default: 64)")
    parser.add_argument("--only", default=",".join(FORMS), help="formats (default: %(default)s)")
    parser.add_argument("--sizes", default="", metavar="FORM=MB,...", help="megabytes of single formats")
    parser.add_argument("--examine", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.examine:
        examined(options.examine)
        return
    sizes = {form: float(size) for form, _, size in (s.partition("=") for s in options.sizes.split(",") if s)}
    if find_spec("torch") is not None:
        with tempfile.TemporaryDirectory() as warm:
            write(Path(warm), "npz", 0.1)
            loop(sorted(Path(warm).iterdir()))  # imports are paid once
    print(f"{'format':8}{'MB':>8}{'own s':>9}{'loop s':>9}{'ours s':>9}{'wall s':>9}{'memory':>8}{'MB/s':>8}"
          f"{'own':>8}{'loop':>8}")
    for form in options.only.split(","):
        needs = {"parquet": "pyarrow", "images": "PIL"}.get(form)
        if needs is not None and find_spec(needs) is None:
            print(f"{form:8}not measured: {needs} is not installed")
            continue
        print(compared(form, sizes.get(form, options.megabytes)), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
