"""Every patch that a rule proposes: it applies, keeps the file's form, and takes away what it was made for."""

from __future__ import annotations

import ast
import io
import re
import shutil
import subprocess
import tokenize
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from traindx_tools.finding import Finding, Patch
from traindx_tools.on_code import audit
from traindx_tools.on_code.files import read_texts
from traindx_tools.on_code.patching import applied
from traindx_tools.on_code.unified import proposed

FIXTURES = Path(__file__).parent / "fixtures"
BAD = sorted(FIXTURES.glob("*/bad_*.py"))


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


@cache
def found_in(fixture: Path) -> tuple[Finding, ...]:
    """What is found in a fixture as it lies there: three tests ask."""
    return tuple(audit([fixture]).findings)


def of_rule(path: Path, rule: str) -> list[Finding]:
    return [f for f in audit([path]).findings if f.rule.lower() == rule]


def patched(path: Path) -> list[Finding]:
    """The findings of a fixture's own rule that bring a patch."""
    return [f for f in found_in(path) if f.rule.lower() == path.parent.name and f.patch]


def gist(finding: Finding) -> tuple[str, object]:
    """What a finding says, whatever line it is on."""
    return re.sub(r"(:|lines? )\d+", "", finding.statement), finding.measured.get("kind")


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
def test_a_patch_takes_its_finding_away(path: Path, tmp_path: Path) -> None:
    """Applied alone, the file parses, keeps every comment, and the rule no longer says it."""
    if not (given := patched(path)):
        return
    copy = copied(path, tmp_path)
    unchanged = {p: p.read_bytes() for p in tmp_path.iterdir()}
    found = of_rule(copy, path.parent.name)
    others = [gist(f) for f in found]
    for one in given:
        same = [f for f in found if f.patch and f.where.line == one.where.line]
        told = [f.statement.replace(str(copy), str(path)) for f in same]
        (finding,) = [f for f, text in zip(same, told, strict=True) if text == one.statement or len(same) == 1]
        before = copy.read_text()
        with_patch(copy, finding.patch)
        after = copy.read_text()
        ast.parse(after)
        assert sorted(comments(before)) == sorted(comments(after))
        left = [gist(f) for f in of_rule(copy, path.parent.name)]
        assert left.count(gist(finding)) < others.count(gist(finding))
        assert not {g for g in left if g not in others and g[1] == finding.measured.get("kind")}
        for file, raw in unchanged.items():
            file.write_bytes(raw)


@pytest.mark.parametrize("path", BAD, ids=name)
def test_the_diff_of_all_patches_is_taken_by_git(path: Path, tmp_path: Path) -> None:
    """With Windows' line ends too: what is proposed for a file applies as one diff."""
    if not any(f.patch for f in found_in(path)):
        return
    diffs, copies = "", {}
    for number, ending in enumerate(("\n", "\r\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        copy = copied(path, folder, lambda text, ending=ending: text.replace("\n", ending))  # type: ignore[misc]
        texts, _ = read_texts([copy])
        made = proposed(audit([copy]).findings, {t.path: t for t in texts}, str(tmp_path))
        assert made.used
        diffs += made.diff
        copies[copy] = ending
    subprocess.run(["git", "apply", "-p1", "-"], input=diffs.encode(), cwd=tmp_path, check=True)
    for copy, ending in copies.items():
        raw = copy.read_bytes()
        assert raw.count(b"\n") == raw.count(ending.encode())
        ast.parse(raw)


def indented(text: str) -> str:
    """The same code with tabs in place of four spaces, outside of continuation lines as well."""
    return re.sub(r"^( {4})+", lambda m: "\t" * (len(m[0]) // 4), text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", BAD, ids=name)
def test_tabs_stay_tabs(path: Path, tmp_path: Path) -> None:
    if not patched(path):
        return
    copy = copied(path, tmp_path, indented)
    for finding in [f for f in of_rule(copy, path.parent.name) if f.patch]:
        for patch in finding.patch:
            if patch.file == str(copy):
                assert not [line for line in patch.replacement.split("\n") if line.startswith("    ")]
