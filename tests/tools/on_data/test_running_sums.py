"""D225: water meters that tell what was used, or all that was used so far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d225_running_sums as d225

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]


def write(folder: Path, summed: tuple[int, ...], rising: tuple[int, ...] = (), count: int = 7, note: str = "") -> None:
    rng = np.random.default_rng(4)
    lines = ["meter,hour,litres" + (",mode" if note else "")]
    for m in range(count):
        used = np.round(rng.gamma(2, 20, 200) * (1 + m / 5), 1)
        litres = np.cumsum(used) if m in summed else np.arange(200) * 3.0 + 50 if m in rising else used
        lines += [f"w{m},{h % 24},{v:.1f}" + (f",{'total' if m in summed else 'hour'}" if note else "")
                  for h, v in enumerate(litres)]
    (folder / "water.csv").write_text("\n".join(lines))


def test_two_meters_tell_totals(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, (1, 4))
    (found,) = seen_by(d225, tmp_path)
    assert (found.severity, found.measured["kind"], found.measured["parts"]) == (Severity.HIGH, "sums", 2)
    assert found.measured["field"] == "litres"


def test_one_meter_tells_amounts_among_totals(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, (0, 1, 2, 3, 5, 6))
    (found,) = seen_by(d225, tmp_path)
    assert (found.measured["kind"], found.measured["part"]) == ("steps", "'w4'")


@pytest.mark.parametrize(("summed", "rising"), [((), ()), (tuple(range(7)), ()), ((), (3,))])
def test_meters_of_one_kind_and_one_that_rises_evenly(summed: tuple[int, ...], rising: tuple[int, ...], tmp_path: Path,
                                                      seen_by: Seen) -> None:
    write(tmp_path, summed, rising)
    assert seen_by(d225, tmp_path) == []


def test_a_field_that_says_so_makes_it_a_remark(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, (2,), note="mode")
    assert {f.severity for f in seen_by(d225, tmp_path)} <= {Severity.INFO}


def test_empty_cells_are_no_amounts(tmp_path: Path, seen_by: Seen) -> None:
    lines = ["meter,litres", *(f"w{k % 5}," for k in range(600))]
    (tmp_path / "water.csv").write_text("\n".join(lines))
    assert seen_by(d225, tmp_path) == []
