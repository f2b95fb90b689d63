"""Every remedy that an invariant names has its edits, and edits keep what they do not change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from traindx_tools import invariants
from traindx_tools.edits import expressions, statements
from traindx_tools.edits.patches import applied
from traindx_tools.edits.source_edit import SourceEdit, Unsure
from traindx_tools.knowledge.tables import table
from traindx_tools.on_code.source import SourceFile, parse_source

EDITS = ("insert", "replace", "set argument", "move before", "move behind")


TOLD = {row["remedy"]["kind"] for row in table("told.toml")["told"] if "remedy" in row}


def strings_of_invariants() -> set[object]:
    home = Path(invariants.__file__).parent
    trees = [ast.parse(p.read_text()) for p in home.glob("*.py")]
    return TOLD | {n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant)}


def test_each_row_is_an_edit_at_a_place_for_a_remedy() -> None:
    known = strings_of_invariants()
    for kind, rows in table("edits.toml").items():
        assert kind in known
        for row in rows:
            assert row["edit"] in EDITS
            assert any(hasattr(m, row["place"].replace(" ", "_")) for m in (statements, expressions))


def test_each_remedy_has_a_row() -> None:
    home = Path(invariants.__file__).parent
    calls = [n for p in home.glob("*.py") for n in ast.walk(ast.parse(p.read_text()))
             if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "Remedy"]
    named = TOLD | {n.value for c in calls for n in ast.walk(c.args[0]) if isinstance(n, ast.Constant)}
    assert {n for n in named if isinstance(n, str) and n != "C180"} <= set(table("edits.toml"))


def edit_of(text: str) -> tuple[SourceEdit, ast.Module]:
    file = parse_source("train.py", text)
    assert isinstance(file, SourceFile)
    return SourceEdit(file, "a change"), file.tree


def expression(text: str) -> tuple[SourceEdit, ast.expr]:
    edit, tree = edit_of(text)
    statement = tree.body[-1]
    assert isinstance(statement, ast.Assign)
    return edit, statement.value


@pytest.mark.parametrize(("before", "change", "after"), [
    ("y = (1 - p).log()", "<>.clamp_min(1e-8)", "y = (1 - p).clamp_min(1e-8).log()"),
    ("y = f(a - b)", "<>.detach()", "y = f((a - b).detach())"),
    ("y = f(a if b else c)", "<> + 1e-6", "y = f((a if b else c) + 1e-6)"),
    ("y = x.sum().sqrt()", "<> + 1e-12", "y = (x.sum() + 1e-12).sqrt()"),
    ("y = f(x)", "g(<>)", "y = f(g(x))"),
])
def test_parentheses_stand_where_they_are_needed(before: str, change: str, after: str) -> None:
    edit, call = expression(before)
    assert isinstance(call, ast.Call)
    edit.replace(call.args[0] if call.args else call.func.value, change)  # type: ignore[attr-defined]
    assert applied(before, edit.patches()) == after


def test_an_expression_over_lines_is_wrapped_with_its_comments() -> None:
    text = "layers = [  # all of them\n    a,\n    b,  # the last\n]"
    edit, value = expression(text)
    edit.replace(value, "nn.ModuleList(<>)")
    assert applied(text, edit.patches()) == "layers = nn.ModuleList([  # all of them\n    a,\n    b,  # the last\n])"
    edit, value = expression(text)
    with pytest.raises(Unsure):
        edit.replace(value, "[]")


@pytest.mark.parametrize("between", ["net = other", "print(opt)", "opt = None", "def net(): pass"])
def test_a_statement_is_not_moved_over_what_it_reads_or_what_reads_it(between: str) -> None:
    for text, sure in ((f"opt = SGD(net)\n{between}\nlast = 1", False), ("opt = SGD(net)\nx = 2\nlast = 1", True)):
        edit, tree = edit_of(text)
        if sure:
            edit.move_behind(tree.body[0], tree.body[-1])
            assert applied(text, edit.patches()) == "x = 2\nlast = 1\nopt = SGD(net)"
        else:
            with pytest.raises(Unsure):
                edit.move_behind(tree.body[0], tree.body[-1])
