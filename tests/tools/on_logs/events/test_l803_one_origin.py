"""One origin of what a run loses: time, updates, memory; and what takes its time rightly."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.judge import judge_events
from traindx_tools.on_logs.reading import joined, read_parts

STEPS = 2000
Row = Callable[[int, str, float, float], str]


def seen(text: str, tmp_path: Path, name: str = "train.log") -> dict[str, Finding]:
    path = tmp_path / name
    path.write_text(text)
    reading = read_parts([path])
    failures: list[str] = []
    found = judge_events(joined(reading), reading.sources, failures)
    assert failures == []
    return {f.rule: f for f in found}


def stamp(seconds: float) -> str:
    return f"{datetime(2026, 2, 3) + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S.%f}"


def curve(rng: np.random.Generator) -> np.ndarray:
    return 3.0 * np.exp(-2 * np.arange(STEPS) / STEPS) + 1 + 0.03 * rng.standard_normal(STEPS)


def hosts(*, bad: tuple[int, ...] = (13,), times: float = 6.0, logged: str = "step_time", lag: int = 0, of: int = 24,
          word: str = "reads from node-{:02d}", seed: int = 0, share: float | None = 0.03) -> str:
    """Each step reads from a host; what a bad one gives is `times` as slow, `lag` steps later."""
    rng = np.random.default_rng(seed)
    host = rng.integers(0, of, STEPS)
    if share is not None:
        host[np.isin(host, bad)] = 1
        host[rng.random(STEPS) < share] = bad[0]
    slow = np.roll(np.isin(host, bad), lag)
    taken = 0.5 * (1 + 0.04 * np.abs(rng.standard_normal(STEPS))) * np.where(slow, times, 1.0)
    at = np.cumsum(taken)
    told = {"step_time": lambda t: f" step_time {taken[t]:.3f}", "stamps": lambda t: "",
            "throughput": lambda t: f" samples/s {64 / taken[t]:.1f}"}[logged]
    loss = curve(rng)
    return "".join(f"{stamp(at[t] - taken[t])} INFO {word.format(host[t])}\n"
                   f"{stamp(at[t])} INFO step {t} loss {loss[t]:.4f}{told(t)}\n" for t in range(STEPS))


@pytest.mark.parametrize("logged", ["step_time", "throughput", "stamps"])
def test_the_host_that_costs_the_run_its_time_is_the_cause(logged: str, tmp_path: Path) -> None:
    found = seen(hosts(logged=logged), tmp_path)
    one = found["L803"]
    assert "L801" not in found
    assert one.statement.startswith("records with `reads from node-13`")
    assert (one.severity, one.bearing) == (Severity.MEDIUM, Bearing.CAUSE)
    assert 0.1 < one.measured["share"] < 0.2
    assert one.measured["undone"] > 0.9


@pytest.mark.parametrize(("times", "share", "severity"), [
    (1.8, 0.01, Severity.INFO), (3.0, 0.02, Severity.LOW), (40.0, 0.03, Severity.HIGH)])
def test_the_severity_is_that_of_the_time_that_it_costs(times: float, share: float, severity: Severity,
                                                        tmp_path: Path) -> None:
    assert seen(hosts(times=times, share=share), tmp_path)["L803"].severity is severity


def test_two_hosts_that_are_slow_are_both_named(tmp_path: Path) -> None:
    """Eight of a hundred records are no spikes of their series any more."""
    one = seen(hosts(bad=(7, 11), share=None), tmp_path)["L803"]
    assert sorted(one.measured["origins"]) == ["node-07", "node-11"]
    assert one.measured["undone"] > 0.9


def test_a_file_that_is_prefetched_is_slow_some_steps_later(tmp_path: Path) -> None:
    one = seen(hosts(lag=3, word="open /mnt/ds/part_{:03d}.h5", bad=(97,), of=100), tmp_path)["L803"]
    assert "part_097.h5" in one.statement
    assert one.measured["near"] == one.measured["far"] == 3


def test_the_first_host_of_a_table_is_named_by_its_column(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    worker, loss = rng.integers(0, 16, STEPS), curve(rng)
    taken = 0.5 * (1 + 0.04 * np.abs(rng.standard_normal(STEPS))) * np.where(worker == 0, 3.0, 1.0)
    rows = [f"{t},{loss[t]:.5f},{taken[t]:.4f},{worker[t]},{rng.integers(100)}" for t in range(STEPS)]
    one = seen("\n".join(["step,loss,step_time,worker,shard", *rows]) + "\n", tmp_path, "m.csv")["L803"]
    assert one.measured["event"] == "`worker=0`"


def test_two_things_at_the_same_records_are_both_told_and_none_is_sure(tmp_path: Path) -> None:
    text = hosts()
    lines = [line + f" file a{900 if 'node-13' in line else i * 7919 % 199}.bin" if "node" in line else line
             for i, line in enumerate(text.splitlines())]
    one = seen("\n".join(lines) + "\n", tmp_path)["L803"]
    assert "a900.bin" in one.statement
    assert "node-13" in one.statement
    assert one.measured["undone"] < 0.5


def timed(taken: np.ndarray, line: Callable[[int], str], seed: int = 1) -> str:
    loss, at = curve(np.random.default_rng(seed)), np.cumsum(taken)
    return "".join(f"{stamp(at[t])} {line(t)}\n{stamp(at[t])} step {t} loss {loss[t]:.4f} step_time {taken[t]:.3f}\n"
                   for t in range(STEPS))


def by_length(lengths: dict[int, float], rare: int) -> str:
    rng = np.random.default_rng(4)
    usual = [n for n in lengths if n != rare]
    size = np.where(rng.random(STEPS) < 0.03, rare, rng.choice(usual, STEPS))
    taken = np.array([lengths[int(n)] for n in size]) * (1 + 0.04 * np.abs(rng.standard_normal(STEPS)))
    return timed(taken, lambda t: f"batch bucket={size[t]} n={t % 7}")


@pytest.mark.parametrize("lengths", [
    {256: 0.25, 512: 0.45, 768: 0.7, 1024: 0.95, 4096: 4.0},  # in proportion
    {64: 0.30, 128: 0.30, 256: 0.31, 512: 0.33, 4096: 3.2},  # the device is not full below: no more than in proportion
    {64: 0.30, 256: 0.31, 512: 0.40, 1024: 0.6, 4096: 9.0},  # attention: beyond proportion, but the others differ too
])
def test_long_batches_take_longer_and_nothing_is_wrong(lengths: dict[int, float], tmp_path: Path) -> None:
    found = seen(by_length(lengths, 4096), tmp_path)
    assert "L803" not in found
    assert all(f.severity is Severity.INFO for f in found.values())


def test_a_bucket_between_others_that_alone_is_slow_has_no_such_reason(tmp_path: Path) -> None:
    one = seen(by_length({256: 0.25, 512: 0.3, 1536: 4.0, 2048: 0.5, 4096: 0.6}, 1536), tmp_path)["L803"]
    assert "bucket=1536" in one.statement


def test_checkpoints_and_first_batches_of_epochs_take_time_on_purpose(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    usual = 0.5 * (1 + 0.04 * np.abs(rng.standard_normal(STEPS)))
    saved = usual + np.where(np.arange(STEPS) % 90 == 89, 9.0 + rng.random(STEPS), 0.0)
    checkpoint = timed(saved, lambda t: f"saved ckpt_{t}.pt" if t % 90 == 89 else f"shard {t * 7919 % 30}")
    first = timed(saved, lambda t: f"epoch {t // 90} batch {(t + 1) % 90}/90")
    for text in (checkpoint, first):
        assert all(f.severity is Severity.INFO and f.rule != "L803" for f in seen(text, tmp_path).values())


def test_collections_of_garbage_have_no_origin(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    taken = 0.5 * (1 + 0.04 * np.abs(rng.standard_normal(STEPS))) + np.where(rng.random(STEPS) < 0.02, 2.0, 0.0)
    assert "L803" not in seen(timed(taken, lambda t: f"shard {t * 7919 % 31} of node{t * 104729 % 8}"), tmp_path)


def test_a_task_that_costs_more_by_nature_is_a_remark(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    cost = {"text": 0.3, "image": 0.5, "audio": 0.9, "video": 4.0}
    task = rng.choice([*cost], STEPS, p=[0.5, 0.3, 0.16, 0.04])
    found = seen(timed(np.array([cost[k] for k in task]), lambda t: f"task={task[t]}"), tmp_path)
    assert {f.severity for f in found.values()} <= {Severity.INFO}


def skipping(bad: bool, seed: int = 8) -> str:
    rng = np.random.default_rng(seed)
    part, loss, out = rng.integers(0, 40, STEPS), curve(rng), []
    part[part == 31] = 3
    skipped = rng.random(STEPS) < 0.03
    if bad:
        part[skipped] = 31
    for t in range(STEPS):
        out.append(f"next batch: file=part-{part[t]:05d}.parquet rows={rng.integers(999)}")
        out.append("Gradient overflow. Skipping step" if skipped[t] else f"step {t} loss {loss[t]:.4f}")
    return "\n".join(out) + "\n"


def test_the_file_whose_steps_are_skipped_is_the_cause(tmp_path: Path) -> None:
    """A line about data at each step leaves room for the notes of skipped steps."""
    one = seen(skipping(True), tmp_path)["L803"]
    assert (one.measured["loses"], one.severity) == ("updates", Severity.MEDIUM)
    assert "part-00031.parquet" in one.statement
    assert "L803" not in seen(skipping(False), tmp_path)


def growing(bad: bool) -> str:
    rng = np.random.default_rng(9)
    clip, loss = rng.integers(0, 300, STEPS), curve(rng)
    own = rng.random(STEPS) < 0.012
    clip[own] = 300
    memory = 4.2 + (0.31 * np.cumsum(own) if bad else 0.31 * own.sum() * np.arange(STEPS) / STEPS)
    return "".join(f"opened clip_{clip[t]:04d}.mp4\nstep {t} loss {loss[t]:.4f} rss "
                   f"{memory[t] + 0.003 * rng.standard_normal():.3f} GB\n" for t in range(STEPS))


def test_memory_that_grows_with_one_file(tmp_path: Path) -> None:
    one = seen(growing(True), tmp_path)["L803"]
    assert one.measured["loses"] == "memory"
    assert "clip_0300.mp4" in one.statement
    assert "L803" not in seen(growing(False), tmp_path)


def test_a_broken_log(tmp_path: Path) -> None:
    """Values that are no times, half lines, and records of JSON that hold something else."""
    text = hosts().replace("step_time 0.51", "step_time nan").replace("step_time 3.0", "step_time -inf")
    assert set(seen(text[: len(text) * 2 // 3], tmp_path)) <= {"L801", "L803"}
    rows = [json.dumps({"step": t, "loss": 1.0 / (t + 1), "step_time": [0.5], "node": None}) for t in range(300)]
    assert seen("\n".join(rows) + "\n{\"step\": ", tmp_path, "r.jsonl") == {}
