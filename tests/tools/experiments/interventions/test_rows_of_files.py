"""Rows of a table that stay are written as they stood: marks, other separators, line breaks within quotes."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.interventions.writing.rows import MARK, with_rows

FIRST_AND_LAST = [0, 2]


@pytest.mark.parametrize(("raw", "made"), [
    (b"a,b\n1,2\n3,4\n5,6\n", b"a,b\n1,2\n5,6\n"),
    (MARK + b"a;b\r\n1,5;2\r\n3;4\r\n5;6\r\n", MARK + b"a;b\r\n1,5;2\r\n5;6\r\n"),
    (b'1\t"x\ny"\n3\t"z"\n5\t"w\n\nv"\n', b'1\t"x\ny"\n5\t"w\n\nv"\n'),
])
def test_rows_that_stay_are_as_they_were(tmp_path: Path, raw: bytes, made: bytes) -> None:
    (tmp_path / "d.csv").write_bytes(raw)
    counted: list[int] = []
    assert with_rows(tmp_path / "d.csv", lambda n: counted.append(n) or FIRST_AND_LAST) == made
    assert counted == [3]


def test_a_table_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes(b"a,b\n\xff\xfe1\n")
    with pytest.raises(BadUsage, match="cannot be read"):
        with_rows(tmp_path / "d.csv", lambda n: [])
