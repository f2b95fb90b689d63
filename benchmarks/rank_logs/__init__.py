"""The logs of a job as launchers leave them, with one fault planted and four red herrings beside it, or none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FORMS = ("torchrun", "slurm", "srun", "pods", "jax")
A_HOST = 8
BATCHES = 100
"""Batches of an epoch."""
GRADIENTS, BUCKETS = 25_557_032, 2
BEGAN, STAMP = 1767225600, len("2026-01-01 00:00:00")
"""When the job began, in seconds since 1970, and the length of a time."""


@dataclass
class Case:
    """One job. `odd`: the ranks that are at fault, empty for a healthy one; `operation`: a word of what is named."""

    kind: str
    form: str
    ranks: int
    steps: int
    seed: int
    odd: tuple[int, ...] = ()
    operation: str = ""
    traced: bool = False
    victim: int = 0
    """The rank that is killed at teardown."""
    slow: int = 0
    """The host that loads slowly."""
    cut: tuple[int, ...] = ()
    """Ranks whose logs lost their ends."""
    worlds: tuple[int, ...] = ()
    """World sizes of the starts, where there are several."""
    launcher: list[str] = field(default_factory=list)

    @property
    def hosts(self) -> int:
        return -(-self.ranks // A_HOST)


def host(rank: int) -> str:
    return f"node-{rank // A_HOST:03d}"


@lru_cache(maxsize=8192)
def _skew(seed: int, at: int) -> int:
    """Seconds by which the clock of a host is beside that of the others."""
    return int(np.random.default_rng([seed, at]).integers(-400, 400))


def clock(case: Case, rank: int, step: float) -> str:
    """The time of this rank's host, which is minutes beside that of others."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(BEGAN + _skew(case.seed, rank // A_HOST) + 0.5 * step))


def banner(case: Case, rank: int, world: int) -> Iterator[str]:
    versions = {"torch": "2.6.0", "nccl": "2.21.5", "cuda": "12.4", "commit": "8c1f0e2", "driver": "550.54"}
    lr = "0.0003"
    if case.kind == "version" and rank in case.odd:
        versions["nccl"] = "2.19.3"
    if case.kind == "config" and rank in case.odd:
        lr = "0.003"
    if rank // A_HOST == (case.slow + 1) % case.hosts:
        versions["driver"] = "550.90"
    say = f"{clock(case, rank, 0)} INFO "
    if case.form == "jax":
        yield f"{say}jax: process_index={rank} process_count={world} hostname={host(rank)} local_devices=4"
        versions = {"jax": "0.4.38", **versions}
    else:
        yield f"{say}init: rank={rank} local_rank={rank % A_HOST} world_size={world} hostname={host(rank)}"
    yield f"{say}env: " + " ".join(f"{k}={v}" for k, v in versions.items())
    yield (f"{say}config: lr={lr} batch_size=16 seq_len=4096 global_batch_size={16 * world} seed={1000 + rank} "
           f"device=cuda:{rank % 8}")
    yield f"{say}data: {1_600 + rank % 3} samples, shard {rank} of {world}"


@dataclass(frozen=True, eq=False)
class _Body:
    """Lines that begin with their time: as text, where each begins, and the seconds of each since the job began."""

    text: bytearray
    starts: NDArray[np.int64]
    seconds: NDArray[np.int64]

    def at(self, skew: int) -> str:
        """The lines as a host writes them whose clock is so many seconds beside the others'."""
        signs = np.frombuffer(self.text, np.uint8)
        whole = self.seconds + skew
        each, of = np.unique(whole, return_inverse=True)
        stamps = "".join(map(_stamp, each.tolist())).encode()
        signs[self.starts[:, None] + np.arange(STAMP)] = np.frombuffer(stamps, np.uint8).reshape(-1, STAMP)[of]
        return self.text.decode()


def _stamp(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(BEGAN + seconds))


@lru_cache(maxsize=8)
def _body(seed: int, variant: int, first: int, last: int, slow: bool, traced: bool) -> _Body:
    """The lines of steps `first` to `last` of an ordinary rank."""
    rng = np.random.default_rng([seed, variant])
    out: list[str] = []
    seconds: list[int] = []
    none = "-" * STAMP
    loss = 2.0 + 4.0 * np.exp(-np.arange(last + 1) / 150) + 0.05 * rng.standard_normal(last + 1)
    for t in range(first, last + 1):
        data, before = (0.09 if slow else 0.03) + 0.004 * rng.random(), len(out)
        out.append(f"{none} INFO loader: fetching batch {t} from /data/shard_{int(rng.integers(0, 400)):04d}.tar")
        if traced:
            out += [f"{none} DEBUG ddp: all_reduce seq={BUCKETS * t + b} numel={GRADIENTS // BUCKETS} group=dp"
                    for b in range(BUCKETS)]
        out.append(f"{none} INFO train: epoch {t // BATCHES} step {t} loss {loss[t]:.4f} grad_norm "
                   f"{0.8 + 0.1 * np.cos(t):.4f} "
                   f"lr 3.000e-04 step_time 0.512 data_time {data:.4f}")
        if (t + 1) % BATCHES == 0:
            out.append(f"{none} INFO train: epoch {t // BATCHES} finished: {BATCHES} batches")
            out += [f"{none} INFO eval: evaluation of epoch {t // BATCHES} started",
                    f"{none} INFO eval: evaluation finished"]
        seconds += [t // 2] * (len(out) - before)
    text = bytearray("\n".join(out).encode())
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
    return _Body(text, np.concatenate([np.zeros(1, np.int64), ends + 1]), np.array(seconds))


def body(case: Case, rank: int, first: int, last: int) -> str:
    if last < first:
        return ""
    return _body(case.seed, rank % 4, first, last, rank // A_HOST == case.slow, case.traced).at(
        _skew(case.seed, rank // A_HOST))


def glog(case: Case, rank: int) -> str:
    at = clock(case, rank, case.steps)
    return f"{at[5:7]}{at[8:]}.123456 4242"


def watchdog(case: Case, rank: int, number: int, op: str = "ALLREDUCE",
             elements: int = GRADIENTS // BUCKETS) -> Iterator[str]:
    if case.form == "jax":
        odd = ", ".join(f"/job:jax_worker/replica:0/task:{r}" for r in case.odd)
        if rank == 0:
            yield (f"E{glog(case, rank)} coordination_service.cc:1402] Barrier timed out. Id: step_{case.steps}::1. "
                   f"# of tasks "
                   f"that reached the barrier: {case.ranks - len(case.odd)}/{case.ranks}. The first task at the "
                   f"barrier: "
                   f"/job:jax_worker/replica:0/task:{case.victim}. Some timed out task names: {odd}")
        yield (f"F{glog(case, rank)} rendezvous.cc:127] Termination timeout for `all-reduce` of 600 seconds "
               f"exceeded. Exiting to "
               f"ensure a consistent program state. Expected {case.ranks} threads to join the rendezvous, but not "
               f"all of them "
               "arrived on time.")
        yield (f"E{glog(case, rank)} pjrt_client.cc:88] Terminating process because the JAX distributed service "
               f"detected fatal "
               "errors. This most likely indicates that another task died; see the other task logs for more details.")
        return
    head = f"[rank{rank}]:[E{glog(case, rank)[:-12]}.123456789 ProcessGroupNCCL.cpp:"
    work = (f"WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) "
            f"ran for 6000{10 + rank % 80} milliseconds before timing out.")
    yield f"{head}629] [Rank {rank}] Watchdog caught collective operation timeout: {work}"
    yield (f"{head}2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence "
           f"id: "
           f"{number} PG status: last enqueued work: {number + 1}, last completed work: {number - 1}")
    yield (f"{head}1895] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated with "
           f"exception: {work}")
    yield "terminate called after throwing an instance of 'c10::DistBackendError'"
    yield f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread terminated"


def connection_lost(case: Case, rank: int) -> Iterator[str]:
    yield f"[rank{rank}]: Traceback (most recent call last):"
    yield f'[rank{rank}]:   File "/app/train.py", line 210, in train'
    yield f"[rank{rank}]:     loss.backward()"
    yield (f"[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote "
           f"process "
           "exited or there was a network error, ncclRemoteError: Connection closed by remote peer")


def traceback(rank: int, line: int, code: str, error: str, function: str = "forward") -> Iterator[str]:
    yield f"[rank{rank}]: Traceback (most recent call last):"
    yield f'[rank{rank}]:   File "/app/train.py", line {line}, in {function}'
    yield f"[rank{rank}]:     {code}"
    yield f"[rank{rank}]: {error}"


def lines(case: Case, rank: int) -> Iterator[str]:
    """The log of one rank, in pieces."""
    if case.worlds:
        yield from _restarted(case, rank)
        return
    yield from banner(case, rank, case.ranks)
    end, number = case.steps, BUCKETS * (case.steps + 1)
    if case.kind.startswith("healthy"):
        yield from _healthy(case, rank)
        return
    if rank % 7 == 3 and rank not in case.odd:
        yield (f"{clock(case, rank, 1)} WARNING /app/train.py:88: UserWarning: Grad strides do not match bucket view "
               f"strides. "
               "This may indicate grad was not created according to the gradient layout contract")
    if rank in case.odd:
        yield from ODD[case.kind](case, rank, end, number)
        return
    yield from _follower(case, rank, end, number)


def _follower(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    """What an ordinary rank of a job that failed writes."""
    if case.kind in ("nan", "config"):
        last = end if case.kind == "config" else end - 5
        yield body(case, rank, 0, last)
        if case.kind == "nan":
            for t in range(last + 1, end + 1):
                yield (f"{clock(case, rank, t)} INFO train: epoch {t // BATCHES} step {t} loss nan grad_norm nan lr "
                       f"3.000e-04 step_time 0.512")
        return
    yield body(case, rank, 0, end)
    if rank in case.cut:  # the buffer of this log was lost: its last lines are missing
        return
    if case.kind in ("segfault", "reboot") and case.form != "jax" and rank % 3:
        yield from connection_lost(case, rank)
    elif case.kind == "fewer" and case.form != "jax":
        yield f"{clock(case, rank, end)} INFO loader: fetching batch {end + 1} from /data/shard_0007.tar"
        yield from watchdog(case, rank, number)
    else:
        yield from watchdog(case, rank, number)


def _missing(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    yield f"{clock(case, rank, end)} INFO export: writing the exported graph of layer {rank % 12}"


def _operation(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    yield from watchdog(case, rank, number, "BROADCAST", 1)


def _shape(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    if case.traced:
        yield (f"{clock(case, rank, end)} DEBUG ddp: all_reduce seq={number - 1} numel={GRADIENTS // BUCKETS - 4096} "
               f"group=dp")
    yield from watchdog(case, rank, number, elements=GRADIENTS // BUCKETS - 4096)


def _fewer(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    yield f"{clock(case, rank, end)} INFO train: epoch {end // BATCHES} finished: {end % BATCHES + 1} batches"
    yield f"{clock(case, rank, end)} INFO eval: evaluation of epoch {end // BATCHES} started"


def _oom(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    yield from traceback(rank, 141, "scores = q @ k.transpose(-2, -1)", "torch.OutOfMemoryError: CUDA out of memory. "
                                                                        "Tried to "
                         "allocate 9.38 GiB. GPU 5 has a total capacity of 79.11 GiB of which 3.02 GiB is free.")


def _segfault(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    if case.form == "slurm":
        case.launcher.append(f"srun: error: {host(rank)}: task {rank}: Segmentation fault (core dumped)")
    else:
        yield "Fatal Python error: Segmentation fault"
        yield ""
        yield "Current thread 0x00007f1c2a7fc640 (most recent call first):"
        yield '  File "/app/data/decode.py", line 61 in decode_frame'


def _reboot(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    if rank == case.odd[0]:
        case.launcher.append(f"srun: error: Node failure on {host(rank)}" if case.form != "pods"
                             else f"Warning node/{host(rank)} status is now: NodeNotReady")


def _data(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    yield f"{clock(case, rank, end)} INFO loader: fetching batch {end + 1} from /data/shard_0041.tar"


def _nan(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end - 6)
    for t in range(end - 5, end + 1):
        yield (f"{clock(case, rank, t)} INFO train: epoch {t // BATCHES} step {t} loss nan grad_norm nan lr "
               f"3.000e-04 step_time 0.512")


def _version(case: Case, rank: int, end: int, number: int) -> Iterator[str]:
    yield body(case, rank, 0, end)
    if case.kind == "version":
        yield from watchdog(case, rank, number)


ODD: dict[str, Callable[[Case, int, int, int], Iterator[str]]] = {
    "missing": _missing, "operation": _operation, "shape": _shape, "fewer": _fewer, "oom": _oom, "segfault": _segfault,
    "reboot": _reboot, "data": _data, "nan": _nan, "version": _version, "config": _version}
OPERATIONS = {"missing": "ALLREDUCE", "operation": "BROADCAST", "shape": "shapes", "fewer": "batch",
              "oom": "OutOfMemoryError",
              "segfault": "egmentation", "reboot": "lost with its host", "data": "data loading", "nan": "not finite",
              "version": "nccl 2.19.3", "config": "lr 0.003", "restart": "ranks in place of"}
OF_TORCH = ("operation", "shape", "fewer")
"""Kinds that show in what NCCL's watchdog prints, and have another form than JAX's."""
HEALTHY = ("healthy", "healthy finished", "healthy restart", "healthy running", "healthy stages")
KINDS = (*ODD, "restart", *HEALTHY)


def _healthy(case: Case, rank: int) -> Iterator[str]:
    """Ordinary jobs with what looks suspicious."""
    if case.kind == "healthy stages":  # pipeline stages call other collectives from the beginning
        stage = rank // A_HOST
        for t in range(case.steps):
            yield (f"{clock(case, rank, t)} DEBUG pp: {'broadcast' if stage == 0 else 'all_reduce'} seq={t} "
                   f"numel={4096 * (1 + stage)} group=pp")
            yield f"{clock(case, rank, t)} INFO train: step {t} loss {3 - t / case.steps:.4f} step_time 0.5"
        return
    end = case.steps - (rank % 3 if case.kind == "healthy running" else 0)  # logs are flushed at other times
    yield body(case, rank, 0, end)
    if rank == 0:
        yield f"{clock(case, rank, end)} INFO ckpt: saving checkpoint of step {end} to /ckpt/{end}.pt"
    if rank % 5 == 1:
        yield f"{clock(case, rank, end)} WARNING loader: worker 3 was slow, 8.1 s for one batch"
    if case.kind == "healthy finished":
        yield f"{clock(case, rank, end)} INFO train: training finished"
        if rank == 2:
            yield from connection_lost(case, rank)
        if rank == case.victim:
            case.launcher += [f"srun: error: {host(rank)}: task {rank}: Killed"]


def _restarted(case: Case, rank: int) -> Iterator[str]:
    first = 0
    for i, world in enumerate(case.worlds):
        last = (i + 1) * case.steps // len(case.worlds)
        if rank < world:
            yield from banner(case, rank, world)
            if i:
                yield f"{clock(case, rank, first)} INFO ckpt: resuming from checkpoint at step {first}"
            yield body(case, rank, first, last)
            if i + 1 < len(case.worlds):
                yield from watchdog(case, rank, BUCKETS * (last + 1))
        first = last - 20


def plan(kind: str, form: str, ranks: int, steps: int, seed: int) -> Case:
    """A job of this kind; the odd ranks by the seed."""
    rng = np.random.default_rng([seed, KINDS.index(kind), FORMS.index(form)])
    rank = int(rng.integers(9, ranks - 9))
    of_host = tuple(range(rank // A_HOST * A_HOST, rank // A_HOST * A_HOST + A_HOST))
    odd = () if kind.startswith("healthy") else of_host if kind in ("reboot", "version", "config") else (rank,)
    worlds = {"restart": (ranks, ranks - A_HOST), "healthy restart": (ranks, ranks)}.get(kind, ())
    others = [r for r in rng.permutation(ranks).tolist() if r not in odd]
    case = Case(kind, form, ranks, steps, seed, tuple(range(ranks - A_HOST, ranks)) if kind == "restart" else odd,
                OPERATIONS.get(kind, ""), traced=kind == "shape" and seed % 2 == 0, victim=others[0],
                slow=others[1] // A_HOST, cut=tuple(others[2:4]) if kind in ("missing", "data", "oom") else (),
                worlds=worlds)
    if kind == "fewer":
        case.steps = steps // BATCHES * BATCHES + BATCHES - 2
    if odd and kind not in ("nan", "config"):
        case.launcher += [f"W0101 torch/distributed/elastic/multiprocessing/api.py:900] Sending process "
                          f"{9000 + case.victim} closing "
                          "signal SIGTERM", f"srun: error: {host(case.victim)}: task {case.victim}: Killed"]
    return case


def write(case: Case, folder: Path) -> int:
    """Writes the job and returns its bytes."""
    folder.mkdir(parents=True)
    if case.form == "srun":
        _interleaved(case, folder / "srun.log")
    elif case.form == "pods":
        for h in range(case.hosts):
            _pod(case, h, folder / f"trainer-worker-{h}.log")
    else:
        name = {"torchrun": "rank_{:05d}.log", "slurm": "job-771_{}.out", "jax": "process_{:05d}.log"}[case.form]
        for rank in range(case.ranks):
            with (folder / name.format(rank)).open("w") as file:
                file.writelines(f"{piece}\n" for piece in lines(case, rank) if piece)
    if case.launcher:
        with (folder / ("srun.log" if case.form == "srun" else "launcher.log")).open("a") as file:
            file.writelines(f"{line}\n" for line in case.launcher)
    return sum(p.stat().st_size for p in folder.iterdir())


def _pod(case: Case, at: int, path: Path) -> None:
    with path.open("w") as file:
        for rank in range(at * A_HOST, min((at + 1) * A_HOST, case.ranks)):
            for piece in lines(case, rank):
                file.writelines(f"[default{rank % A_HOST}]:{line}\n" for line in piece.split("\n"))


def _interleaved(case: Case, path: Path) -> None:
    """All ranks in one file, in turns of a few lines."""
    waiting = {r: [line for piece in lines(case, r) for line in piece.split("\n")][::-1] for r in range(case.ranks)}
    rng = np.random.default_rng(case.seed)
    with path.open("w") as file:
        while waiting:
            for rank in rng.permutation(list(waiting)).tolist():
                for _ in range(min(int(rng.integers(1, 40)), len(waiting[rank]))):
                    file.write(f"{rank}: {waiting[rank].pop()}\n")
                if not waiting[rank]:
                    del waiting[rank]
