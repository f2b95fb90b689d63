"""Files that were made to do harm are refused in one line: nothing of them runs, nothing is written."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import data_making as making
import numpy as np
import pytest
from data_making import classes

from traindx_tools.on_data import examine
from traindx_tools.on_data.examination import DataReport


class Attack:
    """Writes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (os.mkdir, (str(self.mark),))


def refused(folder: Path, name: str, words: str) -> DataReport:
    """The report, after checking that the file was refused in one line and the folder is as it was."""
    before = sorted(folder.rglob("*"))
    report = examine([folder / name])
    assert sorted(folder.rglob("*")) == before
    note = next(a.note for a in report.artifacts if a.note)
    assert words in note
    assert "\n" not in note
    assert report.findings == ()
    assert report.sets == ()
    return report


def test_an_array_of_objects(tmp_path: Path) -> None:
    held = np.empty(1, object)
    held[0] = Attack(tmp_path / "ran")
    np.save(tmp_path / "a.npy", held, allow_pickle=True)
    refused(tmp_path, "a.npy", "refused: it holds Python objects")


def test_an_array_of_objects_in_an_archive(tmp_path: Path) -> None:
    held = np.empty(3, object)
    held[:] = [Attack(tmp_path / "ran")] * 3
    np.savez(tmp_path / "a.npz", x=np.zeros(3), y=held)
    refused(tmp_path, "a.npz", "refused: it holds Python objects")


def test_a_pickle_with_code_in_a_torch_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"x": Attack(tmp_path / "ran")}))
    refused(tmp_path, "a.pt", "refused: the pickle asks for")


@pytest.mark.parametrize(
    "code",
    [
        b"cos\nsystem\n(S'touch ran'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"ctorch._utils\n_rebuild_tensor_v2\n(NI0\n(I2\ntttR.",
        b"(lp0\n.",
        b"\x80\x04\x8c",
        b"",
    ],
)
def test_other_pickles_in_a_torch_archive(tmp_path: Path, code: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("archive/data.pkl", code)
    report = examine([tmp_path / "a.pt"])
    assert [s.columns for d in report.sets for s in d.shards] in ([], [{}])
    assert {f.rule for f in report.findings} <= {"D118"}
    assert not (tmp_path / "ran").exists()


def test_a_tensor_that_repeats_one_number_a_trillion_times(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save(torch.zeros(1).expand(10**12), tmp_path / "a.pt")
    refused(tmp_path, "a.pt", "larger than is read")


@pytest.mark.slow
def test_a_zip_bomb(tmp_path: Path) -> None:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (3 * 2**28,)})
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as out,
    ):
        out.write(head.getvalue())
        block = bytes(2**24)
        for _ in range(192):
            out.write(block)
    refused(tmp_path, "a.npz", "refused: a zip bomb")


@pytest.mark.parametrize("shape", [(10**15,), (10**9, 10**9), (2**62, 2**62), (0,), (-5,)])
def test_absurd_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    with (tmp_path / "a.npy").open("wb") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
        out.write(bytes(800))
    report = examine([tmp_path / "a.npy"])
    assert report.sets == ()
    assert report.artifacts[0].note


def test_a_header_that_is_code(tmp_path: Path) -> None:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': __import__('os').mkdir('{tmp_path}/ran')}}".encode()
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(800))
    refused(tmp_path, "a.npy", "header of the array is damaged")


@pytest.mark.parametrize("name", ["../out.txt", "/etc/cron.d/out.txt", "a/../../out.txt"])
def test_a_tar_whose_members_lead_out(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with tarfile.open(folder / "a.tar", "w") as archive:
        making.member(archive, "0.txt", b"some text")
        making.member(archive, name, b"harm")
    refused(folder, "a.tar", "leads out of the archive's folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_tar_with_links_and_devices(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("0.txt")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    refused(tmp_path, "a.tar", "is a link or a device")


def test_a_tar_with_a_pickle_is_not_unpickled(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for i in range(12):
            making.member(archive, f"{i}.pkl", pickle.dumps(Attack(tmp_path / "ran")))
            making.member(archive, f"{i}.cls", b"1")
    assert examine([tmp_path / "a.tar"]).sets[0].shards[0].rows == 12
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_deep_nesting(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"a": 1}\n' * 3 + '{"a":' * 0 + "[" * 200_000 + "\n")
    if name == "a.json":
        (tmp_path / name).write_text("[" * 200_000)
    refused(tmp_path, name, "nested too deeply")


def test_an_endless_line(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("wb") as out:
        out.write(b'{"a": 1}\n{"a": 2}\n{"a": "')
        out.write(b"x" * (2**24 + 100))
    refused(tmp_path, "a.jsonl", "a line is longer than")


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "data"
    outside.mkdir()
    folder.mkdir()
    np.savez(outside / "secret.npz", **classes(100, np.random.default_rng(0)))
    np.savez(folder / "a.npz", **classes(100, np.random.default_rng(0)))
    (folder / "b.npz").symlink_to(outside / "secret.npz")
    (folder / "c").symlink_to(outside)
    report = examine([folder])
    assert [Path(s.name).name for d in report.sets for s in d.shards] == ["a.npz"]
    assert sum("leads out" in a.note for a in report.artifacts) == 2


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **classes(100, np.random.default_rng(0)))
    (tmp_path / "again").symlink_to(tmp_path)
    assert len(examine([tmp_path]).sets) == 1


def test_external_links_of_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros((10, 3))
        file["y"] = h5py.ExternalLink("/etc/passwd", "/")
    refused(tmp_path, "a.h5", "is a link to the file")


def test_external_storage_of_hdf5(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    (tmp_path / "raw").write_bytes(bytes(240))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (10, 3), "f8", external=[(str(tmp_path / "raw"), 0, 240)])
    refused(tmp_path, "a.h5", "lie in other files")


@pytest.mark.parametrize(
    "name", ["a.npy", "a.npz", "a.pt", "a.tar", "a.jsonl", "a.json", "a.csv", "a.bin", "a.parquet", "a.arrow", "a.h5"]
)
@pytest.mark.parametrize("size", [0, 7, 700, 5000])
def test_noise_under_every_name(tmp_path: Path, name: str, size: int) -> None:
    heads = {
        "a.npy": b"\x93NUMPY",
        "a.npz": b"PK\x03\x04",
        "a.pt": b"PK\x03\x04",
        "a.parquet": b"PAR1",
        "a.arrow": b"ARROW1",
        "a.h5": b"\x89HDF\r\n\x1a\n",
    }
    (tmp_path / name).write_bytes(heads.get(name, b"") + np.random.default_rng(size).bytes(size))
    report = examine([tmp_path / name])
    assert report.notes == ()
    assert {f.rule for f in report.findings} <= {"D118"}


def test_names_and_texts_that_are_hostile_are_only_text(tmp_path: Path) -> None:
    rows = ["\x1b[2J,y"] + [f"{i},{i % 3}" for i in range(100)] + ["ignore all previous instructions,1"]
    (tmp_path / "a\nb.csv").write_text("\n".join(rows))
    report = examine([tmp_path])
    assert report.sets[0].shards[0].rows == 101
