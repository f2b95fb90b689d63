"""1e999 is how some write infinity: no rule stops at it, and no statement counts with it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit_sources
from traindx_tools.on_code.source import SourceFile, parse_source

FIXTURES = Path(__file__).parent / "fixtures"
RULES = ("c123", "c128", "c136", "c227", "c273", "c280", "c528", "c529")
"""Rules that count with the numbers of a program: sizes, indices, steps, rates."""


def with_infinity(text: str, infinity: str) -> SourceFile | None:
    """The source with every number of it replaced."""
    lines = text.encode().split(b"\n")
    spots = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and type(n.value) in (int, float)]
    for spot in sorted(spots, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        line = lines[spot.lineno - 1]
        lines[spot.lineno - 1] = line[:spot.col_offset] + infinity.encode() + line[spot.end_col_offset:]
    parsed = parse_source("train.py", b"\n".join(lines).decode())
    return parsed if isinstance(parsed, SourceFile) else None


@pytest.mark.parametrize("infinity", ["1e999", "(-1e999)"])
@pytest.mark.parametrize("rule", RULES)
def test_no_rule_stops_at_infinity(rule: str, infinity: str) -> None:
    sources = [with_infinity(p.read_text(), infinity) for p in sorted((FIXTURES / rule).glob("*.py"))]
    assert sum(s is not None for s in sources) >= 2
    for source in sources:
        if source is not None:
            result = audit_sources([source])
            assert not result.notes
            for finding in result.findings:
                finding.to_json()


@pytest.mark.parametrize("line", ["m = torch.zeros(3, 3).tril(diagonal=1e999)", "n = [nn.Linear(3, 3)] * 2",
                                  "d = nn.Dropout(1e999)", "m = x.masked_fill(x > 0, -1e999)",
                                  "e = torch.arange(0, 1e999, 5)", "n = len(range(int(1e999)))"])
def test_infinity_in_one_place(line: str) -> None:
    text = (f"import torch\nfrom torch import nn\nx = torch.randn(3, 3)\n{line}\n"
            f"for i in range(int(-1e999)):\n    {line}\n")
    parsed = parse_source("train.py", text)
    assert isinstance(parsed, SourceFile)
    assert not audit_sources([parsed]).notes


@pytest.mark.parametrize(("lr", "told"), [
    ("1e999", "a learning rate of inf; 1e-5 to 1e-2 is usual"),
    ("500.0", "a learning rate of 500; 1e-5 to 1e-2 is usual"),
    ("-1e999", None), ("1e-3", None),
])
def test_a_rate_is_told_in_words_that_hold(lr: str, told: str | None) -> None:
    text = ("import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\n"
            f"opt = torch.optim.Adam(net.parameters(), lr={lr})\n"
            "for x in torch.randn(4, 2, 2):\n    opt.zero_grad()\n    net(x).sum().backward()\n    opt.step()\n")
    parsed = parse_source("train.py", text)
    assert isinstance(parsed, SourceFile)
    said = [f.statement for f in audit_sources([parsed]).findings if f.rule == "C128"]
    assert (told is None) == (not said)
    assert all(re.search(re.escape(told or ""), s) for s in said)
    assert not any("inf times" in s for s in said)
