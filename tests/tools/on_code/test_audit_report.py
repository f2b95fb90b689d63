"""An audit's report: what is remembered, what a comment or a table takes out, what belongs to a change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from traindx_tools.code_audit import audit, cache, parallel
from traindx_tools.code_audit.cache import Cache
from traindx_tools.code_audit.entry import INVARIANTS
from traindx_tools.code_audit.parallel import followed_and_judged
from traindx_tools.code_audit.programs import Program, programs
from traindx_tools.code_reports.changed_code import ChangedLines
from traindx_tools.code_reports.github import workflow_command
from traindx_tools.code_reports.report import AuditReport, audit_report
from traindx_tools.code_reports.selection import read_selection
from traindx_tools.code_reports.unified_diff import proposed
from traindx_tools.errors import BadUsage
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_code.source import SourceFile, parse_source
from traindx_tools.rules import explained_rules, rules_in
from traindx_tools.source_files.texts import Text, text_of

MODEL = dedent("""\
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 4)

        def forward(self, x):
            return torch.softmax(self.a(x), -1)
    """)
TRAIN = dedent("""\
    import torch
    from torch import nn
    from model import Net


    def data():
        return torch.utils.data.DataLoader(range(8), shuffle=True)


    def train(epochs=3):
        net = Net()
        opt = torch.optim.Adam(net.parameters(), lr=1e-3)
        losses = []
        for epoch in range(epochs):
            for x, y in data():
                loss = nn.CrossEntropyLoss()(net(x), y)
                loss.backward()
                opt.step()
                losses.append(loss)


    train()
    """)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "model.py").write_text(MODEL)
    (folder / "train.py").write_text(TRAIN)
    monkeypatch.chdir(folder)
    return folder


def rules(report: AuditReport) -> list[str]:
    return sorted(f.rule for f in report.findings if f.severity.rank >= Severity.MEDIUM.rank or f.rule == "C001")


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# remembered


def test_the_same_files_are_judged_once(project: Path, tmp_path: Path) -> None:
    kept = Cache(tmp_path / "cache")
    first, second = audit_report(["."], cache=kept), audit_report(["."], cache=kept)
    assert (first.cached, second.cached) == (False, True)
    assert first.findings == second.findings
    assert rules(second) == ["C101", "C102", "C103"]
    assert tuple(audit(["."]).findings) == first.findings


def test_a_test_trains_nothing_that_is_kept(project: Path) -> None:
    code = Path("train.py").read_text()
    Path("test_train.py").write_text(code + "\n\ndef test_it():\n    pass\n")
    Path("test_run.py").write_text(code)
    worst = {f.where.file: f.severity for f in reversed(audit_report(["."]).findings)}
    assert worst["test_train.py"] is Severity.LOW
    assert worst["train.py"] is worst["test_run.py"] is Severity.HIGH


def test_a_change_of_any_file_is_judged_anew(project: Path, tmp_path: Path) -> None:
    kept = Cache(tmp_path / "cache")
    audit_report(["."], cache=kept)
    replaced(project / "model.py", "torch.softmax(self.a(x), -1)", "self.a(x)")
    after = audit_report(["."], cache=kept)
    assert not after.cached
    assert rules(after) == ["C101", "C103"]


def test_a_changed_rule_forgets_what_it_said(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Cache(tmp_path / "cache")
    audit_report(["."], cache=kept)
    monkeypatch.setattr(cache, "engine", lambda: "another version")
    assert not audit_report(["."], cache=kept).cached


def test_a_configuration_that_the_code_opens_is_part_of_it(project: Path, tmp_path: Path) -> None:
    (project / "train.py").write_text(dedent("""\
        import json
        import torch
        from torch import nn
        cfg = json.load(open("cfg.json"))
        net = nn.Linear(2, 2)
        opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
        """))
    kept = Cache(tmp_path / "cache")
    seen = []
    for rate in (1e-3, 500.0, 500.0):
        (project / "cfg.json").write_text(json.dumps({"lr": rate}))
        report = audit_report(["train.py"], cache=kept)
        seen.append(("C128" in rules(report), report.cached))
    assert seen == [(False, False), (True, False), (True, True)]
    (project / "cfg.json").unlink()
    assert not audit_report(["train.py"], cache=kept).cached


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3", b'{"opened": {}, "judged": "{}"}',
                                     b'{"opened": 3, "judged": ""}', b"[" * 100_000])
def test_a_broken_entry_counts_as_absent(project: Path, tmp_path: Path, content: bytes) -> None:
    kept = Cache(tmp_path / "cache")
    expected = audit_report(["."], cache=kept).findings
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(content)
    again = audit_report(["."], cache=kept)
    assert not again.cached
    assert again.findings == expected
    assert audit_report(["."], cache=kept).cached


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        report = audit_report(["."], cache=Cache(folder))
        assert rules(report) == ["C101", "C102", "C103"]
    assert (tmp_path / "file").read_text() == ""


def test_old_entries_are_dropped(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_ENTRIES", 2)
    kept = Cache(tmp_path / "cache")
    for i in range(4):
        (project / "extra.py").write_text(f"x = {i}\n")
        audit_report(["."], cache=kept)
    assert len(list((tmp_path / "cache").iterdir())) == 2


@pytest.mark.slow
def test_several_processes_may_store_at_once(project: Path, tmp_path: Path) -> None:
    code = ("import sys; from pathlib import Path; from traindx_tools.code_audit.cache import Cache; "
            "from traindx_tools.code_reports.report import audit_report; "
            "print(len(audit_report(['.'], cache=Cache(Path(sys.argv[1]))).findings))")
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = {process.communicate(timeout=60)[0] for process in running}
    assert len(said) == 1
    assert [p.suffix for p in (tmp_path / "cache").iterdir()] == [".json"]
    assert audit_report(["."], cache=Cache(tmp_path / "cache")).cached


def sources(project: Path) -> list[SourceFile]:
    files = [parse_source(p.name, p.read_text()) for p in sorted(project.glob("*.py"))]
    return [f for f in files if isinstance(f, SourceFile)]


def two_programs(project: Path) -> list[Program]:
    """The project, and a script that has nothing to do with it."""
    (project / "alone.py").write_text(TRAIN.replace("from model import Net", "from torchvision.models import Net"))
    found = programs(sources(project))
    assert len(found) > 1
    return found


def test_forked_processes_find_the_same(project: Path, forking: None) -> None:
    modules = (*rules_in("traindx_tools.code_rules.torch_rules"), *rules_in(INVARIANTS))
    _, alone = followed_and_judged(modules, two_programs(project))
    _, shared = followed_and_judged(modules, two_programs(project), 3)
    assert len(alone.findings) >= 3
    assert sorted(map(str, alone.findings)) == sorted(map(str, shared.findings))
    assert alone.notes == shared.notes == []


@pytest.mark.parametrize("signal", [9, 15])
def test_processes_that_are_killed_lose_nothing(project: Path, signal: int, forking: None,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    modules = rules_in("traindx_tools.code_rules.torch_rules")
    _, alone = followed_and_judged(modules, two_programs(project))
    parent, judge = os.getpid(), parallel._judge

    def dies_in_children(*given: Any, **named: Any) -> Any:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal)
        return judge(*given, **named)

    monkeypatch.setattr(parallel, "_judge", dies_in_children)
    _, shared = followed_and_judged(modules, two_programs(project), 3)
    assert sorted(map(str, alone.findings)) == sorted(map(str, shared.findings))


# taken out


@pytest.mark.parametrize(("old", "new", "left"), [
    ("losses.append(loss)", "losses.append(loss)  # traindx: ignore[C103] few steps, graph wanted", ["C101", "C102"]),
    ("losses.append(loss)", "losses.append(  # traindx: ignore[C103] wanted\n                loss)", ["C101", "C102"]),
    ("losses.append(loss)", "losses.append(\n                loss)  # TRAINDX: ignore [c103]: ok", ["C101", "C102"]),
    ("            losses", "            # traindx: ignore[C101, C103] wanted\n\n            # more\n            losses",
     ["C101", "C102"]),
    ("losses.append(loss)", "losses.append(loss)  # traindx: ignore[C101] wrong rule", ["C101", "C102", "C103"]),
    ("opt.step()", "opt.step()  # traindx: ignore[C101] summed on purpose", ["C102", "C103"]),
    ("losses.append(loss)", "losses.append(loss); t = '# traindx: ignore[C103] no comment'", ["C101", "C102", "C103"]),
])
def test_a_comment_with_a_reason_takes_a_finding_out(project: Path, old: str, new: str, left: list[str]) -> None:
    before = len(audit_report(["."]).findings)
    replaced(project / "train.py", old, new)
    report = audit_report(["."])
    assert rules(report) == left
    assert len(report.findings) + len(report.suppressed) == before
    assert all(s.reason for s in report.suppressed)


@pytest.mark.parametrize(("comment", "why"), [
    ("# traindx: ignore[C103]", "gives no reason"),
    ("# traindx: ignore[C103] -- ", "gives no reason"),
    ("# traindx: ignore[C103] 1", "gives no reason"),
    ("# traindx: ignore because of this", "names no rule"),
    ("# traindx: ignore[] because of this", "names no rule"),
    ("# traindx: ignore[C999] because of this", "names the unknown rule C999"),
    ("# traindx: ignore[C999]", "names the unknown rule C999 and gives no reason"),
    ("# traindx: ignore", "names no rule and gives no reason"),
    ("# traindx: ignore[L204] because of this", "names the unknown rule L204"),
    ("# traindx: ignore[C103 because of this", "names no rule"),
])
def test_a_comment_that_does_not_count_is_reported(project: Path, comment: str, why: str) -> None:
    replaced(project / "train.py", "losses.append(loss)", f"losses.append(loss)  {comment}")
    report = audit_report(["."])
    assert rules(report) == ["C001", "C101", "C102", "C103"]
    (told,) = [f for f in report.findings if f.rule == "C001"]
    assert why in told.statement
    assert (told.where.quote or '').strip() == comment.strip()
    assert not report.suppressed


def test_a_comment_for_a_withdrawn_rule_is_left_alone(project: Path) -> None:
    replaced(project / "train.py", "losses.append(loss)", "losses.append(loss)  # traindx: ignore[C125] wanted")
    assert rules(audit_report(["."])) == ["C101", "C102", "C103"]


def test_the_page_of_the_rule_about_comments_exists() -> None:
    assert "traindx: ignore[C104" in explained_rules()["C001"].doc


def selected(project: Path, table: str, **asked: list[str]) -> list[str]:
    (project / "pyproject.toml").write_text(f"[tool.traindx.audit]\n{table}\n")
    return rules(audit_report(["."], selection=read_selection(project).narrowed(**asked)))


@pytest.mark.parametrize(("table", "asked", "left"), [
    ("", {}, ["C101", "C102", "C103"]),
    ('ignore = ["C125"]', {}, ["C101", "C102", "C103"]),
    ('select = ["C125"]', {}, []),
    ('select = ["C102"]', {}, ["C102"]),
    ('select = ["c1"]\nignore = ["C101", "C103"]', {}, ["C102"]),
    ('ignore = ["C1"]', {}, []),
    ('select = ["C102"]\nignore = ["C1"]', {}, ["C102"]),
    ('ignore = ["C1"]', {"select": ["C103"]}, ["C103"]),
    ('select = ["C101"]', {"select": ["C102,C103"], "ignore": ["C103"]}, ["C102"]),
    ('exclude = ["model.py"]', {}, ["C101", "C103"]),
    ('per-file-ignores = { "train.py" = ["C1"] }', {}, ["C102"]),
    ('per-file-ignores = { "tr*.py" = ["C101"], "nowhere/*" = ["C1"] }', {}, ["C102", "C103"]),
])
def test_rules_are_selected(project: Path, table: str, asked: dict[str, list[str]], left: list[str]) -> None:
    assert selected(project, table, **asked) == left


def test_a_folder_is_excluded_with_what_lies_in_it(project: Path) -> None:
    (project / "third_party" / "deep").mkdir(parents=True)
    (project / "third_party" / "deep" / "copy.py").write_text(TRAIN)
    assert audit_report(["."]).found == 3
    (project / "pyproject.toml").write_text('[tool.traindx.audit]\nexclude = ["third_party/"]\n')
    assert audit_report(["."], selection=read_selection(project)).found == 2


@pytest.mark.parametrize(("text", "words"), [
    ("[tool.traindx.audit]\nselct = []", "selct"), ("[tool.traindx.audit]\nselect = 'C1'", "a list of rules"),
    ("[tool.traindx.audit]\nignore = ['Z1']", "Z1"), ("[tool.traindx.audit]\nfail-on = 'bad'", "fail-on"),
    ("[tool.traindx.audit]\nper-file-ignores = ['a']", "per-file-ignores"), ("[tool", "TOML"),
    ("[tool.traindx]\naudit = 3", "is a table"),
])
def test_a_wrong_table_is_refused_with_its_name(project: Path, text: str, words: str) -> None:
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(BadUsage, match=r"pyproject\.toml") as refused:
        read_selection(project / "train.py")
    assert words in str(refused.value)


def test_the_table_is_looked_for_up_to_the_repository(project: Path) -> None:
    (project.parent / "pyproject.toml").write_text('[tool.traindx.audit]\nselect = ["C101"]\n')
    assert read_selection(project).select == ("C101",)
    (project / ".git").mkdir()
    assert read_selection(project / "train.py").select == ()


# what belongs to a change


def changes(project: Path, **lines: tuple[int, int] | None) -> ChangedLines:
    spans = {os.path.realpath(project / f"{name}.py"): None if s is None else (s,) for name, s in lines.items()}
    return ChangedLines(spans)


def line_of(text: str, words: str) -> int:
    return next(i for i, line in enumerate(text.splitlines(), 1) if words in line)


def test_a_finding_belongs_to_a_change_of_its_function(project: Path) -> None:
    at = line_of(TRAIN, "opt = ")
    assert rules(audit_report(["."], changes=changes(project, train=(at, at)))) == ["C101", "C102", "C103"]
    at = line_of(TRAIN, "return torch.utils")
    assert rules(audit_report(["."], changes=changes(project, train=(at, at)))) == []


def test_a_finding_belongs_to_a_change_of_any_place_that_it_names(project: Path) -> None:
    """The softmax is in model.py, the loss that is fed with it in train.py."""
    at = line_of(MODEL, "softmax")
    report = audit_report(["."], changes=changes(project, model=(at, at)))
    assert rules(report) == ["C102"]
    assert [t.path for t in report.texts] == ["model.py", "train.py"]


def test_only_what_a_change_needs_is_read(project: Path) -> None:
    (project / "other.py").write_text("import torch\n")
    (project / "tool.py").write_text("import train\n")
    report = audit_report(["."], changes=changes(project, model=None))
    assert [t.path for t in report.texts] == ["model.py", "train.py"]
    assert report.found == 4
    assert not audit_report(["."], changes=ChangedLines()).texts


# shapes


def test_a_notebook_is_told_by_cell_and_line(project: Path) -> None:
    cells = [{"cell_type": "markdown", "source": ["# title\n", "text"]},
             {"cell_type": "code", "source": ["%matplotlib inline\n", "import torch"]},
             {"cell_type": "code", "source": ["from torch import nn\n", "net = nn.Linear(3, 4)\n",
                                              "opt = torch.optim.Adam(net.parameters())\n",
                                              "for x, y in []:\n", "    nn.functional.mse_loss(net(x), y).backward()\n",
                                              "    opt.step()"]}]
    (project / "a.ipynb").write_text(json.dumps({"cells": cells}))
    for findings in (audit_report(["a.ipynb"]).findings, audit(["a.ipynb"]).findings):
        (found,) = [f for f in findings if f.rule == "C101"]
        assert (found.where.cell, found.where.line, found.where.quote) == (2, 6, "opt.step()")
        assert str(found.where).startswith("a.ipynb:cell 2:6")
        assert "a.ipynb:cell 2:6" in found.statement
        assert "backward() at line 5 " in found.statement
        assert not found.patch
        assert Finding.from_json(found.to_json()) == found


def test_standard_input_is_a_text_like_others() -> None:
    given = text_of("<stdin>", TRAIN.encode())
    assert isinstance(given, Text)
    assert rules(audit_report([], given=[given])) == ["C101", "C103"]
    assert "UTF-8" in getattr(text_of("<stdin>", b"\xff\xfe\x00"), "note", "")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_diff_applies_and_makes_it_healthy(project: Path, ending: str) -> None:
    for path in project.glob("*.py"):
        path.write_bytes(path.read_text().replace("\n", ending).encode())
    report = audit_report(["."])
    made = proposed(report.findings, report.by_path)
    subprocess.run(["git", "apply", "--whitespace=nowarn"], input=made.diff.encode(), cwd=project, check=True)
    assert rules(audit_report(["."])) == []
    for path in project.glob("*.py"):
        assert path.read_bytes().count(ending.encode()) == path.read_bytes().count(b"\n")


def test_a_diff_of_a_last_line_without_an_end(project: Path) -> None:
    (project / "train.py").write_text(TRAIN.replace("\n\n\ntrain()\n", ""))
    report = audit_report(["."])
    made = proposed([f for f in report.findings if f.rule == "C103"], report.by_path)
    subprocess.run(["git", "apply"], input=made.diff.encode(), cwd=project, check=True)
    assert (project / "train.py").read_text().endswith("losses.append(loss.detach())")


def test_workflow_commands_escape_what_would_end_them() -> None:
    finding = Finding("C101", "A: title, with signs", Severity.HIGH, Bearing.CAUSE, "50 %\nof it::x",
                      Location(file="a,b:c.py", line=3), "a")
    assert workflow_command(finding) == ("::error endLine=3,file=a%2Cb%3Ac.py,line=3,title=C101 A%3A title%2C with "
                                         "signs::50 %25%0Aof it::x")
