"""Logs of a launcher in which one rank failed first: its error is what asks for a cause, never the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import examine

FIRST = "dist.rank-failed-first"
FRAMES = ["Traceback (most recent call last):", '  File "/home/u/train.py", line 71, in main',
          "    loss = model(batch).loss"]
OOM = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 1 has a total capacity of 23.69 "
       "GiB of which 512.00 MiB is free. Of the allocated memory 17.80 GiB is allocated by PyTorch, and 4.90 GiB is "
       "reserved by PyTorch but unallocated.")
INDEX = "IndexError: index 32000 is out of range in self"
WATCHDOG = ["[rank0]:[E1202 10:14:11 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for "
            "600013 milliseconds before timing out."]
SUMMARY = ["torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "train.py FAILED",
           "Root Cause (first observed failure):", "[0]:", "  rank      : 1 (local_rank: 1)",
           "  exitcode  : 1 (pid: 4102)"]


def log(path: Path, end: list[str], *, growing: bool) -> Path:
    """Two ranks of forty lines each, whose memory grows or stays, and how the log ends."""
    lines = [f"[rank{r}] step {s} loss {2.5 - s * 0.003 + (s * 7 + r) % 11 * 0.004:.4f} "
             f"mem {10 + (7.8 * s / 390 if growing else 0.0):.2f} GiB" for s in range(0, 400, 10) for r in (0, 1)]
    path.write_text("\n".join([*lines, *end]) + "\n")
    return path


def raised(message: str) -> list[str]:
    return [*(f"[rank1]: {line}" for line in (*FRAMES, message)), *SUMMARY]


@pytest.mark.parametrize(("message", "family"), [(OOM, ("oom", "batchnorm_gap")), (INDEX, ("index_error",))])
@pytest.mark.parametrize("growing", [True, False])
def test_what_the_first_error_names_comes_first(tmp_path: Path, message: str, family: tuple[str, ...],
                                                growing: bool) -> None:
    told = examine([log(tmp_path / "run.log", raised(message), growing=growing)]).verdict.hypotheses
    assert told[0].mode.family in family
    assert all(h.confidence < 0.70 for h in told if h.mode.id == FIRST)


def test_a_silent_culprit_is_not_told_with_confidence(tmp_path: Path) -> None:
    verdict = examine([log(tmp_path / "run.log", WATCHDOG, growing=False)]).verdict
    assert not verdict.causes


@pytest.mark.parametrize("end", [[], ["W1202 Sending process 4101 closing signal SIGTERM", "Training finished"]])
def test_a_run_that_ends_in_order_has_no_such_suspect(tmp_path: Path, end: list[str]) -> None:
    """The healthy twin: two ranks, the launcher's own words at the end, no error."""
    told = examine([log(tmp_path / "run.log", end, growing=False)]).verdict
    assert not [h for h in told.hypotheses if h.mode.id == FIRST and h.speaks_for]
    assert not told.causes


def test_a_summary_cut_in_the_middle(tmp_path: Path) -> None:
    told = examine([log(tmp_path / "run.log", raised(OOM)[:-2], growing=True)]).verdict
    assert not [h for h in told.causes if h.mode.id == FIRST]
