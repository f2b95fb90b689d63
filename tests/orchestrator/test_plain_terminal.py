"""A terminal that knows no escape codes, and a person who wants none, get plain text; results go to standard output."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

from traindx import cli
from traindx.live_view import Lines, watching
from traindx.page import coloured
from traindx.session import run_debug_session_sync

EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy-lr"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("term", "no_colour", "wanted"), [
    ("xterm", "", True), ("dumb", "", False), ("xterm", "1", False), ("", "", True),
])
def test_colours_are_for_terminals_that_know_them(term: str, no_colour: str, wanted: bool,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("NO_COLOR", no_colour)
    assert coloured(Terminal()) is wanted
    assert not coloured(io.StringIO())
    assert not coloured(object())


def test_a_dumb_terminal_gets_lines_and_no_picture_that_is_drawn_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    with watching(lambda text: None) as watch:
        assert isinstance(watch, Lines)


@pytest.mark.slow
def test_what_a_decision_came_to_is_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = Path(shutil.copytree(EXAMPLE, tmp_path / "work"))
    session = run_debug_session_sync("loss is NaN", work, report=False, hear=lambda notice: None).session
    here = [session, "--workspace", str(work)]
    for words, status in ((["revise", *here, "--comment", "look at the data"], ""),
                          (["reject", *here, "--reason", "the data are wrong"], "rejected"),
                          (["resume", *here], "")):
        assert cli.run(words) in (0, 1, 3), words
        said = capsys.readouterr()
        assert f"Session {session}: {status}" in said.out, words
        assert f"Session {session}: " not in said.err, words
