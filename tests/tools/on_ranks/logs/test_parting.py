"""The rank that leaves the common sequence of collectives, and why."""

from __future__ import annotations

import json
from pathlib import Path

from traindx_tools.on_ranks.logs.listing import told

from .job_texts import banner, job, rules, steps, watchdog


def traced(rank: int, *, odd: str = "", stage: bool = False) -> list[str]:
    out = banner(rank)
    for t in range(12):
        op, numel = ("broadcast" if stage and rank < 2 else "all_reduce"), 4096
        if odd == "shape" and rank == 3 and t == 11:
            numel = 4000
        out.append(f"2026-01-01 10:00:{t:02d} DEBUG ddp: {op} seq={t} numel={numel} group=dp")
        out.append(f"2026-01-01 10:00:{t:02d} INFO train: step {t} loss {3 - t / 20:.3f}")
    return out


def test_another_operation_under_the_same_number(tmp_path: Path) -> None:
    many = job(tmp_path, {6: watchdog(6, 42, "BROADCAST", 1)})
    assert many is not None
    found = many.findings[0]
    assert (found.rule, found.measured["kind"], found.measured["ranks"]) == ("R202", "operation", (6,))
    assert found.measured["sequence"] == 42
    assert "called BROADCAST of 1 elements where 7 other ranks called ALLREDUCE of 4,096 elements" in found.statement


def test_other_sizes_under_the_same_number(tmp_path: Path) -> None:
    many = job(tmp_path, {6: watchdog(6, 42, elements=4000)})
    assert many is not None
    assert (many.findings[0].rule, many.findings[0].measured["kind"]) == ("R202", "shape")


def test_the_first_difference_in_traces(tmp_path: Path) -> None:
    many = job(tmp_path, {}, before=lambda rank: traced(rank, odd="shape"), usual=lambda rank: watchdog(rank, 13))
    assert many is not None
    found = many.findings[0]
    assert (found.measured["kind"], found.measured["ranks"], found.measured["sequence"]) == ("shape", (3,), 11)


def test_stages_that_never_agreed_are_no_fault(tmp_path: Path) -> None:
    many = job(tmp_path, {}, before=lambda rank: traced(rank, stage=True), usual=lambda rank: watchdog(rank, 13))
    assert rules(many) == []


def test_a_rank_that_never_came(tmp_path: Path) -> None:
    many = job(tmp_path, {2: ["2026-01-01 10:55:21 INFO export: writing the graph"]})
    assert many is not None
    found = many.findings[0]
    assert (found.rule, found.measured["kind"], found.measured["ranks"]) == ("R202", "missing", (2,))
    assert "ALLREDUCE" in found.statement


def test_logs_that_lost_their_ends_do_not_hide_it(tmp_path: Path) -> None:
    many = job(tmp_path, {2: ["2026-01-01 10:55:21 INFO export: writing the graph"], 4: []})
    assert many is not None
    assert many.findings[0].measured["ranks"] == (2,)


def test_a_log_cut_within_a_line_long_before_is_no_rank_that_stopped(tmp_path: Path) -> None:
    """The others went on with its collectives for 35 steps; of two that end together neither is taken for cut."""
    def before(rank: int) -> list[str]:
        return [*banner(rank), *steps(rank, 1, 5 if rank == 4 else 40)]

    odd = ["2026-01-01 10:55:21 INFO export: writing the graph"]
    many = job(tmp_path, {2: odd, 4: ["2026-01-01 10:04:06 INFO loader: fetchi"]}, before=before)
    assert many is not None
    assert (many.findings[0].measured["ranks"], many.findings[0].where.rank) == ((2,), 2)
    (tmp_path / "both").mkdir()
    both = job(tmp_path / "both", {2: odd, 4: odd}, before=lambda rank: [*banner(rank), *steps(rank, 1, 40)])
    assert both is not None
    assert both.findings[0].measured["ranks"] == (2, 4)


def test_a_rank_in_data_loading(tmp_path: Path) -> None:
    many = job(tmp_path, {7: ["2026-01-01 10:21:21 INFO loader: fetching batch 21 from /data/shard_0041.tar"]})
    assert many is not None
    assert many.findings[0].rule == "R204"
    assert "shard_0041.tar" in many.findings[0].statement


def test_one_batch_fewer(tmp_path: Path) -> None:
    many = job(tmp_path, {1: ["2026-01-01 10:07:21 INFO train: epoch 0 finished: 21 batches",
                              "2026-01-01 10:07:21 INFO eval: evaluation started"]})
    assert many is not None
    assert (many.findings[0].rule, many.findings[0].measured["ranks"]) == ("R203", (1,))


def test_counts_that_ranks_print_alike(tmp_path: Path) -> None:
    def before(rank: int) -> list[str]:
        return [*banner(rank), f"loader has {123 if rank == 5 else 124} batches", *steps(rank, 0, 20)]

    many = job(tmp_path, {}, before=before)
    assert many is not None
    assert "rank 5 has 123 batches where the other 7 ranks have 124" in many.findings[0].statement


def test_counts_that_are_each_ranks_own(tmp_path: Path) -> None:
    def before(rank: int) -> list[str]:
        return [*banner(rank), f"reading {100 + rank} batches, {1000 + rank} samples", *steps(rank, 0, 20)]

    assert rules(job(tmp_path, {}, before=before, usual=lambda rank: [])) == []


def test_a_barrier_names_who_did_not_come(tmp_path: Path) -> None:
    said = ["RuntimeError: [../gloo/barrier.cc:10] Rank 3 failed to pass monitoredBarrier in 1800000 ms"]
    many = job(tmp_path, {0: said, 3: ["INFO building the index"]}, usual=lambda rank: [])
    assert many is not None
    assert many.findings[0].measured["ranks"] == (3,)


def test_what_detail_says_of_two_ranks(tmp_path: Path) -> None:
    said = ("RuntimeError: Detected mismatch between collectives on ranks. Rank {0} is running collective: "
            "CollectiveFingerPrint(SequenceNumber=9, OpType={1}, TensorShape=[10], TensorDtypes=Float), but Rank {2} "
            "is "
            "running collective: CollectiveFingerPrint(SequenceNumber=9, OpType={3}, TensorShape=[10], "
            "TensorDtypes=Float).")
    ends = {r: [said.format(r, "ALLREDUCE", 5, "BARRIER")] for r in range(8)}
    ends[5] = [said.format(5, "BARRIER", 0, "ALLREDUCE")]
    many = job(tmp_path, ends)
    assert many is not None
    assert (many.findings[0].measured["kind"], many.findings[0].measured["ranks"]) == ("operation", (5,))


def test_dumps_of_the_flight_recorder(tmp_path: Path) -> None:
    for rank in range(6):
        entries = [{"collective_seq_id": n, "profiling_name": "nccl:all_reduce", "process_group": ["0", "default_pg"],
                    "input_sizes": [[64, 8 if rank == 4 and n == 9 else 16]], "is_p2p": False,
                    "state": "scheduled" if n == 9 else "completed"} for n in range(1, 10)]
        dump = {"version": "2.4", "pg_config": {}, "entries": entries}
        (tmp_path / f"nccl_trace_rank_{rank}").write_text(json.dumps(dump))
    from traindx_tools.on_logs.artifacts import discover
    from traindx_tools.on_ranks.logs import examine_ranks

    many = examine_ranks(discover([tmp_path]).sources, workers=1)
    assert many is not None
    assert (many.findings[0].measured["ranks"], many.findings[0].measured["sequence"]) == ((4,), 9)


def test_jax_names_the_processes_that_did_not_come(tmp_path: Path) -> None:
    late = ("E0101 10:00:00.1 4242 coordination_service.cc:1402] Barrier timed out. Id: step::1. # of tasks that "
            "reached the "
            "barrier: 7/8. The first task at the barrier: /job:jax_worker/replica:0/task:1. Some timed out task names: "
            "/job:jax_worker/replica:0/task:6")
    waits = "F0101 10:00:00.1 4242 rendezvous.cc:127] Termination timeout for `all-reduce` of 600 seconds exceeded."
    many = job(tmp_path, {0: [late, waits], 6: ["INFO compiling"]}, usual=lambda rank: [waits])
    assert many is not None
    assert (many.findings[0].measured["ranks"], many.findings[0].measured["sequence"]) == ((6,), None)


def test_of_two_ranks_the_one_that_never_came(tmp_path: Path) -> None:
    loading = ["2026-01-01 10:55:21 INFO data: loading /mnt/data/shard_0113.tar"]
    many = job(tmp_path, {1: loading}, before=lambda rank: [*banner(rank, 2), *steps(rank, 0, 20 - rank)],
               ranks=2)
    assert many is not None
    found = many.findings[0]
    assert (found.rule, found.measured["rank"]) == ("R204", 1)
    assert "shard_0113.tar`, while rank 0 waits for it in ALLREDUCE" in found.statement


def test_of_two_ranks_the_one_that_came_less_far(tmp_path: Path) -> None:
    many = job(tmp_path, {1: []}, before=lambda rank: [*banner(rank, 2), *steps(rank, 0, 20 - rank)],
               ranks=2)
    assert many is not None
    assert (many.findings[0].rule, many.findings[0].measured["ranks"]) == ("R202", (1,))
    assert any(e["how"] == "the log ends with the record of step 19" for e in many.to_json()["ended"])


def test_lines_without_a_prefix_are_of_the_rank_in_the_name(tmp_path: Path) -> None:
    """Only the watchdog writes its rank in front: its step is that of the other lines of the file."""
    many = job(tmp_path, {1: []}, before=lambda rank: steps(rank, 0, 20 - rank), ranks=2)
    assert many is not None
    assert (many.findings[0].rule, many.findings[0].measured["ranks"]) == ("R202", (1,))


def test_two_ranks_that_nothing_tells_apart(tmp_path: Path) -> None:
    many = job(tmp_path, {1: []}, before=lambda rank: steps(rank, 0, 20), ranks=2)
    assert rules(many) == []
    assert many is not None
    assert "nothing tells which rank it waited for" in "\n".join(told(many))


def test_two_ranks_that_both_wait(tmp_path: Path) -> None:
    assert rules(job(tmp_path, {}, before=lambda rank: steps(rank, 0, 20), ranks=2)) == []


def test_two_logs_of_a_larger_job_are_no_pair(tmp_path: Path) -> None:
    many = job(tmp_path, {1: []}, before=lambda rank: [*banner(rank, 8), *steps(rank, 0, 20 - rank)], ranks=2)
    assert rules(many) == []


def test_a_job_that_did_not_stop_says_so(tmp_path: Path) -> None:
    many = job(tmp_path, {}, before=lambda rank: steps(rank, 0, 20), usual=lambda rank: [], ranks=2)
    assert many is not None
    said = "\n".join(told(many))
    assert "Nothing in the logs says that a rank waited" in said
    assert "ranks 0-1: the log ends with the record of step 20" in said
