"""Paths in what is told, as they are seen from the root of what was given."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from traindx_tools.finding import Finding


def prefixes_of(root: Path) -> tuple[str, ...]:
    """The root as a path may begin with it: absolute, and as seen from the current directory."""
    seen = os.path.relpath(root)
    return (f"{root}/",) if seen.startswith((".", os.pardir)) else (f"{root}/", f"{seen}/")


def inside(text: str, prefixes: tuple[str, ...]) -> str:
    """The text with the paths in it as seen from the root."""
    for prefix in prefixes:
        if prefix in text:  # only where a path begins: "a/" is also the end of "data/"
            text = re.sub(rf"(?<![\w./-]){re.escape(prefix)}", "", text)
    return text


def short(finding: Finding, prefixes: tuple[str, ...]) -> Finding:
    """The finding with its paths, also those in its statement, as seen from the root."""
    if not any(p in finding.statement or p in (finding.where.file or "") or p in finding.source for p in prefixes):
        return finding
    file = None if finding.where.file is None else inside(finding.where.file, prefixes)
    return replace(finding, where=replace(finding.where, file=file), statement=inside(finding.statement, prefixes),
                   source=inside(finding.source, prefixes),
                   patch=tuple(replace(p, file=inside(p.file, prefixes)) for p in finding.patch))
