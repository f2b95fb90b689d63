"""A model that tries to get past the gate, by every way that is known: all refused; what a diagnosis needs is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RUNNER = Path(__file__).resolve().parents[3] / "tools" / "hooks" / "protected.py"

RUN = f"python3 {RUNNER} --"


@pytest.fixture
def opened(talk: Any, work: Path) -> Any:
    (work.parent / "outside.txt").write_text("not yours")
    (work / "scratch" / "debug").mkdir(parents=True)
    (work / "scratch" / "debug" / "way.py").symlink_to(work / "train.py")
    (work / "scratch" / "debug" / "up").symlink_to(work)
    (work / "note.ipynb").write_text("{}")
    talk.opens()
    return talk


COMMANDS = [
    "sed -i s/12/6/ train.py", "cd {up} && sed -i s/12/6/ work/train.py", "cd {work}; sed -i s/12/6/ train.py",
    "cd scratch/debug && cd ../.. && rm train.py", "echo x > train.py", "echo x >> train.py", "cat a | tee train.py",
    "python3 -c \"open('train.py','w')\"", "python -c 'import os; os.remove(\"train.py\")'",
    "python3 scratch/debug/x.py",
    "python3 <<'EOF'\nopen('train.py','w')\nEOF", "bash -c 'echo x > train.py'", "sh scratch/debug/x.sh", "./x.sh",
    "git apply fix.patch", "git checkout -- train.py", "git checkout HEAD~1", "git stash", "git restore train.py",
    "git reset --hard", "git commit -am x", "git -C . apply x", "git config alias.x '!rm train.py'",
    "patch -p1 < x.patch",
    "perl -pi -e s/12/6/ train.py", "awk -i inplace 1 train.py", "ed train.py", "ex -sc wq train.py",
    "vim -es train.py",
    "cp x.py train.py", "mv x.py train.py", "rm train.py", "ln -sf x train.py", "dd of=train.py",
    "truncate -s0 train.py",
    "touch new.py", "mkdir new", "chmod +x train.py", "install x train.py", "rsync x train.py", "tar xf x.tar",
    "unzip x.zip", "curl -o train.py http://127.0.0.1/x", "wget -O train.py http://127.0.0.1/x", "pip install x",
    "find . -name train.py -delete", "find . -exec rm {{}} ;", "xargs rm", "env python3 x.py", "nohup python3 x.py",
    "sort -o train.py train.py", "sed -n w/train.py", "tail -f log &", "ls $(rm train.py)", "ls `rm train.py`",
    "ls\nrm train.py", "ls;rm train.py", "ls||rm train.py", "cat <(rm train.py)", "make", "npm test", "pytest",
    "torchrun x",
    "eval rm train.py", "exec rm train.py", "source x.sh", ". x.sh", "alias ls=rm", "function ls {{ rm x; }}",
    "docker run x",
    "claude -p 'approve A'", "at now", "crontab x", "kill 1", "sudo ls", "xdg-open x", "dotnet x", "node -e 1", "",
    "traindx debug . --verify x", "traindx approve s --option A", "python -m traindx approve s --option A",
    "{run} ls; rm train.py", "{run} ls > train.py", "{run} ls $(rm train.py)", "{run} ls | tee train.py", "{run} ls &",
    "{run} ls\nrm train.py", "rm train.py && {run} ls", "python3 tools/hooks/protected.py -- ls",
    "python3 ./protected.py -- rm",
    "cat {state}/lock > {state}/x", "rm -r {state}", "touch {state}/off/x", "TRAINDX_GATE=off ls",
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("approved", [False, True], ids=["before", "after"])
def test_commands_that_write_or_run_are_refused(opened: Any, work: Path, command: str, approved: bool) -> None:
    """After an approval as well: the fix is applied with the file tools, which name their lines."""
    if approved:
        opened.shows()
        assert "is approved" in opened.prompt("approve A")
    line = command.format(up=work.parent, work=work, run=RUN, state=opened.store.folder)
    reason = opened.call("Bash", command=line)
    assert "Instead:" in reason, line


@pytest.mark.parametrize("command", [
    "cat train.py", "git diff -- train.py", "git log --oneline -5", "ls -la", "cd {work} && cat train.py",
    "cd {work} && git status", "grep -n EPS train.py | head -5", "tail -n 50 train.py", "nvidia-smi", "wc -l train.py",
    "{run} python3 train.py", "{run} python3 -c 'open(\"x\", \"w\")'", "{run} sh -c 'rm -rf . ; echo $HOME'",
    "cd {work} && {run} python3 train.py", "{run} env CUDA_LAUNCH_BLOCKING=1 python3 train.py 2>&1",
    "python3 {script} diagnose train.py --symptom 'loss is NaN'", "python3 {script} explain L204", "traindx diagnose .",
    "traindx audit train.py",
])
def test_what_a_diagnosis_needs_may_run(opened: Any, work: Path, command: str) -> None:
    script = RUNNER.parents[2] / "skills" / "ml-debug" / "scripts" / "traindx_run.py"
    assert opened.call("Bash", command=command.format(work=work, run=RUN, script=script)) == ""


@pytest.mark.parametrize(("tool", "arguments"), [
    ("Edit", {"file_path": "{work}/train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "{work}/scratch/debug/way.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "{work}/scratch/debug/up/train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Edit", {"file_path": "{work}/scratch/debug/../../train.py", "old_string": "1e-12", "new_string": "1e-6"}),
    ("Write", {"file_path": "{work}/new.py", "content": "x"}),
    ("Write", {"file_path": "{up}/outside.txt", "content": "x"}),
    ("Write", {"file_path": "~/.claude/settings.json", "content": "{{}}"}),
    ("Write", {"file_path": "{work}/.claude/settings.json", "content": '{{"disableAllHooks": true}}'}),
    ("Write", {"file_path": "{work}/.git/hooks/post-checkout", "content": "x"}),
    ("Write", {"file_path": "{state}/workspaces/x.json", "content": "{{}}"}),
    ("Write", {"file_path": "{state}/off/x", "content": ""}),
    ("Write", {"file_path": "{work}/scratch/debug/strikes.jsonl", "content": ""}),
    ("Write", {"file_path": "", "content": ""}), ("Write", {}), ("Edit", {"file_path": "a\0b"}),
    ("MultiEdit", {"file_path": "{work}/train.py", "edits": [{"old_string": "1e-12", "new_string": "1e-6"}]}),
    ("NotebookEdit", {"notebook_path": "{work}/note.ipynb", "new_source": "x"}),
    ("mcp__filesystem__write_file", {"path": "{work}/train.py", "content": "x"}),
    ("mcp__filesystem__edit_file", {"path": "{work}/train.py"}), ("mcp__shell__run", {"command": "rm x"}),
    ("mcp__fs__read_and_write", {}), ("mcp__git__checkout", {}), ("mcp__x__getOrCreateFile", {}),
    ("CronCreate", {"prompt": "approve A"}), ("ScheduleWakeup", {"prompt": "approve A"}),
    ("Monitor", {"command": "rm x"}),
    ("Workflow", {"script": "x"}), ("EnterWorktree", {}), ("PowerShell", {"command": "rm x"}), ("SomethingNew", {}),
])
def test_tools_that_write_or_type_for_the_person_are_refused(opened: Any, work: Path, tool: str,
                                                            arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments).replace("{{", "{").replace("}}", "}")
    for name, value in (("work", work), ("up", work.parent), ("state", opened.store.folder)):
        text = text.replace("{" + name + "}", str(value))
    assert "Instead:" in opened.call(tool, **json.loads(text))


@pytest.mark.parametrize(("tool", "arguments"), [
    ("Write", {"file_path": "{work}/scratch/debug/probe.py", "content": "x"}),
    ("Write", {"file_path": "scratch/debug/characterization.md", "content": "x"}),
    ("Write", {"file_path": "{work}/scratch/debug/nan/log.txt", "content": "x"}),
    ("Read", {"file_path": "/usr/lib/python3/x.py"}), ("Agent", {"prompt": "x"}), ("WebSearch", {"query": "x"}),
    ("mcp__plugin_traindx_traindx__diagnose_run", {"paths": ["."]}), ("mcp__traindx__plot_run", {"paths": ["."]}),
    ("mcp__wandb__query_runs", {}), ("mcp__github__getIssue", {}), ("TodoWrite", {}), ("ExitPlanMode", {}),
])
def test_what_writes_nothing_of_the_project_is_left_alone(opened: Any, work: Path, tool: str,
                                                         arguments: dict[str, Any]) -> None:
    assert opened.call(tool, **json.loads(json.dumps(arguments).replace("{work}", str(work)))) == ""


def test_every_tool_of_our_own_server_may_be_called(opened: Any) -> None:
    from traindx.mcp_tools import TOOLS

    for name in TOOLS:  # jaxpr too: its server asks for the person's consent itself
        assert opened.call(f"mcp__plugin_traindx_traindx__{name}") == ""
        assert opened.call(f"mcp__traindx__{name}") == "", name
    assert opened.call("mcp__traindx__write_file") != "", "a server that only has our name"


def test_subagents_are_judged_alike(opened: Any, work: Path) -> None:
    said = opened.event("PreToolUse", tool_name="Write", agent_id="a1", agent_type="general-purpose",
                        tool_input={"file_path": str(work / "x.py"), "content": "x"})
    assert said["permissionDecision"] == "deny"


def test_from_a_folder_of_the_project_it_is_the_same_gate(opened: Any, work: Path, elsewhere: Any) -> None:
    (work / "src").mkdir()
    inner = elsewhere(work / "src")
    assert "Gate 4" in inner.edit("x.py", "", "x = 1\n")


def test_with_the_persons_agreement_code_runs_without_protection_and_nothing_else(opened: Any) -> None:
    assert "without write protection" in opened.prompt("allow runs")
    for command in ("python train.py", "pytest tests -x", "CUDA_LAUNCH_BLOCKING=1 python3 scratch/debug/probe.py"):
        assert opened.call("Bash", command=command) == ""
    for command in ("python -c 'open(1)'", "python3 -c x", "sed -i s/1/2/ train.py", "python x.py > train.py", "rm x",
                    "python train.py; rm train.py", "git apply x"):
        assert opened.call("Bash", command=command) != "", command


def test_deciding_on_a_session_of_the_orchestrator_is_the_persons_also_when_no_session_is_open(talk: Any) -> None:
    for command in ("traindx approve 2026 --option A", "cd x && traindx reject 2026", "python -m traindx approve s",
                    "python -c 'from traindx.session import decide; decide(1)'"):
        assert "the person's" in talk.call("Bash", command=command), command
    for command in ("traindx diagnose .", "traindx show 2026", "git log --grep approve", "grep -rn approve docs"):
        assert talk.call("Bash", command=command) == "", command
