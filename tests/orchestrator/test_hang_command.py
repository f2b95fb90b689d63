"""`traindx hang`, `log --merged` and the MCP tool over the logs of many ranks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from traindx.cli import run
from traindx.mcp_paths import Reach
from traindx.mcp_tools import call


def job(folder: Path, odd: int | None = 3, ranks: int = 6) -> Path:
    for rank in range(ranks):
        lines = [f"init: rank={rank} world_size={ranks} hostname=node-{rank // 2}"]
        lines += [f"step {t} loss {3 - t / 50:.3f}" for t in range(30)]
        work = "WorkNCCL(SeqNum=60, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000)"
        if odd is not None:
            lines += ["INFO loader: fetching batch 30 from /data/shard_0041.tar"] if rank == odd else [
                f"[rank{rank}]:[E101 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught collective operation "
                f"timeout: "
                f"{work} ran for 600010 milliseconds before timing out."]
        (folder / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    return folder


def test_the_odd_rank_stands_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hang", str(job(tmp_path))]) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[2].startswith("CRITICAL R204 rank 3 on node-1 is stuck in data loading")
    assert "ranks 0-2, 4-5: waited in ALLREDUCE" in said


def test_json_alone_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hang", str(job(tmp_path)), "--json", "--workers", "1"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ranks"], told["findings"][0]["rule"], told["ended"][0]["ranks"]) == (6, "R204", "rank 3")


def test_a_healthy_job_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hang", str(job(tmp_path, odd=None))]) == 0
    assert "No rank is odd" in capsys.readouterr().out


def test_files_that_tell_nothing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(tmp_path, odd=None)
    (tmp_path / "rank_1.log").write_text("")
    (tmp_path / "rank_4.log").unlink()
    os.mkfifo(tmp_path / "rank_4.log")
    run(["hang", str(tmp_path)])
    said = " ".join(capsys.readouterr().out.split())
    assert f"note: {tmp_path / 'rank_1.log'}: an empty file" in said
    assert f"note: {tmp_path / 'rank_4.log'}: refused: a pipe" in said


def test_one_log_is_no_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.0\n")
    assert run(["hang", str(tmp_path)]) == 2
    assert "the logs of at least two ranks are needed" in capsys.readouterr().err


def test_the_merged_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", str(job(tmp_path)), "--merged"]) == 0
    said = capsys.readouterr().out
    assert "start 1 of 1: 6 ranks, steps 0 to 29" in said
    assert "rank 3: loader: fetching batch 30" in said.replace("INFO ", "")


def test_a_client_asks_for_it(tmp_path: Path) -> None:
    answer = call("compare_ranks", {"paths": [str(job(tmp_path))]}, Reach.of(tmp_path), lambda _: None)
    assert "CRITICAL R204 rank 3 on node-1" in answer


def test_diagnose_names_rank_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["diagnose", str(job(tmp_path)), "--json"])
    result = json.loads(capsys.readouterr().out)
    first = next(f for f in result["findings"] if f["rule"] == "R204")
    assert (first["where"]["rank"], first["measured"]["ranks"]) == (3, [3])
    assert any(check.startswith("traindx hang") for check in result["next_checks"])
