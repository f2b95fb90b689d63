"""What lies behind a URL, as fsspec knows it."""

from __future__ import annotations

import glob
from typing import Any

from traindx_tools.errors import MissingExtra, UnreadableInput


def resolve_url(url: str) -> tuple[Any, list[str]]:
    """The file system of a URL, and the names of the files there.

    Raises UnreadableInput, and MissingExtra where fsspec is not installed.
    """
    try:
        import fsspec
    except ImportError as missing:
        raise MissingExtra("Reading a URL", "fsspec", "all") from missing
    protocol = url.split("://", 1)[0]
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
        names = _url_names(filesystem, path)
    except ImportError as missing:
        raise UnreadableInput(f"Reading {protocol}:// needs a package that is not installed: {missing}") from missing
    except ValueError as unknown:
        raise UnreadableInput(f"{url!r} is no URL that fsspec knows: {unknown}") from unknown
    except Exception as failed:
        raise UnreadableInput(f"{url!r} could not be reached: {type(failed).__name__}: {failed}") from failed
    return filesystem, names


def _url_names(filesystem: Any, path: str) -> list[str]:
    if glob.has_magic(path):
        return sorted(filesystem.unstrip_protocol(p) for p in filesystem.glob(path))
    if filesystem.isdir(path):
        return sorted(filesystem.unstrip_protocol(p) for p in filesystem.find(path, maxdepth=4))
    return [filesystem.unstrip_protocol(path)] if filesystem.exists(path) else []
