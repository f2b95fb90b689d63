"""Where experiments run: each run in a fresh copy of the workspace that cannot write to the user's files.

The copy is confined as a verification is (`sandbox.py`), has no secrets in its environment, bounded time and memory,
and is gone when the run has ended; what the run printed and what the instruments recorded stays. All runs of a place
get the same number of threads, the machine's own divided by what runs at once: another number would change results.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from traindx.abandoned import in_use, remove_abandoned
from traindx.model import Verify
from traindx.protected_copy import copy_into, in_copy, workspace_files
from traindx.sandbox import Sandbox, find_sandbox
from traindx.stopping import run_here
from traindx.supervise import MEMORY_FILE
from traindx.verify import Outcome, clean_environment, ended, specification, supervised
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.watch import AppliedIn, Watch
from traindx_tools.live.settings import Settings, environment_for
from traindx_tools.unlinked import made

POLL_SECONDS = 0.1
RUN = "run-"
ALWAYS = "always"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
WHOLE_FILES = 16 * 2**20
"""Bytes up to which a file is read for the fingerprint; of a larger one size and time of change stand for it."""
METRIC_ENDINGS = frozenset({".csv", ".json", ".jsonl", ".tsv", ".txt", ".log"})
MOST_WRITTEN = 50


@dataclass
class ProtectedPlace:
    """Runs a command in copies of one workspace. `at_once`: how many places run at the same time on this machine."""

    workspace: Path
    scratch: Path
    """Where copies and records lie while a run goes on, and its output stays."""
    how: Verify = field(default_factory=Verify)
    reads_log: bool = True
    """Whether curves of the log are wanted while a run goes on, besides what the instruments measure."""
    at_once: int = 1

    @cached_property
    def sandbox(self) -> Sandbox:
        """How runs are confined; tried out once."""
        return find_sandbox(self.how.sandbox)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the workspace's files, of the environment and of the number of threads."""
        found = hashlib.sha256(f"{sys.executable}\0{self.threads}\0".encode())
        for name, value in sorted(self._own_environment.items()):
            found.update(f"{name}={value}\0".encode() if name.startswith(_MATTERS) else b"")
        root, own = self.workspace.resolve(), self.scratch.resolve().parent
        for path, size in sorted(workspace_files(root)):
            if own != root and own.is_relative_to(root) and own in path.parents:
                continue  # what experiments wrote here is nothing that a run depends on
            found.update(os.fsencode(f"{path.relative_to(root)}\0{size}\0"))
            found.update(_content(path, size))
        return found.hexdigest()

    @cached_property
    def threads(self) -> int:
        """For each run: this process's share of the cores."""
        return _share_of_cores(self.at_once)

    @cached_property
    def _own_environment(self) -> dict[str, str]:
        return clean_environment(os.environ, self.how.keep_env)

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        """One run from its start to its end, to `enough`, or to the limit. Raises CopyRefused for a huge workspace."""
        folder = Path(tempfile.mkdtemp(prefix=RUN, dir=self._ready))
        copy = folder / "copy"
        with in_use(folder):
            try:
                copy_into(self.workspace, copy, prepared.files, links=self.sandbox.program is not None)
                return self._run(folder, copy.resolve(), prepared, enough, seconds)
            finally:
                shutil.rmtree(copy, ignore_errors=True)

    @cached_property
    def _ready(self) -> Path:
        """The folder of the copies, without those of a process that was killed."""
        scratch = _made(self.scratch)
        remove_abandoned(scratch, f"{RUN}*")
        return scratch

    def _run(self, folder: Path, copy: Path, prepared: Prepared, enough: Enough, seconds: float) -> Trace:
        live = _made(folder / "live")
        how = self.how.model_copy(update={"command": in_copy(prepared.command, self.workspace, copy),
                                          "timeout": seconds})
        spec = {**specification(how, copy, self.sandbox, [live]), "memory_file": True, "grace": 1.0}
        watch = Watch(live, folder / "output.log", copy, _applied_in(), memory=folder / MEMORY_FILE)
        before = _stamps(copy)
        outcome, stopped, took = run_here(self._watched(folder, spec, self._environment(prepared, copy, live), watch,
                                                           enough))
        written = _written(copy, before)
        return replace(watch.end(took, outcome.exit_code, stopped, written, outcome.peak_bytes), folder=folder)

    async def _watched(self, folder: Path, spec: Mapping[str, object], environment: Mapping[str, str], watch: Watch,
                       enough: Enough) -> tuple[Outcome, str, float]:
        start = time.monotonic()
        running = asyncio.ensure_future(supervised(folder, spec, environment, outlives=False))
        decided = False
        while not running.done():
            await asyncio.wait([running], timeout=POLL_SECONDS)
            if not running.done() and enough(watch.look(time.monotonic() - start, log=self.reads_log)):
                decided = True
                running.cancel()
                break
        outcome = await ended(running, folder)
        stopped = "time" if outcome.timed_out else "memory" if outcome.out_of_memory else (
            "decided" if decided and outcome.cancelled else "killed" if outcome.cancelled else "")
        return outcome, stopped, time.monotonic() - start

    def _environment(self, prepared: Prepared, copy: Path, live: Path) -> dict[str, str]:
        """The run's variables: the person's own without secrets, threads, the instruments, then what was changed."""
        threads = threads_for(self._own_environment, self.at_once)
        options = {**_options(prepared), "copied_from": [str(self.workspace.resolve()), str(copy)]}
        settings = Settings(str(live), prepared.probes or (ALWAYS,), options=options)
        moved = {k: str(in_copy(v, self.workspace, copy)) for k, v in self._own_environment.items()}
        own = {**moved, **threads, "PWD": str(copy), "PYTHONUNBUFFERED": "1", **prepared.environment}
        return environment_for(settings, own)


def threads_for(environment: Mapping[str, str], at_once: int = 1) -> dict[str, str]:
    """The numbers of threads that an environment leaves open: what it says for OpenMP, which the libraries take for
    theirs where nothing else is said, else this process's share of the cores."""
    said = environment.get(THREADS[0], "")
    share = said if said.isdecimal() and int(said) else str(_share_of_cores(at_once))
    return {name: share for name in THREADS if name not in environment}


def _share_of_cores(at_once: int) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // max(1, at_once))


_MATTERS = ("OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "CUDA_", "NCCL_", "PYTHON", "TORCH", "JAX_", "XLA_", "TF_", "HF_")
"""How the names of variables begin that results depend on; others (a window's size, a session's id) change anyway."""


def _options(prepared: Prepared) -> dict[str, object]:
    return {**prepared.options, "changes": [c.to_json() for c in prepared.inside], "searched": False}


def _applied_in() -> AppliedIn:
    """What reads back what changes did."""
    try:
        from traindx_tools.experiments.live.applied import applied_in  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return lambda _: {}
    found: AppliedIn = applied_in
    return found


def _content(path: Path, size: int) -> bytes:
    try:
        if path.is_symlink():
            return os.readlink(path).encode()
        if size > WHOLE_FILES or not path.is_file():
            return str(path.stat().st_mtime_ns).encode()
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b"unreadable"


def _made(folder: Path) -> Path:
    return made(folder).resolve()


def _stamps(root: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.lstat().st_mtime_ns, size) for path, size in workspace_files(root)}


def _written(root: Path, before: Mapping[Path, tuple[int, int]]) -> Sequence[Path]:
    """Metric files that the run wrote or changed; the smallest where there are very many."""
    after = {p: s for p, s in _stamps(root).items() if before.get(p) != s and p.suffix.lower() in METRIC_ENDINGS}
    return sorted(after, key=lambda p: after[p][1])[:MOST_WRITTEN]



