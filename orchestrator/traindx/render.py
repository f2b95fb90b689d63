"""Templates in, text out: Gate 4, strike report, root-cause analysis, retrospective, report.html.

Every text that came from logs or code is data: on one line and without tags in Markdown, escaped in HTML.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import safe_text
from traindx.diffs import diff_of
from traindx.gate import looked_at_by
from traindx.model import Attempt, Diagnosis
from traindx.pack import pack_folder
from traindx.terminal import render_terminal
from traindx.view import View, percent
from traindx.weights_told import weights_of
from traindx_tools import __version__
from traindx_tools.on_logs.run import Run

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from traindx.machine import Session
    from traindx.review.form import Form
    from traindx.strikes import Strike
    from traindx.view import Story

__all__ = ["render_diagnosis", "render_report_html", "render_retrospective", "render_root_cause_analysis",
           "render_strike_report", "render_terminal"]

_CITED = re.compile(r"\[([LCDWTJRSVX]\d{3}-\d+)\]")
_CODE = re.compile(r"`([^`\n]+)`")


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """The Gate 4 diagnosis as Markdown: its six sections and the three questions."""
    return _environment().get_template("diagnosis.md.j2").render(d=diagnosis, looked=looked_at_by(diagnosis))


def render_strike_report(session: Session, learned: Sequence[str] = (), earlier: Sequence[Strike] = ()) -> str:
    """What the failed fixes of this approach showed, and the question that follows from it, as Markdown.

    `learned`: further lessons beside those that the attempts themselves carry. `earlier`: strikes of other sessions.
    """
    return _environment().get_template("strike_report.md.j2").render(s=session, learned=learned, earlier=earlier,
                                                                     failed=_failed(session.attempts))


def render_root_cause_analysis(session: Session) -> str:
    """The document of a solved session as Markdown: ranked causes, evidence, fix, before and after, lessons."""
    return _environment().get_template("root_cause_analysis.md.j2").render(s=session, failed=_failed(session.attempts),
                                                                           worked=_worked(session.attempts))


def render_retrospective(session: Session) -> str:
    """An entry for the project's memory as Markdown: failure mode, what worked, what did not, what to watch."""
    return _environment().get_template("retrospective.md.j2").render(s=session, failed=_failed(session.attempts),
                                                                     worked=_worked(session.attempts))


def render_report_html(
    result: Mapping[str, Any],
    pictures: Mapping[str, Path | bytes] | None = None,
    *,
    run: Run | None = None,
    diagnosis: Diagnosis | None = None,
    reason: str = "",
    notes: Sequence[str] = (),
    files: Mapping[str, str | Path] | None = None,
    subject: str = "",
    story: Story | None = None,
    review: Form | None = None,
    digest: str = "",
    plan: object = None,
    progress: object = None,
) -> str:
    """The report as one HTML file that asks for nothing from outside.

    `result`: the result JSON. `pictures`: PNG files or their bytes by name. `run`: what was read. `reason`: why the
    status is what it is. `files`: what was written, by name. `subject`: what was diagnosed, for the title.
    `story`: the session, for what was decided, tried and measured. `review`: the form of a review, for the diagnosis
    with this `digest`; `plan`: what each of its decisions does; `progress`: what goes on after one.
    """
    view = View(result, run, diagnosis, reason, notes, {k: str(v) for k, v in (files or {}).items()})
    embedded = {name: _data_url(p) for name, p in (pictures or {}).items()}
    small = {name: _for_a_phone(p) for name, p in (pictures or {}).items()}
    narrow = {name: _data_url(p) for name, p in small.items() if p is not None}
    return _environment().get_template("report.html.j2").render(
        v=view, pictures=embedded, narrow=narrow, subject=subject, version=__version__, story=story, review=review,
        digest=digest, plan=plan, progress=progress)


def _failed(attempts: Sequence[Attempt]) -> list[Attempt]:
    return [a for a in attempts if a.verification is not None and a.verification.failed]


def _worked(attempts: Sequence[Attempt]) -> Attempt | None:
    return next((a for a in reversed(attempts) if a.verification is not None and a.verification.passed), None)


def _for_a_phone(picture: Path | bytes) -> Path | None:
    """The same picture for a narrow screen, where one was drawn beside it."""
    from traindx_tools.plots.picture import NARROW

    small = None if isinstance(picture, bytes) else picture.with_suffix(NARROW)
    return small if small is not None and small.is_file() and not small.is_symlink() else None


def _data_url(picture: Path | bytes) -> str:
    data = picture if isinstance(picture, bytes) else picture.read_bytes()
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(loader=FileSystemLoader(pack_folder("templates")), undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True, keep_trailing_newline=True,
                       autoescape=lambda name: name is not None and ".html" in name)
    made.filters.update(inline=safe_text.inline, line=safe_text.line, block=safe_text.block, code=safe_text.code,
                        fence=safe_text.fence, diff=diff_of, prose=_prose, weights=weights_of, percent=percent,
                        picture_name=_picture_name, sentence=_sentence)
    return made


def _prose(text: object) -> Markup:
    """HTML of a text: `code` in its own type, [L101-1] as a link to that finding, line breaks kept."""
    from markupsafe import Markup, escape

    html = str(escape(safe_text.block(text)))
    html = _CODE.sub(r"<code>\1</code>", html)
    html = _CITED.sub(r'<a class="cite" href="#\1">\1</a>', html)
    return Markup(html.replace("\n", "<br>"))  # everything in it was escaped above


def _sentence(text: object) -> str:
    """A text that ends like a sentence."""
    said = safe_text.inline(text).rstrip()
    return said if not said or said[-1] in ".!?…" else said + "."


def _picture_name(key: str) -> str:
    if key.startswith("before_after"):
        return "The run before the change and with it"
    return {"loss_visualization": "The run", "loss": "The run", "gradients": "Gradients by module",
            "events": "What goes ahead of the anomalies", "period": "One period, all repeats",
            "gradient_analysis": "Gradients by module", "event_alignment": "What goes ahead of the anomalies",
            "folded_period": "One period, all repeats",
            "ranks": "The ranks by step", "comparison": "Beside the run that works"}.get(
        key, key[:1].upper() + key[1:].replace("_", " "))
