"""An invariant asks the program: no syntax, no search in names, no reader. Each is one file of some hundred lines."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import traindx_tools.invariants
from traindx_tools.code_audit.entry import INVARIANTS
from traindx_tools.rules import rules_in

ROOM = Path(traindx_tools.invariants.__file__).parent
FILES = sorted(ROOM.glob("*.py"))
MAY_IMPORT = ("traindx_tools.program", "traindx_tools.knowledge", "traindx_tools.invariants", "traindx_tools.finding",
              "traindx_tools.rules")
MOST_LINES = 140


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_imports_neither_syntax_nor_patterns_nor_a_reader(path: Path) -> None:
    names = imported(path)
    assert not names & {"ast", "re", "tokenize", "fnmatch", "libcst", "inspect"}
    own = {n for n in names if n.startswith("traindx")}
    assert all(n.startswith(MAY_IMPORT) for n in own), own - set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_does_not_look_what_is_in_a_name(path: Path) -> None:
    """`"loss" in act.owner`, `name.startswith("val")`: what stands in a name is for a sentence alone."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            literal = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
            assert not literal or not isinstance(node.comparators[0], (ast.Attribute, ast.Name))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in ("startswith", "endswith", "casefold", "lower")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


def test_the_program_is_made_of_the_standard_library_alone() -> None:
    for path in sorted((ROOM.parent / "program").glob("*.py")):
        assert all(n.startswith("traindx_tools.program") for n in imported(path) if n.startswith("traindx")), path.name


def test_each_id_has_a_page_of_its_own() -> None:
    modules = rules_in(INVARIANTS)
    assert len(modules) >= 12
    for module in modules:
        assert module.rule.title.strip()
        assert module.rule.matters.strip()
        assert module.rule.confirm
