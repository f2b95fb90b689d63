"""How fast each reader is, beside what everybody has: grep, pandas, TensorBoard's own reader.

    python benchmarks/readers.py [--megabytes 40] [--gigabyte] [--only plain,csv] [--rounds 3] [--diagnose]
        [--folder FOLDER]

One file a format is written to a temporary folder and read by a process of its own, then by what it is compared with,
in turns, --rounds times; the figures are the best of each. Wall time and processor time are both told: on a machine
that others use only the second means something, and it decides. Each process reads the first `SAMPLE` bytes before, so
that imports are not counted. Bars: a log of a known form at a tenth of the speed of `grep -c loss`, any log at three
hundredths, CSV and JSON lines as fast as pandas, event files eight times as fast as tensorboard's EventAccumulator with
all scalars kept. What is not installed is left out and named.

--gigabyte takes files of 1 GB. --diagnose runs `traindx diagnose` on each log instead, and on one in which a shard goes
ahead of spikes (`planted`); bars for 1 GB: 60 s, of the processor's time since it works on one core, and 500 MB.
--folder keeps the files there and uses them again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

GREPS = 8
SAMPLE = 3 * 2**20
GIGABYTE, MOST_SECONDS, MOST_MEMORY = 1000.0, 60.0, 500.0


def _curve(rng: random.Random, step: int) -> float:
    return 3.0 / (1 + step / 20_000) + 0.05 * rng.random()


def _plain(rng: random.Random) -> Iterator[str]:
    """The lines of a script of somebody's own, with a heading now and then."""
    for step in range(1, sys.maxsize):
        if step % 5_000 == 1:
            yield f"=== epoch {step // 5_000 + 1} ===\n"
        yield (f"it {step} | train loss {_curve(rng, step):.4f} | gnorm {rng.random() * 3:.3f} | "
               f"lr {3e-4 * (1 + math.cos(step / 1e6)):.3e} | {rng.randint(40, 120)} ms\n")


def _logged(rng: random.Random) -> Iterator[str]:
    """Python's logging, with a time a line."""
    for step in range(1, sys.maxsize):
        minute, second = divmod(step // 20, 60)
        hour, minute = divmod(minute, 60)
        yield (f"2026-01-{1 + hour // 24 % 28:02d} {hour % 24:02d}:{minute:02d}:{second:02d},{step % 1000:03d} INFO "
               f"trainer: step {step} loss {_curve(rng, step):.4f} grad_norm {rng.random():.3f} lr 3.0e-04\n")


def _trainer(rng: random.Random) -> Iterator[str]:
    """What the Trainer of transformers prints."""
    for step in range(1, sys.maxsize):
        told = {"loss": round(_curve(rng, step), 4), "grad_norm": rng.random() * 3,
                "learning_rate": 5e-5 * rng.random(), "epoch": round(step / 1000, 2)}
        yield f"{told}\n"


def _planted(rng: random.Random) -> Iterator[str]:
    """The same with a shard opened every thousand steps; three steps behind one of them the loss jumps."""
    shard = 0
    for step, line in enumerate(_plain(rng)):
        if step % 1_000 == 0:
            shard = 41 if rng.random() < 0.02 else rng.choice([*range(41), *range(42, 400)])
            yield f"loader: opened /data/train/shard_{shard:04d}.tar on node-{rng.randrange(32):02d}\n"
        yield line.replace("loss ", "loss 5", 1) if step % 1_000 == 3 and shard == 41 else line


def _csv(rng: random.Random) -> Iterator[str]:
    yield "step,epoch,train_loss,grad_norm,lr,val_loss\n"
    for step in range(1, sys.maxsize):
        val = repr(_curve(rng, step)) if step % 100 == 0 else ""
        yield f"{step},{step // 1000},{_curve(rng, step)!r},{rng.random()!r},{3e-4 * rng.random()!r},{val}\n"


def _json(rng: random.Random) -> Iterator[str]:
    for step in range(1, sys.maxsize):
        yield json.dumps({"step": step, "loss": _curve(rng, step), "grad_norm": rng.random(), "lr": 3e-4 * rng.random(),
                          "time": 1.7e9 + step * 0.25}) + "\n"


def _text(make: Callable[[random.Random], Iterator[str]]) -> Callable[[Path, float], None]:
    def write(path: Path, megabytes: float) -> None:
        size = 0
        with path.open("w", encoding="utf-8") as out:
            for line in make(random.Random(0)):
                size += out.write(line)
                if size >= megabytes * 1e6:
                    return
    return write


def _events(path: Path, megabytes: float) -> None:
    """Scalars as torch's SummaryWriter writes them: an event each."""
    from traindx_tools.on_logs.readers.tfrecord import masked_crc

    def record(data: bytes) -> bytes:
        head = struct.pack("<Q", len(data))
        return head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data))

    def varint(n: int) -> bytes:
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    rng, size, step = random.Random(0), 0, 0
    with path.open("wb") as out:
        out.write(record(b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2"))
        while size < megabytes * 1e6:
            step += 1
            for tag, value in ((b"train/loss", _curve(rng, step)), (b"train/grad_norm", rng.random()), (b"lr", 3e-4)):
                inner = b"\x0a" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", value)
                summary = b"\x0a" + varint(len(inner)) + inner
                size += out.write(record(b"\x09" + struct.pack("<d", 1.7e9 + step) + b"\x10" + varint(step) + b"\x2a"
                                         + varint(len(summary)) + summary))


_OURS = "from traindx_tools import extract_training_metrics as x; work = lambda: len(x(path))"
_PANDAS_CSV = "import pandas; work = lambda: len(pandas.read_csv(path))"
_PANDAS_JSON = "import pandas; work = lambda: len(pandas.read_json(path, lines=True))"
_ACCUMULATOR = """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
def work():
    told = EventAccumulator(path, size_guidance={"scalars": 0}).Reload()
    return sum(len(told.Scalars(tag)) for tag in told.Tags()["scalars"])
"""
_TIMED = """
import json, resource, sys
from time import perf_counter, process_time
path = sys.argv[2]
{what}
work()
path = sys.argv[1]
begin, worked = perf_counter(), process_time()
count = work()
print(json.dumps([perf_counter() - begin, process_time() - worked,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, count]))
"""


@dataclass(frozen=True)
class Format:
    """A file, what it is compared with, and how many times that one's speed is the goal."""

    name: str
    write: Callable[[Path, float], None]
    rival: str
    goal: float


FORMATS = {
    "plain": Format("train.log", _text(_plain), "grep", 0.03),
    "logged": Format("logged.log", _text(_logged), "grep", 1 / 10),
    "trainer": Format("trainer.log", _text(_trainer), "grep", 1 / 10),
    "csv": Format("metrics.csv", _text(_csv), _PANDAS_CSV, 1.0),
    "json": Format("metrics.jsonl", _text(_json), _PANDAS_JSON, 1.0),
    "planted": Format("planted.log", _text(_planted), "grep", 0.03),
    "events": Format("events.out.tfevents.1700000000.host.1.0", _events, _ACCUMULATOR, 8.0),
}


def _ran(what: str, path: Path) -> list[float] | None:
    """Wall time, processor time, memory in MB, values; None where what it needs is not installed."""
    small = path.with_name(f"sample.{path.name}")
    with path.open("rb") as stream:
        data = stream.read(SAMPLE)
    small.write_bytes(data if b"\0" in data else data[: data.rfind(b"\n") + 1])
    words = [sys.executable, "-c", _TIMED.format(what=what), str(path), str(small)]
    done = subprocess.run(words, capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr:
            return None
        raise SystemExit(done.stderr)
    told: list[float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _grepped(path: Path) -> list[float]:
    """The same of grep: its processor time is counted in ticks, so several runs are counted together.

    Into a pipe: at /dev/null it ends with the first line that it finds.
    """
    before, best = resource.getrusage(resource.RUSAGE_CHILDREN), math.inf
    for _ in range(GREPS):
        begin = perf_counter()
        subprocess.run(["grep", "-c", "loss", str(path)], stdout=subprocess.PIPE, check=True)
        best = min(best, perf_counter() - begin)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [best, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / GREPS, 0, 0]


def _there(one: Format, folder: Path, megabytes: float) -> Path:
    path = folder / one.name
    if not path.exists():
        one.write(path, megabytes)
    return path


def _measured(one: Format, path: Path, rounds: int) -> str:
    each: list[tuple[list[float], list[float]]] = []
    for _ in range(rounds):
        rival = _grepped(path) if one.rival == "grep" else _ran(one.rival, path)
        ours = _ran(_OURS, path)
        if rival is None or ours is None:
            return f"{one.name}: not compared: what it is compared with is not installed"
        each.append((ours, rival))
    size = path.stat().st_size / 1e6
    ours, rival = ([min(r[i][k] for r in each) for k in range(3)] for i in (0, 1))
    share = rival[1] / ours[1]
    return (f"{one.name:40} {size:6.0f} MB {size / ours[0]:7.1f} MB/s, {rival[0] / ours[0]:6.3f} of its rival's speed, "
            f"{share:6.3f} by processor time: {'pass' if share >= one.goal else 'fail'} (bar {one.goal:.3f}); "
            f"{ours[2]:.0f} MB of memory, {each[0][0][3]:,.0f} values")


def _diagnosed(path: Path, folder: Path) -> str:
    """Wall time, processor time and memory of a whole `traindx diagnose`: it starts no other process for one file."""
    words = [sys.executable, "-m", "traindx", "diagnose", str(path)]
    begin = perf_counter()
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        said = running.communicate()[0].decode()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = perf_counter() - begin
    scale = path.stat().st_size / 1e6 / GIGABYTE
    memory, worked = used.ru_maxrss / 1024, used.ru_utime + used.ru_stime
    within = worked <= MOST_SECONDS * max(scale, 1) and memory <= MOST_MEMORY
    return (f"diagnose {path.name:20} {path.stat().st_size / 1e6:6.0f} MB {wall:6.1f} s, {worked:6.1f} s of processor "
            f"time, {memory:.0f} MB of memory: {'pass' if within else 'fail'} (bar {MOST_SECONDS:.0f} s, "
            f"{MOST_MEMORY:.0f} MB for 1 GB); says: {said.splitlines()[0] if said else running.returncode}")


def _in_its_own_process(name: str, path: Path, folder: Path) -> str:
    """`_diagnosed` in a process of its own: what children used is counted over all of them."""
    words = [sys.executable, __file__, "--only", name, "--diagnosed", str(path), "--folder", str(folder)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def _made(folder: Path, parser: argparse.ArgumentParser) -> None:
    """Makes the folder; one line and exit code 2 where a file is in the way or nothing may be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--folder {folder}: {error.strerror}: expected a folder, or a place where one can be made")


def main() -> None:
    """Prints a line a format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=40.0)
    parser.add_argument("--gigabyte", action="store_true", help="files of 1 GB")
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--diagnose", action="store_true", help="whole runs of `traindx diagnose` instead")
    parser.add_argument("--diagnosed", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where files are kept, and used again; made where it is not there")
    asked = parser.parse_args()
    unknown = [name for name in asked.only.split(",") if name not in FORMATS]
    if unknown:
        parser.error(f"--only {unknown[0]!r}: expected some of {', '.join(FORMATS)}, with commas between")
    if asked.folder:
        _made(asked.folder, parser)
    if asked.diagnosed:
        print(_diagnosed(asked.diagnosed, asked.folder))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        for name in asked.only.split(","):
            path = _there(FORMATS[name], folder, GIGABYTE if asked.gigabyte else asked.megabytes)
            if asked.diagnose:
                print(_in_its_own_process(name, path, folder), flush=True)
            else:
                print(_measured(FORMATS[name], path, asked.rounds), flush=True)
            if not asked.folder:
                path.unlink()


if __name__ == "__main__":
    main()
