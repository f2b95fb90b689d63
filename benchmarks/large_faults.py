"""Faults planted in a data set that is too large to be looked at row by row: which are named, and where.

    python benchmarks/large_faults.py [MEGABYTES] [--all] [--form npz|npy|parquet|csv|jsonl]

Writes four training files and a small test file (default 1024 MB in all) to a temporary folder, once as they should be
and once for each fault, and prints what is found, processor time and memory. `--all` looks at every row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SHARDS, WIDTH, TEST = 4, 64, 5000
Part = dict[str, np.ndarray]


def healthy(megabytes: float) -> dict[str, Part]:
    rng, centres = np.random.default_rng(3), np.random.default_rng(7).normal(size=(10, WIDTH)).astype(np.float32)
    rows = int(megabytes * 1e6 / SHARDS / (4 * WIDTH + 8))
    out = {}
    for name, count in [*((f"train_{i}", rows) for i in range(SHARDS)), ("test", TEST)]:
        y = rng.integers(0, 10, count)
        out[name] = {"x": centres[y] + rng.standard_normal((count, WIDTH), np.float32), "y": y}
    return out


def not_finite(parts: dict[str, Part]) -> None:
    parts["train_2"]["x"][len(parts["train_2"]["y"]) // 3 + 7, 5] = np.nan


def extreme(parts: dict[str, Part]) -> None:
    parts["train_1"]["x"][len(parts["train_1"]["y"]) // 5 + 3, 9] = 4e4


def leaked(parts: dict[str, Part]) -> None:
    there = np.linspace(3, len(parts["train_0"]["y"]) - 5, 50).astype(int)
    for name in ("x", "y"):
        parts["test"][name][100:2600:50] = parts["train_0"][name][there]


def permuted(parts: dict[str, Part]) -> None:
    parts["train_3"]["y"] = np.random.default_rng(1).permutation(parts["train_3"]["y"])


def scaled(parts: dict[str, Part]) -> None:
    parts["train_1"]["x"] *= 255


def shifted(parts: dict[str, Part]) -> None:
    rows = len(parts["train_2"]["y"])
    place = slice(rows // 2, rows // 2 + rows // 50)
    parts["train_2"]["y"][place] = np.roll(parts["train_2"]["y"][place], 1)


def blank(parts: dict[str, Part]) -> None:
    rows = len(parts["train_0"]["y"])
    parts["train_0"]["x"][rows // 7:rows // 7 + 400] = 0


def outside(parts: dict[str, Part]) -> None:
    parts["train_3"]["y"][len(parts["train_3"]["y"]) // 9 + 1] = 77


FAULTS: dict[str, tuple[Callable[[dict[str, Part]], None] | None, str, str]] = {
    "healthy": (None, "", ""),
    "a NaN": (not_finite, "D101", "train_2"),
    "an extreme row": (extreme, "D102", "train_1"),
    "50 rows of training in test": (leaked, "D113", "test"),
    "labels permuted": (permuted, "D109", "train_3"),
    "times 255": (scaled, "D104", "train_1"),
    "2 % shifted": (shifted, "D123", "train_2"),
    "400 rows of zeros": (blank, "D119", "train_0"),
    "a label outside": (outside, "D110", "train_3"),
}


def write(folder: Path, parts: dict[str, Part], form: str) -> None:
    for name, part in parts.items():
        x, y = part["x"], part["y"]
        if form == "npz":
            np.savez(folder / f"{name}.npz", **part)  # type: ignore[arg-type]
        elif form == "npy":
            for field, values in part.items():
                np.save(folder / f"{field}_{name}.npy", values)
        elif form == "jsonl":
            with (folder / f"{name}.jsonl").open("w") as out:
                out.writelines(json.dumps({"x": r.tolist(), "y": int(k)}) + "\n" for r, k in zip(x, y, strict=True))
        else:
            write_table(folder / f"{name}.{form}", x, y, form)


def write_table(path: Path, x: np.ndarray, y: np.ndarray, form: str) -> None:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    table = pyarrow.table({f"f{k}": x[:, k] for k in range(WIDTH)} | {"y": y})
    (pyarrow.parquet.write_table if form == "parquet" else pyarrow.csv.write_csv)(table, path)


def examined(folder: str, all_rows: bool) -> dict[str, Any]:
    """What is found, by a process of its own."""
    code = ("import json,sys,time;from traindx_tools.on_data import examine;"
            "r=examine([sys.argv[1]],all_rows=sys.argv[2]=='1',seconds=600);"
            "print(json.dumps({'found':[[f.rule,f.severity.name,f.source,f.statement] for f in r.findings],"
            "'notes':list(r.notes),'cpu':time.process_time(),"
            "'memory':next(int(x.split()[1])/1e3 for x in open('/proc/self/status') if x.startswith('VmHWM'))}))")
    done = subprocess.run([sys.executable, "-c", code, folder, str(int(all_rows))], check=True, capture_output=True,
                          text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("megabytes", type=float, nargs="?", default=1024.0)
    parser.add_argument("--form", default="npz", choices=("npz", "npy", "parquet", "csv", "jsonl"))
    parser.add_argument("--all", action="store_true", help="look at every row")
    parser.add_argument("--only", default="", help="faults whose name holds this")
    options = parser.parse_args()
    for name, (plant, rule, shard) in FAULTS.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            parts = healthy(options.megabytes)
            if plant is not None:
                plant(parts)
            write(Path(folder), parts, options.form)
            del parts
            start = time.perf_counter()
            seen = examined(folder, options.all)
        wrong = [f for f in seen["found"] if f[1] != "INFO"]
        right = [f for f in seen["found"] if f[0] == rule and shard in f[2] + f[3]]
        told = "silent" if not wrong else "found" if right else "missed"
        verdict = told if (rule == "") == (told == "silent") else f"WRONG: {told}"
        spent = f"{seen['cpu']:6.1f} s CPU {time.perf_counter() - start:6.1f} s {seen['memory']:6.0f} MB"
        print(f"{name:28}{verdict:16}{spent} {'; '.join(f[0] for f in wrong if f not in right)}")
        for found in right[:2] or wrong[:3]:
            print(f"    {found[0]} {found[1]}: {found[3][:300]}", flush=True)
        for note in seen["notes"]:
            print(f"    {note}")


if __name__ == "__main__":
    main()
