"""The instruments as one archive that Python imports from, for skills that are installed without the package.

`make skills` writes it into one skill; the others find it there. What counts is the digest of what it holds: two builds
of the same sources have the same digest, also where another zlib makes other bytes of them, and the same bytes where it
does not (names sorted, no times, no modes of this machine).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import traindx_tools

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the oldest supported Python only
    import tomli as tomllib

ARCHIVE = "ml-debug/scripts/traindx.zip"
"""Where the archive lies, from the folder of the skills."""
NO_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can say."""
MODES, PACKED = "traindx_tools/catalog/modes/", "traindx_tools/catalog/modes.json"
KINDS = frozenset({".py", ".toml", ".typed"})
"""What the package consists of; anything else in its folder is a cache or was left there."""

LEFT_OUT = tuple(f"traindx_tools/{folder}/" for folder in (
    *(f"on_torch/{room}" for room in ("probes", "captured", "snapshot", "replaying", "stored", "nonfinite", "memory",
                                      "comparison", "loss_terms", "architecture", "codes", "speed")),
    *(f"on_jax/{room}" for room in ("probes", "replaying", "summary", "stale", "moving")),
    "experiments/live", "plots", "against", "fingerprint"))
"""What a skill without the package never asks for: the insides of live instruments, experiments and pictures."""


def sources(package: Path | None = None) -> dict[str, bytes]:
    """Name in the archive to content, for every file of the package that is not left out, in the order of the names."""
    folder = package or Path(traindx_tools.__file__).parent
    found = {p.relative_to(folder.parent).as_posix(): p for p in folder.rglob("*")
             if p.suffix in KINDS and p.is_file() and "__pycache__" not in p.parts}
    read = {name: path.read_bytes() for name, path in found.items() if not name.startswith(LEFT_OUT)}
    modes = {name.removeprefix(MODES): tomllib.loads(read.pop(name).decode()) for name in sorted(read)
             if name.startswith(MODES)}
    if modes:  # hundreds of small files compress badly
        read[PACKED] = json.dumps(modes, ensure_ascii=False, separators=(",", ":")).encode()
    return {name: read[name] for name in sorted(read)}


def digest_of(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


def built(files: Mapping[str, bytes]) -> bytes:
    """The archive of these files; its comment is their digest."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, NO_TIME)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, files[name], compresslevel=9)
        archive.comment = digest_of(files).encode()
    return out.getvalue()


def contents(path: Path) -> dict[str, bytes]:
    """Name to content of everything in an archive; empty where there is none, or a file that is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {i.filename: archive.read(i) for i in archive.infolist()}
    except (OSError, zipfile.BadZipFile):
        return {}


def write_archive(skills: Path) -> Iterator[Path]:
    """Writes the archive where what it holds is not the sources; yields its path if so."""
    path, files = skills / ARCHIVE, sources()
    if contents(path) == files:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_bytes(built(files))
    os.replace(aside, path)
    yield path


if __name__ == "__main__":
    for written in write_archive(Path(sys.argv[1] if len(sys.argv) > 1 else "skills")):
        print(written)
