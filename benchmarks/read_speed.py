"""How fast a log is read: the free-text reader and whole `diagnose` beside a loop that only splits lines into words.

    python benchmarks/read_speed.py [MEGABYTES]

Writes a synthetic log (default 20 MB) to a temporary folder and prints MB/s and the ratio to the plain loop.
"""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def write_log(path: Path, megabytes: float) -> None:
    rng = random.Random(0)
    step, size = 0, 0
    with path.open("w", encoding="utf-8") as out:
        while size < megabytes * 1e6:
            step += 1
            loss = 3.0 / (1 + step / 2000) + 0.05 * rng.random()
            line = f"2026-01-01 12:00:00,000 INFO step {step} loss {loss:.4f} grad_norm {rng.random():.3f} lr 3.0e-04\n"
            size += out.write(line)


def plain(path: Path) -> int:
    with path.open(encoding="utf-8") as lines:
        return sum(len(line.split()) for line in lines)


def timed(label: str, action: Callable[[], object], megabytes: float, base: float | None) -> float:
    start = time.perf_counter()
    action()
    taken = time.perf_counter() - start
    ratio = f"{taken / base:8.1f}" if base else f"{1:8.1f}"
    print(f"{label:24}{taken:10.2f}{megabytes / taken:10.1f}{ratio}")
    return taken


def main() -> None:
    from traindx.diagnose import diagnose
    from traindx_tools.on_logs import read_run

    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        write_log(path, megabytes)
        print(f"{'what':24}{'seconds':>10}{'MB/s':>10}{'ratio':>8}")
        base = timed("split lines", lambda: plain(path), megabytes, None)
        timed("read_run", lambda: read_run([path]), megabytes, base)
        timed("diagnose", lambda: diagnose([path]), megabytes, base)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    main()
