"""Triage: findings in, ranked and honest hypotheses out."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.catalog.catalog import FailureMode, FixPlan, LookAlike, Speaks, Step
from traindx_tools.catalog.condition import Condition
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.symptoms import blind_spots
from traindx_tools.triage import CONFIDENT, PROVEN, judge, rank, timeline

PLAN = FixPlan("do it", "change it", "loss falls", "run it", "try the other")


def mode(name: str, *speaks: Speaks, symptoms: tuple[str, ...] = ("divergence",), prior: float = -3.0,
         against: tuple[Speaks, ...] = (), alike: tuple[str, ...] = ()) -> FailureMode:
    return FailureMode(
        id=name, title=name, family="divergence", severity=Severity.CRITICAL, symptoms=symptoms,
        claim=f"{name} happened", mechanism="because of {ratio|it}", prior=prior, speaks_for=speaks,
        speaks_against=against,
        confirm=(Step("look"),), rule_out=(Step("look elsewhere"),), targeted=PLAN, broader=PLAN,
        will_change=("speed",), will_not_fix=("others",), look_alikes=tuple(LookAlike(a, "differs") for a in alike),
        sources=())


def finding(rule: str, *, bearing: Bearing = Bearing.SIGN, severity: Severity = Severity.HIGH,
            step: float | None = 10.0, **measured: object) -> Finding:
    where = Location(file="log.txt", line=3, step=step)
    return Finding(rule, rule, severity, bearing, f"{rule} saw it", where, "log.txt", measured)  # type: ignore[arg-type]


def catalog(*modes: FailureMode) -> dict[str, FailureMode]:
    return {m.id: m for m in modes}


def test_confidence_is_the_logistic_of_the_score_when_nothing_competes() -> None:
    modes = catalog(mode("a", Speaks("L102", 4.5)))
    top = rank([finding("L102")], modes)[0]
    assert top.score == pytest.approx(1.5)
    assert top.confidence == pytest.approx(1 / (1 + math.exp(-1.5)))


@pytest.mark.parametrize(("strength", "cap"), [("direct", 0.97), ("circumstantial", 0.90), ("pattern", 0.70)])
def test_the_best_evidence_caps_the_confidence(bearing: str, cap: float) -> None:
    top = rank([finding("L102", bearing=Bearing(bearing))], catalog(mode("a", Speaks("L102", 50.0))))[0]
    assert top.confidence == cap


def test_an_entry_can_only_weaken_a_finding() -> None:
    weak = Speaks("L102", 50.0, bearing=Bearing.COMPANION)
    assert rank([finding("L102", bearing=Bearing.CAUSE)], catalog(mode("a", weak)))[0].confidence == 0.70
    strong = Speaks("L102", 50.0, bearing=Bearing.CAUSE)
    assert rank([finding("L102", bearing=Bearing.COMPANION)], catalog(mode("a", strong)))[0].confidence == 0.70


def test_modes_of_one_symptom_compete_and_others_do_not() -> None:
    rival = mode("b", Speaks("L106", 4.5))
    stranger = mode("c", Speaks("L401", 4.5), symptoms=("memory",))
    alone = rank([finding("L102")], catalog(mode("a", Speaks("L102", 4.5))))[0].confidence
    seen = [finding("L102"), finding("L106"), finding("L401")]
    found = {h.mode.id: h for h in rank(seen, catalog(mode("a", Speaks("L102", 4.5)), rival, stranger))}
    assert found["a"].confidence < CONFIDENT < alone
    assert found["c"].confidence == pytest.approx(alone)


@pytest.mark.parametrize("strength", [Bearing.CAUSE, Bearing.SIGN])
def test_one_fact_has_one_cause(bearing: Bearing) -> None:
    """Two modes that rest on the same finding compete, whatever their symptoms and however well it was seen."""
    stranger = mode("c", Speaks("C101", 6.0), symptoms=("memory",))
    found = rank([finding("C101", bearing=bearing)], catalog(mode("a", Speaks("C101", 9.0)), stranger))
    assert [h.mode.id for h in found[:2]] == ["a", "c"]
    assert found[0].confidence > 0.89
    assert found[1].confidence < 0.1


def test_two_faults_that_were_both_seen_do_not_argue_each_other_away() -> None:
    modes = catalog(mode("a", Speaks("C101", 6.0)), mode("b", Speaks("C102", 6.0)))
    both = [finding("C101", bearing=Bearing.CAUSE), finding("C102", bearing=Bearing.CAUSE)]
    assert [h.confidence > 0.9 for h in rank(both, modes) if h.speaks_for] == [True, True]


def test_what_speaks_against_lowers_the_confidence_and_is_shown() -> None:
    against = Speaks("L212", 3.0, note="it converged")
    modes = catalog(mode("a", Speaks("L102", 4.5), against=(against,)))
    top = rank([finding("L102"), finding("L212", severity=Severity.INFO)], modes)[0]
    assert top.confidence < 0.5
    assert [w.weight for w in top.speaks_against] == [-3.0]


def test_a_repeated_finding_counts_once() -> None:
    modes = catalog(mode("a", Speaks("L102", 2.0)))
    assert rank([finding("L102")] * 9, modes)[0].score == rank([finding("L102")], modes)[0].score


def test_conditions_select_the_finding() -> None:
    modes = catalog(mode("a", Speaks("L101", 5.0, when=(Condition("onset", "ramp"),))))
    assert rank([finding("L101", onset="abrupt")], modes) == ()
    assert rank([finding("L101", onset="ramp")], modes)[0].mode.id == "a"


def test_the_earliest_anomaly_outranks_its_consequence() -> None:
    cause, effect = mode("ramp", Speaks("L102", 4.0)), mode("nan", Speaks("L101", 4.0))
    found = rank([finding("L101", step=400.0), finding("L102", step=380.0)], catalog(effect, cause))
    assert found[0].mode.id == "ramp"


def test_at_least_three_hypotheses_are_shown_and_unsupported_ones_say_so() -> None:
    other, third = mode("b", Speaks("L103", 4)), mode("c", Speaks("L104", 4))
    modes = catalog(mode("a", Speaks("L102", 4.5), alike=("b",)), other, third)
    found = rank([finding("L102")], modes)
    assert [h.mode.id for h in found] == ["a", "b", "c"]
    assert found[1].speaks_for == ()
    assert found[1].confidence < 0.1


def test_a_symptom_in_words_is_a_hint_and_never_enough() -> None:
    modes = catalog(mode("a", Speaks("L102", 0.1), symptoms=("nonfinite",)))
    found = rank([finding("L102")], modes, "the loss is NaN after 10 steps")
    assert found[0].score == pytest.approx(-3.0 + 0.1 + 0.4)
    assert judge([], modes, "the loss is NaN", records=50).status == "healthy"


def test_slots_are_filled_from_what_was_measured() -> None:
    modes = catalog(replace(mode("a", Speaks("L102", 5.0)), claim="The ratio is {ratio}"))
    top = rank([finding("L102", ratio=0.75)], modes)[0]
    assert top.issue == "The ratio is 0.75: L102 saw it"
    assert top.mechanism == "because of 0.75"


def test_the_verdict_is_healthy_only_when_something_was_read() -> None:
    assert judge([], {}, records=0).status == "needs_more_data"
    assert judge([], {}, records=20).status == "healthy"
    assert judge([], {}, records=20, unseen=("memory",)).status == "needs_more_data"
    assert judge([finding("L107", severity=Severity.LOW)], {}, records=20).status == "healthy"


def test_a_minor_finding_can_explain_what_a_person_saw() -> None:
    modes = catalog(mode("a", Speaks("C137", 6.0), symptoms=("collapse",)))
    minor = [finding("C137", severity=Severity.LOW, bearing=Bearing.CAUSE)]
    assert judge(minor, modes, records=20).status == "healthy"
    assert judge(minor, modes, "mode collapse: all outputs are the same", records=20).status == "diagnosis_complete"


def test_a_serious_finding_that_no_mode_explains_needs_more_data() -> None:
    verdict = judge([finding("L102")], {}, records=20)
    assert verdict.status == "needs_more_data"
    assert "L102 saw it" in verdict.reason


def test_the_timeline_starts_with_the_earliest_and_leaves_out_remarks() -> None:
    late, early = finding("L101", step=400.0), finding("L102", step=380.0)
    code = finding("C101", step=None)
    assert timeline([code, late, finding("L212", severity=Severity.INFO), early]) == (early, late, code)


RULES = st.sampled_from(["L101", "L102", "L103", "C101"])
FINDINGS = st.lists(st.builds(
    finding, RULES, bearing=st.sampled_from(list(Bearing)), severity=st.sampled_from(list(Severity)),
    step=st.one_of(st.none(), st.floats(0, 1e6))), max_size=12)
WEIGHTS = st.lists(st.builds(Speaks, RULES, st.floats(0.1, 60)), min_size=1, max_size=3)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no fault of the strategies
@given(FINDINGS, WEIGHTS, WEIGHTS)
def test_confidences_are_probabilities_that_leave_room_for_the_unknown(
        findings: list[Finding], one: list[Speaks], two: list[Speaks]) -> None:
    found = rank(findings, catalog(mode("a", *one), mode("b", *two)))
    assert all(0.0 <= h.confidence <= h.bearing.cap for h in found)
    told = [min(h.confidence, PROVEN) for h in found if h.speaks_for]
    assert told == sorted(told, reverse=True)


def test_of_causes_that_are_proven_the_one_that_explains_what_was_seen_comes_first() -> None:
    code = finding("C501", bearing=Bearing.CAUSE, step=None)
    live = finding("J101", bearing=Bearing.CAUSE, step=11)
    modes = catalog(mode("a", Speaks("C501", 9.0)), mode("b", Speaks("J101", 8.9), symptoms=("nonfinite",)))
    assert [h.mode.id for h in rank([code, live], modes)[:2]] == ["b", "a"]
    assert [h.mode.id for h in rank([code], modes)[:1]] == ["a"]


def test_infinite_evidence_does_not_overflow() -> None:
    modes = catalog(mode("a", Speaks("L102", 1e4)), mode("b", Speaks("L102", 1e4)))
    assert rank([finding("L102")], modes)[0].confidence == pytest.approx(0.5)


def test_a_finding_that_speaks_for_and_against_one_mode_stands_on_one_side_only() -> None:
    both = mode("a", Speaks("L302", 4.0), against=(Speaks("L302", 1.0, (Condition("at_resume", False),)),))
    (top, *_) = rank([finding("L302", at_resume=False)], catalog(both))
    assert [(w.weight, len(top.speaks_against)) for w in top.speaks_for] == [(3.0, 0)]
    assert top.score == pytest.approx(0.0)


def test_a_finding_that_speaks_more_against_than_for_makes_no_hypothesis() -> None:
    against = mode("a", Speaks("L302", 1.0), against=(Speaks("L302", 3.0),))
    other = mode("b", Speaks("L302", 2.0))
    assert [h.mode.id for h in rank([finding("L302")], catalog(against, other)) if h.speaks_for] == ["b"]


def test_a_mode_of_a_part_that_the_run_does_not_have_is_no_rival() -> None:
    modes = catalog(mode("plain", Speaks("L213", 2.0)), replace(mode("gan", Speaks("L213", 2.0)), domain="adversarial"))
    assert {h.mode.id for h in rank([finding("L213")], modes, domains=frozenset())} == {"plain"}
    assert {h.mode.id for h in rank([finding("L213")], modes, domains=frozenset({"adversarial"}))} == {"plain", "gan"}
    assert {h.mode.id for h in rank([finding("L213")], modes)} == {"plain", "gan"}, "nobody looked"


def test_a_finding_of_the_part_itself_says_that_it_is_there() -> None:
    modes = catalog(replace(mode("gan", Speaks("L606", 4.0)), domain="adversarial"))
    assert [h.mode.id for h in rank([finding("L606")], modes, domains=frozenset())] == ["gan"]


def test_what_has_no_evidence_never_stands_above_what_has() -> None:
    modes = catalog(mode("a", Speaks("L102", 6.0), prior=-1.0), mode("b", Speaks("L102", 0.1), prior=-9.0),
                    mode("c", Speaks("L999", 1.0), prior=2.0))
    shown = rank([finding("L102")], modes)
    assert [h.mode.id for h in shown] == ["a", "b", "c"]
    assert [h.confidence for h in shown] == sorted((h.confidence for h in shown), reverse=True)


def test_a_healthy_log_says_what_nobody_looked_at() -> None:
    verdict = judge([], {}, records=90, unjudged=blind_spots(frozenset({"loss", "train"}), code=False))
    assert verdict.status == "healthy"
    assert "held-out data, the learning rate, the gradients (not in the log)" in verdict.reason
    assert "traindx diagnose LOG train.py" in verdict.reason


def test_a_healthy_run_whose_code_was_read_is_not_sent_for_it() -> None:
    seen = frozenset({"loss", "validation", "learning_rate", "grad_norm"})
    assert blind_spots(seen, code=True) == ()
    assert "Not judged" not in judge([], {}, records=90).reason
