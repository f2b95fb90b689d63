"""Pictures of ranks, of a folded period and of events before anomalies: drawn where there is something to draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.artifacts import discover
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_ranks.logs import ManyRanks, examine_ranks
from traindx_tools.plots.alignment import plot_alignment
from traindx_tools.plots.folded import _without_trend, folded_series, plot_folded
from traindx_tools.plots.ranks import MOST_ROWS, _rows, plot_ranks

pytest.importorskip("matplotlib")

PNG = b"\x89PNG"


def ranks(folder: Path, count: int, text: str = "step {t} loss {loss} step_time {time}") -> ManyRanks:
    for rank in range(count):
        lines = [f"init: rank={rank} world_size={count}"]
        lines += [text.format(t=t, loss=3 - t / 50, time=0.9 if rank == 5 else 0.5) for t in range(40)]
        (folder / f"rank_{rank}.log").write_text("\n".join(lines))
    many = examine_ranks(discover([folder]).sources, workers=1)
    assert many is not None
    return many


def test_ranks_by_step(tmp_path: Path) -> None:
    out = plot_ranks(ranks(tmp_path, 8), tmp_path / "ranks.png")
    assert out.read_bytes().startswith(PNG)


def test_of_many_ranks_the_odd_one_has_a_row_of_its_own(tmp_path: Path) -> None:
    start = ranks(tmp_path, 200, "step {t} loss {loss}").job.last
    rows = _rows(start, (137,))
    assert len(rows) <= MOST_ROWS + 1
    assert [137] in rows
    assert sorted(r for row in rows for r in row) == list(range(200))


def test_ranks_without_a_metric_are_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="no two ranks log"):
        plot_ranks(ranks(tmp_path, 4, "step {t} lr 0.1"), tmp_path / "ranks.png")


def test_a_period_is_folded_and_noise_is_not(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).standard_normal(1_200)
    for name, size in (("repeats", 0.2), ("noise", 0.0)):
        text = "\n".join(f"step {t} loss {2 + size * np.sin(t / 8) + 0.05 * noise[t]:.4f}" for t in range(1_200))
        (tmp_path / f"{name}.log").write_text(text)
    run = read_run(tmp_path / "repeats.log")
    found = folded_series(run)
    assert found is not None
    assert found[1] == pytest.approx(16 * np.pi, rel=0.02)
    picture = plot_folded(run, tmp_path / "period.png")
    assert picture is not None
    assert picture.read_bytes().startswith(PNG)
    assert plot_folded(read_run(tmp_path / "noise.log"), tmp_path / "none.png") is None


def test_events_before_anomalies_need_their_lines(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\n".join(f"step {t} loss {5 if t % 50 == 9 else 2:.3f}" for t in range(400)))
    measured = {"metric": "loss", "event": "shard_0041", "anomalies": "upward spikes of loss", "near": 2, "far": 3,
                "count": 8, "anomaly_lines": tuple(range(10, 400, 50)), "event_lines": tuple(range(7, 400, 50))}
    run = read_run(log)

    def finding(**changed: object) -> Finding:
        return Finding("L801", "along", Severity.MEDIUM, Bearing.COMPANION, "along", Location(file=str(log), line=10),
                       run.series[0].source, {**measured, **changed})  # type: ignore[dict-item]

    picture = plot_alignment(run, [finding()], tmp_path / "events.png")
    assert picture is not None
    assert picture.read_bytes().startswith(PNG)
    assert plot_alignment(run, [finding(event_lines=())], tmp_path / "none.png") is None
    told = replace(finding(), rule="L803", source=log.name)  # reports tell a file by the end of its path
    assert plot_alignment(run, [told], tmp_path / "short.png") is not None
    assert plot_alignment(run, [replace(told, source="other.log")], tmp_path / "other.png") is None
    assert plot_alignment(run, [], tmp_path / "none.png") is None


def test_a_slow_first_record_is_no_trend() -> None:
    """Folded without its trend, each period lies on the others; a rise over the run is taken away."""
    wave = np.tile([1.0, *[0.0] * 9, -1.0, *[0.0] * 9], 50)
    first = wave.copy()
    first[0] = 500.0
    assert np.abs(_without_trend(first, 20.0)[1:] - wave[1:]).max() < 1e-9
    assert np.abs(_without_trend(wave + np.arange(1000) * 0.01, 20.0) - wave).max() < 0.15
    assert not np.isfinite(_without_trend(np.full(50, np.nan), 4.0)).any()
