"""How the hard cases are made: a project whose fault shows in no line of code and in no log, and where the fault is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TRAIN = """import glob, json, sys
import numpy as np

shards = [np.load(p) for p in sorted(glob.glob("data/*.npz"))]
x = np.concatenate([s["x"] for s in shards]); y = np.concatenate([s["y"] for s in shards])
weight = np.zeros((x.shape[1], int(y.max()) + 1))
for step in range(200):
    logits = x @ weight; logits -= logits.max(1, keepdims=True)
    prob = np.exp(logits); prob /= prob.sum(1, keepdims=True)
    loss = -np.log(prob[np.arange(len(y)), y] + 1e-9).mean()
    prob[np.arange(len(y)), y] -= 1
    weight -= 0.5 * x.T @ prob / len(y)
    if step % 20 == 0:
        print(f"step {step} loss {loss:.4f} accuracy {(logits.argmax(1) == y).mean():.4f}")
"""


@dataclass(frozen=True)
class Truth:
    """What was built in: patterns that the cause and its place must match."""

    cause: str
    place: str


def rolled_shard(folder: Path, seed: int) -> Truth:
    """In one of eight shards the labels are moved by one row."""
    rng = np.random.default_rng(seed)
    bad, rule = int(rng.integers(1, 8)), rng.normal(size=(12, 4))
    (folder / "data").mkdir()
    for n in range(8):
        x = rng.normal(size=(400, 12))
        y = (x @ rule).argmax(1)
        np.savez(folder / "data" / f"shard-{n:02d}.npz", x=x, y=np.roll(y, 1) if n == bad else y)
    (folder / "train.py").write_text(TRAIN)
    (folder / "log.txt").write_text("".join(
        f"step {s} loss {1.386 * 0.985 ** s + 0.52:.4f} accuracy {0.86 - 0.6 * 0.97 ** s:.4f}\n"
        for s in range(0, 200, 20)))
    return Truth(r"label|\by\b|shift|roll|mis-?align|pair|off by one", rf"shard-0?{bad}\b|shard {bad}\b")


def reset_block(folder: Path, seed: int) -> Truth:
    """One tensor of a checkpoint is as it was before it was trained: drawn anew, at its first scale."""
    rng = np.random.default_rng(seed)
    bad = int(rng.integers(1, 7))
    base = {f"blocks.{n}.{part}.weight": rng.normal(0, 0.02, (64, 64)) + 0.3 * np.outer(
        rng.normal(size=64), rng.normal(size=64)) / 8 for n in range(8) for part in ("attn", "mlp")}
    tuned = {k: v + rng.normal(0, 0.001, v.shape) for k, v in base.items()}
    tuned[f"blocks.{bad}.mlp.weight"] = rng.normal(0, 0.02, (64, 64))
    np.savez(folder / "base.npz", **base)
    np.savez(folder / "resumed.npz", **tuned)
    (folder / "log.txt").write_text("resumed from base.npz\nstep 0 loss 4.91\nstep 50 loss 3.87\nstep 100 loss 3.55\n")
    return Truth(r"re-?init|random|not (loaded|trained)|reset|fresh|untrained|initial|drawn", rf"blocks\.{bad}\.mlp")


def other_statistics(folder: Path, seed: int) -> Truth:
    """Two runs of one code: the bad one normalises one feature with the statistics of another data set."""
    rng = np.random.default_rng(seed)
    bad = int(rng.integers(2, 10))
    mean, std = rng.normal(0, 3, 12), rng.uniform(0.5, 4, 12)
    said = "# the same in both runs: x = (x - mean) / std, from stats.json beside the data\n"
    (folder / "train.py").write_text(said + TRAIN)
    for name in ("good", "bad"):
        run = folder / "runs" / name
        run.mkdir(parents=True)
        x = rng.normal(mean, std, (500, 12))
        used = std.copy()
        if name == "bad":
            used[bad] *= 57.0
        np.savez(run / "sample.npz", x=x)
        (run / "stats.json").write_text(json.dumps({"mean": mean.round(5).tolist(), "std": used.round(5).tolist()}))
        end = 0.31 if name == "good" else 0.58
        (run / "log.txt").write_text("".join(f"step {s} loss {end + 1.1 * 0.98 ** s:.4f}\n" for s in range(0, 300, 30)))
    return Truth(r"std|scale|normali[sz]|statistic", rf"(feature|column|index|std\W*)\D{{0,12}}{bad}\b|\[{bad}\]")


BUILDS: dict[str, Callable[[Path, int], Truth]] = {
    "rolled-shard": rolled_shard, "reset-block": reset_block, "other-statistics": other_statistics}
