"""What follows from the first failure (teardown, dying peers, other NCCL lines) is neither a cause nor in its way."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.reading import read_run

METRICS = [f"step {i} loss {3 - i / 10:.3f}" for i in range(5)]


def judged(tmp_path: Path, *blocks: list[str]) -> list[Finding]:
    path = tmp_path / "train.log"
    path.write_text("\n".join([*METRICS, *(line for block in blocks for line in block)]) + "\n")
    return [f for f in judge_run(read_run(path)) if f.rule.startswith("L5") and f.severity.rank > 0]


def raised(*lines: str, file: str = "/app/train.py", function: str = "main", code: str = "loss = f(x)",
           rank: str = "") -> list[str]:
    return [rank + line for line in ("Traceback (most recent call last):", f'  File "{file}", line 61, in {function}',
                                     f"    {code}", *lines)]


ROOT = raised("ValueError: Expected input batch_size (32) to match target batch_size (31).")
TORCH = "/opt/conda/lib/python3.11/site-packages/torch"
TEARDOWN = {
    "destroy_process_group": raised(
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, unhandled system error",
        code="dist.destroy_process_group()"),
    "atexit": ["Error in atexit._run_exitfuncs:", *raised("ValueError: I/O operation on closed file.",
                                                          file="/app/util.py", function="close_all")],
    "killed worker": raised("RuntimeError: DataLoader worker (pid 4321) is killed by signal: Terminated.",
                            code="for x, y in loader:"),
    "queue": raised("OSError: [Errno 9] Bad file descriptor", file="/usr/lib/python3.11/multiprocessing/queues.py",
                    function="_feed", code="send_bytes(obj)"),
    "store": raised("torch.distributed.DistNetworkError: failed to recv, got 0 bytes", code="dist.barrier()",
                    rank="[rank2]: "),
    "finaliser": raised("AttributeError: 'Writer' object has no attribute 'file'", function="__del__",
                        code="self.file.close()"),
}


@pytest.mark.parametrize("kind", TEARDOWN)
@pytest.mark.parametrize("first", [True, False], ids=["after", "before"])
def test_what_tears_down_is_no_error_of_its_own(tmp_path: Path, kind: str, first: bool) -> None:
    blocks = (ROOT, TEARDOWN[kind]) if first else (TEARDOWN[kind], ROOT)
    alone = judged(tmp_path, ROOT)
    assert [f.rule for f in judged(tmp_path, *blocks)] == [f.rule for f in alone]
    assert len(alone) == 1


def test_an_error_during_the_clean_up_leaves_the_first_one_in_front(tmp_path: Path) -> None:
    during = ["", "During handling of the above exception, another exception occurred:", "",
              *raised("RuntimeError: Default process group has not been initialized, please make sure to call "
                      "init_process_group.", function="cleanup", code="dist.destroy_process_group()")]
    (found,) = judged(tmp_path, ROOT, during)
    assert "batch_size (32)" in found.statement or "32" in str(found.measured)


@pytest.mark.parametrize("kind", ["destroy_process_group", "killed worker"])
def test_alone_it_is_still_told(tmp_path: Path, kind: str) -> None:
    assert len(judged(tmp_path, TEARDOWN[kind])) == 1


def watchdog(rank: int) -> list[str]:
    return [f"[rank{rank}]:[E1127 10:00:0{rank}.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective "
            f"operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, "
            f"Timeout(ms)=600000) ran for 60{rank}000 milliseconds before timing out."]


@pytest.mark.parametrize("between", [
    "node1:1230:1290 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer node2<4>",
    "node1:1230:1290 [0] NCCL INFO comm 0x5581 rank 2 nranks 4 cudaDev 2 busId 90 - Abort COMPLETE",
    "[E ProcessGroupNCCL.cpp:455] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
    "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
], ids=["warn", "info", "some operations"])
def test_other_lines_of_nccl_between_hide_no_rank(tmp_path: Path, between: str) -> None:
    found = judged(tmp_path, *(part for rank in (1, 3, 0) for part in (watchdog(rank), [between])))
    assert [f.rule for f in found] == ["L515"]
    assert found[0].measured["ranks"] == (0, 1, 3)
    assert found[0].measured["kind"] == "timeout"


@pytest.mark.parametrize(("lines", "times"), [
    (["Killed", "exit code 137"], ""),
    (["train.sh: line 5:  4242 Killed                  python train.py", "Killed",
      "Process finished with exit code 137"], ""),
    (["Segmentation fault (core dumped)", "line 5:  4242 Segmentation fault (core dumped) python train.py"], ""),
    (["process 0 terminated with signal SIGKILL", "process 1 terminated with signal SIGKILL", "exit code 137"],
     "(2 times)"),
    (["Killed", *METRICS[:3], "Killed"], "(2 times)"),
    (["Killed", "exit code 137", *METRICS[:3], "Killed", "exit code 137"], "(2 times)"),
    (["Killed", *METRICS[:3], "exit code 137"], "(2 times)"),
])
def test_the_end_of_a_process_is_counted_once_however_many_tell_of_it(tmp_path: Path, lines: list[str],
                                                                      times: str) -> None:
    found = [f for f in judged(tmp_path, lines) if f.rule in ("L509", "L530")]
    assert [f.statement.count("times)") for f in found] == [1 if times else 0]
    assert times in found[0].statement


def test_what_only_sounds_like_an_end_is_none(tmp_path: Path) -> None:
    assert not judged(tmp_path, ["Killed 3 stale workers", "exit code 0", "exit code 1370", "\x00Killed\udcff".encode(
        "utf-8", "replace").decode()])
