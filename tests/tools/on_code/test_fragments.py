"""Pasted code without imports, indented or not, is read as what it says; what it binds itself stays its own."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit_sources
from traindx_tools.on_code.source import SourceFile, parse_source

LOOP = """\
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.01)
for epoch in range(9):
    for x, y in loader:
        x, y = Variable(x.cuda()), Variable(y.cuda())
        loss = criterion({out}, y)
        {then}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
HEAD = "import torch\nimport torch.nn as nn\nimport torch.optim as optim\nfrom torch.autograd import Variable\n" \
       "import torch.nn.functional as F\n"


def found(text: str) -> list[tuple[str, int | None]]:
    source = parse_source("pasted.py", text)
    assert isinstance(source, SourceFile), source
    result = audit_sources([source])
    assert result.notes == ()
    return [(f.rule, f.where.line) for f in result.findings if f.severity.rank >= 2]


@pytest.mark.parametrize(("out", "then", "rule"), [
    ("F.softmax(model(x), dim=1)", "pass", "C102"),
    ("model(x)", "loss = Variable(loss, requires_grad=True)", "C145"),
    ("model(x)", "loss = loss.detach().requires_grad_()", "C145"),
])
@pytest.mark.parametrize("head", ["", HEAD], ids=["without imports", "with"])
@pytest.mark.parametrize("indent", ["", "        "], ids=["flush", "indented"])
def test_the_fault_is_seen_at_its_line(out: str, then: str, rule: str, head: str, indent: str) -> None:
    text = textwrap.indent(head + LOOP.format(out=out, then=then), indent)
    told = dict(found(text))
    assert rule in told
    line = told[rule]
    assert line is not None
    assert text.splitlines()[line - 1].strip() in (then, f"loss = criterion({out}, y)", "loss.backward()")


@pytest.mark.parametrize("head", ["", HEAD])
def test_a_batch_that_is_wrapped_loses_nothing(head: str) -> None:
    assert found(head + LOOP.format(out="model(x)", then="pass")) == []


def test_names_of_the_own_code_stay_its_own() -> None:
    own = "def F(x):\n    return x\nclass nn:\n    Linear = list\n" + LOOP.format(out="F(model(x))", then="pass")
    source = parse_source("own.py", own)
    assert isinstance(source, SourceFile)
    names = [a.asname or a.name for n in source.tree.body if hasattr(n, "names") for a in n.names]
    assert sorted(names) == ["Variable", "optim"]


def test_a_source_that_imports_is_left_as_it_is() -> None:
    source = parse_source("other.py", "import os\n" + LOOP.format(out="model(x)", then="pass"))
    assert isinstance(source, SourceFile)
    assert len([n for n in source.tree.body if hasattr(n, "names")]) == 1


def test_a_docstring_stays_the_first_statement() -> None:
    source = parse_source("doc.py", '"""What it is."""\nx = np.zeros(3)\n')
    assert isinstance(source, SourceFile)
    assert [type(n).__name__ for n in source.tree.body] == ["Expr", "Import", "Assign"]


@pytest.mark.parametrize("text", [
    "    for x in y:\n  pass\n", "  x = (\n", "\tif a:\n        b\n    c\n", "  \n   x y\n",
])
def test_broken_fragments_get_a_note(text: str) -> None:
    assert not isinstance(parse_source("broken.py", text), SourceFile)


def test_columns_are_those_of_the_text() -> None:
    source = parse_source("shifted.py", "    x = 1\n    y = x\n")
    assert isinstance(source, SourceFile)
    assert [n.col_offset for n in source.tree.body] == [4, 4]


POSTED = sorted((Path(__file__).parents[2] / "fixtures" / "fragments").glob("*.py"))
FAULT = re.compile(r"# FAULT (C\d+)")


@pytest.mark.parametrize("path", [p for p in POSTED if not p.name.startswith("unseen_")], ids=lambda p: p.stem)
def test_what_people_post_shows_its_fault_by_itself(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    faults = {(m[1], i) for i, line in enumerate(text.splitlines(), 1) if (m := FAULT.search(line))}
    assert faults <= set(found(text)) if faults else not found(text)
