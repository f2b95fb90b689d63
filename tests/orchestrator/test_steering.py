"""What a person says at the gate steers the next diagnosis: topics, exclusions, files; and it says what it did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from traindx.diagnose import diagnose
from traindx.investigators import steering
from traindx.investigators.steering import HINT, comments, steers, told
from traindx.model import Decision, Diagnosis
from traindx.session import decide, read_result, resume_session_sync, run_debug_session_sync
from traindx_tools.catalog.catalog import load_catalog

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "numpy-lr", tmp_path / "work"))


def read(comment: str, workspace: Path = Path()) -> steering.Steer:
    return steers([f"at the gate: {comment}"], workspace, load_catalog())[0]


@pytest.mark.parametrize(("comment", "mode", "shift"), [
    ("I raised the learning rate yesterday", "lr.too-high", HINT),
    ("It is not the learning rate, we have used it for a year", "lr.too-high", -HINT),
    ("the learning rate is fine; look at the labels", "lr.too-high", -HINT),
    ("the learning rate is fine; look at the labels", "data.labels-shuffled", HINT),
    ("batch norm statistics were frozen", "bn.running-statistics", HINT),
    ("AMP was switched on in this run", "amp.half-weights-with-gradscaler", HINT),
    ("Could it be lr.too-high after all?", "lr.too-high", HINT),
    ("this is not lr.too-high", "lr.too-high", -HINT),
    ("the data loader was changed, but the loss function was not", "loss.log-of-zero", -HINT),
    ("the data loader was changed, but the loss function was not", "loader.worker-seed", HINT),
    ("The scheduler was always like this, I think the data is at fault", "lr.epoch-step-confusion", -HINT),
    ("The scheduler was always like this, I think the data is at fault", "data.labels-shuffled", HINT),
    ("the scheduler is stepped per batch, but I suspect the labels", "lr.epoch-step-confusion", 0.0),
    ("zero_grad was never the problem", "accum.zero-grad-missing", -HINT),
    ("it's zero_grad", "accum.zero-grad-missing", HINT),
    ("zero_grad() is never called here", "accum.zero-grad-missing", HINT),
    ("I call zero_grad every step", "accum.zero-grad-missing", 0.0),
    ("zero_grad was never the problem", "lr.too-high", 0.0),
    ("yes this is it", "lr.too-high", 0.0),
    ("please look closer", "lr.too-high", 0.0),
    ("", "lr.too-high", 0.0),
])
def test_topics_are_named_or_excluded_by_clause(comment: str, mode: str, shift: float):
    assert sum(s.shift(mode) for s in steers([f"at the gate: {comment}"], Path(), load_catalog())) == shift


def test_every_topic_is_a_family_of_the_catalog():
    families = {m.split(".")[0] for m in load_catalog()}
    assert {f for _, about in steering.TOPICS for f in about} <= families


def test_only_what_a_person_said_steers_and_each_thing_once():
    assert comments(["First strike. Fix failed.", "at the gate: a", "rejected: b", "with the data: c", "at the gate: a",
                     "at the gate: user gave no comment"]) == ("a", "b", "c")


def test_files_are_read_where_they_may_be(work: Path):
    (work / "notes.log").write_text("x")
    (work / "my_secrets.yaml").write_text("x")
    (work.parent / "outside.log").write_text("x")
    said = read("see notes.log and my_secrets.yaml, ../outside.log and nothing.log", work)
    assert [f.name for f in said.files] == ["notes.log"]


def test_an_exclusion_lowers_a_cause_and_lifts_its_rival(work: Path):
    (work / "train.py").unlink()  # without the code nothing is proven
    seen = diagnose([work], symptom="loss is nan", root=work).seen
    first = seen.verdict.hypotheses[0]
    moved = steering.steered(seen, [read(f"it is not {first.mode.id}")])
    after = {h.mode.id: h.confidence for h in moved.verdict.hypotheses}
    assert after[first.mode.id] < first.confidence
    rivals = [h for h in seen.verdict.hypotheses[1:]
              if h.speaks_for and set(h.mode.symptoms) & set(first.mode.symptoms)]
    assert all(after[h.mode.id] >= h.confidence for h in rivals)
    assert steering.steered(seen, [read("look closer")]) is seen


def test_a_healthy_run_stays_healthy():
    seen = diagnose([EXAMPLES / "healthy"], root=EXAMPLES / "healthy").seen
    assert steering.steered(seen, [read("I bet it is the learning rate")]).verdict.status == "healthy"


@pytest.mark.parametrize(("comment", "did"), [
    ("the loss function computes a log", "weighed for this cause (+1.2 log-odds)"),
    ("it is not the loss function", "weighed against this cause (-1.2 log-odds); the evidence still carries it"),
    ("it is the learning rate", "weighed; it names another cause, and nothing that was read or run "
     "speaks for one of that kind"),
    ("hmm", "it names no cause that the catalog knows"),
    ("yes this is it", "noted as a yes; `approve` has the fix applied"),
    ("no, that is not it", "noted as a no; say what speaks against it, or `reject` excludes this cause"),
])
def test_it_is_said_what_the_words_did(comment: str, did: str):
    assert told([read(comment)], "loss.log-of-zero") == f'You said: "{comment}": {did}' + (
        ", `reject` excludes it." if "weighed against" in did else ".")


@pytest.mark.usefixtures("sure_figures")
def test_a_revision_steers_the_session_and_is_answered(work: Path):
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.revise(waiting.diagnosis, "it is not the loss function; see metrics.csv"))
    after = resume_session_sync(waiting.folder, report=False)
    assert after.diagnosis is not None, after.reason
    assert after.diagnosis.symptom.startswith("loss is nan. Seen:"), "a comment is no symptom"
    assert 'You said: "it is not the loss function; see metrics.csv": weighed against' in after.diagnosis.root_cause
    assert "read for it: metrics.csv" in after.diagnosis.root_cause
    assert after.digest != waiting.digest
    before = {h.failure_mode: h.confidence for h in waiting.hypotheses}
    assert after.diagnosis.confidence <= before[after.diagnosis.failure_mode]


def test_a_next_step_works_from_another_folder(work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(work)
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert f"traindx approve {waiting.session} --option A" in waiting.next_step
    monkeypatch.chdir(work.parent)
    below = read_result(waiting.folder)
    assert f"traindx approve {waiting.session} --workspace {work} --option A" in below.next_step
    assert below.diagnosis is not None
    decide(waiting.folder, Decision.reject(below.diagnosis, "no"))
    assert f"traindx resume {waiting.session} --workspace {work}" in read_result(waiting.folder).next_step


@pytest.mark.slow
def test_a_wish_about_the_fix_moves_no_cause_and_stands_with_the_option(work: Path):
    wish = "keep the log of the loss function and clamp it"
    said = read(wish)
    assert said.wish
    assert said.shift("loss.log-of-zero") == 0.0
    assert not read("it is not the loss function").wish
    waiting = run_debug_session_sync("loss is nan", work, report=False)
    assert waiting.diagnosis is not None
    decide(waiting.folder, Decision.revise(waiting.diagnosis, wish))
    after = resume_session_sync(waiting.folder, report=False)
    assert after.status == "awaiting_approval", after.reason
    assert after.diagnosis is not None
    assert f'You said: "{wish}": noted as a wish about the fix' in after.diagnosis.root_cause
    broader = after.diagnosis.option("B")
    assert broader is not None
    assert broader.instructions[-1].text == f'As you asked: "{wish}"'


@pytest.mark.usefixtures("sure_figures")
def test_the_same_words_again_and_again_end_at_the_gate(work: Path):
    asked: list[Diagnosis] = []

    def approve(diagnosis: Diagnosis) -> Decision:
        asked.append(diagnosis)
        assert len(asked) < 5
        return Decision.revise(diagnosis, "it is not the loss function")

    result = run_debug_session_sync("loss is nan", work, report=False, approve=approve)
    assert result.status == "awaiting_approval"
    assert len(asked) == 2


def test_a_broken_callback_is_named_where_it_says_what_to_do(work: Path):
    def broken(diagnosis: Diagnosis) -> Decision:
        raise ValueError("no such screen")

    result = run_debug_session_sync("loss is nan", work, report=False, approve=broken)
    assert result.status == "interrupted"
    assert "repair the approval callback (ValueError: no such screen)" in result.next_step
    assert f"traindx approve {result.session} --workspace {work} --option A" in result.next_step
    assert result.diagnosis is not None
    decide(result.folder, Decision.approve(result.diagnosis))
    assert read_result(result.folder).decision is not None
