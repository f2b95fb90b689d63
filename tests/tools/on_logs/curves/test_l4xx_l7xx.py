"""L401-L404 and L701-L702: a faulty run each rule sees and the healthy twin that it leaves alone."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone

import numpy as np
import pytest
from numerics_builder import findings, note, run, series, serious

from traindx_tools.artifact import Artifact
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.curves import l701_rank_disagreement
from traindx_tools.on_logs.run import ErrorEvent, Floats, Run


def only(r: Run, module: str) -> Finding:
    found = findings(r, module)
    assert len(found) == 1, [f.statement for f in found]
    return found[0]


LOSS = 0.4 + 2 * np.exp(-np.arange(60) / 15)

# L401


def test_memory_that_grows_by_the_step() -> None:
    f = only(run(series("memory", 348 + 2.9 * np.arange(0, 150, 10), every=10)), "l401_memory_growth")
    assert f.measured["slope"] == pytest.approx(2.9)
    assert f.measured["unit"] == "step"
    assert "does not stop" in f.statement


def test_workers_grow_and_the_main_process_does_not() -> None:
    f = only(run(series("memory/main", [434.0] * 9, every=50),
                 series("memory/workers", [22, 77, 108, 133, 152, 167, 179, 189, 196], every=50)), "l401_memory_growth")
    assert (f.measured["what"], f.measured["flat"]) == ("workers", ("memory/main",))


def test_growth_that_ended_in_an_error_is_severe() -> None:
    dead = ErrorEvent("exception", "torch.OutOfMemoryError", "CUDA out of memory.", "log.txt", 20, 21)
    f = only(run(series("memory", 1000 + 10 * np.arange(16.0)), errors=(dead,)), "l401_memory_growth")
    assert (f.severity, f.measured["out_of_memory"]) == (Severity.HIGH, True)


@pytest.mark.parametrize("memory", [
    [400, 900, 1400, 1800, *[2000.0] * 20],
    [2000.0] * 10 + [2600.0] * 10,
    [1000 + 60 * (i % 5) for i in range(30)],
    [1000 + 0.5 * i for i in range(30)],
    [22000 - 9000 * math.exp(-i / 2) for i in range(12)],
], ids=["warm-up", "one longer batch", "sawtooth", "two per cent", "dies away"])
def test_memory_that_stays(memory: list[float]) -> None:
    assert findings(run(series("memory", memory)), "l401_memory_growth") == []


# L402


def test_waiting_for_data() -> None:
    f = only(run(series("data_time", [0.81, 0.66, 0.62, 0.47, 0.42, 0.41]),
                 series("step_time", [0.82, 0.68, 0.63, 0.473, 0.423, 0.414])), "l402_data_bound")
    assert f.measured["share"] > 0.95  # type: ignore[operator]
    assert (f.severity, f.measured["included"]) == (Severity.LOW, True)


def test_step_time_that_leaves_the_wait_out() -> None:
    f = only(run(series("data_time", [0.9] * 6), series("step_time", [0.3] * 6)), "l402_data_bound")
    assert (f.measured["included"], f.measured["share"]) == (False, pytest.approx(0.75))


def test_bursts_of_waiting() -> None:
    wait = np.tile([0.01, 0.01, 0.01, 1.6], 12)
    f = only(run(series("data_time", wait), series("step_time", wait + 0.15)), "l402_data_bound")
    assert f.measured["bursts"] is True


@pytest.mark.parametrize("wait", [
    [3.0] + [0.01] * 20, [0.02] * 21, [2.0] + [0.01] * 9 + [2.0] + [0.01] * 10,
], ids=["first record", "small", "start of each epoch"])
def test_waits_that_do_not_matter(wait: list[float]) -> None:
    assert findings(run(series("data_time", wait), series("step_time", np.array(wait) + 0.2)), "l402_data_bound") == []


def test_steps_of_a_millisecond() -> None:
    assert findings(run(series("data_time", [0.0009] * 9), series("step_time", [0.001] * 9)), "l402_data_bound") == []


# L403


def test_gap_of_hours() -> None:
    gaps = np.full(60, 4.0)
    gaps[33] = 7200
    f = only(run(series("loss", LOSS, time=np.cumsum(gaps))), "l403_stalled")
    assert (f.severity, f.measured["kind"], f.measured["position"]) == (Severity.HIGH, "gap", 33.0)
    assert "nothing is logged for 7200 s between step 33 and step 34" in f.statement


def ended(at: str, why: str = "DUE TO TIME LIMIT") -> ErrorEvent:
    said = f"slurmstepd: error: *** JOB 88213 ON gpu12 CANCELLED AT {at} {why} ***"
    return ErrorEvent("fatal", "TimeLimit", said, "log.txt", 61, 61)


def stamped(at: str) -> Run:
    """A log that began at noon and writes a record every 20 seconds, for twenty minutes."""
    noon = datetime(2026, 3, 2, 12, tzinfo=timezone.utc).timestamp()
    loss = replace(series("loss", LOSS, time=20.0 * np.arange(60)), since=noon)
    return run(loss, errors=(ended(at),))


def test_a_job_that_is_ended_hours_after_its_last_record_hung() -> None:
    f = only(stamped("2026-03-02T21:14:02"), "l403_stalled")
    assert (f.severity, f.measured["kind"], f.measured["position"]) == (Severity.HIGH, "silent-end", 60.0)
    assert "no value is logged for 32062 s from step 60 to the end of the job (2026-03-02T21:14:02)" in f.statement


@pytest.mark.parametrize("at", ["2026-03-02T12:20:05", "2026-03-02T12:31:02", "2026-03-02T20:20:05",
                                "2026-03-02T17:50:15", "2026-03-02T09:00:00"],
                         ids=["at once", "a short pause", "eight hours east", "a half hour more", "west"])
def test_a_job_that_was_ended_while_it_wrote(at: str) -> None:
    assert findings(stamped(at), "l403_stalled") == []


def test_pause_of_a_preemption() -> None:
    gaps = np.full(60, 4.0)
    gaps[33] = 7200
    assert findings(run(series("loss", LOSS, time=np.cumsum(gaps)), notes=(note("resume", "resuming", 34),)),
                    "l403_stalled") == []


def test_one_step_of_ten_minutes() -> None:
    f = only(run(series("step_time", [0.5] * 20 + [600.0] + [0.5] * 10)), "l403_stalled")
    assert f.measured["kind"] == "step"


def test_log_that_ends_early_is_a_remark() -> None:
    f = only(run(series("loss", LOSS, every=10), planned_steps=5000.0), "l403_stalled")
    assert (f.severity, f.measured["kind"]) == (Severity.INFO, "log-ends")
    assert f.measured["done"] == pytest.approx(0.12)


@pytest.mark.parametrize("planned", [600.0, 605.0, 610.0])
def test_log_that_ends_on_time(planned: float) -> None:
    assert findings(run(series("loss", LOSS, every=10), planned_steps=planned), "l403_stalled") == []


# L404


def test_steps_that_take_longer_and_longer() -> None:
    f = only(run(series("step_time", 0.2 * (1 + np.arange(40) / 15)), series("memory", 1000 + 20 * np.arange(40.0))),
             "l404_throughput_decay")
    assert f.measured["slower"] == pytest.approx(2.2, abs=0.4)
    assert f.measured["memory_grows"] is True


@pytest.mark.parametrize(("seconds", "severity"), [
    (9.0, Severity.LOW), (900.0, Severity.MEDIUM), (math.nan, Severity.MEDIUM)])
def test_a_fall_within_seconds_is_low(seconds: float, severity: Severity) -> None:
    falls = series("throughput", 2_000 / (1 + np.arange(40) / 50), time=(np.arange(40) / 39 * seconds).tolist())
    assert only(run(falls), "l404_throughput_decay").severity is severity


def test_throughput_that_falls() -> None:
    f = only(run(series("tokens_per_second", 50_000 / (1 + np.arange(40) / 15))), "l404_throughput_decay")
    assert f.measured["metric"] == "tokens_per_second"


@pytest.mark.parametrize("times", [
    [30.0] + [0.2] * 30,
    [0.44, 0.105, 0.12, 0.077, 0.31, 0.18, 0.089, 0.077, 0.083, 0.13, 0.51, 0.085, 0.098, 0.031, 0.071, 0.11, 0.39],
    [0.2] * 10 + [0.6] * 5 + [0.2] * 15,
], ids=["compilation", "shared machine", "slow stretch"])
def test_steps_that_do_not_slow_down(times: list[float]) -> None:
    assert findings(run(series("step_time", times)), "l404_throughput_decay") == []


@pytest.mark.parametrize(("forward", "backward", "named"), [
    (np.linspace(0.08, 0.7, 30), np.full(30, 0.02), "fwd"),
    (np.linspace(0.08, 0.24, 30), np.linspace(0.06, 0.2, 30), None),  # all of it: the machine
    (np.full(30, 0.08), np.full(30, 0.02), None),
    (np.full(30, np.nan), np.linspace(0.02, 0.2, 30), "bwd"),
])
def test_the_phase_that_grows_is_named(forward: Floats, backward: Floats, named: str | None) -> None:
    speed = series("throughput", 10 / (1 + np.arange(30) / 8))
    phases = [replace(series("time/x", y), name=f"time/{name}", original=name)
              for name, y in (("fwd", forward), ("bwd", backward), ("opt", np.full(30, 0.005)))]
    f = only(run(speed, *phases), "l404_throughput_decay")
    assert f.measured["phase"] == named
    assert ("that grows" in f.statement) is (named is not None)


def test_sizes_that_grow_by_stages_make_longer_steps_by_plan() -> None:
    size = np.repeat([512.0, 1024, 2048, 4096], 40)
    times = 0.1 * size / 512 * (1 + 0.02 * np.sin(np.arange(160)))
    found = only(run(series("step_time", times), series("other/seq_len", size)), "l404_throughput_decay")
    assert found.severity is Severity.INFO
    assert "each step does more" in found.statement
    aging = times * np.linspace(1, 2, 160)  # within each stage, too
    assert only(run(series("step_time", aging), series("other/seq_len", size)),
                "l404_throughput_decay").severity is not Severity.INFO
    unknown = series("other/seq_len", np.full(160, np.nan))
    still = only(run(series("step_time", times), unknown), "l404_throughput_decay")
    assert still.severity is not Severity.INFO


def test_as_many_tokens_a_second_as_before_are_no_decay() -> None:
    times = np.linspace(1, 3, 120)
    steady, falling = np.full(120, 5000.0), 5000 / times
    assert only(run(series("step_time", times), series("tokens_per_second", steady)),
                "l404_throughput_decay").severity is Severity.INFO
    assert only(run(series("step_time", times), series("tokens_per_second", falling)),
                "l404_throughput_decay").severity is not Severity.INFO



# L701, L702


def test_ranks_with_unequal_batches_in_their_sentences() -> None:
    text = "[rank{0}] epoch 0 train done loss 0.5{0}22, 16 train / {1} val batches"
    f = only(run(notes=tuple(note("other", text.format(r, b), r + 1, rank=r) for r, b in ((0, 11), (1, 10)))),
             "l701_rank_disagreement")
    assert f.measured["values"] == (11.0, 10.0)
    assert "ranks have different numbers of val batches (rank 0: 11, rank 1: 10)" in f.statement


def test_ranks_with_unequal_counts_in_series() -> None:
    f = only(run(series("batches", [120.0, 120], rank=0), series("batches", [119.0, 119], rank=1)),
             "l701_rank_disagreement")
    assert f.measured["difference"] == 1.0


@pytest.mark.parametrize(("name", "a", "b"), [("learning_rate", 1e-3, 5e-4), ("loss_scale", 1024.0, 512.0),
                                              ("weight_norm", 31.2, 30.1), ("grad_norm", 1.0, 1.4)])
def test_ranks_that_should_agree(name: str, a: float, b: float) -> None:
    f = only(run(series(name, [a] * 10, rank=0), series(name, [b] * 10, rank=1)), "l701_rank_disagreement")
    assert f.measured["metric"] == name
    assert f.measured["ranks"] == (0, 1)


def test_nan_on_one_rank() -> None:
    f = only(run(series("loss", [1.0, 0.9, math.nan], rank=2), series("loss", [1.0, 0.9, 0.8], rank=0)),
             "l701_rank_disagreement")
    assert (f.measured["kind"], f.measured["ranks"]) == ("nonfinite", (2,))


def test_sentences_that_agree() -> None:
    assert findings(run(notes=tuple(note("other", f"[rank{r}] 16 train / 10 val batches", r + 1, rank=r)
                                    for r in range(2))), "l701_rank_disagreement") == []


def test_rank_that_writes_nothing() -> None:
    f = only(run(*(series("loss", LOSS, rank=r) for r in (0, 1, 3)), world_size=4), "l702_rank_missing")
    assert f.measured["ranks"] == (2,)
    assert f.where.rank == 2


@pytest.mark.parametrize(("note", "told"), [("not read: no permission", []), ("refused: a pipe", []),
                                            ("an empty file", [(2,)])])
def test_a_rank_whose_file_could_not_be_read_is_not_missing(note: str, told: list[tuple[int, ...]]) -> None:
    ranks = run(*(series("loss", LOSS, rank=r) for r in (0, 1, 3)), world_size=4)
    ranks = replace(ranks, artifacts=(Artifact("logs/rank_2.log", "unknown", note=note),))
    assert [f.measured["ranks"] for f in findings(ranks, "l702_rank_missing")] == told


def test_rank_that_falls_silent() -> None:
    f = only(run(*(series("loss", LOSS[:20 if r == 1 else 60], rank=r, every=5) for r in range(3))),
             "l702_rank_missing")
    assert (f.measured["kind"], f.measured["ranks"], f.measured["position"]) == ("silent", (1,), 100.0)


@pytest.mark.parametrize("ranks", [(0,), (0, 1, 2, 3), tuple(range(8))])
def test_ranks_of_one_machine(ranks: tuple[int, ...]) -> None:
    assert serious(run(*(series("loss", LOSS, rank=r) for r in ranks), world_size=16), "l702_rank_missing") == []


@pytest.mark.parametrize(("values", "odd", "told"), [
    ({0: 250, 1: 250, 2: 250, 3: 250, 4: 250, 5: 249, 6: 250, 7: 250}, (5,), "rank 5: 249; the other 7: 250"),
    ({0: 251, 1: 250, 2: 250}, (0,), "rank 0: 251; the other 2: 250"),
    ({0: 250, 1: 249}, (0, 1), "rank 0: 250, rank 1: 249"),
])
def test_the_odd_rank_is_named(values: dict[int, int], odd: tuple[int, ...], told: str) -> None:
    assert l701_rank_disagreement.odd_ranks(values) == odd
    assert l701_rank_disagreement.told_of(values) == told


def test_where_rank_0_is_the_odd_one_it_is_named() -> None:
    rates = [series("learning_rate", [1e-3 if rank else 2e-3] * 6, rank=rank) for rank in range(5)]
    f = only(run(*rates), "l701_rank_disagreement")
    assert f.where.rank == 0
    assert "rank 0 (0.002)" in f.statement


HALVED = np.where(np.arange(60) < 35, 32_000.0, 15_600.0) + 50.0 * np.cos(7 * np.arange(60))


def test_speed_that_halves_at_one_place_is_abrupt() -> None:
    f = only(run(series("tokens_per_second", HALVED)), "l404_throughput_decay")
    assert f.measured["abrupt"] is True
    f = only(run(series("tokens_per_second", 50_000 / (1 + np.arange(60) / 15))), "l404_throughput_decay")
    assert f.measured["abrupt"] is False


@pytest.mark.parametrize(("seconds", "severity"), [
    (9.0, Severity.LOW), (900.0, Severity.MEDIUM), (math.nan, Severity.MEDIUM)])
def test_a_halving_within_seconds_is_low(seconds: float, severity: Severity) -> None:
    halves = series("tokens_per_second", HALVED, time=(np.arange(60) / 59 * seconds).tolist())
    f = only(run(halves), "l404_throughput_decay")
    assert f.measured["abrupt"] is True
    assert f.severity is severity


SLOWER = np.where(np.arange(60) < 35, 0.4, 0.85)


def test_a_size_that_grows_at_the_same_record_explains_slower_steps() -> None:
    longer = np.where(np.arange(60) < 35, 2048.0, 4096.0)
    f = only(run(series("step_time", SLOWER), series("seq_len", longer)), "l404_throughput_decay")
    assert f.severity is Severity.INFO
    assert "seq_len goes from 2048 to 4096 there" in f.statement


@pytest.mark.parametrize("size", [
    np.full(60, 2048.0), np.where(np.arange(60) < 20, 2048.0, 4096.0), np.where(np.arange(60) < 35, 4096.0, 2048.0),
    np.where(np.arange(60) < 35, 2048.0, 2112.0), np.arange(60.0), np.where(np.arange(60) < 35, 0.5, 0.9),
], ids=["stays", "elsewhere", "shrinks", "too little", "counts", "no size"])
def test_sizes_that_do_not_explain_slower_steps(size: Floats) -> None:
    f = only(run(series("step_time", SLOWER), series("seq_len", size)), "l404_throughput_decay")
    assert f.severity is Severity.MEDIUM


@pytest.mark.parametrize(("wait", "share"), [(0.012, 0.03), (0.3, 0.75)])
def test_the_wait_for_data_in_the_slow_step(wait: float, share: float) -> None:
    times = np.linspace(0.2, 0.4, 60)
    f = only(run(series("step_time", times), series("data_time", np.full(60, wait))), "l404_throughput_decay")
    assert f.measured["data_share"] == pytest.approx(share, rel=0.1)
    assert ("the wait for data that the log measures" in f.statement) is (share < 0.1)


def test_a_log_without_a_wait_says_nothing_of_it() -> None:
    assert only(run(series("tokens_per_second", HALVED)), "l404_throughput_decay").measured["data_share"] is None
