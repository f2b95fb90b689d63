"""What the plugin's gate puts to the person, and when it ends, in the real CLI on a scripted API."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from plugin_session import ROOT, environment, talking
from plugin_words import DIAGNOSIS, EPS, OPEN, edit, eps
from scripted_api import Text, Use, scripted

pytestmark = pytest.mark.slow

IN_WORDS = DIAGNOSIS.replace("train.py:20: EPS = 1e-6.", "train.py:20 with a larger epsilon.")


def read(project: Path) -> Use:
    return Use("Read", {"file_path": str(project / "train.py")})


@pytest.mark.parametrize("more", [{}, {"allowed_tools": ["Edit"]}], ids=["edits are accepted", "an allow rule"])
async def test_an_edit_that_was_approved_in_words_is_put_to_the_person(project: Path, tmp_path: Path,
                                                                       more: dict[str, Any]) -> None:
    said: list[str] = []

    def person(tool: str, why: str) -> bool:
        said.append(why)
        return "os.remove" not in why

    many = "\n".join(f"os.remove('{n}')" for n in range(54))
    script = [OPEN, read(project), Text(IN_WORDS), edit(project, many), edit(project), Text("done")]
    async with talking(project, tmp_path / "home", script, agrees=person, **more) as talk:
        await talk.types("the loss is NaN")
        brought = await talk.types("approve A")
    assert [error for _, error in brought] == [True, False], brought
    assert "+os.remove('53')" in said[0], "the person sees all of it"
    assert "\n-EPS = 1e-12" in said[1]
    assert "\n+EPS = 1e-6" in said[1]
    assert eps(project) == "EPS = 1e-6"


async def test_where_nobody_is_asked_it_is_refused(project: Path, tmp_path: Path) -> None:
    script = [OPEN, read(project), Text(IN_WORDS), edit(project), Text("done")]
    async with talking(project, tmp_path / "home", script, permission_mode="dontAsk") as talk:
        await talk.types("the loss is NaN")
        brought = await talk.types("approve A")
    assert brought[0][1]
    assert "show that text as a diff" in brought[0][0]
    assert eps(project) == EPS


@pytest.mark.parametrize("agrees", [True, False])
async def test_a_tool_of_another_server_is_asked_about_for_this_host_hands_no_annotations_on(
        project: Path, tmp_path: Path, agrees: bool) -> None:
    """As soon as the host hands them on, the tool passes unasked, and docs/gate.md says something else."""
    from claude_agent_sdk import create_sdk_mcp_server, tool
    from mcp.types import ToolAnnotations

    called: list[str] = []
    said: list[str] = []

    @tool("look", "Looks.", {}, annotations=ToolAnnotations(readOnlyHint=True))
    async def look(arguments: dict[str, Any]) -> dict[str, Any]:
        called.append("look")
        return {"content": [{"type": "text", "text": "seen"}]}

    def person(name: str, why: str) -> bool:
        said.append(why)
        return agrees

    script = [OPEN, Use("mcp__other__look", {}), Text("done")]
    async with talking(project, tmp_path / "home", script, agrees=person, allowed_tools=["mcp__other__look"],
                       mcp_servers={"other": create_sdk_mcp_server("other", tools=[look])}) as talk:
        await talk.types("the loss is NaN")
    assert len(said) == 1
    assert "the MCP tool mcp__other__look does not declare that it only reads" in said[0]
    assert called == ["look"] * agrees


async def test_our_own_server_is_known_by_what_the_host_says_of_it(project: Path, tmp_path: Path) -> None:
    """A stand-in answers, for no traindx is in PATH."""
    from claude_agent_sdk import HookMatcher

    events: list[dict[str, Any]] = []
    said: list[str] = []

    async def watch(event: Any, use: str | None, context: Any) -> Any:
        events.append(event)
        return {}

    def person(name: str, why: str) -> bool:
        said.append(why)
        return True

    script = [OPEN, Use("ToolSearch", {"query": "traindx", "max_results": 5}),
              Use("mcp__plugin_traindx_traindx__how_to_install", {}), Text("done")]
    async with talking(project, tmp_path / "home", script, path="/usr/bin:/bin", agrees=person,
                       hooks={"PreToolUse": [HookMatcher(hooks=[watch])]}) as talk:
        brought = await talk.types("the loss is NaN")
    server = next(e["mcp_server"] for e in events if e["tool_name"].startswith("mcp__"))
    assert server["source"] == "plugin", server
    assert "[mcp]', then start the host again" in brought[-1][0]
    assert not any("traindx gate" in why for why in said), said


def test_the_gate_ends_with_its_conversation_and_the_next_one_is_told(project: Path, tmp_path: Path) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    claude = Path(sdk.__file__).parent / "_bundled" / "claude"
    home = tmp_path / "home"

    def conversation(script: list[Any]) -> str:
        with scripted({"": script}) as api:
            done = subprocess.run([str(claude), "-p", "the loss is NaN", "--plugin-dir", str(ROOT), "--permission-mode",
                                   "acceptEdits", "--allowedTools", "Skill"], cwd=project, capture_output=True,
                                  text=True, timeout=150, check=False, stdin=subprocess.DEVNULL,
                                  env=environment(home, api.url) | {"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "30000"})
            assert done.returncode == 0, done.stdout + done.stderr
            return json.dumps([a.body["messages"] for a in api.asked])

    opened = home / "state" / "traindx" / "gate" / "open"
    heard = conversation([OPEN, read(project), edit(project), Text("done")])
    assert "nothing is written before an approved Gate 4" in heard
    assert eps(project) == EPS
    assert list(opened.iterdir()) == [], "SessionEnd closed it"
    heard = conversation([read(project), edit(project), Text("done")])
    assert "ended with its conversation" in heard, "SessionStart told the agent"
    assert eps(project) == "EPS = 1e-6"
