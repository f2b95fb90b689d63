"""The three-strike ledger: counted once, outlives everything, and not fooled by another name."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from scripted import diagnosis, fix, replace_line

from traindx.model import Approach, Fix, ProposedEdit
from traindx.strike_levels import LEVELS, level
from traindx.strikes import LEDGER, Ledger, LedgerDamaged, Strike, overlap


def strike(key: str, option: Fix, mode: str = "lr.too-high", component: str = "train.py") -> Strike:
    return Strike(key=key, approach=Approach(failure_mode=mode, component=component), summary=option.summary,
                  places=option.places, originals=tuple(e.original for e in option.edits),
                  learned=(f"nan again ({key})",))


OPTION = fix(replace_line("learning_rate = 1.0"))


def three(ledger: Ledger, option: Fix = OPTION) -> None:
    for n in (1, 2, 3):
        assert ledger.count(strike(f"s/{n}", option))


def test_three_strikes_refuse_the_approach_and_say_what_they_showed(workspace: Path):
    ledger = Ledger(workspace)
    for n in (1, 2):
        ledger.count(strike(f"s/{n}", OPTION))
        assert ledger.refusal(diagnosis(OPTION), OPTION) is None
    ledger.count(strike("s/3", OPTION))
    refusal = Ledger(workspace).refusal(diagnosis(OPTION), OPTION)
    assert refusal is not None
    assert "3 fixes of this approach failed" in refusal
    assert "nan again (s/2)" in refusal
    assert "fundamentally different" in refusal
    assert Ledger(workspace).struck_out() == (diagnosis().approach,)


def test_the_same_failure_is_counted_once(workspace: Path):
    assert Ledger(workspace).count(strike("s/1", OPTION))
    assert not Ledger(workspace).count(strike("s/1", OPTION))
    assert len(Ledger(workspace).entries()) == 1


@pytest.mark.parametrize("variation", [
    fix(replace_line("learning_rate = 0.5")),
    fix(ProposedEdit(path="./train.py", line=3, end_line=4, original="seed = 0\nlearning_rate = 10.0",
                     replacement="x")),
    fix(ProposedEdit(path="train.py", line=4, end_line=3, original="", replacement="warmup = 1")),
    fix(replace_line("learning_rate = 1.0", line=9)),
], ids=["same line", "overlapping lines", "insertion there", "same text moved"])
def test_one_more_variation_under_another_name_is_refused(workspace: Path, variation: Fix):
    three(Ledger(workspace))
    renamed = diagnosis(variation, failure_mode="schedule.broken", component="optimizer")
    assert Ledger(workspace).refusal(renamed, variation) is not None


@pytest.mark.parametrize("different", [
    fix(replace_line("weight = 0.1", line=5, old="weight = 1.0")),
    fix(replace_line("learning_rate = 10.0", path="other.py", line=4, old="value = 1")),
], ids=["other lines", "other file"])
def test_a_different_approach_is_not_refused(workspace: Path, different: Fix):
    three(Ledger(workspace))
    other = diagnosis(different, failure_mode="init.too-large", component="weights")
    assert Ledger(workspace).refusal(other, different) is None


def test_the_same_failure_mode_in_the_same_component_is_refused_wherever_it_edits(workspace: Path):
    three(Ledger(workspace))
    elsewhere = fix(replace_line("value = 2", path="other.py", line=1, old="value = 1"))
    assert Ledger(workspace).refusal(diagnosis(elsewhere), elsewhere) is not None


def test_only_a_persons_reasoned_decision_reopens_an_approach(workspace: Path):
    ledger = Ledger(workspace)
    three(ledger)
    ledger.reopen(diagnosis().approach, by="ada", reason="the data was broken during all three")
    assert ledger.refusal(diagnosis(OPTION), OPTION) is None
    assert ledger.struck_out() == ()
    ledger.count(strike("s/4", OPTION))
    assert len(ledger.strikes(diagnosis().approach, OPTION)) == 1


def test_a_torn_last_line_is_cut_off_and_nothing_before_it_is_lost(workspace: Path):
    ledger = Ledger(workspace)
    ledger.count(strike("s/1", OPTION))
    with (workspace / LEDGER).open("ab") as file:
        file.write(b'{"kind": "strike", "ke')
    ledger.count(strike("s/2", OPTION))
    assert [e.key for e in ledger.entries() if isinstance(e, Strike)] == ["s/1", "s/2"]


@pytest.mark.parametrize("line", [b"hello\n", b"[]\n", b'{"kind": "strike"}\n', b"3\n"])
def test_a_damaged_line_is_named_and_never_counts_as_no_strike(workspace: Path, line: bytes):
    ledger = Ledger(workspace)
    ledger.count(strike("s/1", OPTION))
    path = workspace / LEDGER
    path.write_bytes(line + path.read_bytes())
    with pytest.raises(LedgerDamaged, match=r"strikes\.jsonl:1"):
        ledger.refusal(diagnosis(OPTION), OPTION)


def _count_many(workspace: str, name: str) -> None:
    for n in range(10):
        Ledger(Path(workspace)).count(strike(f"{name}/{n}", OPTION))


def test_two_processes_that_count_at_once_lose_nothing(workspace: Path):
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=_count_many, args=(str(workspace), name)) for name in ("a", "b")]
    for process in both:
        process.start()
    for process in both:
        process.join(60)
    assert len(Ledger(workspace).entries()) == 20


def test_each_level_says_what_to_do():
    assert "more evidence" in level(1).title
    assert "hypothesis itself is in doubt" in level(2).rule
    assert "fundamentally different approach" in level(3).rule
    assert level(7) is LEVELS[3]


@pytest.mark.parametrize(("one", "other", "meets"), [
    ((1, 3), (3, 5), True), ((1, 3), (4, 5), False), ((4, 3), (4, 4), True), ((4, 3), (3, 3), False),
    ((4, 3), (4, 3), True), ((1, 10), (5, 4), True),
])
def test_changes_meet_where_they_share_a_line(one: tuple[int, int], other: tuple[int, int], meets: bool):
    assert overlap([("a.py", *one)], [("a.py", *other)]) is meets
    assert overlap([("a.py", *other)], [("./a.py", *one)]) is meets
    assert not overlap([("a.py", *one)], [("b.py", *other)])
