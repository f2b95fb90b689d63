"""Whether the odd rank and the operation are named first in the logs of a whole job, in what time and memory.

    python benchmarks/many_ranks.py [--ranks 64] [--steps 400] [--seed 0] [--only KIND] [--form FORM] [--workers N]
        [--cluster ADDRESS] [--keep FOLDER] [--show]

Writes the logs of a job for each kind of fault (and of healthy jobs), in the form of a launcher: torchrun with a file a
rank, Slurm's `%t` files, `srun --label` in one file, pods with `[default3]:`, JAX processes. Clocks of hosts differ by
minutes. Every failed job has four red herrings: a host that loads slowly, a warning on other ranks, another rank whose
watchdog speaks first, a rank that is killed at teardown; some lose the ends of two logs besides. Runs the comparison of
ranks over each and prints whether the first finding names the rank and the operation (right), what it says, the
seconds, MB for each second of a processor, and the most memory of one process. A healthy job is right where nothing of
medium or above is found. Logs that `--keep` left are not written anew: the memory of a second run is that of reading
alone.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rank_logs import FORMS, KINDS, OF_TORCH, Case, plan, write


@dataclass
class Score:
    """Cases and those that were right."""

    right: int = 0
    every: int = 0
    seconds: float = 0.0
    """Of processors, all processes together: what the machine does besides does not count."""
    megabytes: float = 0.0

    def add(self, case: Case, folder: Path, options: argparse.Namespace) -> None:
        """Writes and judges one job, and prints a line."""
        from traindx_tools.on_logs.artifacts import discover
        from traindx_tools.on_ranks.logs import examine_ranks

        written = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) if folder.is_dir() else 0
        size = written or write(case, folder)
        start, spent = time.perf_counter(), _processor()
        many = examine_ranks(discover([folder], most=100_000).sources, workers=options.workers, cluster=options.cluster)
        taken, spent = time.perf_counter() - start, _processor() - spent
        found = many.findings if many is not None else ()
        serious = [f for f in found if f.severity.rank >= 2]
        said = found[0].statement if found else "nothing" if many is not None else "no ranks were told apart"
        if case.odd:
            right = bool(serious) and case.operation in said and set(serious[0].measured["ranks"]) == set(case.odd)  # type: ignore[arg-type]
        else:
            right = many is not None and not serious
        self.right, self.every, self.seconds = self.right + right, self.every + 1, self.seconds + spent
        self.megabytes += size / 1e6
        print(f"{case.kind:17}{case.form:9}{size / 1e6:8.1f} MB {taken:6.1f} s {size / 1e6 / spent:6.1f} MB/s  "
              f"{'right' if right else 'WRONG':6}{said[:2000 if options.show or not right else 90]}", flush=True)


def _processor() -> float:
    used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--steps", type=int, default=400, help="steps of each job: what a log's size follows")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help=f"one kind: {', '.join(KINDS)}")
    parser.add_argument("--form", choices=FORMS, help="one form in place of a kind's own")
    parser.add_argument("--workers", type=int, help="processes (default: one a processor)")
    parser.add_argument("--cluster", help="a Ray cluster in place of processes")
    parser.add_argument("--keep", help="a folder in which the logs are left, and from which they are read again")
    parser.add_argument("--show", action="store_true", help="print the whole first finding")
    options = parser.parse_args()
    score = Score()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(options.keep or scratch)
        for i, kind in enumerate(KINDS):
            form = options.form or FORMS[(i + options.seed) % len(FORMS)]
            form = "torchrun" if form == "jax" and kind in OF_TORCH else form
            if options.only is None or options.only == kind:
                folder = home / f"{kind.replace(' ', '-')}-{form}"
                score.add(plan(kind, form, options.ranks, options.steps, options.seed), folder, options)
                if options.keep is None:
                    shutil.rmtree(folder)
    most = max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e3
    print(f"{options.ranks:,} ranks: right {score.right}/{score.every}; {score.megabytes / score.seconds:.1f} MB a "
          f"processor's "
          f"second; "
          f"most memory of a process {most:.0f} MB")
    return 0 if score.right == score.every else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a word
    sys.exit(main())
