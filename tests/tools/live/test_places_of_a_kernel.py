"""What a recorded kernel names by its files is told by the cells of the notebook in the folder where it ran."""

from __future__ import annotations

import json
from pathlib import Path

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.live.reading import read_folder
from traindx_tools.scope.cells import kernel_number

SOURCE = "for step in range(9):\n    opt.step()"


def recorded(folder: Path, cwd: Path) -> Path:
    kernel = f"/tmp/ipykernel_77/{kernel_number(SOURCE)}.py"
    found = Finding("T301", "t", Severity.HIGH, Bearing.CAUSE, f"stepped at {kernel}:2",
                    Location(file=kernel, line=2), "p")
    rows = [{"traindx": "live", "kind": "start", "version": 1, "rank": 0, "mode": "watch", "cwd": str(cwd), "argv": []},
            {"kind": "facts", "text": f"step at {kernel}:2\nclear at /tmp/ipykernel_77/12.py:3"},
            {"kind": "finding", "finding": found.to_json()}, {"kind": "end", "how": "ok"}]
    folder.mkdir(parents=True)
    (folder / "rank00000.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return folder


def notebook(path: Path, printed: str = "") -> None:
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": s, "outputs": outputs}
                                          for s in ("import torch", SOURCE)]}))


def test_the_cell_is_named_in_the_file_that_a_person_edits(tmp_path: Path) -> None:
    notebook(tmp_path / "fit.done.ipynb", "loss 1\n")
    notebook(tmp_path / "fit.ipynb")
    seen = read_folder(recorded(tmp_path / "traindx-run" / "1", tmp_path))
    (found,) = seen.findings
    assert found.where.code == "fit.ipynb:cell 2:2"
    assert found.statement == "stepped at fit.ipynb:cell 2:2"
    assert seen.facts.splitlines() == ["step at fit.ipynb:cell 2:2", "clear at /tmp/ipykernel_77/12.py:3"]
    (from_root,) = seen.seen_from(tmp_path.parent)
    assert from_root.where.code == f"{tmp_path.name}/fit.ipynb:cell 2:2"


def test_without_the_notebook_the_kernels_name_stays(tmp_path: Path) -> None:
    for number, cwd in enumerate((tmp_path, tmp_path / "gone")):
        (found,) = read_folder(recorded(tmp_path / "traindx-run" / str(number), cwd)).findings
        assert str(found.where.file).startswith("/tmp/ipykernel_77/")
    (tmp_path / "broken.ipynb").write_text("{")
    (found,) = read_folder(tmp_path / "traindx-run" / "0").findings
    assert found.where.cell is None
