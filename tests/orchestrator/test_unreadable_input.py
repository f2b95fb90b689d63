"""What cannot be read ends with exit code 2 and one line, whatever it is; what can be read and holds nothing with 3."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from traindx.diagnose import diagnose
from traindx_tools.errors import UnreadableInput

V3 = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1", "outputs": []}]}]}


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        before = os.getcwd()
        os.chdir(path.parent)
        made.bind(path.name)
        os.chdir(before)


def garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 9)


MADE: dict[str, Callable[[Path], object]] = {
    "broken.ipynb": lambda p: p.write_text('{"cells": ['), "list.ipynb": lambda p: p.write_text("[1, 2]"),
    "nocells.ipynb": lambda p: p.write_text('{"a": 1}'), "empty.ipynb": Path.touch,
    "blank.ipynb": lambda p: p.write_text(" "),
    "empty.log": Path.touch, "empty.csv": Path.touch, "empty.yaml": Path.touch, "empty.json": Path.touch,
    "random.log": garbage, "random.npz": garbage,
    "random.csv": garbage, "broken.yaml": lambda p: p.write_text("a: [1,"),
    "broken.toml": lambda p: p.write_text("[a"), "broken.json": lambda p: p.write_text('{"a":'),
    "folder.log": Path.mkdir, "pipe.log": os.mkfifo, "socket.log": bound, "loop.log": lambda p: p.symlink_to(p),
    "nowhere.log": lambda p: p.symlink_to("gone"),
}


@pytest.mark.parametrize("name", MADE)
def test_it_is_refused_in_a_line(tmp_path: Path, name: str) -> None:
    MADE[name](tmp_path / name)
    with pytest.raises(UnreadableInput) as refused:
        diagnose([tmp_path / name])
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "text"), [
    ("old.ipynb", json.dumps(V3)), ("new.ipynb", json.dumps({"nbformat": 4, "cells": [], "metadata": {}})),
    ("settings.yaml", "lr: 0.1\n"), ("settings.json", '{"lr": 0.1}'), ("words.log", "training begins\n"),
])
def test_what_can_be_read_and_holds_no_metric_needs_more_data(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert diagnose([tmp_path / name]).status == "needs_more_data"


def test_beside_a_log_an_unreadable_notebook_is_named_and_the_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text('{"cells": [')
    (tmp_path / "a.log").write_text("".join(f"step {i} loss {2 - i / 40}\n" for i in range(30)))
    report = diagnose([tmp_path / "a.ipynb", tmp_path / "a.log"])
    assert report.seen.run.loss is not None
    assert any("a.ipynb" in note and "no notebook" in note for note in report.seen.notes)


def test_code_alone_that_does_not_parse_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n    pass\n")
    with pytest.raises(UnreadableInput, match=r"Nothing could be read.*not parsed: invalid syntax in line 2"):
        diagnose([tmp_path / "broken.py"])
    (tmp_path / "log.txt").write_text("".join(f"step {i} loss {3 - i / 100:.2f}\n" for i in range(40)))
    assert diagnose([tmp_path]).seen.records
