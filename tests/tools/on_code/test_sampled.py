"""Functions of the step that are worked out at a few steps."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from traindx_tools.on_code.files import read_texts
from traindx_tools.on_code.lookup import lookup
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.sampled import values
from traindx_tools.on_code.source import parse_texts


def sampled(folder: Path, text: str) -> list[float] | None:
    path = folder / "schedule.py"
    path.write_text(text)
    texts, notes = read_texts([path])
    look = lookup(Project.of(parse_texts(texts, notes)))
    (code,) = look.codes
    return values(look, code, code.of(ast.FunctionDef)[0], (0, 4, 16))


def test_arithmetic_and_choices_are_worked_out(tmp_path: Path) -> None:
    text = "W = 4\ndef f(n):\n    if n == 0:\n        return 0.0\n    return min(n / W, n ** -0.5)\n"
    assert sampled(tmp_path, text) == [0.0, 0.5, 0.25]


@pytest.mark.parametrize("body", [
    "return n * unknown", "return 1 / n", "return f(n)", "return n ** n ** n", "return 'text'", "pass",
    "for i in range(9): n += 1\n    return n",
])  # fmt: skip
def test_what_is_not_certain_gives_no_answer(tmp_path: Path, body: str) -> None:
    assert sampled(tmp_path, f"def f(n):\n    {body}\n") is None
