"""A copy of the workspace to run in: nothing that a run there writes reaches the user's files.

Left out are git's own folder, caches and the sessions. A Python environment in the workspace is linked and not copied;
so are large files where a sandbox keeps them from being written.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from traindx.scratch import SCRATCH
from traindx_tools.errors import BadUsage

LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox",
                      ".nox", "node_modules"})  # fmt: skip
LARGE = 64 * 2**20
"""Bytes from which a file is linked where it cannot be written through the link."""

COPY_LIMIT = 4 * 2**30
"""Bytes that are copied at most."""

_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")


SOURCE_ENDINGS = frozenset({".py", ".pyi", ".pyx", ".ipynb", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs",
                            ".sh"})  # fmt: skip


class CopyRefused(BadUsage):
    """The workspace is too large to be copied."""


def copy_into(workspace: Path, target: Path, contents: Mapping[str, bytes | None], *, links: bool = False) -> None:
    """Make `target` a copy of the workspace in which the files of `contents` hold that (None: are not there).

    `links`: a sandbox protects what is linked. Raises CopyRefused over the limit; OSError as it comes.
    """
    root = workspace.resolve()
    files = list(workspace_files(root))
    size = sum(s for _, s in files if not (links and s >= LARGE))
    if size > COPY_LIMIT:
        raise CopyRefused(f"the workspace holds {size / 2**30:.1f} GiB, and {COPY_LIMIT / 2**30:.0f} GiB are copied at "
                          "most")
    target.mkdir(parents=True)
    for path, bytes_ in files:
        to = target / path.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            to.symlink_to(_aimed(path, root))
        elif _is_environment(path) or (links and bytes_ >= LARGE):
            to.symlink_to(path, target_is_directory=path.is_dir())
        else:
            shutil.copy2(path, to)
    for name, content in contents.items():
        put(target, name, content)


def source_files(root: Path) -> Iterator[Path]:
    """Program text below a folder, as far as it is copied; what runs write and take away again has other endings."""
    return (path for path, _ in workspace_files(root) if path.suffix.lower() in SOURCE_ENDINGS)


def put(copy: Path, name: str, content: bytes | None) -> None:
    """One file of the copy, with this content or not there; a link is replaced and never written through."""
    path = copy / name
    mode = path.stat().st_mode & 0o777 if path.is_file() and not path.is_symlink() else None
    path.unlink(missing_ok=True)
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if mode is not None:
            path.chmod(mode)  # a script that is run stays one


def in_copy(command: str | Sequence[str], workspace: Path, copy: Path) -> str | tuple[str, ...]:
    """The command with the workspace's own path in it pointed at the copy."""
    names = sorted({str(workspace.absolute()), str(workspace.resolve())}, key=len, reverse=True)
    own = re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, names))})(?![\w.-])")

    def moved(text: str) -> str:
        return own.sub(lambda _: str(copy), text)

    return moved(command) if isinstance(command, str) else tuple(map(moved, command))


def _aimed(link: Path, root: Path) -> str:
    """Where a copied link points: inside, relatively, to the copy's own file; else where it pointed."""
    aim = os.readlink(link)
    real = link.resolve()
    if os.path.isabs(aim) or real.is_relative_to(root):
        return os.path.relpath(real, link.parent.resolve()) if real.is_relative_to(root) else aim
    return str(real)


def workspace_files(root: Path) -> Iterator[tuple[Path, int]]:
    """Each file, link and environment with its size in bytes; folders without any are left out."""
    for folder, names, files in os.walk(root, followlinks=False):
        here = Path(folder)
        environments = [n for n in names if _is_environment(here / n)]
        linked = [n for n in names if (here / n).is_symlink() and n not in environments]
        names[:] = [n for n in names if n not in LEFT_OUT and n not in environments and n not in linked
                    and (here / n).relative_to(root) != SCRATCH]
        yield from ((here / n, 0) for n in (*environments, *linked))
        yield from ((here / n, (here / n).lstat().st_size) for n in files if _is_plain(here / n))


def _is_environment(path: Path) -> bool:
    return any((path / mark).exists() for mark in _ENVIRONMENT_MARKS)


def _is_plain(path: Path) -> bool:
    """A regular file or a link; a socket or a pipe is not copied."""
    return path.is_symlink() or path.is_file()
