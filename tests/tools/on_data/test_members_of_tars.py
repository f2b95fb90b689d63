"""Headers of tar archives that are read in one go say what `tarfile` reads in them, and others are left to it."""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers.bounds import Bounds
from traindx_tools.on_data.readers.numpy_files import array_from
from traindx_tools.on_data.readers.tar_members import PlainInfo, members_of, opened_tar

NAMES = ("a/0.txt", "./0.txt", "a//b/0.txt", "/a/0.txt", "//a.txt", "../0.txt", "a/../0.txt", "a/..", "..", ".", "a/.",
         "a/", "0", ".hid", "a/.hid.txt", "a/./b.txt", "...txt", "a b.txt", "Zürich.txt", "x" * 95 + ".txt",
         "x" * 96 + ".txt", "y" * 60 + "/" + "x" * 60 + ".txt", "d/" * 80 + "b.txt", "0.TXT", "0.seg.png")


def told(kind: type[tarfile.TarInfo], header: bytes) -> tuple[object, ...]:
    try:
        info = kind.frombuf(header, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:  # type: ignore[attr-defined]
        return (type(error).__name__, str(error))
    return info.name, info.size, info.type, info.isfile(), info.isdir(), info.issparse()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT])
def test_changed_headers(form: int) -> None:
    rng = random.Random(5)
    seen = set()
    for _ in range(6000):
        info = tarfile.TarInfo(rng.choice(["0001.txt", "a/b.npy", "x" * 100]))
        info.size, info.mtime, info.uid = rng.choice([0, 9, 2**30]), 1_760_000_000, 1000
        header = bytearray(info.tobuf(form)[:512])
        for _ in range(rng.choice([0, 1, 1, 3])):
            at = rng.choice([rng.randrange(512), rng.randrange(100, 157), rng.randrange(20)])
            header[at] = rng.choice([0, 32, 46, 47, 48, 49, 50, 53, 55, 56, 83, 95, 120, 128, 255])
        if rng.random() < 0.8:
            header[148:156] = b"%06o\0 " % (256 + sum(header) - sum(header[148:156]))
        plain = told(PlainInfo, bytes(header))
        assert plain == told(tarfile.TarInfo, bytes(header))
        seen.add(plain[0] if len(plain) == 2 else plain[2])
    assert {"InvalidHeaderError", b"0", b"1", b"5"} <= seen


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("name", NAMES)
def test_names(name: str, mode: str, form: int, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", mode, format=form) as archive:  # type: ignore[call-overload]
        for said in (name, "z.cls", name):
            info = tarfile.TarInfo(said)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"123"))
    place = PurePosixPath(name)
    with opened_tar(tmp_path / "a.tar") as archive:
        if place.is_absolute() or ".." in place.parts:
            with pytest.raises(UnreadableInput, match="leads out"):
                list(members_of(archive, Bounds()))
            return
        stem, dot, field = place.name.partition(".")
        mine = [(str(place.parent / stem), field.lower(), b"123")] if dot and stem else []
        assert list(members_of(archive, Bounds())) == [*mine, ("z", "cls", b"123"), *mine]


def test_cut_within_a_member(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for i in range(3):
            info = tarfile.TarInfo(f"{i}.txt")
            info.size = 1500
            archive.addfile(info, io.BytesIO(b"x" * 1500))
    whole = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(whole[: 2048 + 512 + 700])
    with opened_tar(tmp_path / "a.tar") as archive:
        members = members_of(archive, Bounds())
        assert next(members)[0] == "0"
        with pytest.raises(tarfile.ReadError, match="unexpected end"):
            next(members)


@pytest.mark.parametrize("dtype", ["<f4", "<i8", "u1"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_arrays_with_headers_seen_before(dtype: str, version: tuple[int, int]) -> None:
    for value in (1, 2):
        out = io.BytesIO()
        np.lib.format.write_array(out, np.full((3, 4), value, dtype), version=version)
        array = array_from(out.getvalue())
        assert array.dtype == dtype
        assert (array == value).all()
        with pytest.raises(UnreadableInput):
            array_from(out.getvalue()[:-1])
        with pytest.raises(UnreadableInput, match="header"):
            array_from(out.getvalue()[:60])
