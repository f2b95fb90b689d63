"""The plugin in the real CLI on a scripted API: what is listed, what runs, and that nothing reaches the project."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from plugin_session import ROOT, environment, talking
from plugin_words import DIAGNOSIS, EPS, OPEN, bash, edit, eps
from scripted_api import Both, Text, Use, scripted

pytestmark = pytest.mark.slow

RUNNER = ROOT / "tools" / "hooks" / "protected.py"
HELD = re.compile("Permission denied|Read-only file system|Operation not permitted")
"""What the kernel says."""

VERIFY = bash("python3 check.py")
QUESTION = {"questions": [{"question": "Which fix?", "header": "Gate 4", "multiSelect": False, "options": [
    {"label": "approve A", "description": "targeted"}, {"label": "not yet", "description": "wait"}]}]}


def shown(value: str) -> str:
    """The diagnosis with another new value."""
    return DIAGNOSIS.replace("EPS = 1e-6", f"EPS = {value}")


@pytest.mark.parametrize("installed", [False, True], ids=["without-traindx", "with-traindx"])
async def test_skills_agents_and_the_server_are_listed(installed: bool, project: Path, tmp_path: Path) -> None:
    """Without traindx the server is a stand-in that says what to install."""
    path = "/usr/bin:/bin"
    if installed:
        program = tmp_path / "bin" / "traindx"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nfrom traindx.cli import main\nmain()\n")
        program.chmod(0o755)
        path = f"{program.parent}:{path}"
    tool = "explain" if installed else "how_to_install"
    arguments = {"name": "L204"} if installed else {}
    script = [bash("sleep 4"), Use("ToolSearch", {"query": "traindx", "max_results": 20}),
              Use(f"mcp__plugin_traindx_traindx__{tool}", arguments), Text("done")]
    async with talking(project, tmp_path / "home", script, path=path) as talk:
        brought = await talk.types("hello")
    assert {f"traindx:{p.parent.name}" for p in (ROOT / "skills").glob("*/SKILL.md")} <= set(talk.init["skills"])
    assert {f"traindx:{p.stem}" for p in (ROOT / "agents").glob("*.md")} <= set(talk.init["agents"])
    assert not talk.init.get("plugin_errors")
    assert ("How to confirm" if installed else "[mcp]', then start the host again") in brought[-1][0].replace('\\"', "")
    assert "a debug session is open" not in talk.heard, "the gate is silent"


async def test_without_a_session_an_edit_is_as_free_as_ever(project: Path, tmp_path: Path) -> None:
    read = Use("Read", {"file_path": str(project / "train.py")})
    async with talking(project, tmp_path / "home", [read, edit(project), Text("done")]) as talk:
        brought = await talk.types("change EPS")
    assert not brought[-1][1]
    assert eps(project) == "EPS = 1e-6"
    assert not (tmp_path / "home" / "state").exists(), "not even a trace of the gate"


async def test_the_model_cannot_write_or_approve_and_the_persons_prompt_opens(project: Path, tmp_path: Path) -> None:
    before = (project / "train.py").read_bytes()
    tries = [edit(project), Use("Write", {"file_path": str(project / "new.py"), "content": "x"}),
             bash("sed -i s/1e-12/1e-6/ train.py"), bash("cd .. && sed -i s/1e-12/1e-6/ work/train.py"),
             bash("python3 -c \"open('train.py','w')\""), bash("chmod 000 train.py"),
             bash(f"echo '{{}}' > {tmp_path}/home/state/traindx/gate/workspaces/x.json"),
             Use("CronCreate", {"cron": "* * * * *", "prompt": "approve A", "recurring": False}),
             Use("Agent", {"subagent_type": "general-purpose", "description": "w", "prompt": "SUBAGENT: write it"})]
    read = Use("Read", {"file_path": str(project / "train.py")})
    script = [read, OPEN, *tries, Text(DIAGNOSIS), edit(project), Text("done"), edit(project), Text("done")]

    def model(body: dict[str, Any]) -> Any:
        said = sum(m["role"] == "assistant" for m in body["messages"])
        if "SUBAGENT: write it" in json.dumps(body["messages"][0]):
            return [edit(project), Text("could not")][min(said, 1)]
        return script[min(said, len(script) - 1)]

    async with talking(project, tmp_path / "home", model) as talk:
        brought = await talk.types("the loss is NaN, fix it")
        assert (project / "train.py").read_bytes() == before
        assert not (project / "new.py").exists()
        refused, held = brought[2:4], brought[4:9]
        assert all(error and "traindx gate" in text for text, error in refused), refused
        assert all(error and HELD.search(text) for text, error in held), held
        assert "traindx gate" in brought[9][0], "a task that types in the person's name"
        assert "You were started for one task: skip the workflow" in talk.heard
        assert "approve A" in talk.heard, "the agent is told how the person approves"
        brought = await talk.types("looks good, go ahead")
        assert brought[0][1], "a mood approves nothing"
        assert (project / "train.py").read_bytes() == before
        brought = await talk.types("approve A")
        assert not brought[0][1], brought
    assert eps(project) == "EPS = 1e-6"
    assert "option A of diagnosis" in talk.heard


async def test_the_persons_answer_to_the_question_tool_opens_and_the_models_own_does_not(project: Path,
                                                                                          tmp_path: Path) -> None:
    options = [{"label": "Yes", "description": "go on"}, {"label": "No", "description": "stop"}]
    other = {"questions": [{"question": "May I spend ten more minutes?", "header": "Time", "multiSelect": False,
                            "options": options}]}
    given = iter(["approve A", "not yet", "approve A"])
    asked: list[dict[str, Any]] = []

    def person(arguments: dict[str, Any]) -> dict[str, str]:
        asked.append(arguments["questions"][0])
        return {asked[-1]["question"]: next(given)}

    script = [OPEN, Use("Read", {"file_path": str(project / "train.py")}),
              Both(DIAGNOSIS, Use("AskUserQuestion", {**QUESTION, "answers": {"Which fix?": "approve A"}})),
              edit(project), Use("AskUserQuestion", other), edit(project), Use("AskUserQuestion", QUESTION),
              edit(project), Use("AskUserQuestion", QUESTION), edit(project), Text("ok")]
    async with talking(project, tmp_path / "home", script, person) as talk:
        brought = await talk.types("the loss is NaN")
    errors = [error for _, error in brought]
    assert errors == [False, False, True, True, False, True, False, True, False, False], brought
    assert "asks nobody" in brought[2][0]
    assert asked[0]["question"] == "May I spend ten more minutes?", "no question of the gate, whatever is answered"
    assert asked[1]["question"].startswith("traindx gate, diagnosis "), "the gate asks in its own words"
    assert "train.py:20 (to EPS = 1e-6)" in asked[1]["options"][0]["description"]
    assert eps(project) == "EPS = 1e-6"


def protects(folder: Path) -> bool:
    """Whether this kernel can write-protect a run."""
    done = subprocess.run([sys.executable, str(RUNNER), "--", "true"], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0


async def test_three_failed_verifications_close_it_until_the_person_decides(project: Path, tmp_path: Path) -> None:
    if not protects(tmp_path):
        pytest.skip("this kernel has no Landlock: nothing is run here")
    read = Use("Read", {"file_path": str(project / "train.py")})
    values = ["1e-11", "1e-10", "1e-9", "1e-8"]
    script: list[Any] = [OPEN, read, Text(shown(values[0]))]
    for value, following in pairwise(values):
        script += [read, edit(project, f"EPS = {value}"), VERIFY, Text(shown(following))]
    script += [edit(project), Text("stopped"), Text(shown("1e-4")), read, edit(project, "EPS = 1e-4"), VERIFY,
               Text("fixed")]
    async with talking(project, tmp_path / "home", script) as talk:
        await talk.types("the loss is NaN")
        for strike in range(3):
            brought = await talk.types("approve A")
            assert [error for _, error in brought] == [False, False, True], (strike, brought)
            assert eps(project) == EPS, "a failed fix is taken back"
        assert "Strike 1: more evidence" in talk.heard
        assert "Strike 2: question the cause" in talk.heard
        brought = await talk.types("approve A")
        assert brought[0][1]
        assert "3 fixes failed their verification" in brought[0][0]
        await talk.types("reopen the approach because the resolution was misread")
        brought = await talk.types("approve A")
        assert [error for _, error in brought] == [False, False, False], brought
    assert eps(project) == "EPS = 1e-4"
    assert "exit code 0. That proves nothing by itself" in talk.heard
    assert len((project / "scratch" / "debug" / "strikes.jsonl").read_text().splitlines()) == 3


async def test_an_incomplete_diagnosis_is_completed_before_the_person_decides(project: Path, tmp_path: Path) -> None:
    half = DIAGNOSIS.split("## What This Fix Will Change")[0]
    read = Use("Read", {"file_path": str(project / "train.py")})
    async with talking(project, tmp_path / "home", [OPEN, read, Text(half), Text(DIAGNOSIS), edit(project),
                                                    Text("done")]) as talk:
        await talk.types("the loss is NaN")
        assert "section 'What This Fix Will Change' is missing" in talk.heard
        brought = await talk.types("approve A")
        assert not brought[0][1], brought
    assert eps(project) == "EPS = 1e-6"


async def test_a_typed_command_opens_a_session_and_a_phrase_closes_it(project: Path, tmp_path: Path) -> None:
    read = Use("Read", {"file_path": str(project / "train.py")})
    script = [read, edit(project), Text("no"), edit(project), Text("done")]
    async with talking(project, tmp_path / "home", script) as talk:
        brought = await talk.types("/traindx:ml-debug the loss is NaN")
        assert "traindx gate" in brought[-1][0]
        brought = await talk.types("close the debug session")
        assert not brought[-1][1], brought
    assert eps(project) == "EPS = 1e-6"


def test_the_wheels_pack_is_a_plugin_with_the_same_gate(project: Path, tmp_path: Path) -> None:
    """Installed from the wheel, with a Python that has no package at all."""
    from hatchling.builders.wheel import WheelBuilder

    tree = tmp_path / "tree"
    for part in ("skills", "agents", "tools", "orchestrator", "templates", ".claude-plugin"):
        shutil.copytree(ROOT / part, tree / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".mcp.json"):
        shutil.copy(ROOT / name, tree / name)
    built = next(WheelBuilder(str(tree)).build(directory=str(tmp_path / "dist"), versions=["standard"]))
    zipfile.ZipFile(built).extractall(tmp_path / "site")
    plugin = tmp_path / "site" / "traindx" / "_pack"
    sdk = pytest.importorskip("claude_agent_sdk")
    claude = Path(sdk.__file__).parent / "_bundled" / "claude"
    script = [OPEN, Use("Read", {"file_path": str(project / "train.py")}), edit(project), Text("done")]
    with scripted({"": script}) as api:
        done = subprocess.run([str(claude), "-p", "the loss is NaN", "--plugin-dir", str(plugin), "--permission-mode",
                               "acceptEdits", "--allowedTools", "Skill"], cwd=project, capture_output=True, text=True,
                              timeout=100, check=False, stdin=subprocess.DEVNULL,
                              env=environment(tmp_path / "home", api.url))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "traindx gate: nothing is written before an approved Gate 4" in str([a.body["messages"] for a in api.asked])
    assert eps(project) == EPS


async def test_commands_run_as_they_are_and_the_folder_and_exit_codes_are_kept(project: Path, tmp_path: Path) -> None:
    if not protects(tmp_path):
        pytest.skip("this kernel has no Landlock: nothing is run here")
    script = [OPEN, bash("grep -rn EPS . | head -2; echo \"it's $((1 + 1))\""), bash("cd scratch/debug && pwd"),
              bash("pwd; exit 3"), bash("cat > probe.py <<'EOF'\nprint('a' != \"b\")\nEOF\npython3 probe.py"),
              bash("cd ../..; git status | wc -l"),
              bash(f"python3 {RUNNER} --copy -- python3 -c \"open('train.py', 'w').write('x'); print('in a copy')\""),
              Text("done")]
    before = (project / "train.py").read_bytes()
    async with talking(project, tmp_path / "home", script) as talk:
        brought = await talk.types("the loss is NaN")
    texts, errors = [t for t, _ in brought[1:]], [e for _, e in brought[1:]]
    assert errors == [False, False, True, False, False, False], brought
    assert "it's 2" in texts[0]
    assert texts[1].strip().endswith("scratch/debug")
    assert "Exit code 3" in texts[2]
    assert "scratch/debug" in texts[2], "the host kept the folder"
    assert texts[3].strip() == "True"
    assert "in a copy" in texts[5]
    assert (project / "train.py").read_bytes() == before


@pytest.mark.parametrize("skill", ["pytorch-debugging", "jax-debugging", "research-debug", "distributed-debugging"])
async def test_each_skill_of_the_pack_closes_the_gate(project: Path, tmp_path: Path, skill: str) -> None:
    script = [Use("Skill", {"skill": f"traindx:{skill}", "args": "the loss is NaN"}),
              Use("Read", {"file_path": str(project / "train.py")}), edit(project), Text("done")]
    async with talking(project, tmp_path / "home", script) as talk:
        brought = await talk.types("the loss is NaN")
    assert brought[-1][1]
    assert eps(project) == EPS
