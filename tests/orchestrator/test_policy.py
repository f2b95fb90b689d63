"""The one predicate for tool calls: what is not known to be harmless is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted import TRAIN, fix, replace_line

from traindx.machine import PHASES
from traindx.model import Fix, Instruction
from traindx.policy import Scope, Verdict, allowed

READ_ONLY = [p for p in PHASES if p != "fix"]


@pytest.fixture
def root(workspace: Path) -> Path:
    (workspace / ".env").write_text("API_KEY=1")
    (workspace / "conf").mkdir()
    (workspace / "conf/hf_token").write_text("x")
    (workspace / "conf/model.yaml").write_text("lr: 1")
    (workspace / "src").mkdir()
    (workspace / "src/token_utils.py").write_text("x = 1")
    (workspace.parent / "outside.txt").write_text("x")
    (workspace / "link.txt").symlink_to(workspace.parent / "outside.txt")
    (workspace / "innocent.txt").symlink_to(workspace / ".env")
    (workspace / "up").symlink_to(workspace.parent)
    session = workspace / "scratch/debug/20260101-000000-abcdef"
    (session / "evidence").mkdir(parents=True)
    (session / "journal.jsonl").write_text("{}\n")
    return workspace


def ask(root: Path, tool: str, arguments: dict[str, Any], phase: str = "gather", **scope: Any) -> Verdict:
    return allowed(tool, arguments, phase, Scope(root, **scope))


@pytest.mark.parametrize("path",
                         ["train.py", "./src/../train.py", "conf/model.yaml", "src/token_utils.py", "not there.py"])
def test_the_workspace_can_be_read(root: Path, path: str):
    assert ask(root, "Read", {"file_path": path}).allow
    assert ask(root, "Read", {"file_path": str(root / path)}).allow


@pytest.mark.parametrize("path", [
    "../outside.txt", "/etc/passwd", "link.txt", "up/outside.txt", "~/x.txt", ".env", "innocent.txt", "conf/hf_token",
    ".env.production", "a/id_rsa", "key.pem", ".ssh/config", ".aws/credentials", "my_secrets.yaml", ".netrc",
    "kubeconfig",
    "a\0b", "service_account-1.json", "wandb_api_key.txt",
])
def test_secrets_and_the_world_outside_are_never_read(root: Path, path: str):
    verdict = ask(root, "Read", {"file_path": path})
    assert not verdict.allow
    assert verdict.reason
    assert verdict.next_step


def test_what_the_user_handed_over_can_be_read_too(root: Path):
    assert ask(root, "Read", {"file_path": "../outside.txt"}, readable=(root.parent / "outside.txt",)).allow


@pytest.mark.parametrize(("arguments", "allow"), [
    ({"pattern": "loss", "path": "src"}, True), ({"pattern": "loss", "path": "train.py"}, True),
    ({"pattern": "KEY"}, False), ({"pattern": "KEY", "path": "."}, False), ({"pattern": "KEY", "path": "conf"}, False),
    ({"pattern": "loss", "glob": "*.py"}, True), ({"pattern": "loss", "glob": "**/*.py"}, True),
    ({"pattern": "KEY", "glob": ".env*"}, False), ({"pattern": "KEY", "glob": "{*.py,.env}"}, False),
    ({"pattern": "KEY", "glob": "*"}, False), ({"pattern": "x", "path": "up"}, False),
    ({"pattern": "x", "path": ".env"}, False),
])
def test_a_search_never_opens_a_secret(root: Path, arguments: dict[str, str], allow: bool):
    assert ask(root, "Grep", arguments).allow is allow


@pytest.mark.parametrize(("pattern", "allow"), [("**/*.py", True), ("../*", False), ("/etc/*", False), ("~/*", False)])
def test_globs_stay_inside(root: Path, pattern: str, allow: bool):
    assert ask(root, "Glob", {"pattern": pattern}).allow is allow


@pytest.mark.parametrize("phase", READ_ONLY)
@pytest.mark.parametrize(("tool", "arguments"), [
    ("Edit", {"file_path": "train.py", "old_string": "10.0", "new_string": "0.1"}),
    ("Write", {"file_path": "train.py", "content": "x"}),
    ("Write", {"file_path": "new.py", "content": "x"}),
    ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x"}),
])
def test_nothing_is_written_before_the_approval(root: Path, phase: str, tool: str, arguments: dict[str, str]):
    assert not ask(root, tool, arguments, phase).allow
    assert not ask(root, tool, arguments, phase, fix=fix(replace_line("x"))).allow


@pytest.mark.parametrize(("path", "allow"), [
    ("scratch/debug/probe.py", True), ("scratch/debug/notes/a.txt", True),
    ("scratch/debug/20260101-000000-abcdef/evidence/a.json", True),
    ("scratch/debug/20260101-000000-abcdef/journal.jsonl", False),
    ("scratch/debug/20260101-000000-abcdef/diagnosis.json", False),
    ("scratch/debug/20260101-000000-abcdef/backup/x", False),
    ("scratch/debug/20260101-000000-abcdef/evidence", False),
    ("scratch/debug/strikes.jsonl", False), ("scratch/debug/strikes.jsonl.lock", False),
    ("scratch/debug/.gitignore", False),
    ("scratch/debug/new/journal.jsonl", False), ("scratch/debug/../../train.py", False), ("scratch/x.py", False),
    ("scratch/debug", False),
])
@pytest.mark.parametrize("phase", ["gather", "fix"])
def test_diagnostics_may_be_written_and_a_sessions_state_may_not(root: Path, path: str, allow: bool, phase: str):
    for tool, arguments in (("Write", {"content": "x"}), ("Edit", {"old_string": "", "new_string": "x"})):
        assert ask(root, tool, {"file_path": path, **arguments}, phase).allow is allow


def test_scratch_that_leads_elsewhere_is_no_scratch(root: Path):
    (root / "scratch/debug/out").symlink_to(root.parent)
    assert not ask(root, "Write", {"file_path": "scratch/debug/out/x.py", "content": "x"}).allow


APPROVED = fix(replace_line("learning_rate = 0.1"))
BY_HAND = fix(instructions=[Instruction(path="train.py", line=4, end_line=5, text="change these lines")])


@pytest.mark.parametrize(("option", "old", "new", "allow"), [
    (APPROVED, "learning_rate = 10.0", "learning_rate = 0.1", True),
    (APPROVED, "weight = 1.0", "weight = 0.0", False),
    (APPROVED, "learning_rate = 10.0\nweight = 1.0", "learning_rate = 0.1\nweight = 1.0", True),
    (APPROVED, "learning_rate = 10.0\nweight = 1.0", "learning_rate = 0.1\nweight = 0.0", False),
    (APPROVED, "seed = 0\n", "", False),
    (APPROVED, "not there", "x", False),
    (APPROVED, "step", "x", False),
    (BY_HAND, "weight = 1.0", "weight = 0.0", False),
    (BY_HAND, "seed = 0", "seed = 1", False),
])
def test_an_edit_in_the_fix_phase_stays_within_the_approved_lines(root: Path, option: Fix, old: str, new: str,
                                                                  allow: bool):
    edit = {"file_path": "train.py", "old_string": old, "new_string": new}
    assert ask(root, "Edit", edit, "fix", fix=option).allow is allow
    assert not ask(root, "Edit", {**edit, "replace_all": True}, "fix", fix=option).allow
    assert not ask(root, "Edit", {**edit, "file_path": "other.py"}, "fix", fix=option).allow
    assert not ask(root, "Edit", edit, "fix").allow
    if TRAIN.count(old) == 1:
        whole = {"file_path": "train.py", "content": TRAIN.replace(old, new)}
        assert ask(root, "Write", whole, "fix", fix=option).allow is allow


def test_where_no_text_was_shown_a_person_has_to_see_it(root: Path):
    def verdict(old: str, new: str) -> Verdict:
        return ask(root, "Edit", {"file_path": "train.py", "old_string": old, "new_string": new}, "fix", fix=BY_HAND)

    asked = verdict("weight = 1.0", "weight = 0.0\nprint('\x1b[2K\u202e')")
    assert (asked.allow, asked.ask) == (False, True)
    assert "train.py:5\n-weight = 1.0\n+weight = 0.0\n+print('\\x1b[2K\\u202e')\n" in asked.reason
    assert not verdict("seed = 0", "seed = 1").ask, "another place is no question"


def test_a_line_put_beside_the_shown_one_is_none_that_was_shown(root: Path):
    for new in ("learning_rate = 10.0\nimport os", "import os\nlearning_rate = 10.0",
                "learning_rate = 10.0\nlearning_rate = 0.1\nimport os"):
        edit = {"file_path": "train.py", "old_string": "learning_rate = 10.0", "new_string": new}
        verdict = ask(root, "Edit", edit, "fix", fix=APPROVED)
        assert (verdict.allow, verdict.ask) == (False, False), new


def test_a_moved_line_may_become_what_was_shown_and_nothing_else(root: Path):
    (root / "train.py").write_text("import os\n" * 3 + TRAIN)
    edit = {"file_path": "train.py", "old_string": "learning_rate = 10.0", "new_string": "os.remove('x')"}
    assert not ask(root, "Edit", edit, "fix", fix=APPROVED).allow


def test_an_approved_edit_is_recognized_after_an_earlier_one_moved_it(root: Path):
    (root / "train.py").write_text("import os\n" * 3 + TRAIN)
    edit = {"file_path": "train.py", "old_string": "learning_rate = 10.0", "new_string": "learning_rate = 0.1"}
    assert ask(root, "Edit", edit, "fix", fix=APPROVED).allow


@pytest.mark.parametrize("command", [
    "", "   ", "rm -rf .", "python train.py", "python -c 'x'", "sh -c ls", "bash x.sh", "env", "printenv", "xargs rm",
    "cat .env", "cat innocent.txt", "cat ../outside.txt", "cat /etc/passwd", "cat ~/.bashrc", "head conf/hf_token",
    "cat train.py > copy.py", "cat train.py >> other.py", "cat train.py >| other.py", "cat < .env", "cat<.env",
    "ls; rm x", "ls && rm x", "ls || rm x", "ls | tee x", "ls & rm x", "ls |& tee x", "ls\nrm x", "ls\rrm x",
    "echo $(rm x)", "cat `ls`", "cat $HOME/.env", "cat ${X}", "ls <(rm x)", "cat {.env,x}", "cat .e*", "cat .en?",
    "cat .[e]nv", "cat \\.env", "cat '.env'", 'cat ".e""nv"', "grep x ';' grep .env", "cat a '|' head .env",
    "cat x#;rm y",
    "cat x #\nrm y", "X=1 rm y", "PAGER=rm git log", "grep -r KEY .", "grep -R KEY", "rg KEY", "rg KEY .",
    "rg --pre rm x src",
    "grep -f .env train.py", "grep --include=* -r KEY .", "find . -delete", "find . -exec rm {} +", "find . -fprint x",
    "sed -i s/a/b/ train.py", "sed -n '1,2w x' train.py", "sed '1e rm' train.py", "sed -n '1p' .env",
    "sort -o x train.py",
    "tail -f train.py", "ps eww", "ps aux", "date -s 1", "git checkout .", "git stash", "git config x y",
    "git commit -m x",
    "git -c core.pager=rm log", "git diff", "git show", "git show HEAD:.env", "git log -p",
    "git diff --output=x -- train.py",
    "git diff -- .env", "git diff -- .", "git diff -- '*.py'", "git diff -- ':(top)x.y'", "git branch new",
    "git blame .env",
    "git grep x", "git log --ext-diff", "nvidia-smi -pm 1", "nvidia-smi --gpu-reset", "nvidia-smi drain",
    "traindx run x",
    "traindx diagnose . --run 'rm x'", "traindx approve s --option A", "traindx diagnose . --out x",
    "cat up/outside.txt",
    "/bin/rm x", "./train.py", "command rm x", "exec ls", "eval ls", "ls !$", "(ls)", "ls 'unclosed", "dd if=a of=b",
    "curl http://x", "wget x", "ssh x", "awk 'BEGIN{system(\"rm\")}'", "git --exec-path=x log", "find / -name x",
    "find ~ -name x", "tee x", "file -C -m x",
])
def test_everything_else_is_refused_with_a_reason(root: Path, command: str):
    for phase in ("gather", "fix", "verify"):
        verdict = ask(root, "Bash", {"command": command}, phase, fix=APPROVED)
        assert not verdict.allow
        assert verdict.reason


def test_background_jobs_are_refused(root: Path):
    assert not ask(root, "Bash", {"command": "ls", "run_in_background": True}).allow


@pytest.mark.parametrize("tool", ["", "Task", "Agent", "KillShell", "mcp__other__write", "read", "READ", "WebFetch",
                                  "SlashCommand", "MultiEdit"])
def test_an_unknown_tool_is_refused(root: Path, tool: str):
    for phase in PHASES:
        assert not ask(root, tool, {"file_path": "train.py"}, phase).allow


@pytest.mark.parametrize("arguments",
                         [{}, {"file_path": 3}, {"file_path": None}, {"file_path": ["train.py"]}, {"command": 7},
                                       {"file_path": ""}, {"pattern": {}}, {"file_path": "x" * 100_000}])
@pytest.mark.parametrize("tool", ["Read", "Glob", "Edit", "Write", "Bash", "NotebookEdit"])
def test_arguments_that_make_no_sense_are_refused(root: Path, tool: str, arguments: dict[str, Any]):
    assert not ask(root, tool, arguments, "fix", fix=APPROVED).allow


def test_an_unknown_phase_is_refused(root: Path):
    assert not ask(root, "Read", {"file_path": "train.py"}, "party").allow


def test_our_own_tools_read_only_what_may_be_read(root: Path):
    ours = frozenset({"mcp__traindx__log"})
    for arguments, allow in (({"path": "train.py", "limit": 3}, True), ({"paths": ["train.py", ".env"]}, False),
                             ({"options": {"file": "../outside.txt"}}, False), ({"text": "loss is nan"}, True)):
        assert ask(root, "mcp__traindx__log", arguments, mcp_read_only=ours).allow is allow


def test_the_web_needs_the_users_consent(root: Path):
    assert not ask(root, "WebSearch", {"query": "x"}).allow
    assert ask(root, "WebSearch", {"query": "x"}, web=True).allow
