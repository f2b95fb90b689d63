"""Each result of a verification: the faulty case, its healthy twin, and broken input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scripted import diagnosis, fix, replace_line

from traindx.bounded_output import judged_output
from traindx.effect import Level, level_of
from traindx.executed import Executed
from traindx.hindrances import Change
from traindx.model import Evidence, Verification, Verify
from traindx.results import Baseline, BaselineRun, Compared, settled, wants_more
from traindx.verify import NewRun, Outcome, judge, prints_nonfinite
from traindx_tools.finding import Bearing, Finding, Location, Severity

FLAT = Finding(rule="L201", title="Flat", severity=Severity.HIGH, bearing=Bearing.SIGN,
               statement="loss is flat", where=Location(step=40.0), source="log.txt")
CITED = Evidence(id="E1", statement="loss is flat", value="2.3", place="log.txt:1", strength="ran", bearing="cause",
                 rule="L201", finding=FLAT.to_json())
FALLS = fix(replace_line("learning_rate = 0.1")).model_copy(update={"metric": "loss falls"})
VAGUE = FALLS.model_copy(update={"metric": "no second place sets it"})
FAULT = diagnosis(FALLS)
PASSED = Verification(passed=False, result="passed_effect_not_shown", reasons=("the command passed",))
NOTHING = NewRun()
YES, NO = Executed("yes", "the changed line train.py:4 was executed"), Executed("no", "it was not executed")


def run(end: float, *findings: Finding, noise: float = 0.0, last_step: float | None = 200.0) -> NewRun:
    values = end + noise * np.random.default_rng(int(end * 100)).normal(size=100)
    return NewRun(findings, last_step, None, {"loss": float(values[-1])}, {"loss": level_of(values)})


def ended(folder: Path, code: int | None = 0, text: str = "fine\n", **how: bool) -> Outcome:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.log").write_text(text)
    return Outcome(folder, code, how.get("timed_out", False), False, False, 1.0)


def traceback(kind: str, said: str, line: int = 4) -> str:
    frame = f'  File "/w/train.py", line {line}, in <module>\n    f()\n'
    return f"Traceback (most recent call last):\n{frame}{kind}: {said}\n"


def verdict(before: Sequence[BaselineRun], after: NewRun, checked: Verification = PASSED, *, option=FALLS,
            executed: Executed = YES, outcomes: Sequence[Outcome] = (), old: NewRun = NOTHING,
            skipped: str = "", evidence: Evidence | None = None, needed: float = 0.0) -> Verification:
    fault = FAULT if evidence is None else diagnosis(option, evidence=(evidence,))
    changes = (Change("train.py", "a\nb\nc\nold\n", "a\nb\nc\nnew\n"),)
    return settled(checked, Compared(fault, option, old, outcomes, (after,), Baseline(tuple(before), skipped), executed,
                                     changes, needed))


def failed(*reasons: str) -> Verification:
    return Verification(passed=False, result="failed", reasons=reasons or ("the command ended with exit code 1",))


# fixed


def test_a_promised_metric_beyond_the_spread_is_fixed() -> None:
    found = verdict([BaselineRun(run(2.3, noise=0.02))], run(0.4, noise=0.02))
    assert (found.result, found.passed) == ("fixed", True)
    assert "loss, which should go down, went from 2.301 to 0.4073" in found.reasons[0]


def test_an_error_of_the_unfixed_code_that_is_gone_is_fixed(tmp_path: Path) -> None:
    broken = ended(tmp_path / "b", 1, traceback("ValueError", "shapes (3,) (4,)"))
    found = verdict([BaselineRun(NewRun(), broken)], NewRun(), option=VAGUE)
    assert found.result == "fixed"
    assert "the unfixed code ends with ValueError, and not with the fix" in found.reasons[0]


@pytest.mark.parametrize(("code", "how", "said"), [
    (1, {}, "ends with exit code 1"), (None, {"timed_out": True}, "does not end in time")])
def test_a_command_that_fails_on_the_unfixed_code_and_passes_is_fixed(tmp_path: Path, code: int | None,
                                                                     how: dict[str, bool], said: str) -> None:
    found = verdict([BaselineRun(NewRun(), ended(tmp_path / "b", code, **how))], NewRun(), option=VAGUE)
    assert (found.result, said in found.reasons[0]) == ("fixed", True)


def test_a_cited_finding_that_is_gone_is_fixed_and_one_that_never_came_shows_nothing() -> None:
    shown = verdict([BaselineRun(run(2.3, FLAT))], run(2.29), option=VAGUE, evidence=CITED)
    assert (shown.result, "L201" in shown.reasons[0]) == ("fixed", True)
    never = verdict([BaselineRun(run(2.3))], run(2.29), option=VAGUE, evidence=CITED)
    assert never.result == "passed_effect_not_shown"
    silent = verdict([BaselineRun(run(2.3, FLAT))], NewRun(), option=VAGUE, evidence=CITED)
    assert silent.result == "passed_effect_not_shown", "a run that measures nothing shows no finding either"


def test_nan_that_is_gone_is_fixed(tmp_path: Path) -> None:
    found = verdict([BaselineRun(run(2.3), ended(tmp_path / "b"), nonfinite=True)], run(2.3), option=VAGUE)
    assert found.result == "fixed"


def test_an_error_that_only_the_copy_has_proves_nothing(tmp_path: Path) -> None:
    lacks = ended(tmp_path / "b", 1, traceback("FileNotFoundError", "data/train.bin"))
    assert verdict([BaselineRun(NewRun(), lacks)], NewRun(), option=VAGUE).result == "passed_effect_not_shown"
    seen = Finding(rule="L501", title="Error", severity=Severity.CRITICAL, bearing=Bearing.CAUSE,
                   statement="FileNotFoundError at train.py:4", where=Location(file="log.txt", line=4),
                   source="log.txt")
    assert verdict([BaselineRun(NewRun(), lacks)], NewRun(), option=VAGUE, old=NewRun((seen,))).result == "fixed"


# passed, effect not shown


@pytest.mark.parametrize(("before", "after", "option", "why"), [
    (run(0.1089, noise=0.02), run(0.0956, noise=0.02), FALLS, "within the spread"),
    (NewRun(), NewRun(), FALLS, "was not measured by both runs"),
    (run(2.3), run(0.4), VAGUE, "is no metric that two runs can be compared by"),
])
def test_what_shows_nothing_asks_the_person(before: NewRun, after: NewRun, option, why: str) -> None:
    found = verdict([BaselineRun(before)], after, option=option)
    assert (found.result, found.passed, found.failed, found.decided) == ("passed_effect_not_shown", False, False, False)
    assert why in found.reasons[0]


def test_without_a_baseline_a_metric_shows_nothing_and_a_fault_that_was_passed_does() -> None:
    skipped = "not run, as you wished (--no-baseline)"
    metric = verdict([], run(0.4), skipped=skipped, old=run(2.3))
    assert metric.result == "passed_effect_not_shown"
    assert skipped in metric.reasons[0]
    assert f"no baseline: {skipped}" in metric.notes
    passed = verdict([], run(0.4), skipped=skipped, old=run(2.3, FLAT), evidence=CITED, needed=140.0)
    assert passed.result == "fixed"
    short = verdict([], run(0.4, last_step=100.0), skipped=skipped, old=run(2.3, FLAT), evidence=CITED, needed=140.0)
    assert short.result == "passed_effect_not_shown"


# no effect


def test_a_promised_metric_that_is_the_same_is_no_effect_where_the_unfixed_code_shows_the_fault() -> None:
    moves = FALLS.model_copy(update={"metric": "loss moves"})
    found = verdict([BaselineRun(run(2.3))], run(2.3), option=moves)
    assert (found.result, found.failed) == ("no_effect", True)
    assert "is the same in every one of 100 records" in found.reasons[0]


@pytest.mark.parametrize("metric", ["loss falls", "loss is finite", "loss moves"])
def test_a_metric_that_is_the_same_shows_nothing_where_the_fault_does_not_come_at_all(metric: str) -> None:
    option = FALLS.model_copy(update={"metric": metric})
    found = verdict([BaselineRun(run(0.1, noise=0.02))], run(0.1, noise=0.02), option=option, evidence=CITED)
    assert (found.result, found.failed) == ("passed_effect_not_shown", False)
    assert "the command does not show the fault on the unfixed code" in found.reasons[0]


def at(level: float, kind: str = "uniform-guess") -> Finding:
    return Finding(rule="L202", title="Constant", severity=Severity.HIGH, bearing=Bearing.SIGN, source="log.txt",
                   statement=f"loss stays at {level:g}", where=Location(step=40.0),
                   measured={"kind": kind, "metric": "loss", "group": "", "level": level})


def cites(seen: Finding) -> Evidence:
    return CITED.model_copy(update={"rule": seen.rule, "finding": seen.to_json()})


@pytest.mark.parametrize(("came", "result"), [
    (at(1.4612, "double-softmax"), "no_effect"), (at(1.47, "double-softmax"), "no_effect"),
    (at(2.3026, "double-softmax"), "passed_effect_not_shown"), (at(1.4612), "passed_effect_not_shown"),
    (at(2.3026), "passed_effect_not_shown")])
def test_a_finding_is_back_where_it_says_the_same_of_the_same(came: Finding, result: str, tmp_path: Path) -> None:
    """By kind and value: a loss at the floor of two softmaxes, and one at ln 10, are two findings of one rule."""
    old, new = run(1.4612, at(1.4612, "double-softmax")), run(1.4612, came, noise=0.001)
    evidence = cites(at(1.4612, "double-softmax"))
    checked = judge(diagnosis(VAGUE, evidence=(evidence,)), Verify(command="x"), [ended(tmp_path / "a")], old, [new],
                    tmp_path)
    found = verdict([BaselineRun(old)], new, checked, option=VAGUE, old=old, evidence=evidence)
    assert found.result == result
    stayed = result == "no_effect"
    assert any("the symptom stayed" in r for r in found.reasons) is stayed
    assert any(f"another finding came: L202 {came.statement}" in r for r in found.reasons) is not stayed
    assert (found.steps_without_recurrence is None) is stayed


def test_another_finding_of_a_cited_rule_is_left_to_the_person_though_a_metric_moved() -> None:
    seen = at(2.3026)
    found = verdict([BaselineRun(run(2.3026, seen))], run(1.4612, at(1.4612, "double-softmax")), evidence=cites(seen))
    assert found.result == "passed_effect_not_shown"
    assert "another finding came" in found.reasons[0]


def test_the_ends_of_a_long_output_are_judged_and_the_result_says_so(tmp_path: Path) -> None:
    line = "x" * 1023 + "\n"
    parts = ("step 1 loss 2\n", line * 2000, "step 9 loss nan\n", line * 9000, "step 10 loss 1\n")
    long, short = ended(tmp_path / "a", text="".join(parts)), ended(tmp_path / "b", text="step 1 loss 2\n")
    read = judged_output(long.folder)
    assert read.stat().st_size <= 9 * 2**20
    lines = read.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("step 1 loss 2", "step 10 loss 1")
    assert not prints_nonfinite(read)
    assert judged_output(short.folder) == short.folder / "output.log"
    found = verdict([BaselineRun(run(2.3), short)], run(0.4), outcomes=[long])
    assert [n for n in found.notes if "the first 1 and the last 8 MiB were read" in n]
    assert not [n for n in verdict([BaselineRun(run(2.3), short)], run(0.4)).notes if "MiB" in n]


def test_a_promised_metric_that_moved_the_other_way_is_no_effect() -> None:
    assert verdict([BaselineRun(run(0.4))], run(2.3)).result == "no_effect"


def test_a_fault_that_is_seen_as_before_is_no_effect() -> None:
    found = verdict([BaselineRun(run(2.3, FLAT))], run(2.3, FLAT), failed("the old finding is back"), evidence=CITED)
    assert found.result == "no_effect"
    assert "measured and stayed" in found.lesson


# not executed


def test_a_command_that_does_not_execute_the_change_verifies_nothing(tmp_path: Path) -> None:
    same = verdict([BaselineRun(run(0.1))], run(0.1), executed=NO)
    assert (same.result, same.decided) == ("not_executed", False)
    lucky = verdict([BaselineRun(NewRun(), ended(tmp_path / "b", 1))], NewRun(), executed=NO)
    assert lucky.result == "not_executed", "what comes and goes by itself is not the fix's doing"
    untold = verdict([BaselineRun(run(2.3))], run(0.4), executed=Executed("unknown", "config.yaml is no Python file"))
    assert untold.result == "fixed"


# failed


def test_a_new_error_counts_against_the_change(tmp_path: Path) -> None:
    new = ended(tmp_path / "a", 1, traceback("ValueError", "some parameters appear in more than one group"))
    found = verdict([BaselineRun(run(2.3), ended(tmp_path / "b"))], NewRun(), failed(), outcomes=[new])
    assert found.result == "failed"
    assert found.own_error == "ValueError: some parameters appear in more than one group"
    assert "says nothing of the cause" in found.lesson


def test_an_error_that_the_unfixed_code_has_too_is_none_of_its_own(tmp_path: Path) -> None:
    old = ended(tmp_path / "b", 1, traceback("RuntimeError", "step 12 of 400"))
    new = ended(tmp_path / "a", 1, traceback("RuntimeError", "step 13 of 400"))
    found = verdict([BaselineRun(NewRun(), old)], NewRun(), failed(), outcomes=[new])
    assert (found.result, found.own_error) == ("failed", "")
    assert "fails on the unfixed code as well" in found.reasons[-1]
    assert "not measured" in found.lesson


def test_without_a_baseline_an_error_is_its_own_where_it_goes_through_a_changed_line(tmp_path: Path) -> None:
    through = ended(tmp_path / "a", 1, traceback("ValueError", "twice", line=4))
    beside = ended(tmp_path / "c", 1, traceback("ValueError", "twice", line=2))
    assert verdict([], NewRun(), failed(), outcomes=[through], skipped="x").own_error == "ValueError: twice"
    assert verdict([], NewRun(), failed(), outcomes=[beside], skipped="x").own_error == ""


# how often the unfixed code is run


def test_the_unfixed_code_is_run_again_where_that_tells_more(tmp_path: Path) -> None:
    case = Compared(FAULT, FALLS, NewRun(), (), (), Baseline(), Executed("unknown"))
    one, other = BaselineRun(run(2.3)), BaselineRun(run(2.2))
    assert wants_more(case, Baseline((one,)), intermittent=False)
    assert not wants_more(case, Baseline((one, one)), intermittent=False), "bit for bit the same: no spread"
    assert wants_more(case, Baseline((one, other)), intermittent=False)
    assert not wants_more(case, Baseline((BaselineRun(NewRun()),)), intermittent=False), "nothing was measured"
    assert wants_more(case, Baseline((BaselineRun(NewRun()),)), intermittent=True)
    fails = BaselineRun(NewRun(), ended(tmp_path / "b", 1))
    assert not wants_more(case, Baseline((fails,)), intermittent=True)


def test_a_run_whose_levels_are_not_known_is_compared_by_last_values() -> None:
    found = verdict([BaselineRun(NewRun((), None, None, {"loss": 2.3}))], NewRun((), None, None, {"loss": 0.4}))
    assert found.result == "fixed"
    assert Level(0.4).count == 1


# a command that ends badly with and without the fix


def both(folder: Path, code: int = 1, text: str = "below the bar\n") -> tuple[Outcome, Outcome, Verification]:
    """The endings of the unfixed and of the fixed code, and what is said of the second alone."""
    unfixed, fixed = ended(folder / "b", code, text), ended(folder / "a", code, text)
    checked = judge(FAULT, Verify(command="x"), [fixed], NOTHING, [NOTHING], folder)
    return unfixed, fixed, checked


@pytest.mark.parametrize("code", [1, 2])
def test_an_ending_that_was_the_same_before_decides_nothing_and_the_symptom_does(tmp_path: Path, code: int) -> None:
    unfixed, fixed, checked = both(tmp_path, code)
    assert checked.result == "failed"
    found = verdict([BaselineRun(run(2.3, noise=0.02), unfixed)], run(0.4, noise=0.02), checked, outcomes=[fixed])
    assert found.result == "fixed"
    assert f"ends with exit code {code} with the fix and without it, which decides nothing" in found.reasons[0]
    stays = verdict([BaselineRun(run(2.3, noise=0.02), unfixed)], run(2.3, noise=0.02), checked, outcomes=[fixed])
    assert stays.result == "passed_effect_not_shown"
    assert not stays.failed


def test_nan_that_is_gone_is_fixed_though_the_command_misses_its_bar_with_and_without_the_fix(tmp_path: Path) -> None:
    unfixed = ended(tmp_path / "b", 1, "step 1 loss nan\nbelow the bar\n")
    fixed = ended(tmp_path / "a", 1, "step 1 loss 0.3\nbelow the bar\n")
    checked = judge(FAULT, Verify(command="x"), [fixed], NOTHING, [NOTHING], tmp_path)
    found = verdict([BaselineRun(NOTHING, unfixed, nonfinite=True)], NOTHING, checked, option=VAGUE, outcomes=[fixed])
    assert found.result == "fixed"
    again = judge(FAULT, Verify(command="x"), [unfixed], NOTHING, [NOTHING], tmp_path)
    stays = verdict([BaselineRun(NOTHING, unfixed, nonfinite=True)], NOTHING, again, option=VAGUE, outcomes=[unfixed])
    assert stays.result == "no_effect"


def test_a_checker_that_measures_nothing_and_fails_as_before_is_a_strike(tmp_path: Path) -> None:
    unfixed, fixed, checked = both(tmp_path)
    assert verdict([BaselineRun(NOTHING, unfixed)], NOTHING, checked, outcomes=[fixed]).result == "failed"


def test_a_command_that_never_reaches_the_change_is_no_strike(tmp_path: Path) -> None:
    unfixed, fixed, checked = both(tmp_path, 2, "usage: train.py\ntrain.py: error: unrecognized arguments: --x 1\n")
    found = verdict([BaselineRun(NOTHING, unfixed)], NOTHING, checked, outcomes=[fixed], executed=NO)
    assert found.result == "not_executed"


def test_another_ending_than_before_counts_against_the_fix(tmp_path: Path) -> None:
    unfixed, fixed = ended(tmp_path / "b", 1), ended(tmp_path / "a", 3)
    checked = judge(FAULT, Verify(command="x"), [fixed], NOTHING, [NOTHING], tmp_path)
    assert verdict([BaselineRun(NOTHING, unfixed)], NOTHING, checked, outcomes=[fixed]).result == "failed"


def test_an_ending_that_was_not_seen_before_counts_against_the_fix(tmp_path: Path) -> None:
    _, fixed, checked = both(tmp_path)
    assert verdict([], NOTHING, checked, outcomes=[fixed], skipped="--no-baseline").result == "failed"
