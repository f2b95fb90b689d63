"""The page of a review: the session's report with a form below the three questions."""

from __future__ import annotations

from pathlib import Path

from traindx.review.form import Form
from traindx.review.plan import plan_of
from traindx.review.progress import progress_of
from traindx.session_result import SessionResult


def review_page(result: SessionResult, form: Form) -> str:
    """HTML of the diagnosis, its evidence, pictures and changes, with the form. One file, nothing fetched."""
    from traindx.render import render_report_html
    from traindx.session_report import kept_pictures

    if form.follows and result.status in ("answered", "interrupted"):  # between two processes nobody holds it
        result = result.model_copy(update={"status": "running", "reason": "the session goes on with the decision"})
    pictures = kept_pictures(Path(result.folder))
    shown = result.to_diagnosis_result().to_json()
    plan = None if form.recorded else plan_of(result)
    progress = progress_of(result) if form.follows else None
    return render_report_html(shown, pictures, diagnosis=result.diagnosis, reason=result.reason, notes=result.notes,
                              files=result.documents, subject=result.session, story=result, review=form,
                              digest=result.digest or "", plan=plan, progress=progress)
