"""Small logs of a job: a file a rank, and what each of them says at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from traindx_tools.on_logs.artifacts import discover
from traindx_tools.on_ranks.logs import ManyRanks, examine_ranks

RANKS = 8
SKEW = (0, 7, 55, 13, 31, 2, 44, 21)
"""Minutes by which the clocks of the hosts differ."""


def banner(rank: int, world: int = RANKS, **settings: object) -> list[str]:
    told = {"torch": "2.6.0", "nccl": "2.21.5", "lr": "0.0003", "seed": 1000 + rank, **settings}
    return [f"init: rank={rank} world_size={world} hostname=node-{rank // 4}",
            "env: " + " ".join(f"{k}={v}" for k, v in told.items())]


def steps(rank: int, first: int, last: int, loss: Callable[[int], str] = lambda t: f"{3 - t / 100:.4f}",
          step_time: float = 0.5) -> list[str]:
    out = []
    for t in range(first, last + 1):
        at = f"2026-01-01 10:{SKEW[rank % 8]:02d}:{t % 60:02d} INFO"
        out.append(f"{at} loader: fetching batch {t} from /data/shard_{t % 7:04d}.tar")
        out.append(f"{at} train: step {t} loss {loss(t)} step_time {step_time} data_time 0.03")
    return out


def watchdog(rank: int, number: int, op: str = "ALLREDUCE", elements: int = 4096) -> list[str]:
    work = f"WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000)"
    return [f"[rank{rank}]:[E101 10:00:00.1 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective "
            f"operation "
            f"timeout: {work} ran for 600010 milliseconds before timing out.",
            f"[rank{rank}]:[E101 10:00:00.1 ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  "
            f"failure "
            f"detected by watchdog at work sequence id: {number} PG status: last enqueued work: {number + 1}, last "
            f"completed "
            f"work: {number - 1}",
            "terminate called after throwing an instance of 'c10::DistBackendError'",
            "  what():  Process group watchdog thread terminated with exception"]


def raised(rank: int, error: str) -> list[str]:
    return [f"[rank{rank}]: Traceback (most recent call last):", f'[rank{rank}]:   File "/app/train.py", line 41, in '
                                                                 f'step',
            f"[rank{rank}]:     loss.backward()", f"[rank{rank}]: {error}"]


LOST = ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or "
        "there was a "
        "network error, ncclRemoteError: Connection closed by remote peer")


def job(folder: Path, ends: Mapping[int, Sequence[str]], *, usual: Callable[[int], Sequence[str]] | None = None,
        before: Callable[[int], Sequence[str]] = lambda rank: [*banner(rank), *steps(rank, 0, 20)],
        launcher: Sequence[str] = (), ranks: int = RANKS) -> ManyRanks | None:
    """Writes a job and compares its ranks. `ends`: the last lines of the odd ranks; `usual`: those of all others."""
    usual = usual or (lambda rank: watchdog(rank, 42))
    for rank in range(ranks):
        text = [*before(rank), *(ends[rank] if rank in ends else usual(rank))]
        (folder / f"rank_{rank}.log").write_text("\n".join(text) + "\n")
    if launcher:
        (folder / "launcher.log").write_text("\n".join(launcher) + "\n")
    return examine_ranks(discover([folder]).sources, workers=1)


def rules(many: ManyRanks | None) -> list[str]:
    """The rules of medium severity and above, the first one first."""
    assert many is not None, "ranks were told apart"
    return [f.rule for f in many.findings if f.severity.rank >= 2]
