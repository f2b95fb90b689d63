"""Files in which bytes were changed behind the writer's back: named as damage, and the process lives on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers import read_file
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import Broken


def _arrow(path: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": np.arange(500), "tokens": pa.array([[1, 2]] * 500, pa.list_(pa.int64()))})
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return path


def test_list_offsets_that_lead_out_of_an_arrow_file_are_damage(tmp_path: Path) -> None:
    path = _arrow(tmp_path / "x.arrow")
    whole = path.read_bytes()
    offsets = whole.index(np.arange(0, 1002, 2, dtype="<i4").tobytes())
    for at, value in ((40, 1_879_049_002), (400, -7), (2_000, 2**31 - 1)):
        damaged = bytearray(whole)
        damaged[offsets + at : offsets + at + 4] = np.array(value, "<i4").tobytes()
        path.write_bytes(damaged)
        with pytest.raises(Broken, match="the Arrow file is damaged"):
            read_file(path, "x.arrow", "arrow", Bounds())


def test_a_whole_arrow_file_of_lists_is_read(tmp_path: Path) -> None:
    (shard,) = read_file(_arrow(tmp_path / "x.arrow"), "x.arrow", "arrow", Bounds())
    assert shard.rows == 500


def test_hdf5_with_changed_bytes_is_no_defect_of_the_reader(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.random.default_rng(0).normal(size=(20, 5))
    whole = path.read_bytes()
    refused = 0
    for at in range(8, min(len(whole), 1400), 9):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read_file(path, "x.h5", "hdf5", Bounds())
        except UnreadableInput:
            refused += 1
    assert refused > 5


@pytest.mark.parametrize("name", ["x.pt", "x.npz"])
def test_names_of_members_that_are_no_text_are_damage(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fünf/data.pkl" if name == "x.pt" else "fünf.npy", b"x")
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xd5\xd5"))
    with pytest.raises(Broken, match="damaged"):
        read_file(path, name, name[2:], Bounds())
