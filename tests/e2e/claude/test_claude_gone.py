"""However a conversation ends, its CLI is gone: after a failure, a timeout, a cancellation, and a kill of the session.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_question import asker, question
from scripted_api import Api, Drop, Fail, Text, Use, Wait, answer, scripted

from traindx.investigators.claude import ClaudeInvestigator
from traindx.model import Decision
from traindx.session import list_sessions, run_debug_session
from traindx.settings import Settings

pytestmark = pytest.mark.slow

PATIENCE = 20.0
"""Seconds that a process may take to see that it is not needed any more."""


def working_in(folder: Path) -> list[str]:
    """Processes whose working directory is this folder, by their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(folder.resolve()) and int(entry.name) != os.getpid():
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if command.strip():  # a zombie has none
                    found.append(command[:200])
        except OSError:
            continue
    return found


def left_after(folder: Path) -> list[str]:
    """What is still there when patience ends."""
    until = time.monotonic() + PATIENCE
    while (there := working_in(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return there


@pytest.fixture(autouse=True)
def _linux_alone() -> Iterator[None]:
    if not Path("/proc/self/cwd").exists():
        pytest.skip("processes are looked for in /proc")
    return


@pytest.mark.parametrize("script", [
    [Fail(401, "authentication_error", "invalid x-api-key")], [Fail(529, "overloaded_error")], [Drop()],
    [Text("", stop_reason="refusal")], [answer({"no": "form"})], [answer({"ok": True})],
], ids=["401", "529", "dropped", "refusal", "wrong form", "answered"])
async def test_after_any_end_no_process_is_left(script: list[object], work: Path, tmp_path: Path,
                                                settings: Callable[..., Settings]) -> None:
    seen: list[str] = []

    def looked(api: Api) -> None:
        seen.extend(working_in(work))

    with scripted({"tester": script}) as api:
        api.together = looked
        await asker(work, tmp_path / "scratch", settings(api.url, turns_each=40)).ask(question(), 90)
    assert seen, "the process that is looked for must have been there"
    assert left_after(work) == []


async def test_a_conversation_that_comes_too_late_is_seen_off(work: Path, tmp_path: Path,
                                                              settings: Callable[..., Settings]) -> None:
    released = threading.Event()
    with scripted({"tester": [Wait(answer({"ok": True}), released)]}) as api:
        reply = await asker(work, tmp_path / "scratch", settings(api.url)).ask(question(), 5)
        left = left_after(work)
        released.set()
    assert reply.failure is not None
    assert reply.failure.state == "late"
    assert left == []


async def test_a_cli_that_never_answers_is_ended(work: Path, tmp_path: Path,
                                                 settings: Callable[..., Settings]) -> None:
    mute = tmp_path / "claude"
    mute.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    mute.chmod(mute.stat().st_mode | stat.S_IXUSR)
    made = settings("http://127.0.0.1:9", cli_path=str(mute))
    reply = await asker(work, tmp_path / "scratch", made).ask(question(), 3)
    assert reply.failure is not None
    assert left_after(work) == []


async def test_a_cancelled_conversation_leaves_no_process(work: Path, tmp_path: Path,
                                                          settings: Callable[..., Settings]) -> None:
    begun, released = threading.Event(), threading.Event()
    with scripted({"tester": [Use("Glob", {"pattern": "*"}), Wait(answer({"ok": True}), released)]}) as api:
        api.together = lambda api: begun.set()
        asking = asyncio.ensure_future(asker(work, tmp_path / "scratch", settings(api.url)).ask(question(), 90))
        await asyncio.to_thread(begun.wait, 60)
        assert working_in(work)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        left = left_after(work)
        released.set()
    assert left == []


async def test_a_cancelled_session_leaves_no_process_and_can_be_resumed(work: Path,
                                                                        settings: Callable[..., Settings]) -> None:
    begun, released = threading.Event(), threading.Event()
    with scripted({"ml-debugger-specialist": [Wait(answer({"status": "needs_data"}), released)]}) as api:
        api.together = lambda api: begun.set()
        session = asyncio.ensure_future(run_debug_session(
            "loss is nan", work, report=False, investigator=ClaudeInvestigator(settings(api.url)),
            approve=lambda d: Decision.approve(d)))
        await asyncio.to_thread(begun.wait, 60)
        session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await session
        left = left_after(work)
        released.set()
    assert left == []
    assert [r.status for r in list_sessions(work)] == ["interrupted"]


def test_a_session_that_is_killed_takes_its_conversations_with_it(work: Path,
                                                                  settings: Callable[..., Settings]) -> None:
    begun, released = threading.Event(), threading.Event()
    script = Path(__file__).parent / "support" / "drive_session.py"
    with scripted({"ml-debugger-specialist": [Wait(answer({"status": "needs_data"}), released)]}) as api:
        api.together = lambda api: begun.set()
        made = json.dumps(dataclasses.asdict(settings(api.url)))
        child = subprocess.Popen([sys.executable, str(script), str(work), made], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, cwd=work.parent)
        try:
            assert begun.wait(90)
            assert working_in(work)
        finally:
            child.kill()
            child.wait()
        left = left_after(work)
        released.set()
    assert left == []
