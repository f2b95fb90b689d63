"""Folders, rows and checkpoints: what differs, and the files that a run finds."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.isolating.spaces.data_files import OneFolder, TwoFolders
from traindx_tools.experiments.isolating.spaces.rows import RowsOfOne, RowsOfTwo
from traindx_tools.experiments.isolating.spaces.tensors import Tensors

NONE: frozenset[int] = frozenset()


def only(space: Any, part: frozenset[int] = NONE) -> bytes:
    (held,) = space.prepared(part).files.values()
    assert held is not None
    return bytes(held)


def loaded(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False)


def shards(folder: Path, values: list[int], **more: str) -> Path:
    folder.mkdir()
    for i, value in enumerate(values):
        (folder / f"shard_{i:03d}.x.txt").write_text(f"x{value}")
        (folder / f"shard_{i:03d}.y.txt").write_text(f"y{value}")
    for name, text in more.items():
        (folder / name).write_text(text)
    return folder


def test_two_folders_differ_file_by_file(tmp_path: Path) -> None:
    good = shards(tmp_path / "good", [0, 1, 2], old="1", meta="same")
    bad = shards(tmp_path / "bad", [0, 9, 2], new="2", meta="same")
    space = TwoFolders.of(good, bad, "python train.py --data bad", tmp_path)
    assert space.labels == ("new (added)", "old (removed)", "shard_001.x.txt", "shard_001.y.txt")
    files = space.prepared(frozenset({0, 2})).files
    assert files["bad/shard_001.x.txt"] == b"x9"
    assert files["bad/shard_001.y.txt"] == b"y1"
    assert (files["bad/new"], files["bad/old"]) == (b"2", b"1")
    every = space.prepared(frozenset(range(4))).files
    assert {n.removeprefix("bad/"): c for n, c in every.items() if c is not None} == {
        p.name: p.read_bytes() for p in bad.iterdir()}


def test_of_one_folder_shards_are_left_out_with_all_their_files(tmp_path: Path) -> None:
    folder = shards(tmp_path / "data", [0, 1, 2, 3], meta="same")
    space = OneFolder.of(folder, "python train.py", tmp_path)
    assert space.labels[2] == "shard_002.x.txt, shard_002.y.txt"
    files = space.prepared(frozenset({1, 3})).files
    assert [files[f"data/shard_{i:03d}.{a}.txt"] for i in range(4) for a in "xy"] == [
        b"x1", b"y1", b"x1", b"y1", b"x1", b"y1", b"x3", b"y3"]
    assert files["data/meta"] == b"same"


def test_a_folder_without_shards_and_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(UnreadableInput, match="0 files"):
        OneFolder.of(tmp_path / "data", "python train.py", tmp_path)
    (tmp_path / "data" / "only.npy").write_text("")
    with pytest.raises(BadUsage, match="no shards to leave out"):
        OneFolder.of(tmp_path / "data", "python train.py", tmp_path)
    with pytest.raises(UnreadableInput, match="no such folder"):
        TwoFolders.of(tmp_path / "data", tmp_path / "none", "python train.py", tmp_path)


def test_rows_of_arrays_that_differ(tmp_path: Path) -> None:
    x, y = np.arange(40.0).reshape(20, 2), np.arange(20)
    np.savez(tmp_path / "good.npz", x=x, y=y, mean=np.zeros(2))
    x[7], y[11] = -1, -1
    np.savez(tmp_path / "bad.npz", x=x, y=y, mean=np.zeros(2))
    space = RowsOfTwo.of(tmp_path / "good.npz", tmp_path / "bad.npz", "python train.py bad.npz", tmp_path)
    assert space.labels == ("row 7", "row 11")
    made = loaded(only(space, frozenset({1})))
    assert made["y"][11] == -1
    assert made["x"][7, 0] == 14
    assert made["mean"].shape == (2,)
    assert np.array_equal(loaded(only(space, frozenset({0, 1})))["x"], x)


def test_rows_that_only_the_bad_file_has(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text('a,b\n1,"x\ny"\n2,z\n')
    (tmp_path / "bad.csv").write_text('a,b\n1,"x\ny"\n1,"x\ny"\n2,z\n3,nan')
    space = RowsOfTwo.of(tmp_path / "good.csv", tmp_path / "bad.csv", "python train.py bad.csv", tmp_path)
    assert space.labels == ("row 1", "row 3")
    assert only(space) == b'a,b\n1,"x\ny"\n2,z\n'
    assert only(space, frozenset({1})) == b'a,b\n1,"x\ny"\n2,z\n3,nan\n'


def test_rows_that_are_left_out_are_copies_in_all_files_that_go_together(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6.0))
    np.save(tmp_path / "y.npy", np.arange(6))
    np.save(tmp_path / "other.npy", np.arange(5))
    space = RowsOfOne.of(tmp_path / "x.npy", "python train.py", tmp_path)
    files = space.prepared(frozenset({1, 4})).files
    assert sorted(files) == ["x.npy", "y.npy"]
    for name in files:
        held = files[name]
        assert held is not None
        assert loaded(held).tolist() == [1, 1, 1, 4, 4, 4]


def test_json_lines(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"a": 1}\n\n{"a": 2}\n{"a": 3}')
    space = RowsOfOne.of(tmp_path / "d.jsonl", "python train.py", tmp_path)
    assert only(space, frozenset({2})) == b'{"a": 3}\n' * 3


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for name, values in (("good", [1, 2, 3]), ("bad", [1, 9, 3])):
        pq.write_table(pa.table({"a": values}), tmp_path / f"{name}.parquet")
    space = RowsOfTwo.of(tmp_path / "good.parquet", tmp_path / "bad.parquet", "train bad.parquet", tmp_path)
    assert space.labels == ("row 1",)
    assert pq.read_table(io.BytesIO(only(space, frozenset({0})))).to_pydict() == {"a": [1, 9, 3]}


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo run > /tmp/never",)


def test_files_of_rows_that_cannot_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([Planted()]), allow_pickle=True)
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04")
    (tmp_path / "d.xyz").write_text("")
    (tmp_path / "empty.jsonl").write_text("\n")
    for name, said in (("objects.npy", "cannot be read"), ("cut.npz", "cannot be read"), ("empty.jsonl", "no rows"),
                       ("d.xyz", "rows are read from"), ("none.npy", "no such file")):  # fmt: skip
        with pytest.raises(UnreadableInput, match=said):
            RowsOfOne.of(tmp_path / name, "python train.py", tmp_path)


def states(torch: Any, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    torch.manual_seed(0)
    good = {f"layer{i}.weight": torch.randn(3, 4) for i in range(5)}
    good["tied.weight"] = good["layer0.weight"]
    bad = {k: v.clone() for k, v in good.items()}
    bad["tied.weight"] = bad["layer0.weight"]
    bad["layer0.weight"] += 1
    bad["layer3.weight"][1] = float("nan")
    bad["head.weight"] = torch.zeros(2, 2)
    return good, bad


def test_tensors_of_torch_checkpoints_are_exchanged_in_place(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    good, bad = states(torch, tmp_path)
    first = {"exp_avg": torch.ones(3), "step": torch.tensor(5.0)}
    moments: dict[str, Any] = {"state": {0: first}, "param_groups": [{"lr": 1.0}]}
    torch.save({"model": good, "optimizer": moments, "epoch": 1}, tmp_path / "good.pt")
    moments["state"][0]["exp_avg"] = torch.full((3,), 9.0)
    torch.save({"model": bad, "optimizer": moments, "epoch": 2}, tmp_path / "bad.pt")
    space = Tensors.of(tmp_path / "good.pt", tmp_path / "bad.pt", "python eval.py bad.pt", tmp_path)
    assert space.labels == ("model.layer0.weight = model.tied.weight", "model.layer3.weight",
                            "optimizer.state.0.exp_avg")
    assert "model.head.weight (not in the good one)" in space.notes[0]
    made = torch.load(io.BytesIO(only(space, frozenset({0}))), weights_only=True)
    assert made["epoch"] == 2
    assert torch.equal(made["model"]["tied.weight"], bad["layer0.weight"])
    assert torch.equal(made["model"]["layer3.weight"], good["layer3.weight"])
    assert torch.equal(made["optimizer"]["state"][0]["exp_avg"], torch.ones(3))
    path = tmp_path / "made.pt"
    path.write_bytes(only(space, frozenset({1, 2})))
    mapped = torch.load(path, mmap=True, weights_only=True)
    assert torch.equal(mapped["model"]["layer0.weight"], good["layer0.weight"])
    assert mapped["model"]["layer3.weight"].isnan().any()


def test_tensors_of_safetensors_and_npz(tmp_path: Path) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    good, bad = ({"a": np.ones(3, np.float32), "b": np.full(2, v)} for v in (1.0, 7.0))
    for name, save in (("w.safetensors", lambda t, p: numpy_files.save_file(t, p)),
                       ("w.npz", lambda t, p: np.savez(p, **t))):  # fmt: skip
        for side, tensors in (("good", good), ("bad", bad)):
            (tmp_path / side).mkdir(exist_ok=True)
            save(tensors, tmp_path / side / name)
        space = Tensors.of(tmp_path / "good" / name, tmp_path / "bad" / name, f"eval bad/{name}", tmp_path)
        assert space.labels == ("b",)
        read = loaded if name.endswith("npz") else numpy_files.load
        assert read(only(space))["b"].tolist() == [1, 1]
        assert read(only(space, frozenset({0})))["b"].tolist() == [7, 7]


def test_a_checkpoint_that_would_run_code_and_one_that_is_none(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.ones(2)}, tmp_path / "good.pt")
    torch.save({"w": torch.ones(2), "x": Planted()}, tmp_path / "bad.pt")
    with pytest.raises(UnreadableInput, match="runs code"):
        Tensors.of(tmp_path / "good.pt", tmp_path / "bad.pt", "eval bad.pt", tmp_path)
    (tmp_path / "text.pt").write_text("no checkpoint")
    with pytest.raises(UnreadableInput, match="expected one file of"):
        Tensors.of(tmp_path / "good.pt", tmp_path / "text.pt", "eval text.pt", tmp_path)
