"""A model that obeys every hostile text it reads, over the Messages API: all is refused, the workspace stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_calls import CALLS, hostile_root, ordered, plant
from one_question import asker, contents, question
from scripted_api import Several, Use, answer, scripted

from traindx.investigators.claude_code.askers import purse_of
from traindx.investigators.claude_code.asking import Asker
from traindx.investigators.messages_api import file_tools
from traindx.investigators.messages_api.asking import ApiAsker
from traindx.settings import Settings

Made = Callable[..., Settings]


@pytest.fixture
def root(work: Path) -> Path:
    return hostile_root(work)


def ours(work: Path, tmp_path: Path, settings: Settings) -> Asker:
    made = asker(work, tmp_path / "scratch", settings, ApiAsker)
    made.purse = purse_of(settings, tmp_path / "scratch")
    return made


def heard(body: dict[str, Any]) -> str:
    return "\n".join(b["content"] for m in body["messages"] if m["role"] == "user" for b in m["content"]
                     if b["type"] == "tool_result")


async def test_everything_that_hostile_text_asks_for_is_refused(root: Path, tmp_path: Path, settings: Made) -> None:
    files = plant(root)
    before = contents(tmp_path / "work")

    def obedient(body: dict[str, Any]) -> Any:
        step = sum(m["role"] == "assistant" for m in body["messages"])
        if step == 0:
            return Several([Use("Glob", {"pattern": "*"}), *(Use("Read", {"file_path": f}) for f in files)])
        return Several([Use(t, a) for t, a in ordered(heard(body))]) if step == 1 else answer({"ok": True})

    with scripted({"tester": obedient}) as api:
        reply = await ours(root, tmp_path, settings(api.url)).ask(question(model="m"), 100)
    assert reply.answer == {"ok": True}, reply.failure
    obeyed = api.asked[-1].body["messages"][3]["content"]
    assert len(obeyed) == len(CALLS) >= 40, "the model must really have tried all of them"
    came = api.asked[-1].body["messages"][4]["content"]
    assert all(r["is_error"] for r in came), [r for r in came if not r["is_error"]]
    assert all("traindx refuses" in r["content"] for r in came)
    assert len(reply.denied) == len(CALLS)
    assert contents(tmp_path / "work") == before
    assert not (tmp_path / "pwned").exists()
    sent = str([a.body["messages"] for a in api.asked])
    assert "of-the-secret" not in sent
    assert "root:x:0" not in sent


WRITES: list[Use] = [
    Use("Edit", {"file_path": "train.py", "old_string": "SEED = 7", "new_string": "SEED = 8"}),
    Use("Write", {"file_path": "new.py", "content": "x"}),
    Use("Write", {"file_path": "up/planted.txt", "content": "x"}),
    Use("NotebookEdit", {"notebook_path": "note.ipynb", "new_source": "x"}),
    Use("Bash", {"command": "echo x > redirected.txt"}), Use("Bash", {"command": "ls"}),
    Use("Agent", {"subagent_type": "general-purpose", "prompt": "write", "description": "x"}),
    Use("mcp__traindx__plot_run", {"paths": ["log.txt"], "name": "x"}),
    Use("mcp__files__write_file", {"path": "train.py", "content": "x"}), Use("web_fetch", {"url": "http://x"}),
    Use("Write", {"file_path": "scratch/debug/note.md", "content": "even a diagnostic: nothing here writes"}),
]


async def test_nothing_that_writes_or_runs_exists_in_any_phase(root: Path, tmp_path: Path, settings: Made) -> None:
    before = contents(tmp_path / "work")
    for phase in ("gather", "gate", "fix", "verify"):
        with scripted({f"tester-{phase}": [Several(WRITES), answer({"ok": True})]}) as api:
            made = ours(root, tmp_path, settings(api.url))
            made.phase = phase
            reply = await made.ask(question(f"tester-{phase}", model="m"), 60)
        assert reply.answer == {"ok": True}, reply.failure
        assert len(reply.denied) == len(WRITES)
    assert contents(tmp_path / "work") == before
    assert set(file_tools.TOOLS) == {"Read", "Grep", "Glob"}


@pytest.mark.parametrize("breaks", [RuntimeError("broken"), OSError("gone")])
async def test_a_policy_that_fails_refuses(breaks: Exception, root: Path, tmp_path: Path, settings: Made,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise breaks

    monkeypatch.setattr("traindx.investigators.messages_api.toolbox.judge", broken)
    with scripted({"tester": [Use("Read", {"file_path": "train.py"}), answer({"ok": True})]}) as api:
        reply = await ours(root, tmp_path, settings(api.url)).ask(question(model="m"), 60)
    assert reply.answer == {"ok": True}, reply.failure
    assert "SEED" not in heard(api.asked[-1].body)
    assert len(reply.denied) == 1


async def test_links_and_names_lead_nowhere_else(root: Path, tmp_path: Path, settings: Made) -> None:
    looks = [Use("Glob", {"pattern": "up/*"}), Use("Glob", {"pattern": "**/*", "path": "up"}),
             Use("Grep", {"pattern": "secret", "path": "up"}),
             Use("Grep", {"pattern": "of-the-secret", "glob": "*.txt"}),
             Use("Read", {"file_path": "up/outside.txt"}), Use("Glob", {"pattern": "../*"})]
    with scripted({"tester": [Several(looks), answer({"ok": True})]}) as api:
        await ours(root, tmp_path, settings(api.url)).ask(question(model="m"), 60)
    assert "of-the-secret" not in heard(api.asked[-1].body)
    shown = [row for row in heard(api.asked[-1].body).split("\n") if not row.startswith("traindx refuses")]
    assert "outside.txt" not in "\n".join(shown)
