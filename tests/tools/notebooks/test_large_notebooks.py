"""A notebook is bounded by its code; its outputs may hold pictures."""

from __future__ import annotations

import json
from pathlib import Path

from traindx_tools.code_audit import audit
from traindx_tools.source_files.texts import MAX_BYTES, MAX_NOTEBOOK_BYTES

CODE = ("import torch\nnet = torch.nn.Linear(4, 1)\nopt = torch.optim.Adam(net.parameters(), lr=1e-3)\n"
        "for x in torch.randn(9, 2, 4):\n    net(x).sum().backward()\n    opt.step()\n")


def notebook(path: Path, code: str, picture: int) -> Path:
    cell = {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": code, "outputs": [
        {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * picture}}]}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_a_picture_in_its_outputs_is_no_hindrance(tmp_path: Path) -> None:
    result = audit([notebook(tmp_path / "a.ipynb", CODE, 2 * MAX_BYTES)])
    assert not result.notes
    assert "C101" in {f.rule for f in result.findings}


def test_code_beyond_reason_is_refused(tmp_path: Path) -> None:
    result = audit([notebook(tmp_path / "a.ipynb", "x = 1\n" * (MAX_BYTES // 6 + 1), 10)])
    assert "its code is larger than" in result.notes[0].note


def test_a_file_beyond_reason_is_refused_unread(tmp_path: Path) -> None:
    result = audit([notebook(tmp_path / "a.ipynb", CODE, MAX_NOTEBOOK_BYTES)])
    assert f"larger than {MAX_NOTEBOOK_BYTES:,} bytes" in result.notes[0].note
