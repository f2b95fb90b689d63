"""What comes next: controls, changes and verdicts from hand-made runs."""

from __future__ import annotations

import math

import numpy as np
from experiment_traces import levels, run, trace

from traindx_tools.experiments.arms import Design, Next
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.design import enough_for, following
from traindx_tools.experiments.outcome import Outcome, parse_outcome
from traindx_tools.experiments.trace import Applied
from traindx_tools.experiments.verdict import Verdict

NAN = [2.0, 3.0, math.nan]
FINE = [2.0 - 0.01 * i for i in range(40)]
NONFINITE = Design(Change("learning-rate", {"times": 0.1}), Outcome("nonfinite"))
LEVEL = Design(Change("no-decay"), Outcome("level"))


def said(design: Design, *runs: object) -> Verdict:
    found = following(design, list(runs))  # type: ignore[arg-type]
    assert isinstance(found, Verdict), found
    return found


def test_the_control_comes_first_and_then_the_change_three_times_as_far() -> None:
    assert following(NONFINITE, []) == Next(False, 0)
    assert following(NONFINITE, [run(False, 0, NAN)]) == Next(True, 0, 9.0)


def test_the_same_event_at_the_same_step_decides_at_once() -> None:
    verdict = said(NONFINITE, run(False, 0, NAN), run(True, 0, NAN))
    assert (verdict.word, verdict.controls, verdict.changes) == ("no-effect", (3.0,), (3.0,))


def test_an_event_that_is_gone_is_believed_after_the_placebos() -> None:
    runs = [run(False, 0, NAN), run(True, 0, FINE), run(False, 1, NAN), run(False, 2, NAN)]
    assert following(NONFINITE, runs) == Next(True, 1, 9.0)
    verdict = said(NONFINITE, *runs, run(True, 1, FINE))
    assert (verdict.word, verdict.better, verdict.changes) == ("removes", True, (math.inf, math.inf))


def test_an_event_that_comes_and_goes_with_the_seed_is_no_effect_of_the_change() -> None:
    runs = [run(False, 0, NAN), run(True, 0, FINE), run(False, 1, FINE), run(False, 2, FINE), run(True, 1, FINE),
            run(True, 2, FINE), run(False, 3, NAN), run(True, 3, FINE), run(False, 4, FINE), run(True, 4, NAN)]
    verdict = said(NONFINITE, *runs)
    assert (verdict.word, verdict.lacks) == ("inconclusive", "repeats")


def test_a_changed_run_goes_on_where_a_placebo_shows_the_event_later() -> None:
    short = run(True, 0, [2.0] * 9, ended=False, exit_code=None, stopped="decided")
    late = run(False, 1, [2.0] * 6 + [math.nan])
    assert following(NONFINITE, [run(False, 0, NAN), short]) == Next(False, 1, 9.0)
    assert following(NONFINITE, [run(False, 0, NAN), short, late]) == Next(True, 0, 21.0)


def test_an_event_that_comes_in_every_run_is_not_removed_whenever_it_comes() -> None:
    onsets = [(3, 9), (14, 5), (7, 12), (20, 4), (5, 16)]
    runs = [run(c, s, [2.0] * o[c] + [math.nan]) for s, o in enumerate(onsets) for c in (False, True)]
    verdict = said(NONFINITE, *runs)
    assert verdict.word == "no-effect"
    assert "in all 5 runs" in verdict.why


def test_an_event_that_comes_much_later_moves() -> None:
    late = [2.0] * 30 + [math.nan]
    runs = [run(False, 0, NAN), run(True, 0, late), run(False, 1, NAN), run(False, 2, NAN), run(True, 1, late),
            run(True, 2, late)]
    verdict = said(NONFINITE, *runs)
    assert (verdict.word, verdict.better) == ("moves", True)


def test_a_control_without_the_event_decides_nothing() -> None:
    runs = [run(False, 0, FINE)]
    assert following(NONFINITE, runs) == Next(False, 1)
    verdict = said(NONFINITE, *runs, run(False, 1, FINE), run(False, 2, FINE))
    assert verdict.word == "inconclusive"
    assert "not reproduced" in verdict.why


def test_a_change_that_took_hold_nowhere_decides_nothing() -> None:
    missed = run(True, 0, NAN, applied=Applied(0, problem="no clipping was called"))
    verdict = said(NONFINITE, run(False, 0, NAN), missed)
    assert verdict.word == "inconclusive"
    assert "no clipping was called" in verdict.why


def test_a_change_with_an_error_of_its_own_decides_nothing() -> None:
    broken = run(True, 0, [2.0], exit_code=1, error="TypeError: no")
    verdict = said(NONFINITE, run(False, 0, NAN), broken)
    assert "an error of its own" in verdict.why
    assert not verdict.decided


def test_a_changed_run_that_was_cut_off_is_not_without_the_event() -> None:
    short = run(True, 0, [2.0] * 4, ended=False, exit_code=None, stopped="time")
    verdict = said(NONFINITE, run(False, 0, NAN), short)
    assert (verdict.word, verdict.lacks) == ("inconclusive", "budget")


def test_a_run_ends_with_its_event_or_at_its_horizon() -> None:
    control, wanted = [run(False, 0, NAN)], Next(True, 0, 9.0)
    assert enough_for(NONFINITE, [], Next(False, 0))(trace(NAN, ended=False))
    assert not enough_for(NONFINITE, control, wanted)(trace([1.0] * 8, ended=False))
    assert enough_for(NONFINITE, control, wanted)(trace([1.0] * 9, ended=False))


def test_a_run_that_stays_the_same_bit_for_bit_decides_at_once() -> None:
    verdict = said(LEVEL, run(False, 0, levels(1.0)), run(True, 0, levels(1.0)))
    assert verdict.word == "no-effect"
    assert "bit for bit" in verdict.why


def test_a_large_change_of_a_level_is_seen_against_three_controls() -> None:
    runs = [run(False, 0, levels(1.0, 0)), run(True, 0, levels(0.2, 9)), run(False, 1, levels(1.003, 1)),
            run(False, 2, levels(0.998, 2))]
    assert following(LEVEL, runs) == Next(True, 1, 50.0)
    verdict = said(LEVEL, *runs, run(True, 1, levels(0.202, 8)))
    assert (verdict.word, verdict.better) == ("moves", True)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < -0.79 < verdict.high < 0


def test_a_change_for_the_worse_is_called_one_after_four_of_each() -> None:
    runs = [run(c, s, levels(1.5 if c else 1.0, s + 10 * c)) for s in range(4) for c in (False, True)]
    assert isinstance(following(LEVEL, runs[:6]), Next)
    verdict = said(LEVEL, *runs)
    assert (verdict.word, verdict.better) == ("moves", False)


def test_a_bound_says_when_a_level_is_well() -> None:
    bounded = Design(LEVEL.change, parse_outcome("level<0.5"))
    runs = [run(False, 0, levels(1.0, 0)), run(True, 0, levels(0.2, 9)), run(False, 1, levels(1.003, 1)),
            run(False, 2, levels(0.998, 2)), run(True, 1, levels(0.202, 8))]
    assert said(bounded, *runs).word == "removes"
    healthy = Design(LEVEL.change, parse_outcome("level<1.5"))
    assert "does not show it" in said(healthy, runs[0]).why


def test_a_large_effect_ends_the_run_at_a_quarter() -> None:
    runs = [run(False, 0, levels(1.0, 0, 200)), run(True, 0, levels(0.201, 7, 200)),
            run(False, 1, levels(1.001, 1, 200)), run(False, 2, levels(0.999, 2, 200))]
    enough = enough_for(LEVEL, runs, Next(True, 1, 200.0))
    assert not enough(trace(levels(0.2, 9, 40), ended=False, exit_code=None))
    assert enough(trace(levels(0.2, 9, 52), ended=False, exit_code=None))


def test_a_curve_on_its_way_is_not_judged_before_its_end() -> None:
    falling = np.linspace(4.0, 1.0, 200)
    runs = [run(False, s, falling + 0.001 * s) for s in range(3)]
    enough = enough_for(LEVEL, runs, Next(True, 0, 200.0))
    assert not enough(trace(falling[:120] - 2.0, ended=False, exit_code=None))


def test_a_start_that_scatters_is_no_fall() -> None:
    rng = np.random.default_rng(3)
    noisy = 2.0 * (1 + 0.3 * rng.standard_normal(200))
    noisy[:3] = 2.6
    flat = Design(LEVEL.change, parse_outcome("fall"))
    assert isinstance(following(flat, [run(False, 0, noisy)]), Next)
    assert "does not show it" in said(flat, run(False, 0, np.linspace(2.6, 0.5, 200))).why


def test_controls_that_scatter_leave_it_open() -> None:
    rng = np.random.default_rng(0)
    runs = [run(c, s, levels(1 + 0.3 * rng.standard_normal(), s + 10 * c)) for c in (False, True) for s in range(5)]
    verdict = said(LEVEL, *sorted(runs, key=lambda r: (r.seed, r.changed)))
    assert (verdict.word, verdict.lacks) == ("inconclusive", "repeats")


def test_a_control_that_records_nothing_decides_nothing() -> None:
    verdict = said(LEVEL, run(False, 0, exit_code=1, error="ImportError: no module"))
    assert "no module" in verdict.why
    assert not verdict.decided


def test_runs_that_end_in_nan_are_counted() -> None:
    def bad(seed: int) -> object:
        return run(False, seed, [*levels(1.0, seed, 40), math.nan])

    runs = [bad(0), run(True, 0, levels(0.5, 7)), bad(1), bad(2), run(True, 1, levels(0.5, 8))]
    verdict = said(LEVEL, *runs)
    assert (verdict.word, verdict.better) == ("removes", True)


def test_a_verdict_survives_json() -> None:
    verdict = said(NONFINITE, run(False, 0, NAN), run(True, 0, FINE), run(False, 1, NAN), run(False, 2, NAN),
                   run(True, 1, FINE))
    assert Verdict.from_json(verdict.to_json()) == verdict


def test_a_changed_run_that_ends_before_the_onset_has_shown_nothing() -> None:
    """Seen: an epoch that a missing file made shorter was taken for a cure."""
    sick = [2.0, 3.0, 9.0, 80.0, float("nan")]
    design = Design(Change("x"), Outcome("nonfinite"), 5, 0.0)
    runs = [run(False, 0, sick), run(True, 0, [2.0, 1.9])]
    found = following(design, runs)
    assert isinstance(found, Verdict)
    assert found.word == "inconclusive"
    assert "ended at step 2, before step" in found.why


PILOT = Design(Change("no-decay"), Outcome("level"), pilot=True)
WORSE = [2.0 + 0.01 * i for i in range(40)]
FAR_BETTER = [2.0 - 0.045 * i for i in range(40)]


def test_a_pilot_ends_with_a_first_run_that_is_no_better() -> None:
    assert following(PILOT, [run(False, 0, FINE)]) == Next(True, 0, 40.0)
    verdict = said(PILOT, run(False, 0, FINE), run(True, 0, WORSE))
    assert verdict.word == "inconclusive"
    assert "no better" in verdict.why
    assert isinstance(following(LEVEL, [run(False, 0, FINE), run(True, 0, WORSE)]), Next), "a person asked"


def test_a_pilot_that_is_better_is_judged_like_any_other() -> None:
    assert following(PILOT, [run(False, 0, FINE), run(True, 0, FAR_BETTER)]) == Next(False, 1, 40.0)
    assert isinstance(following(PILOT, [run(False, 0, NAN), run(True, 0, FAR_BETTER)]), Next)


def test_a_pilot_of_an_event_ends_where_it_comes_with_the_change_too() -> None:
    pilot = Design(Change("learning-rate", {"times": 0.1}), Outcome("nonfinite"), pilot=True)
    later = [2.0] * 5 + [math.nan]
    verdict = said(pilot, run(False, 0, NAN), run(True, 0, later))
    assert verdict.word == "inconclusive"
    assert "shows it as well" in verdict.why
    assert isinstance(following(pilot, [run(False, 0, NAN), run(True, 0, FINE)]), Next)
