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
**B (broader):** work with logits: train.py:40-46 and tests/test_loss.py (new).
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
    text = DIAGNOSIS.replace("`train.py:20`: ", "").replace("train.py:40-46 and tests/test_loss.py (new)", "the loss")
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
