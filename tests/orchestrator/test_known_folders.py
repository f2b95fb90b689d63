"""A session is found by its id from any folder; a list that is damaged or cannot be written costs nothing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from traindx import cli, known_folders
from traindx.known_folders import MOST, list_file, remember
from traindx.known_folders import known_folders as known
from traindx.model import Symptom
from traindx.session import read_result, run_debug_session_sync
from traindx.session_folder import NoSuchSession, new_folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of its own, in a folder that is not there yet."""
    monkeypatch.setenv(known_folders.SWITCH, str(tmp_path / "state" / "sessions.jsonl"))
    return tmp_path / "state" / "sessions.jsonl"


@pytest.fixture
def begun(tmp_path: Path, listed: Path) -> Callable[[str], str]:
    """Begins a session in a new folder of this name, returns its id."""

    def begin(name: str) -> str:
        (tmp_path / name).mkdir(parents=True)
        return new_folder(tmp_path / name, {"symptom": Symptom(observed="loss is NaN")}).path.name

    return begin


def test_a_session_is_found_and_listed_from_any_folder(
        begun: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    first, second = sorted((begun("deep/one"), begun("two")))
    far = tmp_path / "far" / "away"
    far.mkdir(parents=True)
    monkeypatch.chdir(far)
    assert cli.run(["sessions"]) == 0
    shown = capsys.readouterr()
    assert "no sessions in ., but elsewhere" in shown.err
    rows = [row for row in shown.out.splitlines() if not row.startswith(" ")]
    assert [row.split()[0] for row in rows] == [first, second]
    commands = [row.split() for row in shown.out.splitlines() if row.lstrip() != row and "traindx" in row.split()[:1]]
    assert [c[:3] for c in commands] == [["traindx", "resume", first], ["traindx", "resume", second]]
    assert {c[-1] for c in commands} == {str(tmp_path / "two"), str(tmp_path / "deep/one")}
    assert read_result(first).session == first
    assert cli.run(["show", second]) in (0, 1, 3)
    assert second in capsys.readouterr().out
    home = Path(read_result(second).workspace)
    monkeypatch.chdir(home)
    assert cli.run(["sessions", "--json"]) == 0
    assert [s["session"] for s in json.loads(capsys.readouterr().out)] == [second]
    assert cli.run(["sessions", "--all", "--json"]) == 0
    assert [s["session"] for s in json.loads(capsys.readouterr().out)] == [first, second]


@pytest.mark.slow
def test_a_session_of_the_night_is_decided_in_the_morning_by_its_id_alone(
        listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "job"))
    night = run_debug_session_sync("loss is NaN", work, verify=f"{sys.executable} train.py",
                                   allow_run=True)
    assert night.status == "awaiting_approval"
    monkeypatch.chdir(tmp_path)
    assert cli.run(["approve", night.session, "--option", "A"]) == 0
    assert read_result(night.session).status == "fixed"


def test_a_beginning_that_fits_several_is_refused_and_a_named_folder_is_the_only_one(
        begun: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = begun("one"), begun("two")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoSuchSession, match="2 sessions begin with it"):
        read_result(first[:4])
    with pytest.raises(NoSuchSession, match="there is none"):
        read_result(first, workspace=tmp_path / "two")


def test_a_folder_stands_there_once_and_those_that_are_gone_make_room(listed: Path, tmp_path: Path) -> None:
    here = tmp_path / "a\nb"
    here.mkdir()
    remember(here)
    remember(here)
    assert known() == (here,)
    listed.write_text("".join(json.dumps(f"/nowhere/{i}") + "\n" for i in range(MOST)))
    remember(here)
    assert listed.read_text() == json.dumps(str(here)) + "\n"


@pytest.mark.parametrize("content", [b"\xff\x00\n{\n[1]\n\"relative\"\n\"/a\\u0000b\"\n", b"[" * 100_000, b""])
def test_a_damaged_list_costs_its_damaged_lines(listed: Path, tmp_path: Path, content: bytes) -> None:
    listed.parent.mkdir()
    listed.write_bytes(content + b"\n")
    remember(tmp_path)
    assert known() == (tmp_path,)


def test_a_list_that_cannot_be_kept_is_no_hindrance(listed: Path, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    listed.parent.write_text("a file where the folder should be")
    remember(tmp_path)
    assert known() == ()
    monkeypatch.setattr("traindx.known_folders._home_of_the_user", lambda: "")
    assert list_file({}) is None
    monkeypatch.setattr("traindx.known_folders._home_of_the_user", lambda: "/of/the/user")
    assert list_file({}) == Path("/of/the/user/.local/state/traindx/sessions.jsonl")
    assert list_file({"HOME": "/h"}) == Path("/h/.local/state/traindx/sessions.jsonl")
    assert list_file({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/traindx/sessions.jsonl")
