"""A notebook that is a run of another one is read for what it printed; judged is the one that a person edits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.examine import examine
from traindx_tools.scope import Asked
from traindx_tools.scope.copies import executed_copies
from traindx_tools.scope.model import in_words

TRAIN = ("import torch\nfrom torch import nn\nnet = nn.Linear(3, 4)\nopt = torch.optim.SGD(net.parameters(), lr=1e4)\n"
         "for x, y in batches:\n    opt.zero_grad()\n    nn.functional.mse_loss(net(x), y).backward()\n    opt.step()")


def write(path: Path, *sources: str, printed: str = "", tags: tuple[str, ...] = (), **metadata: Any) -> Path:
    cells = [{"cell_type": "code", "source": s, "metadata": {"tags": list(tags)} if k == 0 else {},
              "outputs": [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []}
             for k, s in enumerate(sources)]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "metadata": metadata}))
    return path


def test_the_source_is_judged_and_its_run_is_read(tmp_path: Path) -> None:
    printed = "".join(f"step {s} loss {2.0 ** s}\n" for s in range(40))
    write(tmp_path / "fit.ipynb", TRAIN)
    write(tmp_path / "fit.done.ipynb", TRAIN + "\n", printed=printed)
    found = examine([tmp_path], root=tmp_path)
    assert [p.name for p in found.scope.judged] == ["fit.ipynb"]
    assert {f.where.file for f in found.findings if f.rule[0] == "C"} == {"fit.ipynb"}
    assert found.records >= 40
    said = " ".join(in_words(found.scope.to_json(lambda p: Path(p).name)))
    assert "fit.done.ipynb is a run of fit.ipynb: what it printed is read, its code is judged there." in said
    named = examine([tmp_path / "fit.done.ipynb"], root=tmp_path)
    assert [p.name for p in named.scope.judged] == ["fit.done.ipynb"]
    every = examine([tmp_path], root=tmp_path, asked=Asked(everything=True))
    assert {p.name for p in every.scope.judged} == {"fit.ipynb", "fit.done.ipynb"}


def test_notebooks_of_other_code_are_no_copies(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.ipynb", TRAIN), write(tmp_path / "b.ipynb", TRAIN.replace("1e4", "1e3"))
    assert executed_copies([one, other]) == {}
    empty = [write(tmp_path / f"{n}.ipynb", "") for n in "cd"]
    assert executed_copies(empty) == {}


@pytest.mark.parametrize(("first", "second"), [
    ({"path": "z_source.ipynb"}, {"path": "a.ipynb", "printed": "x"}),
    ({"path": "fit.ipynb", "printed": "x"}, {"path": "fit.nbconvert.ipynb", "printed": "x"}),
    ({"path": "longer.ipynb", "printed": "x"}, {"path": "out.ipynb", "papermill": {}}),
])
def test_which_of_two_is_the_source(tmp_path: Path, first: dict[str, Any], second: dict[str, Any]) -> None:
    source, run = (write(tmp_path / str(a.pop("path")), TRAIN, **a) for a in (dict(first), dict(second)))
    for code in ([source, run], [run, source]):
        assert executed_copies(code) == {run: source}
    assert executed_copies([source, run], [run]) == {source: run}
    assert executed_copies([source, run], [run, source]) == {}


def test_parameters_that_papermill_put_in_are_no_other_code(tmp_path: Path) -> None:
    source = write(tmp_path / "fit.ipynb", TRAIN)
    run = write(tmp_path / "out.ipynb", "rate = 3", TRAIN, tags=("injected-parameters",), papermill={})
    assert executed_copies([run, source]) == {run: source}


def test_a_broken_notebook_is_no_copy(tmp_path: Path) -> None:
    good = write(tmp_path / "fit.ipynb", TRAIN)
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"cells": {}}')):
        (tmp_path / f"{name}.ipynb").write_text(text)
    assert executed_copies([good, *(tmp_path / f"{n}.ipynb" for n in "abcd")]) == {}


def test_a_script_that_makes_the_data_does_not_stand_for_the_notebook_that_trains(tmp_path: Path) -> None:
    """Its outputs are placed by cell also where the folder is given."""
    (tmp_path / "make_data.py").write_text("import numpy as np\n\n# the loss of each epoch\nprint(np.ones(3))\n")
    lines = [f"step {i} loss {1 / (i + 1):.4f}\n" if i < 30 else f"step {i} loss nan\n" for i in range(40)]
    cell = {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "for step in range(40):\n    pass\n",
            "outputs": [{"output_type": "stream", "name": "stdout", "text": lines}]}
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4,
                                                      "nbformat_minor": 5}))
    seen = examine([tmp_path])
    assert "train.ipynb" in {p.name for p in seen.code}
    (found,) = [f for f in seen.findings if f.rule == "L101"]
    assert (found.where.cell, found.where.line) == (1, 31)
