"""Names in the order of their signs whose numbers have another: held in a list, or read as files."""

from __future__ import annotations

from typing import Any

import pytest

from traindx_tools.live.files_read import FileRead
from traindx_tools.on_variables import text_order, visiting

BY_TEXT = sorted(f"in/scan{i}.npy" for i in range(30))


def _holds(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setattr(visiting, "roots", lambda: iter([("train.py", None, "files", value)]))


@pytest.mark.parametrize("names", [BY_TEXT, tuple(BY_TEXT)])
def test_a_list_of_names_is_told_with_two_of_them(monkeypatch: pytest.MonkeyPatch, names: Any) -> None:
    _holds(monkeypatch, names)
    assert text_order.seen() == ("files of train.py holds 30 names in the order of their signs, 'scan19.npy' before "
                                 "'scan2.npy'")


@pytest.mark.parametrize("names", [
    [f"in/scan{i:03d}.npy" for i in range(30)], [f"in/scan{i}.npy" for i in range(30)], BY_TEXT[:9],
    [*BY_TEXT, "a"], list(range(30)), [*BY_TEXT, None], ["x"] * 30, [f"v{i}" for i in "abcdefghijklmnopq"]])
def test_padded_names_numbers_and_what_is_in_no_order_are_left_alone(monkeypatch: pytest.MonkeyPatch, names: Any
                                                                     ) -> None:
    _holds(monkeypatch, names)
    assert text_order.seen() == ""


def test_files_are_told_by_the_line_that_opens_them(monkeypatch: pytest.MonkeyPatch) -> None:
    _holds(monkeypatch, [])
    files = [FileRead(f"/data/{n}", "/project/load.py", 7) for n in BY_TEXT]
    assert text_order.seen(files).startswith("load.py:7 reads 30 files in the order of their signs")
    assert text_order.seen([FileRead(f.path, "", 0) for f in files]) == "", "a library's own order is nobody's here"
    assert text_order.seen(files[::-1]) == ""
