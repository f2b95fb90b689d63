"""What a person set aside is not told again, and a run in which it was seen is not called one without a fault."""

from __future__ import annotations

from pathlib import Path

from traindx.view import View
from traindx_tools.examine import Examination, examine
from traindx_tools.scope import Asked
from traindx_tools.set_aside import SetAside


def examined(folder: Path, last: str, *rules: str) -> Examination:
    lines = [f"step {i} loss {2 * 0.97**i:.4f}" for i in range(60)] + [f"step {i} loss {last}" for i in range(60, 64)]
    (folder / "job.log").write_text("\n".join(lines) + "\n")
    aside = tuple(SetAside(rule, "known", source="--not") for rule in rules)
    return examine([folder / "job.log"], asked=Asked(aside=aside))


def headline(seen: Examination) -> str:
    told = [{"name": a.name, "findings": n} for a, n in seen.aside]
    return View({"status": seen.verdict.status, "set_aside": told}, seen.run).verdict


def test_a_run_whose_fault_is_set_aside_is_said_to_have_one(tmp_path: Path) -> None:
    seen = examined(tmp_path, "nan", "L101")
    assert headline(seen) == "Nothing else found"
    assert 'beside what is set aside, "A metric turns NaN or infinite" [L101] (1 finding)' in seen.verdict.reason


def test_a_rule_that_saw_nothing_changes_no_word(tmp_path: Path) -> None:
    seen = examined(tmp_path, "0.3", "L101")
    assert headline(seen) == "Nothing wrong found"
    assert "set aside" not in seen.verdict.reason


def test_a_rule_that_there_is_none_of_sets_nothing_aside(tmp_path: Path) -> None:
    assert headline(examined(tmp_path, "nan", "L999")) == "Needs more data"
