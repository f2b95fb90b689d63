"""The sign of one group's stated distance from the common clock, and groups that are busy at other hours by habit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine
from traindx_tools.on_data.rules import d211_offset_turned as d211

Seen = Callable[[ModuleType, Path], list[Finding]]
TRUE = {"rotterdam": 1.0, "osaka": 9.0, "bogota": -5.0, "lima": -5.0}


def trips(folder: Path, stated: Mapping[str, object], *, rows: int = 200, habits: Mapping[str, float] | None = None,
          width: float = 10.0, true: Mapping[str, float] = TRUE) -> None:
    """Rows between 8 and 18 hours of the local day; `habits`: hours later of a place by its habit."""
    rng = np.random.default_rng(0)
    lines = ["depot,left,km"]
    for name, hours in true.items():
        local = 8 + width * rng.random(rows) + (habits or {}).get(name, 0.0)
        days = rng.integers(0, 60, rows)
        for day, hour in zip(days, local, strict=True):
            at = np.datetime64("2025-03-03T00:00") + np.timedelta64(int((day * 24 + hour - hours) * 60), "m")
            lines.append(f"{name},{at}Z,{rng.random():.3f}")
    (folder / "tours.csv").write_text("\n".join(lines) + "\n")
    (folder / "depots.json").write_text(json.dumps(stated))


def minutes(hours: Mapping[str, float], times: float = 60.0) -> dict[str, object]:
    return {k: {"utc_offset": v * times, "vans": 3} for k, v in hours.items()}


@pytest.mark.parametrize("times", [1.0, 60.0, 3600.0, -60.0], ids=["hours", "minutes", "seconds", "taken away"])
def test_one_sign_is_turned(times: float, tmp_path: Path, seen_by: Seen) -> None:
    trips(tmp_path, minutes({**TRUE, "bogota": 5.0}, times))
    (found,) = seen_by(d211, tmp_path)
    assert (found.severity, found.measured["part"]) == (Severity.HIGH, "bogota")
    assert abs(float(str(found.measured["hours"]))) == 5.0
    assert found.source.endswith("depots.json")


def test_distances_as_one_object(tmp_path: Path, seen_by: Seen) -> None:
    trips(tmp_path, {"tz_offset_hours": {**TRUE, "osaka": -9.0}})
    (found,) = seen_by(d211, tmp_path)
    assert found.measured["part"] == "osaka"


@pytest.mark.parametrize(("stated", "more"), [
    (minutes(TRUE), {}),
    (minutes(TRUE), {"habits": {"bogota": 12.0}}),
    (minutes(TRUE), {"habits": {"osaka": 10.0}}),
    (minutes({**TRUE, "bogota": 5.0}), {"width": 24.0}),
    (minutes({**TRUE, "bogota": 5.0}), {"rows": 20}),
    (minutes({**TRUE, "bogota": -4.0}), {}),
    ({k: {"vans": 10 * v} for k, v in {**TRUE, "bogota": 5.0}.items()}, {}),
    (minutes({"oslo": 1.0, "rome": 1.0, "cairo": 2.0}), {}),
    ([1, 2, 3], {}), ({"a": {"utc_offset": "x"}}, {}),
], ids=["right", "at night", "in the evening", "all day", "few rows", "an hour off", "no distances", "other names",
        "a list", "broken"])
def test_nothing_is_told(stated: object, more: dict[str, object], tmp_path: Path, seen_by: Seen) -> None:
    trips(tmp_path, stated, **more)  # type: ignore[arg-type]
    assert not seen_by(d211, tmp_path)


def test_two_groups_decide_nothing(tmp_path: Path, seen_by: Seen) -> None:
    true = {"osaka": 9.0, "bogota": -5.0}
    trips(tmp_path, minutes({"osaka": 9.0, "bogota": 5.0}), true=true)
    assert not seen_by(d211, tmp_path)


def test_times_that_are_none(tmp_path: Path) -> None:
    trips(tmp_path, minutes({**TRUE, "bogota": 5.0}))
    text = (tmp_path / "tours.csv").read_text().replace("2025-03", "soon-03")
    (tmp_path / "tours.csv").write_text(text)
    assert not [f for f in examine([tmp_path]).findings if f.rule == "D211"]
