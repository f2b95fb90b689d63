"""Lines of a notebook, whoever counts them: the joined code, the kernel's file, an execution, what a cell printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.examine import examine
from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.notebooks.outputs import outputs_of_notebook
from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import ErrorEvent, Frame, Run
from traindx_tools.on_logs.table import extract_training_metrics
from traindx_tools.scope.cells import Notebooks, kernel_number, read_book
from traindx_tools.scope.runs import in_sentences

SETUP = "import torch\nfrom torch import nn"
LOOP = "for step in range(40):\n    print('step', step, 'loss', 1.0)"
LOSS = "loss = nn.functional.cross_entropy(net(x), y)"
TRACEBACK = [
    "\x1b[31m---------------------------------------------------------------------------\x1b[39m",
    "\x1b[31mIndexError\x1b[39m                                Traceback (most recent call last)",
    "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[3]\x1b[39m\x1b[32m, line 1\x1b[39m\n"
    f"\x1b[32m----> \x1b[39m\x1b[32m1\x1b[39m {LOSS}\n",
    "\x1b[31mIndexError\x1b[39m: Target 3 is out of bounds.",
]


def cell(source: str, *outputs: dict[str, Any], count: int | None = None) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "execution_count": count, "metadata": {}}


def stream(text: str | list[str], name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def write(path: Path, *cells: dict[str, Any], **more: Any) -> Path:
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# notes"}, *cells], "nbformat": 4,
                                "metadata": {}, **more}))
    return path


def executed(path: Path) -> Path:
    """A notebook whose loss becomes NaN and whose last cell fails."""
    losses = [f"step {s} loss {'nan' if s > 30 else 2.0 - s / 30:}\n" for s in range(40)]
    return write(path, cell(SETUP, count=1), cell(LOOP, stream("started\n", "stderr"), stream(losses), count=2),
                 cell(LOSS, {"output_type": "error", "ename": "IndexError", "evalue": "Target 3 is out of bounds.",
                             "traceback": TRACEBACK}, count=3))


def test_the_outputs_of_a_notebook_are_its_log(tmp_path: Path) -> None:
    run = read_run(executed(tmp_path / "a.ipynb"))
    loss = run.loss
    assert loss is not None
    assert (len(loss), int(loss.step[-1])) == (40, 39)
    assert run.artifacts[0].format == "notebook"
    assert [e.type for e in run.errors if e.kind == "exception"] == ["IndexError"]
    found = {f.rule: f for f in examine([tmp_path / "a.ipynb"], root=tmp_path).findings}
    assert found["L101"].where.code == "a.ipynb:cell 2 output:33"
    assert found["L520"].where.code == "a.ipynb:cell 3:1"
    assert "at a.ipynb:cell 3:1" in found["L520"].statement


def test_two_runs_in_a_notebook_and_names_of_ones_own(tmp_path: Path) -> None:
    once = "".join(f"step {s} loss {2.0 - s / 40}\n" for s in range(40))
    path = write(tmp_path / "a.ipynb", cell(SETUP), cell(LOOP, stream(once)), cell(LOOP, stream(once.replace(
        "loss 1", "loss nan 1"))))
    found = examine([path], root=tmp_path)
    assert [len(r.run.loss or ()) for r in found.runs] == [40, 40]
    assert {str(f.where.code) for f in found.findings if f.rule == "L101"} <= {"a.ipynb:cell 3 output:2"}
    own = write(tmp_path / "b.ipynb", cell(LOOP, stream(once.replace("loss", "Kosten"))))
    loss = read_run(own, names={"Kosten": "loss"}).loss
    assert loss is not None
    assert len(loss) == 40


def test_the_table_of_metrics_names_the_cell(tmp_path: Path) -> None:
    first = "step 0 loss 2\nstep 1 loss 1\n"
    path = write(tmp_path / "a.ipynb", cell(SETUP, stream("hi\n")), cell(LOOP, stream(first)),
                 cell(LOOP, stream("again\nstep 2 loss 0.5\n")))
    rows = list(extract_training_metrics(path).rows())
    assert [(r.source.rpartition("/")[2], r.line, r.value) for r in rows] == [
        ("a.ipynb:cell 2 output", 1, 2.0), ("a.ipynb:cell 2 output", 2, 1.0), ("a.ipynb:cell 3 output", 2, 0.5)]


def test_a_notebook_that_was_not_run_is_code_alone(tmp_path: Path) -> None:
    run = read_run([write(tmp_path / "a.ipynb", cell(SETUP), cell(LOOP)), executed(tmp_path / "b.ipynb")])
    assert {(a.path.rpartition("/")[2], a.format) for a in run.artifacts} == {
        ("a.ipynb", "notebook"), ("b.ipynb", "notebook")}
    assert {s.source.rpartition("/")[2] for s in run.series} == {"b.ipynb"}


def test_outputs_keep_their_lines() -> None:
    cells = [cell("1", stream("a\nb")), cell("2"), cell("3", stream("c"), stream("d\n"), stream("e", "stderr"))]
    found = outputs_of_notebook(json.dumps({"cells": cells}))
    assert found is not None
    assert found.text == "a\nb\ncd\ne\n"
    assert [found.place(n) for n in (1, 2, 3, 4)] == [(1, 1), (1, 2), (3, 1), (3, 2)]


@pytest.mark.parametrize("text", [
    "", "{", "[]", "[" * 10_000, '{"cells": 3}', json.dumps({"cells": []}), json.dumps({"cells": [cell("x = 1")]}),
    json.dumps({"cells": [cell("x", {"output_type": "display_data", "data": {"image/png": "iVBO"}})]}),
    json.dumps({"cells": [{"cell_type": "code", "source": "x", "outputs": [3, None, {"output_type": "stream"}]}]}),
])
def test_what_holds_no_output_as_text_is_none(text: str) -> None:
    assert outputs_of_notebook(text) is None


def test_an_old_notebook_and_one_without_a_traceback_are_read() -> None:
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": "x", "prompt_number": 4, "outputs": [
        {"output_type": "stream", "stream": "stdout", "text": "loss 1\n"},
        {"output_type": "pyerr", "ename": "ValueError", "evalue": "no"}]}]}]}
    found = outputs_of_notebook(json.dumps(old))
    assert found is not None
    assert found.text == "loss 1\nValueError: no\n"


def test_the_number_of_a_kernels_file_is_that_of_ipykernel() -> None:
    """Recorded from ipykernel 6.29: `ipykernel.compiler.get_file_name` without its folder and suffix."""
    assert kernel_number("import traindx_tools.live.attach") == 3330663944
    assert {len(s): kernel_number(s) == kernel_number(s + " ") for s in ("", "a", "ab", "abc", "abcd", "ä")} == {
        0: False, 1: False, 2: False, 3: False, 4: False}


def seen(where: Location, statement: str = "it is so", rule: str = "T301", **measured: Any) -> Finding:
    return Finding(rule, "t", Severity.HIGH, Bearing.CAUSE, statement, where, "live", measured)


def test_every_count_of_lines_leads_to_a_cell(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ipynb", cell(SETUP), cell(LOOP), cell(LOSS))
    books = Notebooks.read([path, path, tmp_path / "none.ipynb", tmp_path / "b.py"])
    assert [b.path for b in books.books] == [str(path)]
    kernel = f"/tmp/ipykernel_17125/{kernel_number(LOOP)}.py"
    found = books.of_code(seen(Location(file=kernel, line=2), f"stepped at {kernel}:2, not at C:\\tmp\\x.py:2",
                               place=f"{kernel}:1", places=(f"{kernel}:2",)))
    assert found.where.code == f"{path}:cell 2:2"
    assert found.statement.startswith(f"stepped at {path}:cell 2:2, not at C:")
    assert found.measured == {"place": f"{path}:cell 2:1", "places": (f"{path}:cell 2:2",)}
    joined = books.of_code(seen(Location(file="w.pt"), "loaded at a.ipynb:5, other/a.ipynb:5", rule="W110"))
    assert joined.statement == "loaded at a.ipynb:cell 3:1, other/a.ipynb:5"
    assert books.text(f"backward at {kernel}:2") == f"backward at {path}:cell 2:2"
    unknown = seen(Location(file="/tmp/ipykernel_1/12.py", line=3), "at /tmp/ipykernel_1/12.py:3")
    assert books.of_code(unknown) == unknown
    assert Notebooks().of_code(unknown) is unknown


def test_frames_of_a_traceback_lead_to_cells(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ipynb", cell(SETUP, count=7), cell(LOSS, count=9))
    books = Notebooks.read([path])

    def placed(frame: Frame, source: str) -> str:
        error = ErrorEvent("exception", "IndexError", "m", source, 1, 2, (frame,))
        return books.of_run(Run(errors=(error,))).errors[0].frames[0].place

    assert placed(Frame("Cell In[9]", 1, "<module>"), str(path)) == f"{path}:cell 2:1"
    assert placed(Frame("Cell In[2]", 1, "<module>", LOSS), "run.log") == f"{path}:cell 2:1"
    assert placed(Frame("Cell In[2]", 1, "<module>", "another = line"), "run.log") == "Cell In[2]:1"
    assert placed(Frame("<ipython-input-9-3c1f0a2b9d11>", 1, "<module>"), str(path)) == f"{path}:cell 2:1"
    kernel = f"/tmp/ipykernel_3/{kernel_number(LOSS)}.py"
    assert placed(Frame(kernel, 1, "<module>"), "run.log") == f"{path}:cell 2:1"


@pytest.mark.parametrize("text", ["", "{", "[" * 10_000, "3", '{"cells": 1}'])
def test_a_broken_notebook_has_no_places(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    assert read_book(str(path)) is None
    assert Notebooks.beside([path, None, tmp_path / "none" / "x.log"]) == Notebooks()


def losses(count: int, *, start: float = 2.3, rate: float = 0.85, form: str = "epoch {i} loss {loss:.4f}\n",
           first: int = 0) -> str:
    return "".join(form.format(i=i, loss=start * rate ** (i - first)) for i in range(first, first + count))


STEPS = "step {i} loss {loss:.4f}\n"
BARE = "loss {loss:.4f}\n"
STUCK = losses(20, start=2.301, rate=1.0, form=STEPS)


def trained(path: Path, *printed: str, counts: tuple[int, ...] = ()) -> Path:
    each = zip(printed, counts or (None,) * len(printed), strict=True)
    return write(path, cell(SETUP), *(cell(LOOP, stream(text), count=count) for text, count in each))


@pytest.mark.parametrize("cells", [
    (losses(20), losses(20, rate=0.7)),
    (losses(2), losses(2)),
    (losses(20, form=STEPS), losses(20, form=STEPS)),
    (STUCK, losses(20, form=STEPS)),
    (losses(20, form=BARE), losses(20, form=BARE)),
    (losses(20), losses(20, form=STEPS)),
    (losses(20, form=STEPS), losses(20, form=STEPS, rate=0.99)),
])
def test_training_loops_in_two_cells_are_two_runs(tmp_path: Path, cells: tuple[str, ...]) -> None:
    found = examine([trained(tmp_path / "a.ipynb", *cells)], root=tmp_path)
    assert [r.one.cells for r in found.runs] == ["cell 2 output", "cell 3 output"]
    assert [r.one.start for r in found.runs] == [1, cells[0].count("\n") + 1]
    told = in_sentences([r.to_json() for r in found.runs], 2, str)
    assert told[0].startswith("Run 2 of 2 (a.ipynb, cell 3 output) is the one that is judged")


@pytest.mark.parametrize("cells", [
    (losses(20), losses(10, first=20, start=0.09)),
    (losses(20, form=STEPS), losses(10, form=STEPS, start=0.1, rate=0.95)),
    (losses(20, form=BARE), losses(20, form=BARE, start=0.1)),
    (losses(1, form=BARE), losses(20, form=BARE)),
    (losses(20, form=BARE), losses(1, form=BARE)),
    (losses(20), "".join(f"batch {i} val_loss 0.4\n" for i in range(10))),
    ("cuda\n", losses(20)),
])
def test_a_training_that_goes_on_in_another_cell_is_one_run(tmp_path: Path, cells: tuple[str, ...]) -> None:
    assert len(examine([trained(tmp_path / "a.ipynb", *cells)], root=tmp_path).runs) == 1


def test_two_loops_below_one_cell_are_named_by_their_lines(tmp_path: Path) -> None:
    found = examine([trained(tmp_path / "a.ipynb", losses(20) + losses(20))], root=tmp_path)
    assert [r.one.cells for r in found.runs] == ["cell 2 output, lines 1 to 20", "cell 2 output, lines 21 to 40"]


def test_the_run_of_the_cell_that_was_executed_last_is_the_last_one(tmp_path: Path) -> None:
    diverged = losses(20, rate=1.5)
    found = examine([trained(tmp_path / "a.ipynb", diverged, losses(20), counts=(9, 4))], root=tmp_path)
    assert [r.one.cells for r in found.runs] == ["cell 3 output", "cell 2 output"]
    assert {f.where.cell for f in found.findings if f.rule == "L106"} == {2}
    found = examine([trained(tmp_path / "b.ipynb", diverged, losses(20), counts=(4, 9))], root=tmp_path)
    assert found.verdict.status == "healthy"


@pytest.mark.parametrize("counts", [(0, 4), (-1, 4), (None, 4), ("3", 1)])
def test_cells_whose_executions_are_not_all_told_stay_in_their_order(tmp_path: Path, counts: Any) -> None:
    outputs = outputs_of_notebook(trained(tmp_path / "a.ipynb", "one\n", "two\n", counts=counts).read_text())
    assert outputs is not None
    assert (outputs.text, outputs.cells) == ("one\ntwo\n", (2, 3))
