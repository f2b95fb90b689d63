"""What a person sees while a session runs: a view at a terminal, lines in a pipe."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from traindx import live_view
from traindx.live_view import Lines, Picture, watching
from traindx.notices import Notice, working
from traindx.session import run_debug_session_sync

STORY = [
    Notice("phase", text="gathering evidence"),
    Notice("evidence", text="L101-1  loss is nan from step 400 on"),
    Notice("said", text="specialists: data-flow-tracer, torch-logic-auditor"),
    Notice("asked", "data-flow-tracer", "asked (exactly 3,000 tokens to begin with)"),
    Notice("asked", "torch-logic-auditor", "asked (exactly 3,100 tokens to begin with)"),
    working("data-flow-tracer", "mcp__traindx__audit_code", True),
    Notice("working", "data-flow-tracer", tokens=1200, dollars=0.01),
    working("torch-logic-auditor", "Bash", False),
    Notice("failed", "torch-logic-auditor", "late: no answer within 300 s"),
    Notice("working", "data-flow-tracer", tokens=800, dollars=0.005),
    Notice("answered", "data-flow-tracer", "answered (12 s, 2,000 tokens, $0.0150)"),
    Notice("evidence", "data-flow-tracer", "train.py:41: the mask is all false\x1b[2J"),
]


def after(*notices: Notice, seconds: float = 75.0) -> Picture:
    ticks = iter([0.0, 0.0] + [seconds] * 50)
    picture = Picture(clock=lambda: next(ticks))
    for notice in notices:
        picture.take(notice)
    return picture


def test_the_view_has_phase_specialists_tokens_dollars_and_evidence():
    assert after(*STORY).lines(110) == [
        "gathering evidence  1:15, 2,000 tokens, $0.0150",
        "  ok  data-flow-tracer           answered (12 s, 2,000 tokens, $0.0150)                2,000 tokens  $0.0150",
        "  --  torch-logic-auditor        late: no answer within 300 s                     ",
        "evidence  2 pieces, the newest last",
        "  L101-1 loss is nan from step 400 on",
        "  data-flow-tracer: train.py:41: the mask is all false",
    ]


def test_a_specialist_at_work_shows_what_it_is_at():
    rows = after(*STORY[:8]).rows
    assert (rows["data-flow-tracer"].mark, rows["data-flow-tracer"].doing) == ("..", "audit_code")
    assert rows["torch-logic-auditor"].doing == "Bash refused"


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_only_the_newest_evidence_is_shown(width: int):
    many = [Notice("evidence", text=f"L1-{n} {'x' * 300}") for n in range(50)]
    shown = after(*STORY, *many).lines(width)
    assert max(map(len, shown)) <= width
    assert sum(row.startswith("  L1-") for row in shown) == live_view.EVIDENCE_SHOWN
    assert "52 pieces" in "\n".join(shown)


def test_a_pipe_gets_lines_for_what_matters():
    said: list[str] = []
    watch = Lines(said.append)
    for notice in STORY:
        watch.hear(notice)
    assert said == [n.line for n in STORY if n.kind in ("phase", "said", "asked", "failed", "answered")]
    quiet: list[str] = []
    Lines(quiet.append, phases=False).hear(STORY[0])
    assert quiet == []


def test_without_rich_a_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with watching(lambda text: None) as watch:
        assert isinstance(watch, Lines)


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(view: live_view.LiveView) -> None:
    """Waits until the view is there."""
    deadline = time.monotonic() + 20
    while view._view.console is None and time.monotonic() < deadline:
        time.sleep(0.01)


def test_the_view_makes_room_for_the_person_and_leaves_what_stays(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Tty()
    view = live_view.LiveView(screen, patience=0.0)
    drawn(view)
    for notice in STORY:
        view.hear(notice)
    with view.paused():
        written = screen.tell()
        view.picture.take(Notice("phase", text="nobody draws now"))
        assert screen.tell() == written
    with view.paused():
        screen.write("the person's answer\n")
    drawn(view)
    after_the_answer = screen.getvalue().rpartition("the person's answer\n")[2]
    view.close()
    assert not re.match(r"\x1b\[(1A|2K)", after_the_answer.replace("\x1b[?25l", "")), "nothing above is taken away"
    assert "torch-logic-auditor: late: no answer within 300 s" in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()


@pytest.mark.slow
def test_rich_is_not_needed_to_start():
    code = "import sys, traindx.cli, traindx.at_terminal, traindx.commands.debug; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_session_tells_its_phases_and_its_evidence(workspace: Any):
    from scripted import Scripted, approve, diagnosis, examined

    heard: list[Notice] = []
    result = run_debug_session_sync("the loss explodes", workspace, verify="grep -q 0.1 train.py", allow_run=True,
                                    report=False, investigator=Scripted([diagnosis()]), approve=approve(),
                                    examine=examined, hear=heard.append)
    assert result.status == "fixed"
    assert [n.text for n in heard if n.kind == "phase"] == [
        "ranking hypotheses", "gathering evidence", "diagnosing", "a diagnosis is ready for your decision",
        "applying the approved change", "verifying the fix", "writing down what helped", "done"]
    assert "E1  learning_rate is 10.0 at train.py:4" in [n.text for n in heard if n.kind == "evidence"]


def test_what_ends_soon_is_not_drawn_and_thinking_is_not_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    screen = Tty()
    view = live_view.LiveView(screen, patience=60.0)
    ticks = iter([0.0, 10.0, 40.0, 50.0])
    view.picture = Picture(clock=lambda: next(ticks, 50.0))
    view.hear(Notice("phase", text="verifying"))  # at 10
    with view.paused():  # from 40 to 50 a person thinks
        pass
    view.close()
    assert screen.getvalue() == ""
    assert view.picture.lines(80)[0] == "verifying  0:30"
