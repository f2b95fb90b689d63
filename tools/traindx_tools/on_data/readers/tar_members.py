"""The files in a tar archive, in their order, with the checks for hostile ones.

Headers as nearly all archives hold them are told by one pattern and their checksum; all others are left to `tarfile`.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Literal

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data.readers.bounds import Bounds

MOST_MEMBER = 2**26
"""Bytes of one member that are read."""
_PACKED: dict[bytes, Literal["r:gz", "r:bz2", "r:xz"]] = {
    b"\x1f\x8b": "r:gz",
    b"BZh": "r:bz2",
    b"\xfd7zXZ\x00": "r:xz",
}
_PLAIN = re.compile(
    rb"(?=([ -~]{1,100})\0).{100}"  # a name of ASCII
    rb"(?:[0-7]{7}[\0 ]){3}([0-7]{11})[\0 ][0-7]{11}[\0 ]([0-7]{6})\0 0"  # mode, uid, gid; size; time; sum; a file
    rb".{172}(?:[0-7]{7}[\0 ]|\0{8}){2}\0.{166}",  # link, magic, names of owners; device; no prefix
    re.DOTALL,
)
_ODD = frozenset({"", ".", ".."})


class PlainInfo(tarfile.TarInfo):
    """A member whose header is read in one go where it is that of a file with a short name; without owner and time."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> PlainInfo:
        """From the 512 bytes of a header. Raises tarfile.HeaderError."""
        plain = _PLAIN.fullmatch(buf)
        if plain is None or int(plain[3], 8) != 256 + sum(buf) - sum(buf[148:156]):
            return super().frombuf(buf, encoding, errors)
        info = cls(plain[1].decode("ascii"))
        info.size = int(plain[2], 8)
        return info


def opened_tar(path: Path) -> tarfile.TarFile:
    """The archive, opened. Raises tarfile.TarError, OSError."""
    return tarfile.open(path, _mode(path), tarinfo=PlainInfo)


def _mode(path: Path) -> Literal["r:", "r:gz", "r:bz2", "r:xz"]:
    """How to open an archive, by its first bytes: to try each kind of packing reads a file of zeros to its end."""
    with path.open("rb") as stream:
        head = stream.read(6)
    return next((mode for magic, mode in _PACKED.items() if head.startswith(magic)), "r:")


def members_of(archive: tarfile.TarFile, bounds: Bounds) -> Iterator[tuple[str, str, bytes]]:
    """Key, field and bytes of each file. Raises UnreadableInput of what is refused, TarError, EOFError and OSError."""
    for member in archive:
        if bounds.over:
            return
        folder, file = _place(member.name)
        if not member.isfile():
            if member.isdir():
                continue
            raise UnreadableInput(f"refused: the member {member.name[:80]!r} is a link or a device")
        if member.size > MOST_MEMBER:
            raise UnreadableInput(f"refused: the member {member.name[:80]!r} holds {member.size:,} bytes")
        stem, dot, field = file.partition(".")
        if not dot or not stem:
            continue
        yield folder + stem, field.lower(), _bytes(archive, member)


def _place(name: str) -> tuple[str, str]:
    """The folder, "" or with a slash at its end, and the name of the file. Raises UnreadableInput."""
    before, slash, file = name.rpartition("/")
    if file in _ODD:  # "a/", "a/." and "a/.." are seldom names of files
        whole = PurePosixPath(name)
        before, slash, file = (name, "", "") if ".." in whole.parts else (str(whole.parent), "/", whole.name)
    folder = _folder(before + slash)
    if folder is None:
        raise UnreadableInput(f"refused: the member {name[:80]!r} leads out of the archive's folder")
    return folder, file


@lru_cache(4096)
def _folder(said: str) -> str | None:
    """A folder without what is superfluous; None of one that leads out of the archive's."""
    place = PurePosixPath(said)
    if place.is_absolute() or ".." in place.parts:
        return None
    return f"{place}/" if place.parts else ""


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """What a member holds. Raises TarError, EOFError where the archive ends before."""
    if member.issparse() or archive.fileobj is None:
        stream = archive.extractfile(member)
        data = stream.read() if stream is not None else b""
    else:
        archive.fileobj.seek(member.offset_data)
        data = archive.fileobj.read(member.size)
    if len(data) < member.size:
        raise tarfile.ReadError("unexpected end of data")
    return data
