"""The symptom's form is filled from the user's words, and git's changes become evidence."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from traindx.characterize import change_evidence, read_symptom, recent_changes
from traindx.model import Symptom


@pytest.mark.parametrize(("text", "since", "changed", "often"), [
    ("The loss turns NaN at step 400", "step 400", "", "unknown"),
    ("loss rises since epoch 7 after we switched to the new curriculum", "epoch 7", "we switched to the new curriculum",
     "unknown"),
    ("Training hangs every time after upgrading torch to 2.4", "", "upgrading torch to 2.4", "always"),
    ("sometimes it crashes around iteration 12,000", "iteration 12,000", "", "sometimes"),
    ("My GAN gives the same picture", "", "", "unknown"),
    ("it fails in one in twenty runs", "", "", "sometimes"),
    ("accuracy is stuck since the refactoring of the loader", "since the refactoring of the loader",
     "the refactoring of the loader", "unknown"),
    ("loss stays at 2.3, not always though", "", "", "sometimes"),
])
def test_what_the_words_say_is_taken_over(text: str, since: str, changed: str, often: str):
    found = read_symptom(text)
    assert (found.observed, found.since_when, found.what_changed, found.reproducible) == (text, since, changed, often)


def test_an_expectation_is_taken_over():
    assert read_symptom("loss is 6.9; it should be near 0.1 by now").expected == "be near 0.1 by now"


def test_a_filled_form_is_kept_and_a_mapping_is_read():
    form = Symptom(observed="x", since_when="yesterday")
    assert read_symptom(form) is form
    assert read_symptom({"observed": "x", "since_when": "yesterday"}) == form


def test_a_hostile_sentence_is_read_quickly_and_bounded():
    assert len(read_symptom("since " * 50_000 + "\x1b[2J").observed) < 4100


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@needs_git
def test_uncommitted_work_is_evidence_with_a_value_and_a_place(workspace: Path):
    git(workspace, "init", "-q", ".")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "first")
    (workspace / "train.py").write_text((workspace / "train.py").read_text().replace("10.0", "20.0"))
    log, diff = change_evidence(recent_changes(workspace, Symptom(observed="x")))
    assert "first" in log.statement
    assert diff.statement == "1 files differ from HEAD, not committed: train.py"
    assert "+learning_rate = 20.0" in diff.value
    assert diff.bearing == "companion"


@needs_git
def test_the_good_commit_is_the_one_that_is_named(workspace: Path):
    git(workspace, "init", "-q", ".")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "good")
    good = git(workspace, "rev-parse", "--short", "HEAD")
    (workspace / "train.py").write_text("worse\n")
    git(workspace, "commit", "-qam", "worse")
    for symptom, named in ((Symptom(observed=f"it worked at {good}"), None), (Symptom(observed="x"), good)):
        found = recent_changes(workspace, symptom, named)
        assert found is not None
        assert (found.base, found.files) == (good, ("train.py",))
        assert len(found.commits) == 1
        assert "worse" in found.commits[0]


@needs_git
def test_secrets_and_the_repositorys_own_programs_stay_out(workspace: Path):
    git(workspace, "init", "-q", ".")
    (workspace / ".env").write_text("KEY=old\n")
    (workspace / ".gitattributes").write_text("*.py diff=evil filter=evil\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "first")
    git(workspace, "config", "diff.external", "touch owned; false")
    git(workspace, "config", "diff.evil.textconv", "touch owned; cat")
    git(workspace, "config", "core.fsmonitor", "touch owned")
    git(workspace, "config", "core.pager", "touch owned; cat")
    git(workspace, "config", "filter.evil.clean", "touch owned; cat")
    git(workspace, "config", "filter.evil.process", "touch owned")
    git(workspace, "config", "filter.evil.required", "true")
    (workspace / ".env").write_text("KEY=hunter2\n")
    (workspace / "train.py").write_text("changed\n")
    found = recent_changes(workspace, Symptom(observed="x"))
    assert found is not None
    assert found.files == ("train.py",)
    assert "hunter2" not in found.difference
    assert "+changed" in found.difference
    assert not (workspace / "owned").exists()


@needs_git
def test_a_signature_is_not_handed_to_a_program_of_the_repository(workspace: Path):
    git(workspace, "init", "-q", ".")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "first")
    head = git(workspace, "cat-file", "commit", "HEAD").split("\n\n")
    signed = f"{head[0]}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n\nsecond\n"
    (workspace / "commit").write_text(signed)
    git(workspace, "update-ref", "HEAD", git(workspace, "hash-object", "-t", "commit", "-w", "commit"))
    (workspace / "gpg").write_text(f"#!/bin/sh\ntouch {workspace}/owned\n")
    (workspace / "gpg").chmod(0o755)
    git(workspace, "config", "gpg.program", str(workspace / "gpg"))
    git(workspace, "config", "log.showSignature", "true")
    found = recent_changes(workspace, Symptom(observed="x"))
    assert found is not None
    assert "second" in found.commits[0]
    assert not (workspace / "owned").exists()


@pytest.mark.parametrize("good", ["--output=owned", "nonsense", ""])
def test_a_commit_that_is_none_is_not_passed_on(workspace: Path, good: str):
    assert recent_changes(workspace, Symptom(observed="x"), good) is None or shutil.which("git")
    assert not (workspace / "owned").exists()


def test_without_git_there_is_no_evidence_of_changes(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(workspace))
    assert recent_changes(workspace, Symptom(observed="x")) is None
    assert change_evidence(None) == ()
