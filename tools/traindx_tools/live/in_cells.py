"""Places that a kernel recorded, `/tmp/ipykernel_12/345.py:7`, as cells of the notebook in the folder where it ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traindx_tools.finding import Finding

KERNEL = "ipykernel_"


def in_cells(findings: Sequence[Finding], folders: Sequence[str], root: Path | None) -> list[Finding]:
    """The findings, each recorded in one of these folders, with the cells named as seen from there. `root`: where to
    look for the notebooks besides."""
    if not any(KERNEL in f"{f.where.file} {f.statement} {f.measured}" for f in findings):
        return list(findings)
    from traindx_tools.scope.cells import Notebooks  # reads what this room reads

    books = {cwd: Notebooks.beside([*_inside(cwd), *(_inside(str(root)) if root is not None else [])])
             for cwd in dict.fromkeys(folders)}
    return [_short(books[cwd].of_code(f), cwd, root) for f, cwd in zip(findings, folders, strict=True)]


def text_in_cells(text: str, folder: str) -> str:
    """A text with such places as cells, named as seen from the folder."""
    if KERNEL not in text:
        return text
    from traindx_tools.scope.cells import Notebooks

    return Notebooks.beside(_inside(folder)).text(text).replace(f"{folder.rstrip('/')}/", "")


def _inside(folder: str) -> list[Path]:
    """A path in the folder, which stands for it; none where there is no such folder."""
    return [Path(folder) / "record"] if folder and Path(folder).is_dir() else []


def _short(finding: Finding, cwd: str, root: Path | None) -> Finding:
    """The finding with the path of the notebook as seen from where it ran, or from the root."""
    file, statement = finding.where.file, finding.statement
    for prefix in (f"{root!s}/" if root is not None else "", f"{cwd.rstrip('/')}/" if cwd else ""):
        if len(prefix) > 1:
            file = file.removeprefix(prefix) if file is not None else None
            statement = statement.replace(prefix, "")
    return replace(finding, where=replace(finding.where, file=file), statement=statement)
