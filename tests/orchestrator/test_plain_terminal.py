"""A terminal that knows no escape codes, and a person who wants none, get plain text; results go to standard output."""

from __future__ import annotations

import io
import sys

import pytest

from traindx.live_view import Lines, watching
from traindx.page import coloured


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
