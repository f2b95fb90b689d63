"""What commands leave below scratch/debug: nothing that a file tool, another program or the orchestrator falls for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from closed_gate import ClosedGate

from traindx.runner import caches, landlock
from traindx.session_folder import NotOurSession, SessionBusy, SessionFolder, new_folder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux") or not landlock.version(),
                                reason="the runner needs Linux with Landlock")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[ClosedGate]:
    made = ClosedGate(tmp_path.resolve() / "machine", extra={"TRAINDX_BUBBLEWRAP": "off"})
    made.opens()
    yield made
    made.close()


SWAPS = """cd scratch/debug/probes; mkdir -p d e; echo ready
while true; do
  mv -T d old 2>/dev/null; ln -s ../../../src d 2>/dev/null; mv -T ../../../src d 2>/dev/null
  cp -rP ../../up d 2>/dev/null; rm -rf d 2>/dev/null; mkdir d 2>/dev/null
  ln -f ../../../train.py d/new.py 2>/dev/null; rm -rf old
done"""


def test_a_command_in_the_background_exchanges_no_folder_between_the_hook_and_a_write(gate: ClosedGate) -> None:
    line = gate.hooked(SWAPS)
    assert line is not None
    swaps = subprocess.Popen(["bash", "-c", line], cwd=gate.work, env=gate.environment, stdout=subprocess.PIPE,
                             text=True, stdin=subprocess.DEVNULL)
    assert swaps.stdout is not None
    assert swaps.stdout.readline() == "ready\n"
    before = (gate.work / "train.py").read_bytes(), sorted((gate.work / "src").iterdir())
    allowed = 0
    for _ in range(150):
        target = gate.work / "scratch" / "debug" / "probes" / "d" / "new.py"
        said = gate.event("PreToolUse", tool_name="Write", tool_input={"file_path": str(target), "content": "x"})
        if said.get("permissionDecision") != "deny":
            allowed += 1
            try:
                target.write_text("written by the host")
            except OSError:
                continue
    swaps.terminate()
    swaps.wait(30)
    assert allowed > 20, "the attack has to meet the moment"
    assert before == ((gate.work / "train.py").read_bytes(), sorted((gate.work / "src").iterdir()))


@pytest.mark.parametrize("name", [".git/config", ".claude/settings.json", "a/.claude/skills/x/SKILL.md", ".envrc",
                                  "a/.vscode/tasks.json"])
def test_nothing_is_left_that_other_programs_act_on(gate: ClosedGate, name: str) -> None:
    scratch = gate.work / "scratch" / "debug"
    done = gate.runs(f"mkdir -p $(dirname scratch/debug/{name}) && echo x > scratch/debug/{name}; exit 4")
    assert done.returncode == 4
    assert "other programs act on such a name" in done.stderr
    assert not (scratch / name).exists()
    said = gate.event("PreToolUse", tool_name="Write", tool_input={"file_path": str(scratch / name), "content": "x"})
    assert said["permissionDecision"] == "deny"


def test_what_a_person_left_there_keeps_its_name(gate: ClosedGate) -> None:
    kept = gate.work / "scratch" / "debug" / ".envrc"
    kept.write_text("mine")
    gate.runs("true")
    assert kept.read_text() == "mine"


def test_a_session_that_a_command_made_is_none(gate: ClosedGate) -> None:
    gate.runs("cd scratch/debug && mkdir 20260101-000000-abcdef && echo '{}' > 20260101-000000-abcdef/journal.jsonl; "
              "chmod +t 20260101-000000-abcdef; chmod 1777 20260101-000000-abcdef")
    folder = SessionFolder(gate.work / "scratch" / "debug" / "20260101-000000-abcdef")
    assert folder.journal.is_file()
    with pytest.raises(NotOurSession, match=r"chmod \+t"), folder.locked(0):
        pass


def test_a_session_of_the_orchestrator_bears_the_mark(gate: ClosedGate) -> None:
    made = new_folder(gate.work, {"symptom": {"observed": "x"}})
    with made.locked(0):
        assert made.path.stat().st_mode & 0o1000
    gate.runs(f"rm -rf {made.path}; mv {made.path} {made.path}2; echo x > {made.journal}; echo x > scratch/debug/new")
    with made.locked(0):
        assert made.journal.read_text().count("\n") == 1
    assert not (gate.work / "scratch" / "debug" / "new").exists(), "beside a session only the probes may be written"


def test_no_session_begins_while_a_command_may_write_beside_it(gate: ClosedGate,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINDX_RUNS", gate.environment["TRAINDX_RUNS"])
    line = gate.hooked("echo ready; read x")
    runs = subprocess.Popen(["bash", "-c", str(line)], cwd=gate.work, env=gate.environment, stdout=subprocess.PIPE,
                            stdin=subprocess.PIPE, text=True)
    assert runs.stdout is not None
    runs.stdout.readline()
    with pytest.raises(SessionBusy, match="a coding agent's command runs"):
        new_folder(gate.work, {"symptom": {"observed": "x"}})
    runs.communicate("\n")
    new_folder(gate.work, {"symptom": {"observed": "x"}})


def test_several_runs_at_once_do_not_disturb_each_other(gate: ClosedGate) -> None:
    lines = [gate.hooked("f=$(mktemp) && echo 1 > $f && cat $f; exit 3") for _ in range(4)]
    running = [subprocess.Popen(["bash", "-c", str(line)], cwd=gate.work, env=gate.environment, stdout=subprocess.PIPE)
               for line in lines]
    assert [one.communicate()[0] for one in running] == [b"1\n"] * 4
    assert [one.returncode for one in running] == [3] * 4


def test_a_cache_whose_links_are_there_already_is_used_as_it_is(tmp_path: Path) -> None:
    """As where two runs begin at the same time: the other was quicker."""
    real, folder = tmp_path / "hub", tmp_path / "linked"
    (real / "model").mkdir(parents=True)
    folder.mkdir()
    for _ in range(2):
        assert caches._link_entries(str(real), str(folder))
        assert (folder / "model").resolve() == real / "model"
