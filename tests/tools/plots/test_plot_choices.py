"""What a picture shows: which panels, on which axis, in which scale, with which marks. Pure functions, no drawing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.plots.axis import axis_of
from traindx_tools.plots.closeup import bounds_of, closeup_of
from traindx_tools.plots.decimate import decimate, gaps, trend_of
from traindx_tools.plots.marks import Marks, marks_of
from traindx_tools.plots.panels import MOST_LINES, MOST_PANELS, panels_of
from traindx_tools.plots.scale import bounded, scale_of

NAN = float("nan")


def series(name, values, *, step=None, epoch=None, line=None, group="train", source="log.txt", rank=None):
    values = np.asarray(values, dtype=np.float64)
    n = len(values)
    step = np.arange(1.0, n + 1) if step is None and epoch is None else step
    none = np.full(n, NAN)
    return Series(name, name, group, source, values, none if step is None else np.asarray(step, float),
                  none if epoch is None else np.asarray(epoch, float), none,
                  np.arange(1, n + 1) if line is None else np.asarray(line), rank)


def finding(rule="L101", step=None, end=None, *, file="log.txt", line=None, severity="critical", statement="x"):
    where = Location(file=file, line=line, step=step, end_step=end)
    return Finding(rule, f"title of {rule}", Severity(severity), Bearing.SIGN, statement, where, file)


def titles(run, findings=()):
    return [p.title for p in panels_of(run, axis_of(run), findings)]


# decimation


def test_a_spike_and_a_dip_survive_decimation():
    y = np.sin(np.linspace(0, 60, 1_000_000))
    y[123_456], y[765_432] = 900.0, -700.0
    x, kept = decimate(np.arange(1_000_000.0), y, 4000)
    assert len(kept) <= 4002
    assert kept.max() == 900.0
    assert kept.min() == -700.0
    assert (x[0], x[-1]) == (0.0, 999_999.0)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=300), st.integers(2, 40))
def test_decimation_keeps_the_extremes_and_their_order(values, drawn):
    y = np.array(values)
    x, kept = decimate(np.arange(len(y), dtype=float), y, drawn)
    assert (np.diff(x) >= 0).all()
    finite = y[np.isfinite(y)]
    if len(finite):
        assert np.nanmax(kept) == finite.max()
        assert np.nanmin(kept) == finite.min()


def test_neighbouring_gaps_are_one_band_and_distant_ones_two():
    bad = np.array([0, 1, 1, 0, 1, 0, 0, 0, 0, 1], dtype=bool)
    assert gaps(np.arange(10.0), bad, merge=2.0) == [(1.0, 4.0, 3), (9.0, 9.0, 1)]


def test_only_a_noisy_line_gets_a_trend():
    x = np.arange(500.0)
    smooth = np.exp(-x / 100)
    noisy = smooth + np.random.default_rng(0).normal(0, 0.2, 500)
    assert trend_of(x, smooth) is None
    trend = trend_of(x, noisy)
    assert trend is not None
    assert np.abs(np.diff(trend[1])).mean() < 0.25 * np.abs(np.diff(noisy)).mean()


# scale


@pytest.mark.parametrize(("values", "kind"), [
    ([2.3, 1.9, 1.1, 0.6], "linear"),
    ([2.0, 50.0, 1e6, 1e30], "log"),
    ([4.0, 1.0, 0.1, 0.01, 0.001], "log"),
    ([-40.0, -18.0, -15.0], "linear"),
    ([-1.0, -1.1, -0.9, 3.0, -1e9], "symlog"),
    ([0.0, 0.0, 0.0], "linear"),
    ([], "linear"),
    ([NAN, NAN], "linear"),
])
def test_the_scale_follows_the_range(values, kind):
    assert scale_of([np.array(values, dtype=float)]).kind == kind


def test_a_few_dips_do_not_squeeze_the_rest():
    values = np.full(200, 2.0)
    values[[20, 90]] = 1e-6
    assert scale_of([values]).kind == "linear"


def test_a_schedule_with_warm_up_and_an_end_at_zero_stays_straight():
    steps = np.arange(1000)
    cosine = 3e-4 * np.minimum(1, (steps + 1) / 100) * (1 + np.cos(np.pi * steps / 1000)) / 2
    assert scale_of([cosine], schedule=True).kind == "linear"
    assert scale_of([3e-4 * 0.9**steps], schedule=True).kind == "log"


@given(st.lists(st.floats(), min_size=1, max_size=30))
def test_every_scale_has_limits_that_can_be_drawn(values):
    scale = scale_of([bounded(np.array(values, dtype=float))])
    assert np.isfinite([scale.low, scale.high, scale.linear_below]).all()
    assert scale.low < scale.high
    assert scale.kind != "log" or scale.low > 0


# panels


def test_loss_gradient_and_learning_rate_come_first_and_validation_shares_the_loss_panel():
    run = Run(series=(series("accuracy", [0.1, 0.2]), series("learning_rate", [1, 1]), series("grad_norm", [1, 2]),
                      series("loss", [2, 1]), series("loss", [2, 1], group="validation")))
    panels = panels_of(run, axis_of(run))
    assert [p.title for p in panels] == ["loss", "gradient norm", "learning rate", "accuracy"]
    assert [s.group for s in panels[0].series] == ["train", "validation"]


def test_the_same_metric_from_a_log_and_a_table_is_drawn_once():
    run = Run(series=(series("loss", [3, 2, 1], step=[10, 20, 30]),
                      series("loss", np.linspace(3, 1, 30), source="metrics.csv")))
    (panel,) = panels_of(run, axis_of(run))
    assert [s.source for s in panel.series] == ["metrics.csv"]


def test_a_resumed_run_in_two_files_is_drawn_whole():
    run = Run(series=(series("loss", [3, 2], step=[1, 2], source="a.log"),
                      series("loss", [1, 1], step=[3, 4], source="b.log")))
    assert len(panels_of(run, axis_of(run))[0].series) == 2


def test_timing_is_shown_only_where_a_finding_speaks_of_it():
    parts = tuple(series(name, [2, 1]) for name in ("loss", "grad_norm", "learning_rate", "data_time"))
    assert "time (s)" not in titles(Run(series=parts))
    assert "time (s)" in titles(Run(series=parts), [finding("L402", 1, statement="data_time is 95 % of the step")])


def test_there_is_a_bound_to_panels_and_lines():
    names = ["loss", "loss/a", "grad_norm", "learning_rate", "accuracy", "reward", "entropy", "kl", "loss_scale"]
    ranks = tuple(series("loss", [2, 1], rank=r) for r in range(40))
    run = Run(series=tuple(series(n, [2, 1]) for n in names) + ranks)
    panels = panels_of(run, axis_of(run))
    assert len(panels) == MOST_PANELS
    assert len(panels[0].series) == MOST_LINES
    assert panels[0].more == 41 - MOST_LINES


def test_a_counter_is_no_panel():
    run = Run(series=(series("loss", [2, 1, 1]), series("samples_seen", [64, 128, 192, 256], step=[1, 2, 3, 4])))
    assert titles(run) == ["loss"]


# axis


def test_validation_numbered_in_epochs_lies_on_the_steps_by_the_lines_around_it():
    run = Run(series=(series("loss", [4, 3, 2, 1], step=[10, 20, 30, 40], line=[1, 2, 4, 5]),
                      series("loss", [2.5], epoch=[1], line=[3], group="validation")))
    assert axis_of(run).place(run.series[1]).tolist() == [25.0]


def test_a_series_with_both_units_converts_the_others():
    run = Run(series=(series("loss", [4, 3, 2], step=[100, 200, 300], epoch=[1, 2, 3]),
                      series("accuracy", [0.5], epoch=[2], group="validation", source="other.csv")))
    assert axis_of(run).place(run.series[1]).tolist() == [200.0]


def of_epochs(val_lines, val_epochs, *, source="log.txt"):
    """Two epochs of four rows each, and a validation that is numbered in epochs alone."""
    return Run(series=(series("loss", np.ones(8), step=np.arange(0, 80, 10), epoch=[0] * 4 + [1] * 4,
                              line=[1, 2, 3, 4, 6, 7, 8, 9]),
                       series("loss", np.ones(len(val_epochs)), epoch=val_epochs, line=val_lines, group="validation",
                              source=source)))


@pytest.mark.parametrize(("lines", "epochs", "source", "expected"), [
    ([5, 10], [0, 1], "log.txt", [30, 70]),  # printed after the epoch
    ([0, 5], [0, 1], "log.txt", [0, 40]),  # before it
    ([5, 10], [1, 2], "log.txt", [40, 70]),  # counted from 1
    ([11, 12], [0, 1], "log.txt", [30, 70]),  # a table at the end of the log
    ([1, 2], [0, 1], "other.csv", [30, 70]),  # no lines tell: an epoch's end
])
def test_what_is_numbered_in_epochs_lies_where_it_was_measured(lines, epochs, source, expected):
    run = of_epochs(lines, epochs, source=source)
    assert axis_of(run).place(run.series[1]).tolist() == expected


def test_without_any_link_epochs_are_spread_over_the_steps_and_it_is_said():
    run = Run(series=(series("loss", [4, 3, 2, 1], step=[100, 200, 300, 400], source="metrics.csv"),
                      series("accuracy", [0.5, 0.6], epoch=[1, 2])))
    axis = axis_of(run)
    assert axis.spread
    assert axis.place(run.series[1]).tolist() == [200.0, 400.0]


def test_steps_are_never_invented():
    run = Run(series=(series("loss", [3, 2, 1], step=[NAN] * 3, line=[5, 9, 12]),))
    axis = axis_of(run)
    assert axis.label.startswith("line of the log")
    assert axis.place(run.series[0]).tolist() == [5.0, 9.0, 12.0]


# marks and close-up


def test_marks_are_ordered_by_onset_and_code_findings_stand_beside():
    run = Run(series=(series("loss", np.ones(500)),))
    found = [finding("L101", 400, 500), finding("L102", 380, 399, severity="high"),
             finding("C107", file="train.py", line=41)]
    marks = marks_of(found, axis_of(run))
    assert [m.rule for m in marks.rows] == ["L102", "L101"]
    assert marks.elsewhere == ("C107 title of C107 (train.py:41)",)


def test_an_error_message_is_marked_at_its_line():
    run = Run(series=(series("loss", [3, 2, 1], step=[10, 20, 30], line=[1, 2, 3]),))
    marks = marks_of([finding("L508", line=3)], axis_of(run))
    assert marks.rows[0].spans == ((30.0, 30.0),)


def test_remarks_are_not_marked_with_the_title_of_a_fault():
    run = Run(series=(series("loss", [3, 2, 1]),))
    remark, fault = finding("L212", 1, 3, severity="info"), finding("L106", 2, 3)
    assert marks_of([remark], axis_of(run)).rows == ()
    assert [m.rule for m in marks_of([remark, fault], axis_of(run)).rows] == ["L106"]


def closeup(values, findings=()):
    run = Run(series=(series("loss", values),))
    axis = axis_of(run)
    panels, marks = panels_of(run, axis), marks_of(findings, axis)
    return closeup_of(panels, axis, marks, bounds_of(panels, axis, marks))


def test_an_early_nan_gets_a_close_up_and_a_late_state_does_not():
    values = np.ones(5000)
    values[40:] = NAN
    window = closeup(values)
    assert window.low < 41 < window.high < 100
    assert closeup(np.ones(5000), [finding("L106", 3000, 5000)]) is None


def test_a_spike_gets_a_close_up():
    window = closeup(np.ones(5000), [finding("L107", 2000, 2003)])
    assert window.low < 2000 < 2003 < window.high


def test_a_short_run_needs_no_close_up():
    assert closeup([1, 1, NAN, NAN, NAN]) is None


def test_no_marks_is_a_value():
    assert marks_of([], axis_of(Run(series=(series("loss", [1.0]),)))) == Marks((), ())


def test_very_many_metrics_of_no_known_name_are_grouped_in_bounded_time(within):
    sizes = [series(f"metric_{i}", [10.0 ** (i % 9) * (i + 1), 10.0 ** (i % 9) * (i + 3)]) for i in range(4000)]
    run = Run(series=(series("loss", [2.0, 1.0]), *sizes))
    with within(4):
        shown = panels_of(run, axis_of(run))
    assert shown[0].title == "loss"
    assert 2 <= len(shown) <= MOST_PANELS
    assert all(len(p.series) <= MOST_LINES for p in shown)


@pytest.mark.parametrize(("start", "rows", "side"), [(5.0, 1, "left"), (63.0, 2, "left"), (95.0, 2, "right")])
def test_the_words_of_a_band_stand_inside_it_where_they_have_room(start: float, rows: int, side: str) -> None:
    from matplotlib.figure import Figure

    from traindx_tools.plots.bands import _write
    from traindx_tools.plots.closeup import Bounds

    cell = Figure().add_subplot()
    _write(cell, ["NaN from step 1,260 to the end (75)"], start, Bounds(0.0, 100.0))
    (text,) = cell.texts
    assert (text.get_text().count("\n") + 1, text.get_ha()) == (rows, side)


def test_the_same_name_of_two_ranks_is_no_folder() -> None:
    from traindx_tools.plots.lines import _labels
    from traindx_tools.plots.panels import Panel

    both = tuple(replace(series("tokens_per_second", [1.0, 2.0], rank=r), original="tok/s") for r in (0, 1))
    placed = [(s, s.step) for s in both]
    assert _labels(placed, Panel("throughput (per s)", both)) == ["tok/s, rank 0", "tok/s, rank 1"]
    apart = tuple(replace(s, original=n) for s, n in zip(both, ("perf/tok_s", "perf/img_s"), strict=True))
    assert [n.split(",")[0] for n in _labels([(s, s.step) for s in apart], Panel("x", apart))] == ["tok s", "img s"]
