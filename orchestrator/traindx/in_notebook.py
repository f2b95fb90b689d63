"""What a notebook shows of a result: the page of the terminal and the picture, both inline, nothing fetched."""

from __future__ import annotations

import base64
import html
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.abandoned import temporary

if TYPE_CHECKING:
    from traindx.model import Diagnosis
    from traindx_tools.examine import Examination

WIDTH = 100
"""Columns of the page."""
_PAGE = '<pre style="white-space:pre-wrap;line-height:1.35;max-width:64em">{}</pre>'
_PICTURE = '<img alt="{}" style="max-width:100%" src="data:image/png;base64,{}">'


def of_report(seen: Examination, text: str) -> str:
    """A diagnosis: what `traindx diagnose` prints, with the picture of the run where it has metrics."""
    from traindx_tools.plots import draw_pictures

    with temporary("traindx-notebook-") as folder:
        pictures = draw_pictures(seen.run, seen.findings, folder)
        return page(text) + "".join(
            picture(path, name.replace("_", " ")) for name, path in pictures.items())


def name_of(value: object) -> str:
    """The name under which the notebook's user has a value; `_`, its last output, where they gave it none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    names = getattr(shell, "user_ns", {})
    return next((n for n, v in list(names.items()) if v is value and not n.startswith("_")), "_")


def of_session(status: str, reason: str, next_step: str, diagnosis: Diagnosis | None) -> str:
    """A session: where it stands, why, what is next, and the diagnosis with its questions."""
    from traindx.terminal import render_gate

    told = [f"{status}: {reason}", *(["", f"Next: {next_step}"] if next_step else [])]
    gate = "" if diagnosis is None else page(render_gate(diagnosis, width=WIDTH))
    return page("\n".join(told)) + gate


def page(text: str) -> str:
    """Text as it is, with what means something to HTML escaped."""
    return _PAGE.format(html.escape(text))


def picture(path: Path, alternative: str) -> str:
    """A PNG file, inline."""
    return _PICTURE.format(html.escape(alternative), base64.b64encode(path.read_bytes()).decode())
