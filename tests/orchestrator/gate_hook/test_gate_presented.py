"""A diagnosis as it stands in a conversation: what it must hold to be approved, and what its options cover."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.gate_hook.presented import looks_like_one, read_diagnosis
from traindx.gate_hook.state import Shown

DIAGNOSIS = """Here is what I found.

# Diagnosis (Gate 4)
## Symptom
The loss is NaN from step 1175 on.
## Root Cause
log(1 - p) at train.py:46 reaches log(0): p is exactly 1.0 at step 1175 (E1). 97 % confident.
## Why This Happens
The clip by 1e-12 vanishes in float32, so p rounds to 1.
## Proposed Fix
**A (targeted):** `train.py:20`: EPS = 1e-6. The loss stays finite. Verify: `python train.py --steps 1300`.
**B (broader):** train.py:40-46 and tests/test_loss.py (new): work with logits.
Verify with `pytest tests/test_loss.py`.
## What This Fix Will Change
Probabilities are clipped at 1e-6.
## What This Fix Will NOT Fix
A learning rate that is too high.

1. Does this root cause match what you are seeing?
"""


def read(text: str, workspace: Path) -> Shown:
    found = read_diagnosis(text, str(workspace), "c1")
    assert isinstance(found, Shown), found
    return found


def test_options_places_and_verifications_are_read(tmp_path: Path) -> None:
    shown = read(DIAGNOSIS, tmp_path)
    a, b = shown.options
    assert (a.option, a.places, a.verify) == ("A", (("train.py", 20, 20),), ("python train.py --steps 1300",))
    assert b.places == (("train.py", 40, 46), ("tests/test_loss.py", 1, 0))
    assert b.verify == ("pytest tests/test_loss.py",)
    assert "train.py:46" in shown.cause
    assert shown.conversation == "c1"


@pytest.mark.parametrize(("written", "commands"), [
    ("Verify: `loss < 2.0` after step 1300", ()), ("Verify: run it until step 1300.", ()),
    ("To verify, `pytest tests -x` and `CUDA_VISIBLE_DEVICES= python train.py`",
     ("pytest tests -x", "CUDA_VISIBLE_DEVICES= python train.py")),
    ("Verify:\n```bash\npython train.py --steps 9\n```", ("python train.py --steps 9",)),
    ("Verification: `./check.sh`; `grad_norm` stays below 1", ("./check.sh",))])
def test_only_commands_are_verifications(written: str, commands: tuple[str, ...], tmp_path: Path) -> None:
    text = DIAGNOSIS.replace("Verify: `python train.py --steps 1300`.", written)
    assert read(text, tmp_path).options[0].verify == commands


@pytest.mark.parametrize("head", ["### {}", "**{}**", "**{}:**", "{}:", "1. **{}**", "## {} "])
def test_headings_come_in_several_forms(head: str, tmp_path: Path) -> None:
    text = "\n".join(head.format(line[3:]) if line.startswith("## ") else line for line in DIAGNOSIS.splitlines())
    assert looks_like_one(text)
    assert len(read(text, tmp_path).options) == 2


@pytest.mark.parametrize("mark", ["A: ", "- A (targeted) ", "### Option A - ", "* **A.** ", "Fix A: "])
def test_options_are_marked_in_several_forms(mark: str, tmp_path: Path) -> None:
    assert read(DIAGNOSIS.replace("**A (targeted):** ", mark), tmp_path).options[0].places == (("train.py", 20, 20),)


def test_without_marks_there_is_one_option(tmp_path: Path) -> None:
    text = DIAGNOSIS.replace("**A (targeted):** ", "").replace("**B (broader):** ", "")
    assert [o.option for o in read(text, tmp_path).options] == ["A"]


def test_a_changed_diagnosis_has_another_digest(tmp_path: Path) -> None:
    assert read(DIAGNOSIS, tmp_path).digest == read(DIAGNOSIS, tmp_path).digest
    assert read(DIAGNOSIS, tmp_path).digest != read(DIAGNOSIS.replace("1e-6", "1e-5"), tmp_path).digest


@pytest.mark.parametrize(("old", "new", "said"), [
    ("## Why This Happens\n", "", "section 'Why This Happens' is missing"),
    ("A learning rate that is too high.\n\n1. Does this root cause match what you are seeing?", "TBD",
     "section 'What This Fix Will NOT Fix' says nothing"),
    ("train.py:46 reaches", "the loss reaches", "section 'Root Cause' names no path:line"),
    ("## Symptom\nThe loss is NaN from step 1175 on.\n", "## Symptom\n", "section 'Symptom' says nothing"),
])
def test_what_is_missing_is_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    found = read_diagnosis(DIAGNOSIS.replace(old, new), str(tmp_path))
    assert not isinstance(found, Shown)
    assert any(said in reason for reason in found)


def test_a_fix_without_a_place_cannot_be_approved(tmp_path: Path) -> None:
    text = DIAGNOSIS.replace("`train.py:20`: ", "").replace("train.py:40-46 and tests/test_loss.py (new): ", "")
    found = read_diagnosis(text, str(tmp_path))
    assert not isinstance(found, Shown)
    assert "Proposed Fix" in found[0]


@pytest.mark.parametrize("path", ["../other/train.py:20", "/etc/passwd:1", "https://example.org/a.py:20"])
def test_places_outside_the_workspace_are_none(path: str, tmp_path: Path) -> None:
    shown = read(DIAGNOSIS.replace("`train.py:20`", path), tmp_path)
    assert [o.option for o in shown.options] == ["B"]


def test_a_file_that_exists_is_not_new(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_loss.py").write_text("x = 1\n")
    assert read(DIAGNOSIS, tmp_path).options[1].places == (("train.py", 40, 46),)


def fix(text: str, workspace: Path) -> Shown:
    """The diagnosis with this option in place of its own."""
    return read(with_option(text), workspace)


def with_option(text: str) -> str:
    head, rest = DIAGNOSIS.split("**A (targeted):**")
    after = "\n## What This Fix Will Change"
    return head + text + after + rest.split(after)[1]


@pytest.mark.parametrize(("option", "places"), [
    ("A: train.py:3: EPS = 1e-6. check.py:1-2 stays as it is.", [("train.py", 3, 3)]),
    ("A: train.py:3: EPS = 1e-6; see also check.py:9", [("train.py", 3, 3)]),
    ("A: train.py:3 (not check.py:1)", [("train.py", 3, 3)]),
    ("A: train.py:3, train.py:9 and x/new.py (new): split it", [("train.py", 3, 3), ("train.py", 9, 9),
                                                                 ("x/new.py", 1, 0)]),
    ("A: as in other.py:4.\nchange: train.py:3: EPS = 1e-6\n- **change:** `a.py:4-5`: `x = 2`, b.py:1 is fine",
     [("train.py", 3, 3), ("a.py", 4, 5)]),
    ("A: the guard goes.\nChanges: train.py:3\ncheck.py:1-2 stays as it is", [("train.py", 3, 3)]),
    ("A: train.py:1-9\n```diff\n+++ b/train.py\n@@ -3,2 +3,2 @@\n-EPS = 1e-12\n+EPS = 1e-6\n \n```",
     [("train.py", 3, 3)]),
])
def test_a_place_counts_where_a_change_is_stated_and_not_where_it_is_mentioned(
        option: str, places: list[tuple[str, int, int]], tmp_path: Path) -> None:
    assert list(fix(option, tmp_path).options[0].places) == places


@pytest.mark.parametrize("option", ["A: check.py:1-2 stays as it is", "A: nothing at train.py:3 changes",
                                    "A: see train.py:3: EPS = 1e-6", "```diff\n-a\n+b\n```"])
def test_an_option_that_states_no_change_cannot_be_approved(option: str, tmp_path: Path) -> None:
    found = read_diagnosis(with_option(option), str(tmp_path))
    assert not isinstance(found, Shown)
    assert "states no change" in found[0]


@pytest.mark.parametrize(("option", "lines"), [
    ("A: train.py:3: EPS = 1e-6. The loss stays finite.", [("EPS = 1e-6",)]),
    ("A: train.py:3 becomes `EPS = 1e-6`", [("EPS = 1e-6",)]),
    ("A: `train.py:3` -> `EPS = 1e-6`; `loss < 2` after", [("EPS = 1e-6",)]),
    ("A: train.py:3-4:\n```python\nEPS = 1e-6\nTINY = EPS\n```", [("EPS = 1e-6", "TINY = EPS")]),
    ("A: train.py:3-9 with a finite logarithm", []),
    ("A: train.py:3-9 with a finite logarithm. Verify:\n```\npython train.py\n```", []),
    ("A: see the diff\n```diff\n+++ b/train.py\n@@ -2,3 +2,4 @@\n \n-EPS = 1e-12\n+EPS = 1e-6\n+T = 1"
     "\n \n@@ -9,2 +10,1 @@\n-a\n b\n```", [("EPS = 1e-6", "T = 1"), ()]),
])
def test_the_text_that_is_shown_binds(option: str, lines: list[tuple[str, ...]], tmp_path: Path) -> None:
    assert [b.lines for b in fix(option, tmp_path).options[0].bound] == lines


@pytest.mark.parametrize("option", [
    "A: x/new.py (new):\n```python\na = 1\n```",
    "A: see the diff\n```diff\n--- /dev/null\n+++ b/x/new.py\n@@ -0,0 +1,1 @@\n+a = 1\n```"])
def test_the_text_of_a_new_file_binds_as_well(option: str, tmp_path: Path) -> None:
    read = fix(option, tmp_path).options[0]
    assert read.places == (("x/new.py", 1, 0),)
    assert [b.lines for b in read.bound] == [("a = 1",)]
