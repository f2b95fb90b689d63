"""`traindx audit` as a person and a CI job type it: options, formats, exit codes, git, and inputs of every kind."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from traindx.cli import run
from traindx.git_changes import files_in, lines_changed_since
from traindx_tools.errors import BadUsage

GOOD = dedent("""\
    import torch
    from torch import nn


    def train(data):
        net = nn.Linear(3, 4)
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        losses = []
        for x, y in data:
            opt.zero_grad()
            loss = nn.CrossEntropyLoss()(net(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
        return losses


    def other(data):
        return data
    """)
BAD = GOOD.replace("        opt.zero_grad()\n", "")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=folder, check=True,
                   capture_output=True)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text(GOOD)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "good")
    monkeypatch.chdir(folder)
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["audit", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def test_exit_codes_and_streams(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, ".") == (0, "", "traindx: 0 findings in 1 file\n")
    (repository / "train.py").write_text(BAD)
    code, out, err = said(capsys, ".")
    assert (code, err) == (1, "traindx: 1 finding in 1 file\n")
    assert out.startswith("train.py:12: C101 high: ")
    assert "fix: clear the gradients" in out
    for level, expected in (("critical", 0), ("high", 1), ("low", 1), ("never", 0)):
        assert said(capsys, ".", "--fail-on", level)[0] == expected


def test_a_fix_of_several_edits_is_told_once(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edits = (
        "import torch\nimport torch.nn as nn\nfrom torch.utils.data import DataLoader\n"
        "def main(data, held):\n"
        "    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1), nn.Linear(4, 2))\n"
        "    opt = torch.optim.Adam(net.parameters())\n"
        "    for x, y in DataLoader(data, shuffle=True):\n"
        "        opt.zero_grad()\n"
        "        loss = nn.functional.cross_entropy(net(x), y)\n"
        "        loss.backward()\n"
        "        opt.step()\n"
        "    for x, y in DataLoader(held):\n"
        "        with torch.no_grad():\n"
        "            print(net(x).argmax(1) == y)\n"
        "main(None, None)\n"
    )
    (repository / "train.py").write_text(edits)
    _, out, _ = said(capsys, ".", "--json")
    assert [len(f["patch"]) for f in json.loads(out) if f["rule"] == "C165"] == [2]
    assert said(capsys, ".")[1].count("fix: evaluate in eval mode") == 1


def test_a_mild_finding_is_told_and_does_not_fail(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The documented rule: from medium on, and the last line says why the code is 0."""
    (repository / "train.py").write_text("x = 1  # traindx: ignore[C999]\n")
    code, out, err = said(capsys, ".")
    assert code == 0
    assert out.startswith("train.py:1: C001 low")
    assert out.count("\n") == 1
    assert err == "traindx: 1 finding in 1 file, none that fails (--fail-on medium)\n"
    assert said(capsys, ".", "--fail-on", "low")[0] == 1


def test_formats(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(BAD)
    (found,) = json.loads(said(capsys, ".", "--json")[1])
    assert json.loads(said(capsys, ".", "--format", "json")[1]) == [found]
    assert found["where"]["line"] == 12
    log = json.loads(said(capsys, ".", "--format", "sarif")[1])
    assert log["runs"][0]["results"][0]["ruleId"] == "C101"
    out = said(capsys, ".", "--format", "github")[1]
    assert out.startswith("::error endLine=12,file=train.py,line=12,title=C101 ")


def test_github_names_files_from_the_checkout(repository: Path, capsys: pytest.CaptureFixture[str],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "code").mkdir()
    (repository / "code" / "train.py").write_text(BAD)
    monkeypatch.chdir(repository / "code")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repository))
    assert "file=code/train.py," in said(capsys, ".", "--format", "github")[1]


def test_a_patch_is_printed_and_nothing_is_written(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(BAD)
    code, out, _ = said(capsys, ".", "--patch")
    assert code == 1
    assert out.startswith("--- a/train.py\n+++ b/train.py\n@@")
    assert (repository / "train.py").read_text() == BAD
    assert sorted(p.name for p in repository.iterdir()) == [".git", "train.py"]
    subprocess.run(["git", "apply"], input=out.encode(), cwd=repository, check=True)
    assert said(capsys, ".")[0] == 0


@pytest.mark.parametrize(("options", "words"), [
    (["--patch", "--json"], "each holds its changes as `patch`"), (["--patch", "--format", "sarif"], "--format sarif"),
    (["--json", "--format", "github"], "two forms"), (["--select", ""], "--select names no rule"),
    (["--select", " , "], "--select names no rule"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(repository: Path, capsys: pytest.CaptureFixture[str],
                                                     options: list[str], words: str) -> None:
    code, out, err = said(capsys, "train.py", *options)
    assert (code, out) == (2, "")
    assert words in err


def test_one_form_named_twice_is_one_form(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(BAD)
    assert json.loads(said(capsys, "train.py", "--json", "--format", "json")[1])[0]["patch"]
    assert said(capsys, "train.py", "--patch", "--format", "text")[1].startswith("--- a/train.py")


def test_rules_are_chosen_on_the_command_line_and_in_the_table(repository: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(BAD)
    assert said(capsys, ".", "--ignore", "C101")[0] == 0
    assert said(capsys, ".", "--select", "C102,C5")[0] == 0
    assert said(capsys, ".", "--select", "C102", "--select", "C101")[0] == 1
    (repository / "pyproject.toml").write_text('[tool.traindx.audit]\nignore = ["C101"]\n')
    assert said(capsys, ".")[0] == 0
    assert said(capsys, ".", "--isolated")[0] == 1
    (repository / "pyproject.toml").write_text('[tool.traindx.audit]\nfail-on = "critical"\n')
    assert said(capsys, ".")[0] == 0


def test_files_that_are_all_excluded_are_told_so(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "pyproject.toml").write_text('[tool.traindx.audit]\nexclude = ["train.py"]\n')
    code, _, err = said(capsys, "train.py")
    assert code == 2
    assert "excluded by train.py" in err


def test_a_comment_is_counted(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(BAD.replace("opt.step()", "opt.step()  # traindx: ignore[C101] on purpose"))
    assert said(capsys, ".") == (0, "", "traindx: 0 findings, 1 ignored by comments in 1 file\n")


def test_results_are_remembered_and_forgotten(repository: Path, tmp_path: Path,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, ".", "--no-cache")
    assert not (tmp_path / "cache").exists()
    said(capsys, ".")
    assert len(list((tmp_path / "cache" / "traindx" / "audit").iterdir())) == 1


@pytest.mark.parametrize("state", ["worktree", "staged", "committed", "untracked"])
def test_a_difference_is_seen_in_every_state(repository: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    (repository / "old.py").write_text(BAD)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "an old fault")
    git(repository, "checkout", "-q", "-b", "topic")
    assert said(capsys, ".", "--diff") == (0, "", "traindx: no Python file in . differs from HEAD\n")
    name = "new.py" if state == "untracked" else "train.py"
    (repository / name).write_text(BAD)
    if state in ("staged", "committed"):
        git(repository, "add", ".")
    if state == "committed":
        git(repository, "commit", "-q", "-m", "a fault")
    code, out, err = said(capsys, ".", "--diff=main" if state == "committed" else "--diff")
    assert code == 1
    assert out.startswith(f"{name}:12: C101")
    assert "old.py" not in out
    assert "1 finding in 1 of" in err
    assert said(capsys, ".", "--diff=main")[0] == 1


def test_a_change_elsewhere_in_the_file_is_not_blamed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "train.py").write_text(BAD)
    git(repository, "commit", "-q", "-a", "-m", "an old fault")
    (repository / "train.py").write_text(BAD.replace("return data", "return list(data)"))
    assert said(capsys, ".", "--diff")[0] == 0
    (repository / "train.py").write_text(BAD.replace("lr=1e-3", "lr=1e-4"))
    assert said(capsys, ".", "--diff")[0] == 1
    assert said(capsys, "--diff", "train.py")[0] == 1


def test_a_branch_is_compared_with_where_it_left(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(repository, "checkout", "-q", "-b", "topic")
    git(repository, "checkout", "-q", "main")
    (repository / "train.py").write_text(BAD)
    git(repository, "commit", "-q", "-a", "-m", "a fault on main")
    git(repository, "checkout", "-q", "topic")
    (repository / "train.py").write_text(GOOD.replace("return data", "return list(data)"))
    assert said(capsys, ".", "--diff=main") == (0, "", "traindx: 0 findings in 1 file\n")


def test_a_repository_without_a_commit_differs_as_a_whole(tmp_path: Path, repository: Path,
                                                          capsys: pytest.CaptureFixture[str],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q")
    (fresh / "a.py").write_text(BAD)
    (fresh / "b.py").write_text(BAD)
    git(fresh, "add", "a.py")
    monkeypatch.chdir(fresh)
    out = said(capsys, "--diff")[1]
    assert [line.split(":")[0] for line in out.splitlines() if "C101" in line] == ["a.py", "b.py"]


def test_a_commit_is_judged_by_what_it_stages(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "scratch.py").write_text(BAD)  # nobody adds it
    (repository / "train.py").write_text(BAD)  # and this is not staged
    assert said(capsys, "--diff", ".")[0] == 1
    code, out, err = said(capsys, "--staged", ".")
    assert (code, out) == (0, "")
    assert "no Python file in . is staged against HEAD" in err
    git(repository, "add", "train.py")
    code, out, _ = said(capsys, "--staged", ".")
    assert code == 1
    assert {line.split(":")[0] for line in out.splitlines() if "C101" in line} == {"train.py"}


def test_a_diff_says_what_it_leaves_open(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    endless = "\ndef stop(loader):\n    for x in loader:\n        if torch.distributed.get_rank() == 0:\n            " \
              "torch.distributed.barrier()\n"
    (repository / "train.py").write_text(BAD + endless)
    code, out, err = said(capsys, "train.py", "--patch")
    assert code == 1
    assert "zero_grad" in out
    assert "1 without a certain change (C117)" in err
    (repository / "train.py").write_text(BAD)
    assert "without a certain change" not in said(capsys, "train.py", "--patch")[2]


def test_a_comment_with_an_unknown_rule_is_told_the_right_one(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = GOOD.replace("losses.append(loss.item())", "losses.append(loss)  # traindx: ignore[C999] few")
    (repository / "train.py").write_text(kept)
    assert "write `# traindx: ignore[C103] the reason`" in said(capsys, "train.py")[1]


def test_names_that_git_quotes(repository: Path) -> None:
    names = ["caf\u00e9.py", 'a"b.py', "tab\there.py", "with space.py", "new\nline.py", "back\\slash.py"]
    for name in names:
        (repository / name).write_text("x = 1\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "names")
    for name in names:
        (repository / name).write_text("x = 1\ny = 2\n")
    lines = lines_changed_since(repository, "HEAD").lines
    assert lines == {os.path.realpath(repository / n): ((2, 2),) for n in names}


def test_the_users_settings_for_differences_do_not_matter(repository: Path) -> None:
    for key, value in (("diff.noprefix", "true"), ("diff.mnemonicPrefix", "true"), ("diff.interHunkContext", "50"),
                       ("diff.context", "10"), ("color.ui", "always"), ("diff.external", "false"),
                       ("diff.relative", "true"), ("diff.renames", "copies"), ("core.quotePath", "true")):
        git(repository, "config", key, value)
    (repository / "sub").mkdir()
    (repository / "train.py").write_text(GOOD.replace("lr=1e-3", "lr=1e-4").replace("return data", "return 1"))
    assert lines_changed_since(repository / "sub", "HEAD").lines == {os.path.realpath("train.py"): ((7, 7), (19, 19))}


@given(st.lists(st.text(alphabet=st.sampled_from('+-@ "\\\n\tab1,di'), max_size=40), max_size=12))
@hypothesis_settings(max_examples=200, deadline=None)
def test_a_difference_of_any_text_is_parsed(lines: list[str]) -> None:
    found = list(files_in("diff --git a/x.py b/x.py\n+++ b/x.py\n@@ -1,2 +3,4 @@\n" + "\n".join(lines)))
    (path, spans), *_ = found
    assert path == "x.py"
    assert spans is not None
    assert spans[0] == (3, 6)
    assert all(1 <= first <= last for _, of_file in found for first, last in of_file or ())


def test_lines_of_a_hunk_that_look_like_headers_are_none() -> None:
    text = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -4,0 +5,2 @@\n+++ b/y.py\n+@@ -1 +1 @@\n"
    assert list(files_in(text)) == [("x.py", ((5, 6),))]
    assert list(files_in("diff --git a/x.py b/x.py\n--- a/x.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n")) == []
    assert list(files_in("diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -4,2 +3,0 @@\n-a\n-b\n")) == [
        ("x.py", ((3, 4),))]
    assert list(files_in("diff --git a/x.ipynb b/x.ipynb\n--- a/x.ipynb\n+++ b/x.ipynb\n@@ -4 +4 @@\n-a\n+b\n")) == [
        ("x.ipynb", None)]


@pytest.mark.parametrize("base", ["nowhere", "-x", "--output=stolen", "", "HEAD~9", "main:train.py"])
def test_a_base_that_is_no_commit_is_refused(repository: Path, base: str) -> None:
    with pytest.raises(BadUsage, match="no commit"):
        lines_changed_since(repository, base)
    assert not (repository / "stolen").exists()


def test_standard_input(repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "bad.txt").write_text(BAD)
    with (repository / "bad.txt").open() as text:
        monkeypatch.setattr("sys.stdin", text)
        code, out, _ = said(capsys, "-", "--stdin-filename", "cell.py")
    assert code == 1
    assert out.startswith("cell.py:12: C101")


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "give Python files"), (("",), "empty path"), (("nowhere.py",), "not found"), (("syntax.py",), "not parsed"),
    (("binary.py",), "neither UTF-8"), (("loop.py",), "itself"), (("huge.py",), "larger than"),
    (("folder.py",), "no Python file"), ((".", "--select", "Q1"), "Q1"), ((".", "--fail-on", "x"), "--fail-on"),
    (("-", "--diff"), "standard input"), ((".", "--diff=nowhere"), "no commit"), (("nowhere", "--diff"), "not found"),
    (("pipe.py",), "a pipe, no file"), ((".", "--format", "xml"), "xml"),
])
def test_what_cannot_be_is_refused_in_words(repository: Path, capsys: pytest.CaptureFixture[str],
                                            arguments: tuple[str, ...], words: str) -> None:
    (repository / "syntax.py").write_text("def f(:\n")
    (repository / "binary.py").write_bytes(bytes(range(256)))
    (repository / "loop.py").symlink_to("loop.py")
    (repository / "huge.py").write_bytes(b"#" * 2_000_001)
    (repository / "folder.py").mkdir()
    os.mkfifo(repository / "pipe.py")
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_unreadable_files_beside_others_are_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "syntax.py").write_text("def f(:\n")
    (repository / "binary.py").write_bytes(bytes(range(256)))
    (repository / "link").symlink_to(".")
    code, out, err = said(capsys, ".")
    assert (code, out) == (0, "")
    assert [line.split(":")[1].strip() for line in err.splitlines()] == ["binary.py", "syntax.py",
                                                                         "0 findings in 1 of 3 files"]


def test_outside_a_repository_a_difference_is_refused(tmp_path: Path, repository: Path,
                                                      capsys: pytest.CaptureFixture[str],
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    code, _, err = said(capsys, ".", "--diff")
    assert code == 2
    assert "needs a git repository" in err


def test_the_hooks_for_pre_commit_are_commands_that_exist(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    for hook in yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()):
        program, command, *rest = hook["entry"].split()
        assert (program, command) == ("traindx", "audit")
        assert not hook["pass_filenames"]
        assert said(capsys, *rest)[0] == 0


def test_a_file_name_gives_no_commands_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "\x1b[31m\u202ea\nb.py").write_text(GOOD.replace("        opt.zero_grad()\n", ""))
    assert run(["audit", str(tmp_path), "--no-cache"]) == 1
    out = capsys.readouterr().out
    assert "C101" in out
    assert not {"\x1b", "\u202e"} & set(out)
    assert len(out.splitlines()) == out.count(": C") + out.count("    fix: ")
