"""A path under which there is nothing: what is said of it, and what was probably meant."""

from __future__ import annotations

import difflib
import glob
import os


def nothing_there(path: str) -> str:
    """One sentence or two: what is missing, and what is near it."""
    if glob.has_magic(path):
        return f"No file matches the pattern {path!r}. Check the pattern, or name the folder itself."
    if os.path.islink(path):
        leads = "itself" if os.path.islink(os.path.realpath(path)) else f"{os.readlink(path)!r}, which is not there"
        return f"{path!r} is a link that leads to {leads}. Name the file itself."
    parent = os.path.dirname(path) or "."
    if not os.path.isdir(parent):
        missing = parent
        while (above := os.path.dirname(missing)) != missing and not os.path.isdir(above or "."):
            missing = above
        meant = _meant(os.path.dirname(missing) or ".", missing, " Check the path.")
        why = f"{missing!r} is a file" if os.path.exists(missing) else f"the folder {missing!r} does not exist"
        return f"There is no file or folder {path!r}: {why}.{meant}"
    names = _names(parent)
    return (f"There is no file or folder {path!r}.{_meant(parent, path)} In {parent!r} there is: "
            f"{', '.join(names[:8]) or 'nothing'}.")


def _names(folder: str) -> list[str]:
    try:
        return sorted(n for n in os.listdir(folder) if not n.startswith("."))
    except OSError:
        return []


def _meant(folder: str, path: str, otherwise: str = "") -> str:
    """The name in a folder that is near the last one of a path, as a question."""
    near = difflib.get_close_matches(os.path.basename(path), _names(folder), n=1, cutoff=0.75)
    return f" Did you mean {os.path.join(os.path.dirname(path), near[0])!r}?" if near else otherwise
