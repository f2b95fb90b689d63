"""Single values of data files are changed, and nothing else of them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.experiments.planting.tables import changed, tables

N = 80
RNG = np.random.default_rng(3)
X, Y, S = RNG.normal(size=(N, 3)), RNG.integers(0, 4, N), RNG.normal(size=(N, 5, 30))


def csv_text(end: str = "\n", between: str = ",") -> str:
    rows = [f'{X[i, 0]:.4f}{between}"a {i % 3}, b"{between}{Y[i]}' for i in range(N)]
    return end.join([between.join(("x", "text", "y")), *rows, ""])


def values(file: Path) -> dict[str, Any]:
    return {c.name: c.keys() for t in tables([file.name], file.parent) for c in t.columns}


@pytest.mark.parametrize(("end", "between"), [("\n", ","), ("\r\n", ","), ("\n", "\t"), ("\n", ";")])
def test_one_cell_of_a_table_of_text_changes_and_every_other_line_stays(tmp_path: Path, end: str, between: str) -> None:
    file = tmp_path / "d.csv"
    file.write_bytes(csv_text(end, between).encode())
    before = file.read_bytes().split(end.encode())
    after = changed("d.csv", tmp_path, {"y": {4: 5}, "x": {9: 10}}).split(end.encode())
    differ = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert set(differ) <= {5, 10}
    assert 10 in differ
    file.write_bytes(end.encode().join(after))
    seen = values(file)
    assert seen["x"][9] == seen["x"][10]
    assert seen["y"][4] == Y[5]
    assert seen["text"][4] == "a 1, b"


def test_a_mark_of_byte_order_stays(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_bytes(b"\xef\xbb\xbf" + csv_text().encode())
    assert changed("d.csv", tmp_path, {"x": {9: 10}}).startswith(b"\xef\xbb\xbfx,text,y\n")


def test_arrays_change_in_the_rows_that_are_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=X, y=Y, s=S, mean=X.mean(0))
    np.save(tmp_path / "x.npy", X)
    made = np.load(io.BytesIO(changed("d.npz", tmp_path, {"x[:, 1]": {7: 8}, "y": {3: 2}, "s": {5: 6}})))
    assert made["x"][7, 1] == X[8, 1]
    assert made["x"][7, 0] == X[7, 0]
    assert (made["s"][5] == S[6]).all()
    assert made["y"][3] == Y[2]
    assert (made["mean"] == X.mean(0)).all()
    assert (np.load(io.BytesIO(changed("x.npy", tmp_path, {"[:, 2]": {0: 1}})))[0, 2]) == X[1, 2]


def test_records_and_columns_change(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    records = [{"text": f"t {i}", "label": int(Y[i])} for i in range(N)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    lines = changed("d.jsonl", tmp_path, {"label": {1: 0}}).decode().splitlines()
    assert json.loads(lines[1]) == {"text": "t 1", "label": int(Y[0])}
    pq.write_table(pa.table({"x": X[:, 0], "y": Y}), tmp_path / "d.parquet")
    table = pq.read_table(pa.BufferReader(changed("d.parquet", tmp_path, {"y": {6: 5}})))
    assert table["y"][6].as_py() == Y[5]
    assert table["x"].to_pylist() == X[:, 0].tolist()


def test_files_of_the_same_rows_are_one_table(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "other.npy", np.arange(200.0))
    found = tables(["x.npy", "y.npy", "other.npy"], tmp_path)
    assert [(t.rows, t.files) for t in found] == [(200, ("other.npy",)), (N, ("x.npy", "y.npy"))]


@pytest.mark.parametrize(("name", "data"), [
    ("d.csv", b"a,a\n" + b"1,2\n" * 99),
    ("d.csv", b""), ("d.csv", b"a,b\n1\n2,3\n"), ("d.csv", b"\xff\xfe\x00"), ("d.npz", b"PK\x03\x04"), ("d.npy", b"no"),
    ("d.jsonl", b"[1]\n"), ("d.jsonl", b"{"), ("d.jsonl", b"[" * 100_000), ("d.parquet", b"PAR1"),
    ("d.bin", b"1,2\n" * 99),
])
def test_what_is_no_table_is_left_out(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert tables([name, "missing.csv"], tmp_path) == ()


def test_pickled_arrays_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{}] * N, object), allow_pickle=True)
    assert tables(["o.npy"], tmp_path) == ()
