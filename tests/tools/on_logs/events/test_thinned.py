"""What goes along with anomalies is told with the same lag where most records of the log were left out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from traindx_tools.on_logs.events import collecting
from traindx_tools.on_logs.judge import judge_events
from traindx_tools.on_logs.readers.recorder import keeping
from traindx_tools.on_logs.reading import joined, read_parts

LAG = 40


def _written(path: Path, planted: bool) -> Path:
    rng = random.Random(3)
    lines, due = [], set()
    hits = set(rng.sample(range(10, 390), 30))
    for step in range(1, 40_001):
        if step % 100 == 0:
            hit = step // 100 in hits
            shard = 41 if hit else rng.choice([s for s in range(60) if s != 41])
            lines.append(f"loader: opened /data/train/shard_{shard:04d}.tar")
            if hit:
                due.add(step + (LAG if planted else rng.randrange(5, 95)))
        loss = 2.0 + 0.1 * rng.random() + (30.0 if step in due else 0.0)
        lines.append(f"step {step} loss {loss:.4f} tokens {rng.randrange(4000, 4100)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _told(path: Path) -> list[str]:
    with keeping(30_000):
        reading = read_parts([path])
    run = joined(reading)
    assert all(s.thinned for s in run.series)
    assert sum(len(s) for s in run.series) <= 30_000
    return [f.statement for f in judge_events(run, reading.sources) if f.rule == "L801"]


def test_the_shard_and_its_lag_are_told(tmp_path: Path) -> None:
    told = _told(_written(tmp_path / "train.log", planted=True))
    assert len(told) == 1
    assert "shard_0041" in told[0].partition(" occurs ")[0]
    assert f"{LAG} steps before" in told[0]


def test_a_variable_of_every_step_gives_way_to_that_of_few_lines(tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MOST_KEPT", 20_000)
    monkeypatch.setattr(collecting, "CHUNK", 1 << 16)
    told = _told(_written(tmp_path / "train.log", planted=True))
    assert "shard_0041" in told[0].partition(" occurs ")[0]


def test_nothing_is_told_where_nothing_goes_along(tmp_path: Path) -> None:
    """Spikes come within the same hundred steps as a shard, each at another distance; more is known near them."""
    told = _told(_written(tmp_path / "train.log", planted=False))
    assert not any("tokens" in t for t in told)
