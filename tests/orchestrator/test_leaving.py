"""Ctrl-C and cancelling where a session is awaited: clean, with what stands changed and the way back."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted import FIXED, TRAIN, Scripted, approve, diagnosis, examined

from traindx import stopping
from traindx.notices import Notice
from traindx.session import (
    confirm_fix,
    list_sessions,
    read_result,
    resume_session_sync,
    run_debug_session,
    run_debug_session_sync,
)


@pytest.fixture(autouse=True)
def _default_ctrl_c() -> Iterator[None]:
    """A shell's background job ignores it, and so would the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def pressed_while(step: str) -> Scripted:
    class Waits(Scripted):
        async def diagnose(self, case):
            if step == "diagnose":
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()
            return await super().diagnose(case)

    return Waits([diagnosis()])


def opened(workspace: Path, step: str = "", **options: object):
    return {"symptom": "x", "workspace": workspace, "investigator": pressed_while(step), "examine": examined,
            "report": False, **options}



def press_when_verifying(notice: Notice) -> None:
    if notice.kind == "said" and "unfixed code" in notice.text:
        os.kill(os.getpid(), signal.SIGINT)


def in_a_loop_of_its_own(workspace: Path, **options: object) -> BaseException:
    """As IPython awaits: no handler of asyncio's is there. Nothing of the session may be left in the loop."""
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt) as raised:
            loop.run_until_complete(run_debug_session(**opened(workspace, **options)))
        assert not asyncio.all_tasks(loop)
        return raised.value
    finally:
        loop.close()


@pytest.mark.parametrize("loop", ["its own", "of asyncio.run"])
def test_pressed_while_it_diagnoses_nothing_is_changed_and_it_says_how_to_go_on(
        workspace: Path, loop: str, caplog: pytest.LogCaptureFixture) -> None:
    if loop == "its own":
        raised = in_a_loop_of_its_own(workspace, step="diagnose")
    else:
        with pytest.raises(KeyboardInterrupt) as caught:
            run_debug_session_sync(**opened(workspace, "diagnose"))
        raised = caught.value
    [found] = list_sessions(workspace)
    said = (f"session {found.session} is kept as it stands; no file of yours was changed by it; to go on: "
            f"traindx resume {found.session} --workspace {workspace}")
    assert str(raised) == said
    assert said in caplog.messages, "in a script nobody else would say it"
    assert (found.status, found.reason) == ("interrupted", "cancelled")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert resume_session_sync(found.folder, investigator=Scripted([diagnosis()]), report=False).status == \
        "awaiting_approval"


def test_pressed_after_the_change_it_says_what_stands_and_the_command_takes_it_back(workspace: Path) -> None:
    heard: list[Notice] = []

    def hear(notice: Notice) -> None:
        heard.append(notice)
        press_when_verifying(notice)

    raised = in_a_loop_of_its_own(workspace, verify="sleep 100", allow_run=True, approve=approve(), hear=hear)
    [found] = list_sessions(workspace)
    assert (workspace / "train.py").read_text() == FIXED
    assert "; the fix stands in train.py:4 and is not verified; to go on: " in str(raised)
    assert f"; to take the change back, which is no strike: traindx resume {found.session} --undo" in str(raised)
    assert [n.text for n in heard if n.kind == "left"] == [str(raised)]
    assert found.reason == "cancelled; the fix stands in train.py:4 and is not verified"
    confirm_fix(found.folder, passed=False, comment="taken back")
    resume_session_sync(found.folder, investigator=Scripted([diagnosis()]), report=False)
    assert (workspace / "train.py").read_text() == TRAIN


async def test_a_cancellation_has_the_words_too_as_they_work_from_anywhere(
        workspace: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.WARNING)
    entered = asyncio.Event()

    class Waits(Scripted):
        async def gather(self, case):
            entered.set()
            await asyncio.Event().wait()

    monkeypatch.chdir(workspace.parent)
    task = asyncio.create_task(run_debug_session(**opened(Path(workspace.name), investigator=Waits([]))))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError, match="no file of yours was changed") as left:
        await task
    assert str(left.value).endswith(f"--workspace {workspace}")
    assert task.cancelled()


def test_pressed_at_the_callers_own_prompt_ends_the_prompt_and_leaves_the_gate_open(workspace: Path) -> None:
    def ask(shown: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the prompt went on")

    with pytest.raises(KeyboardInterrupt, match="is kept as it stands"):
        run_debug_session_sync(**opened(workspace, approve=ask))
    [found] = list_sessions(workspace)
    assert read_result(found.folder).status == "awaiting_approval"


def test_what_runs_in_a_thread_of_the_session_is_ended() -> None:
    ended = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def session() -> None:
        asked = threading.Event()
        stopping.ASKED.set(asked)
        work = asyncio.ensure_future(asyncio.to_thread(stopping.run_here, endless()))
        asked.set()
        with pytest.raises(stopping.Stopped):
            await work

    asyncio.run(session())
    assert ended.is_set()


async def _answer() -> int:
    return 7


def test_outside_of_a_session_it_is_a_plain_run() -> None:
    assert stopping.run_here(_answer()) == 7
