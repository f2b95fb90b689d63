"""What a script hands over and cannot be meant is refused with what came, what is expected and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripted import diagnosis

from traindx import Decision, resume_session_sync, run_debug_session_sync
from traindx.diagnose import diagnose
from traindx_tools.errors import BadUsage, UnreadableInput

LOG = "".join(f"step {i} loss {2.0 - i / 100:.3f}\n" for i in range(60))
HISTORY = [{"epoch": i, "loss": value} for i, value in enumerate([2.0, 1.9, 1.8, 1.7, 1.6, 1.5, *[float("nan")] * 6])]


@pytest.fixture
def log(tmp_path):
    (tmp_path / "log.txt").write_text(LOG)
    return tmp_path / "log.txt"


@pytest.mark.parametrize(("named", "said"), [
    ({"symptom": None}, 'symptom is None, expected text: symptom="the loss is NaN", or leave it out'),
    ({"symptom": ["loss high"]}, "symptom is ['loss high'] (list), expected text"),
    ({"names": ["a=b"]}, """names is ['a=b'] (list), expected a dict"""),
    ({"asked": "train.py"}, 'expected Asked: asked=Asked(entry=("train.py",))'),
    ({"stdin": "text"}, "stdin is 'text' (str), expected bytes: stdin=text.encode()"),
    ({"lines": "{step} {loss}"}, "expected a list of forms"),
    ({"root": 3}, "the root is 3 (int), expected the path of a folder"),
    ({"missing": 3}, "missing is 3 (int)"),
    ({"cluster": 3}, "cluster is 3 (int)"),
], ids=str)
def test_diagnose_refuses_with_words(log, named, said):
    with pytest.raises(BadUsage, match=re.escape(said)):
        diagnose(log, **named)


@pytest.mark.parametrize(("named", "said"), [
    ({"symptoms": "x"}, "diagnose takes no symptoms: did you mean symptom?"),
    ({"against": "good.log"}, "diagnose takes no against: a run that works is compared by"),
    ({"verbosity": 3}, "diagnose takes no verbosity: it takes paths, symptom,"),
])
def test_an_argument_that_there_is_not_is_told_with_the_nearest(log, named, said):
    from traindx import diagnose as as_it_is_called

    with pytest.raises(BadUsage, match=re.escape(said)):
        as_it_is_called(log, **named)


def test_what_a_report_has_is_found_by_its_name_and_short_to_read(log):
    report = diagnose(HISTORY)
    assert report.findings == tuple(report.seen.findings)
    assert report.findings
    assert report.experiments == ()
    assert report.hypotheses
    assert all(len(repr(h)) < 200 and h.failure_mode in repr(h) for h in report.hypotheses)


@pytest.mark.parametrize(("about", "option", "said"), [
    (diagnosis(), "Z", "option is 'Z', expected one of this diagnosis: A"),
    (diagnosis(), None, "option is None"),
    ("A", "A", "a decision is about a Diagnosis"),
])
def test_a_decision_that_cannot_be_meant_is_refused_with_words(about, option, said):
    with pytest.raises(BadUsage, match=re.escape(said)) as refused:
        Decision.approve(about, option)
    assert "pydantic" not in str(refused.value)
    if about == "A":
        with pytest.raises(BadUsage, match="a decision is about a Diagnosis"):
            Decision.reject(about, "no")


@pytest.mark.parametrize(("symptom", "named", "said"), [
    (3, {}, "symptom is of type int: give a sentence"),
    ({"seen": "x"}, {}, "the symptom makes no sense: observed"),
    ("x", {"workspace": None}, "the workspace is None, expected the folder of the training code"),
    ("x", {"workspace": 3}, "the workspace is 3 (int)"),
    ("x", {"artifacts": 3}, "artifacts is of type int: give a list of paths"),
    ("x", {"artifacts": {"logs": "x"}}, "the artifacts make no sense: logs"),
    ("x", {"verify": 3}, "verify is of type int: give a shell command"),
    ("x", {"budget": "x"}, "budget is of type str: give seconds, or Budget(seconds=1800, attempts=6)"),
    ("x", {"approve": 3}, "approve is of type int (3): give a function"),
    ("x", {"entry": 3}, "entry is 3 (int)"),
    ("x", {"unwatched": 3}, "unwatched is 3 (int)"),
    ("x", {"good_commit": 3}, "good_commit is 3 (int)"),
    ("x", {"allow_run": "no"}, "allow_run is 'no' (str), expected True or False: allow_run=True"),
    ("x", {"allow_run": 1}, "allow_run is 1 (int), expected True or False"),
    ("x", {"everything": "yes"}, "everything is 'yes' (str)"),
    ("x", {"report": None}, "report is None, expected True or False"),
], ids=str)
def test_a_session_refuses_with_words_and_leaves_nothing(tmp_path, symptom, named, said):
    with pytest.raises(BadUsage, match=re.escape(said)) as refused:
        run_debug_session_sync(symptom, **{"workspace": tmp_path, **named})
    assert "pydantic" not in str(refused.value)
    assert not list(tmp_path.iterdir())


def test_a_session_that_is_no_name():
    with pytest.raises(BadUsage, match="the session is 3"):
        resume_session_sync(3)


def test_a_history_in_memory_is_diagnosed_like_its_file():
    report = diagnose(HISTORY)
    assert any(f.rule.startswith("L1") and f.where.file == "history" for f in report.seen.findings)
    assert report.seen.records == len(HISTORY)
    assert not [c for c in report.next_checks if " -" in re.sub(r" --?\w", "", c)], "standard input holds nothing"
    assert "a history" in repr(report)
    level = diagnose([{"epoch": i, "loss": 2.302 + 0.001 * (i % 3)} for i in range(30)], symptom="it does not learn")
    assert any('diagnose([history, "PATH/TO/train.py"])' in w for w in level.wanted)


def test_a_history_beside_its_code(tmp_path):
    (tmp_path / "train.py").write_text("import torch\nloss = torch.zeros(1)\n")
    report = diagnose([HISTORY, tmp_path / "train.py"])
    assert report.places.root == tmp_path.resolve()
    shows = [c for c in report.next_checks if c.startswith(("traindx plot", "traindx log"))]
    assert not shows, "its series are in no file"
    assert report.seen.code


class Raises:
    """An object that answers nothing it is asked."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("given", ["a\0b", "a" * 5000, "a/" * 3000, Raises(), [Raises()]],
                         ids=["nul", "name", "path", "object", "objects"])
def test_what_can_be_no_path_is_refused_in_words(given: object) -> None:
    with pytest.raises(BadUsage, match="expected the path of a log"):
        diagnose(given)  # type: ignore[arg-type]


def test_a_long_name_that_a_system_takes_is_only_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput):
        diagnose(tmp_path / ("a" * 250))
