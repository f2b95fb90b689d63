"""Every patch that a rule proposes: it applies, keeps the file's form, and takes away what it was made for."""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.code_reports.unified_diff import proposed
from traindx_tools.edits.patches import applied
from traindx_tools.finding import Finding, Patch
from traindx_tools.source_files.texts import read_texts

FIXTURES = Path(__file__).parent / "fixtures"
BAD = sorted(FIXTURES.glob("*/bad_*.py"))
FIRST = {path.parent: path for path in reversed(BAD)}
FIRST_OF_A_RULE = [path if path in FIRST.values() else pytest.param(path, marks=pytest.mark.slow) for path in BAD]
"""What a rule's patch does with line ends and tabs, one fixture shows; the others are slow ones."""


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def copied(path: Path, folder: Path, change: Callable[[str], str] = str) -> Path:
    """The fixture, with the files beside it that carry its name or that it names, in a folder of its own."""
    text = path.read_text()
    for beside in path.parent.iterdir():
        if beside.stem == path.stem or (beside.suffix in (".yaml", ".json") and beside.name in text):
            shutil.copy(beside, folder / beside.name)
    target = folder / path.name
    target.write_bytes(change(path.read_bytes().decode()).encode())
    return target


@dataclass(frozen=True)
class Copied:
    """A fixture in a folder of its own, as it was found there; no test changes that folder."""

    path: Path
    findings: tuple[Finding, ...]

    @property
    def own(self) -> list[Finding]:
        """Those of the fixture's own rule."""
        return of_rule(self.findings, self.path.parent.name)


Copies = Callable[[Path], Copied]


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Each fixture is copied and audited once: three tests ask."""

    @cache
    def made(fixture: Path) -> Copied:
        folder = tmp_path_factory.mktemp("lying") / fixture.parent.name
        folder.mkdir()
        copy = copied(fixture, folder)
        return Copied(copy, tuple(audit([copy]).findings))

    return made


def of_rule(findings: Iterable[Finding], rule: str) -> list[Finding]:
    return [f for f in findings if f.rule.lower() == rule]


def gist(finding: Finding, folder: Path) -> tuple[str, object]:
    """What a finding says, whatever line it is on and whatever folder its file lies in."""
    said = finding.statement.replace(f"{folder}/", "")
    return re.sub(r"(:|lines? )\d+", "", said), finding.measured.get("kind")


def with_patch(path: Path, patches: tuple[Patch, ...]) -> None:
    for file in {p.file for p in patches}:
        text = Path(file).read_bytes().decode()
        ending = "\r\n" if "\r\n" in text else "\n"
        changed = applied(text.replace("\r\n", "\n"), tuple(p for p in patches if p.file == file))
        Path(file).write_bytes(changed.replace("\n", ending).encode())
    assert path.exists()


def comments(text: str) -> list[str]:
    return [t.string for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]


@pytest.mark.parametrize("path", BAD, ids=name)
def test_a_patch_takes_its_finding_away(path: Path, lying: Copies, tmp_path: Path) -> None:
    """Applied alone, the file parses, keeps every comment, and the rule no longer says it."""
    there = lying(path)
    home = there.path.parent
    others = [gist(f, home) for f in there.own]
    before = there.path.read_text()
    for number, finding in enumerate(f for f in there.own if f.patch):
        folder = Path(shutil.copytree(home, tmp_path / str(number)))
        copy = folder / path.name
        with_patch(copy, tuple(replace(p, file=str(folder / Path(p.file).name)) for p in finding.patch))
        after = copy.read_text()
        ast.parse(after)
        assert sorted(comments(before)) == sorted(comments(after))
        left = [gist(f, folder) for f in of_rule(audit([copy]).findings, path.parent.name)]
        assert left.count(gist(finding, home)) < others.count(gist(finding, home))
        assert not {g for g in left if g not in others and g[1] == finding.measured.get("kind")}


@pytest.mark.parametrize("path", FIRST_OF_A_RULE, ids=name)
def test_the_diff_of_all_patches_is_taken_by_git(path: Path, lying: Copies, tmp_path: Path) -> None:
    """With Windows' line ends too: what is proposed for a file applies as one diff."""
    there = lying(path)
    if not any(f.patch for f in there.findings):
        return
    plain = tmp_path / there.path.parent.name
    shutil.copytree(there.path.parent, plain)
    windows = tmp_path / "windows"
    windows.mkdir()
    ended = copied(path, windows, lambda text: text.replace("\n", "\r\n"))
    diffs = ""
    for copy, findings, root in ((there.path, there.findings, there.path.parents[1]),
                                 (ended, audit([ended]).findings, tmp_path)):
        texts, _ = read_texts([copy])
        made = proposed(findings, {t.path: t for t in texts}, str(root))
        assert made.used
        diffs += made.diff
    subprocess.run(["git", "apply", "-p1", "-"], input=diffs.encode(), cwd=tmp_path, check=True)
    for copy, ending in ((plain / path.name, b"\n"), (ended, b"\r\n")):
        raw = copy.read_bytes()
        assert raw.count(b"\n") == raw.count(ending)
        ast.parse(raw)


def indented(text: str) -> str:
    """The same code with tabs in place of four spaces, outside of continuation lines as well."""
    return re.sub(r"^( {4})+", lambda m: "\t" * (len(m[0]) // 4), text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", FIRST_OF_A_RULE, ids=name)
def test_tabs_stay_tabs(path: Path, lying: Copies, tmp_path: Path) -> None:
    if not any(f.patch for f in lying(path).own):
        return
    copy = copied(path, tmp_path, indented)
    for finding in of_rule(audit([copy]).findings, path.parent.name):
        for patch in finding.patch:
            if patch.file == str(copy):
                assert not [line for line in patch.replacement.split("\n") if line.startswith("    ")]


def test_an_evaluation_that_ends_with_train_gets_eval_alone(tmp_path: Path) -> None:
    path = copied(FIXTURES / "c165" / "bad_trains_again_behind.py", tmp_path)
    (found,) = [f for f in audit([path]).findings if f.rule == "C165"]
    assert [p.replacement.strip() for p in found.patch] == ["model.eval()"]
    path.write_text(path.read_text().replace("    model.train()\n    return hits", "    return hits"))
    (found,) = [f for f in audit([path]).findings if f.rule == "C165"]
    assert [p.replacement.strip() for p in found.patch] == ["model.eval()", "model.train()"]
