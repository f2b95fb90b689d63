"""Cells of notebooks as people write them: IPython's forms, other languages, half-written cells; lines stay right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.code_reports.report import AuditReport, audit_report
from traindx_tools.code_reports.unified_diff import proposed
from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity
from traindx_tools.notebooks.cells import Notebook, code_of_notebook, in_cells
from traindx_tools.notebooks.ipython import python_of, why_not

TRAIN = """import torch
from torch import nn

net = nn.Linear(3, 4)
opt = torch.optim.Adam(net.parameters())
for x, y in batches:
    nn.functional.mse_loss(net(x), y).backward()
    opt.step()
"""


def notebook(*cells: str, **more: Any) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells], "nbformat": 4, **more})


def audited(folder: Path, text: str) -> AuditReport:
    path = folder / "a.ipynb"
    path.write_text(text)
    return audit_report([path])


@pytest.mark.parametrize("cell", [
    "!pip install -q torch", "files = !ls data", "a, b = !ls", "%time x = f()", "y = %time f(3)",
    "x = %timeit -o -n 3 f()",
    "for i in range(3):\n    !echo {i}\n    %time f(i)", "if x:\n    !ls\nelse:\n    %cd ..",
    "!pip install \\\n   torch \\\n   x", "torch.nn?", "torch.nn.Linear??", "?torch", "??torch", "net.fit?  # how",
    "%matplotlib inline\nx = (a\n  % b)\n!ls", 'text = """\n!no command\n%nor this\n"""\nfiles = !ls', ",f a b",
    ";f a b",
    "/f a b", "    x = 1\n    !ls", ">>> x = 1\n>>> for i in x:\n...     print(i)", "result = await fetch()\n!ls",
    "await fetch()", "%%time\nx = f()", "%%timeit -n 3\nf()", "%%capture out\nx = 1", "# data\n%%time\nx = 1",
    "%%skip_unless_gpu\nx = 1", "x = [\n1,\n]\n%pip install y", "", "   ", "# only a comment", "x = 'a?'\n!ls",
    "%env A=1 \\\n  B=2\nx = 1", "%%writefile train.py\nx = 1", "x = 1 % 2\n!ls", "d['k'] = !ls",
    "x: int = 3\n%load_ext a",
])  # fmt: skip
def test_what_ipython_reads_is_read(tmp_path: Path, cell: str) -> None:
    report = audited(tmp_path, notebook(cell, TRAIN))
    assert not report.notes
    (found,) = [f for f in report.findings if f.rule == "C101"]
    assert (found.where.cell, found.where.line) == (2, 8)


@pytest.mark.parametrize(("cell", "why"), [
    ("%%bash\nls -l | wc", "%%bash"), ("%%html\n<b>", "%%html"), ("%%R\nx <- 3", "%%R"), ("%%sql\nselect 1", "%%sql"),
    ("%%writefile conf.yaml\na: 1", "%%writefile"), ("%%brainwaves\n<<<", "%%brainwaves"),
    ("%%time\nx = (", "never closed in its line 2"), ("def f(:\n    pass", "syntax in its line 1"),
    ("for x in y:", "in its line 1"), ("x = 1\nprint x", "in its line 2"), ("x = 1\x00", "null bytes"),
    ("x = '\ud800'", "surrogates"), ("%%! ls\n", "%%!"),
])  # fmt: skip
def test_a_cell_that_is_no_python_is_named_and_the_others_are_judged(tmp_path: Path, cell: str, why: str) -> None:
    report = audited(tmp_path, notebook("import os", cell, TRAIN))
    (note,) = report.notes
    assert note.note.startswith("read without cell 2 (")
    assert why in note.note
    assert report.judged == 1
    (found,) = [f for f in report.findings if f.rule == "C101"]
    assert (found.where.cell, found.where.line) == (3, 8)


def test_code_behind_a_magic_is_judged(tmp_path: Path) -> None:
    indented = TRAIN.replace("    nn.", "    %time nn.")
    for text in (notebook("%%time\n" + TRAIN), notebook("%%capture\n" + TRAIN), notebook(indented)):
        assert [f.rule for f in audited(tmp_path, text).findings if f.rule == "C101"]


def test_a_healthy_notebook_stays_healthy(tmp_path: Path) -> None:
    text = notebook("!nvidia-smi", TRAIN.replace("    nn.", "    opt.zero_grad()\n    %time nn."), "%%bash\nls")
    assert not [f for f in audited(tmp_path, text).findings if f.rule == "C101"]


def test_many_cells_that_do_not_parse_are_counted(tmp_path: Path) -> None:
    (note,) = audited(tmp_path, notebook(*["x ="] * 12, TRAIN)).notes
    assert note.note.endswith("and 7 more")


@pytest.mark.parametrize(("text", "why"), [
    ("", "no notebook"), ("{", "no notebook"), ("[" * 10_000, "no notebook"), ("[]", "list of cells"),
    ("null", "list of cells"), ('{"cells": null}', "list of cells"), ('{"worksheets": [null]}', "list of cells"),
    (notebook("x <- 1", metadata={"kernelspec": {"language": "R"}}), "a notebook of R"),
    (notebook("x <- 1", metadata={"language_info": {"name": "julia"}}), "a notebook of julia"),
    (notebook("%%bash\nls", "x ="), "no cell is Python: cell 1 (%%bash), cell 2"),
])  # fmt: skip
def test_what_is_no_notebook_of_python_is_told(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "b.py").write_text("x = 1\n")
    (tmp_path / "a.ipynb").write_text(text)
    report = audit_report([tmp_path])
    (note,) = report.notes
    assert note.note.startswith("not parsed")
    assert why in note.note
    assert report.judged == 1


def test_a_notebook_of_old_has_its_cells_in_worksheets() -> None:
    read = code_of_notebook('{"worksheets": [{"cells": [{"cell_type": "code", "input": ["a = 1\\n", "b = 2"]}]}]}')
    assert read == Notebook("a = 1\nb = 2", (1,))


@pytest.mark.parametrize("cells", [[1, None], [{"cell_type": "code", "source": None}], [{"cell_type": "code",
                                    "source": 5}],
                                   [{"cell_type": "code", "source": [1, "x = 1"]}], []])
def test_cells_of_other_shapes_do_no_harm(cells: list[object]) -> None:
    assert isinstance(code_of_notebook(json.dumps({"cells": cells})), Notebook)


def test_the_patch_of_a_notebook_is_never_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = audited(tmp_path, notebook("!ls", TRAIN))
    assert report.findings
    assert not proposed(report.findings, report.by_path).diff
    both = Finding("C101", "t", Severity.HIGH, Bearing.CAUSE, "s", Location(file="b.py", line=1), "a",
                   patch=(Patch("b.py", 1, 0, "", "x", "s"), Patch("a.ipynb", 1, 0, "", "x", "s")))
    assert not in_cells(both, "a.ipynb", (1,)).patch
    assert in_cells(both, "c.ipynb", (1,)).patch == both.patch


LINES = st.sampled_from(["x = 1", "!ls", "%time y = 2", "for i in x:", "    z = 3", "    !ls \\", "foo?", '"""', "(",
                         ")",
                         "%%bash", "a = %b", "# c", "", "'", "\\", "f(x)?", "x = '''"])  # fmt: skip


@given(st.lists(LINES, max_size=9))
def test_any_cell_keeps_its_lines_and_parses(lines: list[str]) -> None:
    cell = python_of("\n".join(lines))
    assert cell.code.count("\n") == max(len(lines) - 1, 0)
    assert why_not(cell.code) is None
