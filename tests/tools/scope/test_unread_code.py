"""Code that does not parse was not judged: it is not listed as judged, and a run with such code is not called sound."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine
from traindx_tools.scope import Asked
from traindx_tools.scope.model import in_words

LOG = "".join(f"step {i} loss {2 * 0.97**i:.4f}\n" for i in range(40))
SOUND = 'for i in range(40):\n    print(f"step {i} loss {2 * 0.97**i:.4f}")\n'
BROKEN = "import torch\ndef f(:\n    pass\n"


def seen(folder: Path, train: str, asked: Asked | None = None, **others: str) -> Examination:
    for name, text in {"train": train, **others}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "out.txt").write_text(LOG)
    return examine([folder], root=folder, asked=asked or Asked())


def said(of: Examination) -> str:
    return " ".join(in_words(of.scope.to_json(lambda p: Path(p).name)))


@pytest.mark.parametrize("text", [BROKEN, "print 'python 2'\n", "\0", "(" * 400 + ")" * 400])
def test_an_entry_point_that_is_not_read_is_no_sound_code(text: str, tmp_path: Path) -> None:
    found = seen(tmp_path, text)
    assert found.verdict.status == "needs_more_data"
    assert "train.py was not" in found.verdict.reason
    assert not found.scope.judged
    assert "No code was judged." in said(found)
    assert "could not be read: train.py (not" in said(found)


def test_also_where_a_command_names_it_and_other_code_is_read(tmp_path: Path) -> None:
    found = seen(tmp_path, BROKEN, Asked(commands=("python train.py",)), helper="X = 1\n")
    assert found.verdict.status == "needs_more_data"
    assert found.joined(()).verdict.status == "needs_more_data"
    assert found.scope.to_json(lambda p: Path(p).name)["unread"] == ["train.py (not parsed: invalid syntax in line 2)"]


def test_code_that_parses_is_judged(tmp_path: Path) -> None:
    found = seen(tmp_path, SOUND)
    assert (found.verdict.status, [p.name for p in found.scope.judged]) == ("healthy", ["train.py"])
    assert "unread" not in found.scope.to_json(str)


def test_a_helper_that_does_not_parse_is_named_and_changes_nothing_else(tmp_path: Path) -> None:
    found = seen(tmp_path, "import helper\n" + SOUND, helper=BROKEN)
    assert found.verdict.status == "healthy"
    assert "could not be read: helper.py (not parsed" in said(found)
