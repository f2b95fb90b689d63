"""Manifests that disagree with headers of some files, and columns that agree by chance or are rounded."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d154_manifest_disagrees

Seen = Callable[[ModuleType, Path], list[Finding]]
RATE = 8000


def sounds(folder: Path, odd: tuple[int, ...] = (), listed: Callable[[int, int], str] | None = None,
           header: str = "path,speaker,duration") -> None:
    """Forty sounds beside a manifest; of the odd ones the header says twice the rate."""
    rng = np.random.default_rng(0)
    lines = [header]
    for k in range(40):
        frames = int(RATE * rng.uniform(0.5, 1.5))
        with wave.open(str(folder / f"rec_{k:02d}.wav"), "wb") as file:
            file.setparams((1, 2, RATE * (2 if k in odd else 1), 0, "NONE", ""))
            file.writeframes((rng.normal(size=frames) * 3000).astype("<i2").tobytes())
        lines.append(f"rec_{k:02d}.wav,spk{k % 5}," + (listed(k, frames) if listed else f"{frames / RATE:.3f}"))
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")


def alarms(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.severity is not Severity.INFO]


@pytest.mark.parametrize("odd", [(7,), (3, 11, 12, 30)])
def test_a_rate_that_the_durations_deny(odd: tuple[int, ...], tmp_path: Path, seen_by: Seen) -> None:
    sounds(tmp_path, odd)
    (finding,) = alarms(seen_by(d154_manifest_disagrees, tmp_path))
    assert finding.measured["files"] == tuple(f"rec_{k:02d}.wav" for k in odd)
    assert finding.measured["ratio"] == pytest.approx(0.5, abs=0.01)
    assert finding.measured["column"] == "duration"


def test_a_rate_that_the_manifest_denies(tmp_path: Path, seen_by: Seen) -> None:
    sounds(tmp_path, (5, 6), lambda k, frames: str(RATE), "path,speaker,anything")
    (finding,) = alarms(seen_by(d154_manifest_disagrees, tmp_path))
    assert (finding.measured["column"], finding.measured["what"]) == ("anything", "rate")


@pytest.mark.parametrize("listed", [
    lambda k, frames: f"{frames / RATE:.1f}",  # rounded
    lambda k, frames: "1",  # as many as there are channels
    lambda k, frames: f"{20 + k * 37 % 41}",  # an age
    lambda k, frames: f"{frames / RATE * (1 + 0.02 * (k % 3)):.3f}",  # with silence that was cut
])
def test_what_agrees_or_means_something_else(listed: Callable[[int, int], str], tmp_path: Path, seen_by: Seen) -> None:
    sounds(tmp_path, (), listed)
    assert not alarms(seen_by(d154_manifest_disagrees, tmp_path))


def test_a_manifest_of_other_files_and_one_that_is_broken(tmp_path: Path) -> None:
    sounds(tmp_path, (3,))
    whole = (tmp_path / "manifest.csv").read_text()
    (tmp_path / "manifest.csv").write_text(whole.replace("rec_", "other_")[:-5] + '"')
    report = examine([tmp_path])
    assert not report.notes
    assert not [f for f in report.findings if f.rule == "D154"]
