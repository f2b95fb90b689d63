"""Tables that pyarrow converts have the columns that Python's csv gives, whatever their cells hold."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers import plain_delimited
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.delimited import read_delimited
from traindx_tools.on_data.readers.plain_delimited import plain_columns, read_table
from traindx_tools.on_data.shard import Shard

pytest.importorskip("pyarrow")

ROWS = 3000
CELLS = {
    "whole": "7", "negative": "-12", "decimal": "1.5", "exponent": "2e-3", "not a number": "nan", "infinite": "inf",
    "beyond a float": "1e400", "empty": "", "NA": "NA", "spelled otherwise": "Na", "blank": " ", "code": "007",
    "negative zero": "-0", "hexadecimal": "0x1F", "a number to one": "nan(1)", "with a sign": "+5", "padded": " 5 ",
    "grouped": "1_000", "beyond 64 bits": "9223372036854775808", "other digits": "\u0663", "text": "red",
    "letters": "Zürich", "quoted": '"a,b"', "a quote within": 'a"b', "one cell more": "1,2", "blank line": "1\n",
    "two lines": '"a\nb"', "lone return": "1\r2",
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_delimited, "FEWEST_BYTES", 0)
    monkeypatch.setattr(plain_delimited, "BLOCK", 5000)


def assert_same(one: tuple[Shard, ...], other: tuple[Shard, ...]) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a.rows, a.total, a.notes, a.damage) == (b.rows, b.total, b.notes, b.damage)
        assert list(a.columns) == list(b.columns)
        for name, column in a.columns.items():
            twin = b.columns[name]
            assert (column.kind, column.values.dtype, column.texts) == (twin.kind, twin.values.dtype, twin.texts)
            for mine, its in ((column.values, twin.values), (column.missing, twin.missing),
                              (column.digests, twin.digests)):
                assert (mine is None) == (its is None)
                assert mine is None or np.array_equal(mine, its, equal_nan=mine.dtype.kind == "f")
            assert column.kind == "text" or np.array_equal(np.signbit(column.values), np.signbit(twin.values)) or (
                np.isnan(column.values).any())


def both(path: Path, bounds: Bounds) -> None:
    assert_same(read_table(path, path.name, bounds), read_delimited(path, path.name, bounds))


def written(path: Path, cells: list[str], *, mark: str = ",", head: str = "n,x,name") -> Path:
    lines = [f"{i % 50},{i / 8:.3f},{c}".replace(",", mark) for i, c in enumerate(cells)]
    path.write_text("\n".join([head.replace(",", mark), *lines]) + "\n", newline="", encoding="utf-8")
    return path


@pytest.mark.parametrize("others", ["3", "0.25", "red"])
@pytest.mark.parametrize("at", [10, 2000])
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_one_other_cell(cell: str, at: int, others: str, tmp_path: Path) -> None:
    cells = [others] * ROWS
    cells[at] = cell
    both(written(tmp_path / "t.csv", cells), Bounds())


def test_cell_that_csv_refuses(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", ["x" * 200_000 if i == 2000 else "red" for i in range(ROWS)])
    assert plain_columns(path, "t", Bounds()) is None
    with pytest.raises(UnreadableInput, match="field larger"):
        read_table(path, "t", Bounds())


def test_few_rows(tmp_path: Path) -> None:
    """The mark is told by fewer lines than it is looked for in."""
    path = tmp_path / "t.csv"
    path.write_text("a;b\n1;48.7\n2;16.5\n")
    assert list(read_table(path, "t", Bounds())[0].columns) == ["a", "b"]
    both(path, Bounds())


@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
@pytest.mark.parametrize("head", ["n,x,name", "n,n,n", "1,2,3"])
def test_marks_and_headers(mark: str, head: str, tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", [f"c{i % 7}" for i in range(ROWS)], mark=mark, head=head)
    assert plain_columns(path, path.name, Bounds()) is not None
    both(path, Bounds())


def test_many_columns_of_mixed_cells(tmp_path: Path) -> None:
    rng = random.Random(3)
    for trial in range(25):
        some = [c for c in CELLS.values() if not set(c) & set('",\n\r') and len(c) < 99]
        kinds = [rng.sample(some, rng.randint(1, 3)) for _ in range(6)]
        rows = [",".join(rng.choice(k) if rng.random() < 0.002 else k[0] for k in kinds) for _ in range(ROWS)]
        path = tmp_path / f"{trial}.csv"
        path.write_text("a,b,c,d,e,f\n" + "\n".join(rows) + "\n" * (trial % 2), encoding="utf-8")
        both(path, Bounds())


@pytest.mark.parametrize("rows", [2, 1000, 2998, 2999, 3000, 3001, 9000])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_as_many_rows_as_are_read(rows: int, end: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text((end or "\n").join(["a,b", *(f"{i},{i / 4}" for i in range(ROWS))]) + end, newline="")
    both(path, Bounds(rows=rows))


def test_packed_and_marked_by_bytes(tmp_path: Path) -> None:
    data = written(tmp_path / "t.csv", ["1.5"] * ROWS).read_bytes()
    for name, held in (("m.csv", b"\xef\xbb\xbf" + data), ("p.csv.gz", gzip.compress(data)),
                       ("l.csv", data + b"1,2,\xff\n"), ("z.csv", data + b"1,2,\0\n")):
        (tmp_path / name).write_bytes(held)
        both(tmp_path / name, Bounds())
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(data)[:-20])
    assert plain_columns(tmp_path / "cut.csv.gz", "t", Bounds()) is None


def test_codes_behind_long_rows(tmp_path: Path) -> None:
    """A code in row 900 makes texts of a column; a block of these rows holds none of it."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{'007' if i == 900 else 5},{'x' * 90}\n" for i in range(ROWS)))
    both(path, Bounds())
    assert read_table(path, "t", Bounds())[0].columns["a"].kind == "text"


def test_used_up_time(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", ["1.5"] * ROWS)
    found = plain_columns(path, "t", Bounds(ends=0.0))
    assert found is not None
    assert 0 < found["n"].rows < ROWS
