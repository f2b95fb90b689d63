"""Who failed first, told from what follows."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.on_ranks.rules.r201_rank_failed_first import _short

from .job_texts import LOST, banner, job, raised, rules, steps, watchdog

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.38 GiB. GPU 5 has 3.02 GiB free."


def test_the_rank_that_ran_out_of_memory_is_named_and_the_waiting_ones_are_consequences(tmp_path: Path) -> None:
    many = job(tmp_path, {5: raised(5, OOM)})
    assert many is not None
    first = many.findings[0]
    assert (first.rule, first.measured["kind"], first.measured["ranks"]) == ("R201", "device-memory", (5,))
    assert "7 ranks waited in a collective until the timeout" in first.statement
    assert first.where.rank == 5
    assert "/app/train.py:41" in first.statement


def test_a_long_error_is_told_to_the_end_of_a_sentence_and_without_the_prefix_of_its_process(tmp_path: Path) -> None:
    text = (f"{OOM} Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated "
            "memory 75.01 GiB is allocated by PyTorch, and 1.71 GiB is reserved by PyTorch but unallocated.")
    many = job(tmp_path, {5: raised(5, text)})
    assert many is not None
    statement = many.findings[0].statement
    assert "torch.OutOfMemoryError: CUDA out of memory" in statement
    assert _short(f"[rank5]: [rank5]: {OOM}") == OOM
    assert "3.02 GiB free" in statement
    assert "Including" not in statement


def test_a_rank_killed_at_teardown_is_not_the_first(tmp_path: Path) -> None:
    many = job(tmp_path, {5: raised(5, OOM)}, launcher=["srun: error: node-0: task 2: Killed"])
    assert many is not None
    assert many.findings[0].measured["ranks"] == (5,)


def test_a_process_that_torchrun_told_to_end_did_not_end_the_job(tmp_path: Path) -> None:
    launcher = ["W0101 api.py:900] Sending process 4242 closing signal SIGTERM",
                "E0101 api.py:874] failed (exitcode: -9) local_rank: 2 (pid: 4242) of binary: /usr/bin/python"]
    assert rules(job(tmp_path, {}, usual=lambda rank: [], launcher=launcher)) == []


def test_what_slurm_says_of_a_rank_that_wrote_nothing(tmp_path: Path) -> None:
    many = job(tmp_path, {3: []}, usual=lambda rank: raised(rank, LOST),
               launcher=["srun: error: node-0: task 3: Segmentation fault (core dumped)"])
    assert many is not None
    assert (many.findings[0].measured["kind"], many.findings[0].measured["ranks"]) == ("segfault", (3,))


def test_a_lost_host_is_all_its_ranks(tmp_path: Path) -> None:
    many = job(tmp_path, {r: [] for r in (4, 5, 6, 7)}, launcher=["srun: error: Node failure on node-1"])
    assert many is not None
    assert (many.findings[0].measured["kind"], many.findings[0].measured["ranks"]) == ("host-lost", (4, 5, 6, 7))


def test_the_rank_that_came_least_far_is_the_first_of_two_errors(tmp_path: Path) -> None:
    ends = {1: raised(1, "ValueError: queue is empty"), 6: raised(6, "KeyError: 'tokens'")}
    many = job(tmp_path, ends, before=lambda rank: [*banner(rank), *steps(rank, 0, 19 if rank == 6 else 20)])
    assert many is not None
    assert many.findings[0].measured["ranks"] == (6,)


def test_an_error_that_all_ranks_meet_is_none_of_one_rank(tmp_path: Path) -> None:
    assert rules(job(tmp_path, {}, usual=lambda rank: raised(rank, "FileNotFoundError: /data/index.json"))) == []


def test_an_error_that_was_survived_is_none(tmp_path: Path) -> None:
    def before(rank: int) -> list[str]:
        caught = raised(rank, "ValueError: bad sample") if rank == 2 else []
        return [*banner(rank), *steps(rank, 0, 10), *caught, *steps(rank, 11, 30)]

    assert rules(job(tmp_path, {}, usual=lambda rank: [], before=before)) == []


def test_a_connection_that_breaks_after_the_end_is_no_failure(tmp_path: Path) -> None:
    done = "INFO training finished"
    many = job(tmp_path, {2: [done, *raised(2, LOST)]}, usual=lambda rank: [done],
               launcher=["srun: error: node-1: task 6: Killed"])
    assert rules(many) == []


def test_waiting_ranks_alone_name_nobody(tmp_path: Path) -> None:
    assert rules(job(tmp_path, {}, usual=lambda rank: watchdog(rank, 42))) == []
