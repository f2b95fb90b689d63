"""Events of a log: templates, values, and what goes along with anomalies after all comparisons."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.events import anomalous
from traindx_tools.on_logs.events.candidates import candidates
from traindx_tools.on_logs.events.collecting import EventLog, collect
from traindx_tools.on_logs.judge import judge_events
from traindx_tools.on_logs.reading import joined, read_parts

STEPS = 1500


def log(*, lag: int = 2, bad: int | None = 41, decoy: bool = True, seed: int = 0, steps: int = STEPS) -> str:
    """A log in which shard `bad` is read `lag` steps before most spikes; None: spikes have no reason in it.

    The decoy is busy while spikes are frequent, and no more often ahead of them than otherwise.
    """
    rng = np.random.default_rng(seed)
    loss = 3.0 * np.exp(-2 * np.arange(steps) / steps) + 1 + 0.03 * rng.standard_normal(steps)
    busy = (steps * 4 // 10, steps * 11 // 20)
    events = np.unique(np.concatenate([rng.integers(*busy, 16), rng.integers(steps // 10, steps - 140, 8)]))
    spikes = events + lag if bad is not None else events
    loss[spikes] += 1.5
    shards = rng.integers(0, 40, steps)
    if bad is not None:
        shards[events] = bad
    out = []
    for t in range(steps):
        out.append(f"2026-01-01 12:{t // 60 % 60:02d}:{t % 60:02d} INFO rank-{t % 4} read from /data/shard_"
                   f"{shards[t]:04d}.npz")
        if decoy and busy[0] <= t < busy[1] and rng.random() < 0.5:
            out.append(f"2026-01-01 12:00:00 INFO compacting cache, {rng.integers(100)} entries")
        if t % 50 == 0:
            out.append("evaluation done")
        out.append(f"step {t} loss {loss[t]:.4f} lr 3.0e-04")
    return "\n".join(out) + "\n"


def seen(text: str, tmp_path: Path, name: str = "train.log") -> tuple[Finding, ...]:
    path = tmp_path / name
    path.write_text(text)
    reading = read_parts([path])
    failures: list[str] = []
    found = judge_events(joined(reading), reading.sources, failures)
    assert failures == []
    return found


def read(text: str) -> EventLog:
    found = collect(Source("x", data=text.encode()))
    assert found is not None
    return found


@pytest.mark.parametrize("lag", [0, 2, 120])
def test_the_file_ahead_of_the_spikes_is_named_with_its_lag(lag: int, tmp_path: Path) -> None:
    (one,) = seen(log(lag=lag), tmp_path)
    where = "at the same record as" if lag == 0 else f"{lag} steps before"
    assert one.statement.startswith(f"`rank-* read from /data/shard_0041.npz` occurs {where}")
    assert "otherwise" in one.statement
    assert one.measured["file"] == "shard_0041.npz"
    assert one.measured["chance"] < 1e-6
    assert (one.severity, one.bearing) == (Severity.MEDIUM, Bearing.COMPANION)
    assert 5 < len(one.measured["event_lines"]) <= 130


def test_anomalies_that_are_not_compared_still_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many anomalies some are compared; what the others follow happens not "otherwise"."""
    text = log(decoy=False)
    whole = seen(text, tmp_path)[0].statement
    monkeypatch.setattr(anomalous, "MOST_ANOMALIES", 12)
    part = seen(text, tmp_path)[0].statement
    assert "12 of 12" in part
    assert "12 of 12" not in whole
    assert re.findall(r"(\d+) times otherwise", part) == re.findall(r"(\d+) times otherwise", whole) != []


@pytest.mark.parametrize("seed", range(3))
def test_spikes_without_a_reason_get_none(seed: int, tmp_path: Path) -> None:
    """The healthy twin: as many spikes, more of them in one part of the run, an event that is busy there alone."""
    assert seen(log(bad=None, seed=seed), tmp_path) == ()


def test_what_is_only_frequent_in_the_same_period_is_ruled_out(tmp_path: Path) -> None:
    (one,) = seen(log(), tmp_path)
    assert not any("compacting" in text for text in one.measured["also"])
    assert "compacting cache" in str(one.measured["ruled_out"])
    assert "ruled out" not in one.statement


def test_a_log_without_anomalies_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(source: Source) -> EventLog:
        raise AssertionError(source.name)

    monkeypatch.setattr("traindx_tools.on_logs.events.going_along.collect", never)
    loss = [2 - t / 2000 + 0.01 * (t * 7919 % 13) for t in range(400)]
    quiet = "".join(f"read shard_{t % 9}\nstep {t} loss {loss[t]:.4f}\n" for t in range(400))
    assert seen(quiet, tmp_path) == ()


def test_a_column_of_a_table_goes_along(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    source = rng.choice(["wiki", "web", "code"], 1200).astype(object)
    at = rng.choice(np.arange(100, 1150), 20, replace=False)
    source[at] = "books"
    loss = 2 + 0.02 * rng.standard_normal(1200)
    loss[at] += 1.0
    rows = [f"{t},{loss[t]:.5f},{source[t]},{rng.integers(9)}" for t in range(1200)]
    (one,) = seen("\n".join(["step,loss,source,worker", *rows]) + "\n", tmp_path, "metrics.csv")
    assert "books" in str(one.measured["event"])
    assert one.measured["far"] == 0


def test_slow_steps_after_a_checkpoint_are_a_remark(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    out = []
    for t in range(1200):
        if t % 60 == 30:
            out.append(f"saved checkpoint-{t}")
        slow = 3.0 if t % 60 == 31 else 0.0
        loss, took = 2 + 0.02 * rng.standard_normal(), 0.5 + slow + 0.01 * rng.random()
        out.append(f"step {t} loss {loss:.4f} step_time {took:.4f}")
    found = [f for f in seen("\n".join(out) + "\n", tmp_path) if "step_time" in f.statement]
    assert [f.severity for f in found] == [Severity.INFO]
    assert "saved checkpoint" in found[0].statement


def test_values_keep_their_zeros_and_words_are_variables() -> None:
    text = "".join(f"host {h} took shard-{n:03d} of 16\n" for n in range(4) for h in ("alpha", "beta", "gamma") * 2)
    told = {c.text: len(c.lines) for c in candidates(read(text))}
    assert told["`host * took shard-002 of *`"] == 6
    assert told["`host beta took shard-* of *`"] == 8


def test_a_line_is_told_with_all_its_words_where_its_template_is_wider() -> None:
    stamp = "2026-01-01 00:{:02d}:{:02d},000 INFO "
    text = "".join(f"{stamp.format(i // 60, i % 60)}" + (f"checkpoint written to /ckpt/step_{i:07d}.pt\n" if i % 7 == 3
                   else "heartbeat sent to coordinator\n") for i in range(700))
    found = [c for c in candidates(read(text)) if c.kind == "word" and len(c.lines) == 100]
    assert {c.text for c in found} == {"`checkpoint written to *`"}


def test_paths_with_a_counter_are_told_apart_by_their_names() -> None:
    homes = ("gs://bucket/run", "/scratch/run", "/home/run")
    text = "".join(f"checkpoint {n} -> {homes[n % 3]}/{n}.ckpt\n" for n in range(300))
    told = {c.text: len(c.lines) for c in candidates(read(text)) if c.kind == "word"}
    assert told["`checkpoint * -> gs://bucket/run/*.ckpt`"] == 100


def _skipping(at: set[int], opened: set[int]) -> str:
    rng, out = np.random.default_rng(4), []
    for t in range(4000):
        scale = 2**19 if any(0 < u - t <= 3 for u in at) else 2**18
        out += [f"data: open train-{77 if t in opened else 78 + t % 200:05d}.arrow"] if t % 20 == 0 else []
        out += ["Gradient overflow. Skipping step, reducing loss scale to 262144"] if t in at else []
        out.append(f"step {t} loss {2 + 0.02 * rng.standard_normal():.4f} loss_scale {scale}")
    return "\n".join(out) + "\n"


def test_a_skipped_step_is_explained_neither_by_its_own_line_nor_by_the_scale_that_grew(tmp_path: Path) -> None:
    opened = {140, 700, 1240, 1660, 2300, 2960, 3500, 3820}
    found = seen(_skipping({t + 12 for t in opened}, opened), tmp_path)
    assert ["train-00077" in f.statement for f in found if "skipped steps" in f.statement] == [True]
    healthy = tmp_path / "healthy"
    healthy.mkdir()
    rng = np.random.default_rng(9)
    assert not [f for f in seen(_skipping({*rng.choice(4000, 8, replace=False).tolist()}, set()), healthy)
                if "skipped steps" in f.statement]


def test_a_rare_value_does_not_go_along_with_itself_and_two_buckets_explain_together(tmp_path: Path) -> None:
    rng, out, plain = np.random.default_rng(6), [], []
    for t in range(6000):
        bucket = int(rng.choice([256, 512, 1024, 2048, 3072, 4096], p=[0.3, 0.3, 0.2, 0.19, 0.005, 0.005]))
        loss = 2 + 0.02 * rng.standard_normal()
        out.append(f'{{"step": {t}, "loss": {loss + 3 * (bucket >= 3072):.4f}, "bucket_len": {bucket}}}')
        plain.append(f'{{"step": {t}, "loss": {loss:.4f}, "bucket_len": {bucket}}}')
    found = [f for f in seen("\n".join(out) + "\n", tmp_path) if f.rule == "L801"]
    assert (found[0].measured["metric"], found[0].severity) == ("loss", Severity.MEDIUM)
    assert "`bucket_len` >= 3,000" in found[0].statement
    healthy = tmp_path / "healthy"
    healthy.mkdir()
    assert not [f for f in seen("\n".join(plain) + "\n", healthy) if f.rule == "L801"]


def test_counters_and_measures_name_nothing() -> None:
    text = "".join(f"step {n} took 0.{n:05d} s at 12:00:{n % 60:02d}\n" for n in range(9000))
    assert {c.kind for c in candidates(read(text))} == {"template"}


def test_broken_input_is_counted_and_no_error(tmp_path: Path) -> None:
    noise = bytes(np.random.default_rng(0).integers(32, 256, 20_000, dtype=np.uint8))
    found = collect(Source("x", data=b"\n".join([noise, b"", b"a" * 100_000, b"last line without an end"])))
    assert found is not None
    assert found.unread >= 1
    assert found.lines >= 4
    wide = collect(Source("x", data="utf-16 text of some length\n".encode("utf-16")))
    assert wide is not None
    assert wide.header == "utf-16 text of some length"
    assert collect(Source("x", data=bytes(range(256)) * 9)) is None


def test_a_run_cut_from_a_file_keeps_the_files_lines(tmp_path: Path) -> None:
    path = tmp_path / "two.log"
    path.write_text(log(bad=None, steps=300) + log(seed=4))
    reading = read_parts([path])
    from traindx_tools.on_logs.each_run import each_run

    runs = each_run(reading)
    last = runs[-1].reading
    found = judge_events(joined(last), last.sources)
    lines = path.read_text().splitlines()
    assert len(runs) == 2
    assert all("shard_0041" in lines[n - 1] for n in found[0].measured["event_lines"])


def nan_log(*, told: str = "") -> str:
    rng = np.random.default_rng(5)
    out = []
    for t in range(1, 400):
        bad = rng.random() < 0.1
        out += [told] if bad and told else []
        out.append(f"step {t} loss {'nan' if bad else f'{2 / t ** 0.3 + rng.normal(0, 0.02):.4f}'} lr 5e-05")
    return "\n".join(out) + "\n"


def test_the_records_that_are_nan_go_along_with_nothing_by_themselves(tmp_path: Path) -> None:
    assert seen(nan_log(), tmp_path) == ()


def test_a_line_of_its_own_at_each_nan_is_told(tmp_path: Path) -> None:
    assert "nan, empty batch" in seen(nan_log(told="WARNING: nan, empty batch in shard"), tmp_path)[0].statement
