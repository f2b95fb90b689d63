"""Screens of simulated programs: what stands out is named, what does nothing is not, and no time is wasted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from experiment_traces import curve

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine
from traindx_tools.experiments.journal import Journal
from traindx_tools.experiments.kept import Kept
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.screening.arms import Arm
from traindx_tools.experiments.screening.screen import screen
from traindx_tools.experiments.screening.telling import findings_of, lines, page
from traindx_tools.experiments.trace import Applied, Trace

ARMS = [Arm("settings", f"run.yaml:k{i}", Change("set", {f"run.yaml:k{i}": 0.1}), "1.0", "run.yaml", i)
        for i in range(20)]
LEVEL = Outcome("level", "validation accuracy")


@dataclass
class Simulated:
    """A program whose level each key moves by so much; `broken`: keys that end in an error, `late`: that hang."""

    effects: Mapping[int, float] = field(default_factory=dict)
    broken: tuple[int, ...] = ()
    late: tuple[int, ...] = ()
    spread: float = 0.01
    luck: float = 0.0
    """Of the control with its own seed, in units of the spread."""
    seconds: float = 2.0
    nan_at: int | None = None
    short: Mapping[int, int] = field(default_factory=dict)
    """Steps of a run with each of these keys: fewer."""
    runs: list[str] = field(default_factory=list)

    workspace = Path("simulated")
    fingerprint = "simulated"

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        change = next(iter(prepared.inside), Change())
        key = int(next(iter(change.options), "k-1").rpartition("k")[2])
        seed = int(str(prepared.options.get("seed", 0)))
        self.runs.append(f"{change}/{seed}")
        told = {str(change): Applied(1, "simulated")} if prepared.inside else {}
        if key in self.broken:
            return Trace(Path("."), {}, ended=True, exit_code=1, error="ValueError: bad", seconds=1.0, changes=told)
        rng = np.random.default_rng([key + 1, seed])
        drawn = rng.standard_normal() if key % 2 and key > 0 else 0.0 if seed else self.luck  # even: the control
        level = 0.6 + self.spread * (drawn + (rng.standard_normal() if seed else 0)) + self.effects.get(key, 0.0)
        values = np.full(10, level) + 0.001 * np.arange(10)
        losses = np.ones(self.short.get(key, 200))
        if self.nan_at is not None and key not in self.effects:
            losses[self.nan_at:] = math.nan
        curves = {"validation accuracy": curve(values), "live/loss": curve(losses)}
        took = 100.0 if key in self.late else self.seconds
        if took > seconds:
            return Trace(Path("."), {}, stopped="time", seconds=seconds, changes=told)
        return Trace(Path("."), curves, ended=True, exit_code=0, seconds=took, changes=told)


def _prepare(change: Change, seed: int) -> Prepared:
    return Prepared("simulated", inside=() if change.is_control else (change,), options={"seed": seed})


def test_the_setting_that_carries_it_is_named_and_confirmed() -> None:
    place = Simulated({7: 0.3})
    found = screen(Engine(place, _prepare), ARMS, LEVEL, Budget(600))
    assert [t.arm.what for t in found.standing_out] == ["run.yaml:k7"]
    words = {t.arm.what: t.judged.word for t in found.tried}
    assert words["run.yaml:k2"] == "same"
    assert words["run.yaml:k3"] == "alike"
    told = {f.rule: f for f in findings_of(found)}
    assert told["X105"].where.file == "run.yaml"
    assert told["X105"].measured["decides"] == ""
    assert "of 20 changes, one at a time, run.yaml:k7: 1.0 -> 0.1 stands out" in told["X105"].statement
    assert "X102" in told  # other seeds agree
    assert told["X102"].measured["specific"] is True
    text = "\n".join(lines(found))
    assert "k7: 1.0 -> 0.1" in text.splitlines()[2]
    assert "| run.yaml:k19: 1.0 -> 0.1 |" in page(found)


def test_a_place_of_the_code_takes_part_and_is_no_proof() -> None:
    arms = [Arm("code", f"train.py:{i}", Change("edit", {f"k{i}": "left-out"}), f"x = f{i}(x)", "train.py", i,
                frozenset({"code.place-carries"}), "x = x") for i in range(12)]
    found = screen(Engine(Simulated({7: 0.3}), _prepare), arms, LEVEL, Budget(600))
    told = {f.rule: f for f in findings_of(found)}
    assert "train.py:7: `x = f7(x)` -> `x = x` stands out" in told["X105"].statement
    assert (told["X105"].where.file, told["X105"].where.line) == ("train.py", 7)
    for rule in ("X105", "X102"):
        assert told[rule].measured["specific"] is False  # it may make the measure easier
        assert told[rule].measured["decides"] == "code.place-carries"


@pytest.mark.parametrize(("spread", "luck"), [(0.0, 0.0), (0.005, 0.0), (0.02, -3.0), (0.1, -3.0), (0.1, 0.0)])
def test_where_nothing_matters_nothing_stands_out(spread: float, luck: float) -> None:
    called = proven = 0
    for number in range(20):
        arms = [Arm("settings", f"k{i}", Change("set", {f"k{i + 40 * number}": 0.1}), "1.0") for i in range(40)]
        found = screen(Engine(Simulated(spread=spread, luck=luck), _prepare), arms, LEVEL, Budget(600))
        called += bool(found.standing_out)
        proven += any(r.verdict.is_effect for r in found.confirmed)
        assert lines(found)
    assert called <= 1  # of 20 screens of 40 arms each
    assert proven == 0


def test_an_event_that_goes_and_one_that_stays() -> None:
    found = screen(Engine(Simulated({4: 0.0}, nan_at=30), _prepare), ARMS, Outcome("nonfinite", "live/loss"),
                   Budget(600))
    assert [t.arm.what for t in found.standing_out] == ["run.yaml:k4"]
    assert next(t for t in found.tried if t.arm.what == "run.yaml:k3").judged.word == "same"


def test_a_run_that_ends_before_the_event_says_nothing() -> None:
    place = Simulated({4: 0.0, 6: 0.0}, nan_at=30, short={6: 20})
    found = screen(Engine(place, _prepare), ARMS, Outcome("nonfinite", "live/loss"), Budget(600))
    assert [t.arm.what for t in found.standing_out] == ["run.yaml:k4"]
    assert "before the" in next(t for t in found.tried if t.arm.what == "run.yaml:k6").judged.why


def test_arms_that_fail_or_hang_say_nothing() -> None:
    place = Simulated({9: 0.3}, broken=(1, 2), late=(3,))
    found = screen(Engine(place, _prepare), ARMS, LEVEL, Budget(600))
    words = {t.arm.what: t.judged.word for t in found.tried}
    assert [words[f"run.yaml:k{i}"] for i in (1, 2, 3)] == ["failed", "failed", "failed"]
    assert [t.arm.what for t in found.standing_out] == ["run.yaml:k9"]
    assert "ValueError: bad" in page(found)


def test_time_is_kept_for_what_stands_out_and_the_rest_is_named() -> None:
    place = Simulated({0: 0.3})
    found = screen(Engine(place, _prepare), ARMS, LEVEL, Budget(24.0))
    assert found.confirmed
    assert found.left
    assert found.seconds <= 24.0 + 2.0
    assert "more were not tried" in lines(found)[-1]


def test_a_control_that_shows_nothing_ends_it() -> None:
    place = Simulated()
    found = screen(Engine(place, _prepare), ARMS, Outcome("nonfinite", "live/loss"), Budget(600))
    assert found.problem == "the control does not show it: live/loss is not finite"
    assert place.runs == ["control/0"]
    assert list(findings_of(found)) == []
    with pytest.raises(BadUsage, match="nothing to screen"):
        screen(Engine(place, _prepare), [], LEVEL)


def test_a_screen_that_was_cut_goes_on_with_what_was_made(tmp_path: Path) -> None:
    place = Simulated({5: 0.3})
    engine = Engine(place, _prepare, Kept(tmp_path / "runs"), Journal(tmp_path))
    screen(engine, ARMS[:8], LEVEL, Budget(600))
    before = len(place.runs)
    engine.resume = True
    found = screen(engine, ARMS, LEVEL, Budget(600))
    assert [t.arm.what for t in found.standing_out] == ["run.yaml:k5"]
    assert len(place.runs) - before == 12


def test_a_control_that_ends_in_nan_has_no_number_and_what_is_finite_stands_out() -> None:
    found = screen(Engine(Simulated({4: 0.0}, nan_at=30), _prepare), ARMS, Outcome("level", "live/loss"), Budget(600))
    assert found.value is None  # nothing that JSON cannot hold
    assert [t.arm.what for t in found.standing_out] == ["run.yaml:k4"]
    assert "instead of no finite number" in next(findings_of(found)).statement
