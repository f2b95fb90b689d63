"""What the readers make of files: shards, fields, splits, samples, hints."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import data_making as making
import numpy as np
import pytest
from data_making import classes, series, texts

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data import examine
from traindx_tools.on_data.examination import require_data
from traindx_tools.on_data.names import split_of, without_split
from traindx_tools.on_data.readers import read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.table import DataSet


def only_set(path: Path) -> DataSet:
    (found,) = examine([path]).sets
    return found


@pytest.mark.parametrize("form", ["npz", "npy", "csv", "jsonl", "tar", "pt", "parquet", "hdf5", "tfrecord", "mds"])
def test_each_format_gives_the_same_table(tmp_path: Path, form: str) -> None:
    if form in making.NEEDS:
        pytest.importorskip(making.NEEDS[form])
    series(tmp_path, form, shards=3, rows=50)
    found = only_set(tmp_path)
    expected = classes(50, np.random.default_rng(0))
    first = found.shards[0]
    assert [s.rows for s in found.shards] == [50, 50, 50]
    label = next(c for n, c in first.columns.items() if n.rpartition(".")[2] in ("y", "cls"))
    assert label.values.tolist() == expected["y"].tolist()
    assert sum(int(np.prod(c.row_shape)) for n, c in first.columns.items() if c is not label) == 12


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train_001", "train"),
        ("x_train", "train"),
        ("valid-3", "validation"),
        ("dev", "validation"),
        ("TestSet", "test"),
        ("training_data", "train"),
        ("restrain", ""),
        ("contest", ""),
        ("train_test", ""),
        ("shard_01", ""),
    ],
)
def test_splits_in_names(name: str, split: str) -> None:
    assert split_of(name) == split


def test_names_without_their_split() -> None:
    assert without_split("x_train") == without_split("x_val") == "x"
    assert without_split("train") == "train"


def test_arrays_of_several_splits_in_one_file(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "mnist.npz",
        x_train=np.zeros((60, 4)),
        y_train=np.zeros(60),
        x_test=np.ones((20, 4)),
        y_test=np.ones(20),
    )
    found = only_set(tmp_path)
    assert {s.split: (s.rows, sorted(s.columns)) for s in found.shards} == {
        "train": (60, ["x", "y"]),
        "test": (20, ["x", "y"]),
    }


def test_splits_in_folders(tmp_path: Path) -> None:
    for part in ("train", "val"):
        (tmp_path / part).mkdir()
        series(tmp_path / part, "npz", shards=2, rows=30)
    assert {s: len(g) for s, g in only_set(tmp_path).splits.items()} == {"train": 2, "validation": 2}


def test_a_word_of_a_folder_above_says_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "test" / "run"
    folder.mkdir(parents=True)
    series(folder, "npz", shards=2, rows=30)
    assert list(only_set(folder).splits) == [""]


def test_weights_are_no_data(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **{"fc.weight": np.zeros((8, 8)), "fc.bias": np.zeros(8)})
    report = examine([tmp_path])
    assert report.sets == ()
    assert "weights" in report.artifacts[0].note
    with pytest.raises(UnreadableInput, match="no data could be read"):
        require_data(report, [tmp_path])


def test_a_large_array_is_sampled_and_says_so(tmp_path: Path) -> None:
    values = np.arange(100_000, dtype=np.float64).reshape(-1, 4)
    np.save(tmp_path / "a.npy", values)
    (shard,) = read_file(tmp_path / "a.npy", "a.npy", "npy", Bounds(values=10_000))
    assert shard.total == 25_000
    assert shard.rows <= 2_500
    assert "of 25,000 rows" in shard.notes[0]
    assert shard.numbers is not None
    assert (shard.columns["a"].values == values[shard.numbers]).all()
    assert shard.row(10) == f"row {shard.numbers[10]}"


def test_time_that_is_used_up_is_said(tmp_path: Path) -> None:
    series(tmp_path, "npz", shards=3, rows=30)
    report = examine([tmp_path], seconds=-1.0)
    assert [a.note for a in report.artifacts] == ["not read: the time was used up"] * 3


def test_packed_lines(tmp_path: Path) -> None:
    body = "".join(json.dumps(r) + "\n" for r in texts(40, np.random.default_rng(0))).encode()
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(body))
    assert only_set(tmp_path).shards[0].rows == 40
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress(body)[:-200])
    assert [f.rule for f in examine([tmp_path]).wrong] == ["D118"]


def test_records_of_many_forms(tmp_path: Path) -> None:
    rows = [
        {
            "messages": [{"role": "user", "content": f"hello {i}"}],
            "meta": {"source": "a", "n": i},
            "score": None if i % 4 else 0.5,
            "flag": True,
            "ragged": [1] * i,
            "mixed": [1, "a"],
        }
        for i in range(30)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    columns = only_set(tmp_path).shards[0].columns
    kinds = {n: c.kind for n, c in columns.items()}
    assert kinds == {
        "messages": "text",
        "meta.source": "text",
        "meta.n": "number",
        "score": "number",
        "flag": "number",
        "ragged": "sequence",
        "mixed": "text",
    }
    assert columns["ragged"].lengths.tolist() == list(range(30))
    assert columns["score"].missing is not None


def test_one_path_that_names_nothing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="There is no file"):
        examine([tmp_path / "nothing.npz"])


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name.startswith(("pyarrow", "h5py")):
            raise ImportError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100))
    (tmp_path / "b.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    notes = [a.note for a in examine([tmp_path]).artifacts]
    assert len(notes) == 2
    assert all("pip install '" in n and "'pyarrow>=14'" in n and "'h5py>=3.9'" in n for n in notes)


def test_texts_of_hdf5_beside_its_arrays(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "train.h5", "w") as file:
        file["x"] = np.arange(12.0).reshape(6, 2)
        file["id"] = [f"row {i}" for i in range(6)]
        file["link"] = np.array([file["x"].ref] * 6, dtype=h5py.ref_dtype)
    (shard,) = examine([tmp_path]).sets[0].shards
    assert shard.columns["id"].texts[:2] == ("row 0", "row 1")
    assert "x" in shard.columns
    assert shard.notes == ("link was not read: objects of HDF5",)
