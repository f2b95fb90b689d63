"""When a step is called wrong, what a change does to it, and what that decides."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.experiments.replaying.changes import CHANGES
from traindx_tools.experiments.replaying.finding import decides, finding_of
from traindx_tools.experiments.replaying.judging import Measured, Tried, judged, shows
from traindx_tools.experiments.replaying.report import page
from traindx_tools.experiments.replaying.study import UPDATE, Study
from traindx_tools.experiments.replaying.symptom import Course, Kind, Symptom
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import explained_rules
from traindx_tools.triage import rank

JUMP = Symptom("loss-jump", 80_000, 50.0, usual=1.0, most=6.0, sane=1.2)


def course(*losses: float) -> Course:
    made = Course()
    for i, value in enumerate(losses):
        made.loss(value, i + 1)
    return made


@pytest.mark.parametrize(("before", "value", "kind"), [
    ([1.0] * 30, math.nan, "loss"), ([1.0] * 30, math.inf, "loss"), ([], math.nan, "loss"),
    ([1.0] * 30, 5.1, "loss-jump"), ([2.0, 1.9], 39.0, "loss-rise"), ([2.0], 41.0, "loss-jump"),
    ([2.0] + [0.1] * 100, 4.1, "loss-jump"), ([2.0] + [1.0] * 100, 4.1, "loss-rise"),
])  # fmt: skip
def test_a_loss_out_of_the_usual_is_noticed(before: list[float], value: float, kind: Kind) -> None:
    found = course(*before).loss(value, 31)
    assert (found.kind if found else None) == (kind if len(before) != 2 else None)


@pytest.mark.parametrize(("before", "value"), [
    ([1.0] * 30, 4.9 / 2.5), ([2.0] + [1.0] * 60, 3.9), ([1.0, -0.1] * 20, 90.0), ([0.0] * 30, 90.0),
    ([1.0, 3.0, 0.5, 2.0] * 10, 5.9), ([], 1e9),
])  # fmt: skip
def test_a_loss_that_swings_or_has_no_scale_is_not(before: list[float], value: float) -> None:
    assert course(*before).loss(value, 31) is None


def test_norms_are_compared_with_norms() -> None:
    made = Course()
    assert [made.norm(1.0, i) for i in range(30)] == [None] * 30
    assert made.norm(19.0, 31) is None
    found = made.norm(400.0, 32)
    assert found is not None
    assert (found.kind, found.most) == ("gradient-jump", 20 * 19.0)
    assert getattr(made.norm(math.nan, 33), "kind", None) == "gradient"


def test_a_nan_at_the_end_of_a_long_rise_is_late() -> None:
    assert course(*[1.0] * 30, 40.0, 900.0).symptom("loss", 33, math.nan).late
    assert not course(*[1.0] * 30).symptom("loss", 31, math.nan).late
    assert not course(*(10.0 / (i + 1) for i in range(50))).symptom("loss", 51, math.nan).late


@pytest.mark.parametrize(("symptom", "control", "changed", "word"), [
    (JUMP, Measured(1.0, 50.0), Measured(1.0, 1.5), "removes"),
    (JUMP, Measured(1.0, 50.0), Measured(1.0, 5.0), "moves"),
    (JUMP, Measured(1.0, 50.0), Measured(1.0, 30.0), "moves"),
    (JUMP, Measured(1.0, 50.0), Measured(1.0, 48.0), "no-effect"),
    (JUMP, Measured(1.0, 50.0), Measured(1.0, math.nan), "moves"),
    (replace(JUMP, kind="loss"), Measured(None, math.nan), Measured(None, 1.0), "removes"),
    (replace(JUMP, kind="loss"), Measured(None, math.nan), Measured(None, 1e30), "moves"),
    (replace(JUMP, kind="loss"), Measured(None, math.nan), Measured(None, math.inf), "no-effect"),
    (replace(JUMP, kind="loss-rise"), Measured(3.0, 4.0), Measured(3.0, 2.9), "removes"),
    (replace(JUMP, kind="loss-rise"), Measured(3.0, 4.0), Measured(3.0, 3.1), "moves"),
    (replace(JUMP, kind="parameters"), Measured(1.0, 1.0, parameters_finite=False), Measured(1.0, 1.0), "removes"),
    (replace(JUMP, kind="gradient"), Measured(1.0, 1.0, math.nan), Measured(1.0, 1.0, 2.0), "removes"),
    (replace(JUMP, kind="gradient"), Measured(1.0, 1.0, math.nan), Measured(1.0, 1.0, math.nan), "no-effect"),
])  # fmt: skip
def test_a_change_removes_moves_or_does_nothing(symptom: Symptom, control: Measured, changed: Measured,
                                                word: str) -> None:
    assert shows(symptom, control)
    assert judged(symptom, control, changed)[0] == word


def made(**words: str) -> Study:
    named = {"rate": "learning-rate:times=0.1", **{c: c.replace("_", "-") for c in words if c != "rate"}}
    why = {"untried": "there are no gradients of earlier steps"}
    tried = tuple(Tried(named[c], "about", w, why.get(w, "why")) for c, w in words.items())  # type: ignore[arg-type]
    return Study(JUMP, Measured(1.0, 50.0, update_norm=3.0), UPDATE, tried, True)


def test_what_undoes_one_thing_tells_more_than_what_hides_many() -> None:
    assert made(rate="removes", clear_gradients="removes").telling == ("clear-gradients",)
    assert "lr.too-high" not in decides(made(rate="removes", clear_gradients="removes")).split(",")
    both = decides(made(rate="removes", fresh_state="removes")).split(",")
    assert {"lr.too-high", "resume.optimizer-not-restored"} <= set(both)


@pytest.mark.parametrize("word", ["untried", "no-effect"])
def test_a_broad_change_is_laid_to_nothing_that_has_no_part_in_the_step(word: str) -> None:
    assert "accum.zero-grad-missing" in decides(made(rate="removes")).split(",")
    assert "accum.zero-grad-missing" not in decides(made(rate="removes", clear_gradients=word)).split(",")


def test_the_end_of_a_long_rise_decides_nothing() -> None:
    study = replace(made(rate="removes"), symptom=replace(JUMP, kind="loss", late=True))
    assert decides(study) == ""
    finding = finding_of(study)
    assert finding is not None
    assert (finding.severity, finding.bearing) == (Severity.LOW, Bearing.COMPANION)


def test_without_an_effect_it_is_a_remark_and_after_a_recovery_nothing() -> None:
    finding = finding_of(made(rate="no-effect"))
    assert finding is not None
    assert (finding.rule, finding.severity) == ("X302", Severity.INFO)
    assert finding_of(replace(made(rate="no-effect"), recovered=True)) is None


def test_a_step_alone_convicts_nobody() -> None:
    """It speaks for its modes by what a companion is worth, and never beyond."""
    finding = finding_of(made(clear_gradients="removes"))
    assert finding is not None
    seen = Finding("L101", "The loss is NaN", Severity.HIGH, Bearing.SIGN, "the loss is NaN", Location(step=1), "log")
    named = {h.mode.id: h for h in rank([finding, seen], load_catalog())}
    assert named["accum.zero-grad-missing"].speaks_for
    assert named["accum.zero-grad-missing"].confidence < 0.7


def test_every_change_and_both_rules_are_explained() -> None:
    assert {"X301", "X302"} <= explained_rules().keys()
    assert all(c.about for c in CHANGES.values())
    assert "lr.too-high" in load_catalog()
    text = page(made(rate="removes", clear_gradients="untried"))
    assert "- clear-gradients: there are no gradients of earlier steps" in text
