"""The time that is given counts within a file too, and what was not read is said."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from traindx_tools.on_data import examine


@pytest.mark.parametrize("name", ["empty.tar", "zeros.bin"])
def test_a_gigabyte_of_zeros_takes_no_longer_than_said(
    name: str, tmp_path: Path, within: Callable[[float], AbstractContextManager[None]]
) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**30)
    with within(12):
        report = examine([tmp_path / name], seconds=4)
    assert "were looked at" in report.artifacts[0].note or "an archive without records" in report.artifacts[0].note
