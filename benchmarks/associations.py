"""How often the planted association stands first, and how often one is reported where there is none.

    python benchmarks/associations.py [--with 32] [--without 15] [--megabytes 10] [--gigabyte] [--logs N,N]
        [--seed 0] [--keep N] [--show]

Most logs have the size of --megabytes, some 5, 10 or 20 times as much (`TIMES`): 10 to 200 MB by default. --gigabyte
adds one log of 1 GB with an association and one without.

Writes logs with seeds: what is planted (a file, host, worker, bucket, request, retry, evaluation, checkpoint, a column
of a table), the lag (0 to 200 steps), the format (text, JSON lines, CSV) and one to five decoys that are enriched and
not the cause: events that come only while spikes are frequent, that have a period, that the spike itself sets off, or
that go with half of what is planted. Prints each log with what `diagnose` says first, then both figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from traindx_tools.examine import MOST_VALUES

PLANTED = ("shard", "host", "worker", "bucket", "request", "retry", "evaluation", "checkpoint", "source", "length")
TIMES = {True: {4: 5, 11: 5, 18: 10, 22: 10, 26: 20}, False: {3: 5, 8: 10, 12: 20}}
"""By whether something is planted: the logs that are larger, and how many times --megabytes."""
GIGABYTE = 1000.0
LAGS = (0, 1, 2, 3, 7, 20, 60, 137, 200)
DECOYS = ("period", "periodic", "effect", "companion", "rare")
NAMES = {"shard": "shard_0041", "host": "node-17", "worker": "worker 3", "bucket": "bucket=1536", "request": "req-0007",
         "retry": "retry", "evaluation": "evaluation", "checkpoint": "checkpoint", "source": "books3",
         "length": "seq_len"}
"""What the first association has to name."""


@dataclass
class Log:
    """One generated log. `planted`: None where there is no association."""

    seed: int
    steps: int
    planted: str | None
    lag: tuple[int, int]
    decoys: tuple[str, ...]
    form: str

    @property
    def wanted(self) -> str | None:
        return None if self.planted is None else NAMES[self.planted]


def plan(i: int, steps: int, planted: bool, seed: int) -> Log:
    """The log number `i`."""
    rng = np.random.default_rng([seed, i, planted])
    kind = PLANTED[i % len(PLANTED)]
    form = ("jsonl", "csv")[i // len(PLANTED) % 2] if kind in ("source", "length") else "text"
    low = int(LAGS[(i * 7 + 3) % len(LAGS)]) if kind not in ("source", "length") else int(rng.integers(0, 3))
    wide = int(rng.choice([0, 0, 2])) if low < 200 else 0
    decoys = tuple(rng.permutation(DECOYS)[: 1 + i % 5].tolist())
    return Log(int(rng.integers(1 << 31)), steps, kind if planted else None, (low, low + wide), decoys,
               form if planted else ("text", "text", "jsonl", "csv")[i % 4])


def written(log: Log, path: Path) -> float:
    """Writes a log and returns its size in MB (1e6 bytes). Line by line: a text of 1 GB as a list needs several."""
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in _lines(log))
    return path.stat().st_size / 1e6


def _lines(log: Log) -> Iterator[str]:
    rng = np.random.default_rng(log.seed)
    n = log.steps
    busy = (int(0.3 * n), int(0.6 * n))
    events = _events(log, rng, busy)
    spikes = _spikes(log, rng, events, busy)
    loss = 6.0 * np.exp(-np.arange(n) / n * 3) + 1.5 + 0.05 * rng.standard_normal(n) * (1 + np.exp(-np.arange(n) / n))
    for at in spikes:
        width = int(rng.integers(1, 5))
        loss[at: at + width] += rng.uniform(0.8, 3.0) * 0.7 ** np.arange(len(loss[at: at + width]))
    return _text(log, rng, loss, events, spikes, busy) if log.form == "text" else _table(log, rng, loss, events)


def _events(log: Log, rng: np.random.Generator, busy: tuple[int, int]) -> np.ndarray:
    """Steps at which what is planted happens: at random, in a part of the run more often, or with a period."""
    n = log.steps
    if log.planted in ("evaluation", "checkpoint"):
        return np.arange(n // 40, n, n // 25)
    count = int(rng.integers(14, 40))
    inside = rng.integers(*busy, size=count // 2)
    return np.unique(np.concatenate([inside, rng.integers(n // 15, n - 220, size=count - len(inside))]))


def _spikes(log: Log, rng: np.random.Generator, events: np.ndarray, busy: tuple[int, int]) -> np.ndarray:
    n = log.steps
    chance = rng.integers(n // 15, n - 5, size=int(rng.integers(1, 4)))
    if log.planted is None:
        chance = np.concatenate([rng.integers(*busy, size=15), rng.integers(n // 15, n - 5, size=10)])
        return np.unique(chance)
    hit = events[rng.random(len(events)) < 0.9]
    lag = rng.integers(log.lag[0], log.lag[1] + 1, size=len(hit))
    at = np.concatenate([hit + lag, chance])
    return np.unique(at[at < n - 5])


def _text(log: Log, rng: np.random.Generator, loss: np.ndarray, events: np.ndarray, spikes: np.ndarray,
          busy: tuple[int, int]) -> Iterator[str]:
    n = log.steps
    planted, jumps = set(events.tolist()) if log.planted else set(), set(spikes.tolist())
    shard, worker, host = rng.integers(0, 400, n), rng.integers(0, 8, n), rng.integers(0, 32, n)
    bucket, request = rng.choice([256, 512, 1024, 2048], n), rng.integers(0, 900, n)
    mix = {"shard": (shard, 41), "worker": (worker, 3), "host": (host, 17), "bucket": (bucket, 1536),
           "request": (request, 7)}
    for column, own in mix.values():
        if own != 1536:
            column[column == own] += 1
    if log.planted in mix:
        column, own = mix[log.planted]
        column[events] = own
    rare = set(rng.integers(0, n, 6).tolist()) | set(events[:3].tolist())
    started = 1767225600
    for t in range(n):
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(started + t // 2))
        say = f"{at},{t % 2 * 500:03d} INFO "
        yield f"{say}loader: worker {worker[t]} opened /data/train/shard_{shard[t]:04d}.tar on node-{host[t]:02d}"
        yield f"{say}batch from req-{request[t]:04d}, bucket={bucket[t]}, queue {int(rng.integers(1, 60))}"
        if t in planted and log.planted == "retry":
            yield f"{say}retry of object get after timeout, attempt {int(rng.integers(1, 3))}"
        if t in planted and log.planted == "evaluation":
            yield f"{say}evaluation started with {int(rng.integers(90, 99))} batches"
        if t in planted and log.planted == "checkpoint":
            yield f"{say}checkpoint written to /ckpt/step_{t:07d}.pt"
        if "companion" in log.decoys and t in planted and rng.random() < 0.5:
            yield f"{say}slow read, {int(rng.integers(100, 999))} ms"
        if "period" in log.decoys and busy[0] <= t < busy[1] and rng.random() < 0.15:
            yield f"{say}defragmenting cache segment {int(rng.integers(0, 64))}"
        if "periodic" in log.decoys and t % 97 == 0:
            yield f"{say}heartbeat sent to coordinator"
        if "rare" in log.decoys and t in rare:
            yield f"{say}dns lookup took {int(rng.integers(20, 90))} ms"
        tokens = int(rng.integers(4000, 4100))
        yield f"{say}step {t} loss {loss[t]:.4f} lr {3e-4 * (1 - t / n):.3e} tokens {tokens}"
        if "effect" in log.decoys and t in jumps and rng.random() < 0.7:
            yield f"{say}gradient clipped from {rng.uniform(5, 60):.2f}"


def _table(log: Log, rng: np.random.Generator, loss: np.ndarray, events: np.ndarray) -> Iterator[str]:
    n = log.steps
    source = rng.choice(["wiki", "web", "code", "arxiv", "forums"], n).astype(object)
    length = np.clip(rng.normal(1200, 250, n), 16, 2000).astype(int)
    if log.planted == "source":
        source[events] = "books3"
    if log.planted == "length":
        length[events] = rng.integers(3600, 4097, len(events))
    worker = rng.integers(0, 16, n)
    if log.form == "jsonl":
        yield from (json.dumps({"step": t, "loss": round(float(loss[t]), 5), "source": source[t],
                                "seq_len": int(length[t]), "worker": int(worker[t])}) for t in range(n))
        return
    yield "step,loss,source,seq_len,worker"
    yield from (f"{t},{loss[t]:.5f},{source[t]},{length[t]},{worker[t]}" for t in range(n))


def judged(path: Path, keep: int) -> tuple[list[str], float]:
    """What is told for each set of anomalies; and the seconds of the processor, without those of reading the values."""
    from traindx_tools.on_logs.judge import judge_events
    from traindx_tools.on_logs.readers.recorder import keeping
    from traindx_tools.on_logs.reading import joined, read_parts

    with keeping(keep):
        reading = read_parts([path])
    run = joined(reading)
    start = time.process_time()
    found = judge_events(run, reading.sources)
    return [f.statement for f in found if f.rule == "L801"], time.process_time() - start


@dataclass
class Score:
    """What was found so far, and the logs of each kind. `keep`: values of a log that are kept while it is judged."""

    keep: int
    first: int = 0
    alarms: int = 0
    planted: int = 0
    without: int = 0

    def add(self, log: Log, folder: Path, name: str, show: bool) -> None:
        """Writes, judges and removes one log, and prints a line."""
        path = folder / f"{name}.{'txt' if log.form == 'text' else log.form}"
        size = written(log, path)
        said, taken = judged(path, self.keep)
        path.unlink()
        right = log.wanted is not None and bool(said) and log.wanted in said[0].partition(" occurs ")[0]
        alarm = log.planted is None and bool(said)
        self.first, self.alarms = self.first + right, self.alarms + alarm
        self.planted, self.without = self.planted + (log.planted is not None), self.without + (log.planted is None)
        print(f"{log.planted or 'none':12}{log.form:7}lag {log.lag[0]:>3}-{log.lag[1]:<4}{size:7.1f} MB "
              f"{size / taken:5.1f} MB/s  {'first' if right else 'alarm' if alarm else '-':6}"
              f"{(said[0] if said else '')[: 400 if show else 0]}", flush=True)


def sized(i: int, planted: bool, seed: int, megabytes: float) -> Log:
    """The log number `i` with so many steps that it has this size, at least 1,500."""
    bytes_a_step = {"text": 265, "jsonl": 77, "csv": 27}[plan(i, 1, planted, seed).form]
    return plan(i, max(1500, int(megabytes * 1e6 / bytes_a_step)), planted, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--with", type=int, default=32, dest="planted", help="logs with an association")
    parser.add_argument("--without", type=int, default=15, help="logs without one")
    parser.add_argument("--megabytes", type=float, default=10.0, help="size of most logs; some have up to 20 times it")
    parser.add_argument("--gigabyte", action="store_true", help="one log of 1 GB with an association and one without")
    parser.add_argument("--logs", help="numbers of the logs of each kind that are run alone, as in 18,19")
    parser.add_argument("--keep", type=int, default=MOST_VALUES,
                        help="values of a log that are kept while it is judged, as of `diagnose` by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print what is said of each log")
    options = parser.parse_args()
    score = Score(options.keep)
    alone = {int(n) for n in options.logs.split(",")} if options.logs else None
    with tempfile.TemporaryDirectory() as folder:
        for planted, count in ((True, options.planted), (False, options.without)):
            sizes = [options.megabytes * TIMES[planted].get(i, 1) for i in range(count)]
            for i, size in enumerate([*sizes, *([GIGABYTE] if options.gigabyte else [])]):
                if alone is not None and i not in alone:
                    continue
                score.add(sized(i, planted, options.seed, size), Path(folder), f"log{i}", options.show)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"planted association first: {score.first}/{score.planted}; reported where there is none: "
          f"{score.alarms}/{score.without}; most memory {memory:.1f} GB")
    return 0 if score.first >= 0.9 * score.planted and not score.alarms else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    sys.exit(main())
