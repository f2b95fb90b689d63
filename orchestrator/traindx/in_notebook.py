"""What a notebook shows of a result: the page of the terminal and the picture, both inline, nothing fetched."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.abandoned import temporary

if TYPE_CHECKING:
    from traindx.diagnose import Report
    from traindx.session_result import SessionResult

WIDTH = 100
"""Columns of the page."""
_PAGE = '<pre style="white-space:pre-wrap;line-height:1.35;max-width:64em">{}</pre>'
_PICTURE = '<img alt="{}" style="max-width:100%" src="data:image/png;base64,{}">'


def of_report(report: Report) -> str:
    """A diagnosis: what `traindx diagnose` prints, with the picture of the run where it has metrics."""
    from traindx_tools.plots import draw_pictures

    with temporary("traindx-notebook-") as folder:
        pictures = draw_pictures(report.seen.run, report.seen.findings, folder)
        return page(report.terminal({}, width=WIDTH)) + "".join(
            picture(path, name.replace("_", " ")) for name, path in pictures.items())


def of_session(result: SessionResult) -> str:
    """A session: where it stands, why, what is next, and the diagnosis with its questions."""
    from traindx.terminal import render_gate

    told = [f"{result.status}: {result.reason}", *(["", f"Next: {result.next_step}"] if result.next_step else [])]
    gate = "" if result.diagnosis is None else page(render_gate(result.diagnosis, width=WIDTH))
    return page("\n".join(told)) + gate


def page(text: str) -> str:
    """Text as it is, with what means something to HTML escaped."""
    return _PAGE.format(html.escape(text))


def picture(path: Path, alternative: str) -> str:
    """A PNG file, inline."""
    return _PICTURE.format(html.escape(alternative), base64.b64encode(path.read_bytes()).decode())
