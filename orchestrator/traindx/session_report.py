"""report.html and the pictures of a session: for a person's eyes, never needed to go on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from traindx.durable import write_state
from traindx.session_folder import SessionFolder
from traindx.session_result import SessionResult, result_of
from traindx_tools.errors import TraindxError

_log = logging.getLogger(__name__)


def write_report(folder: SessionFolder, artifacts: Sequence[Path]) -> None:
    """Draw the run and write report.html. What cannot be drawn is left out: the diagnosis stands without pictures."""
    try:
        result = result_of(folder)
        write_state(folder.path / "report.html", _page(result, folder.path, artifacts).encode("utf-8"))
    except TraindxError:
        raise
    except Exception as error:  # noqa: BLE001 - a picture that fails must not keep a diagnosis from a person
        _log.warning("report.html could not be made: %s: %s", type(error).__name__, error)
        _log.debug("where it failed", exc_info=True)


def experiment_pictures(folder: Path) -> dict[str, Path]:
    """Pictures of the experiments that a session made, by the name of the experiment; no links are followed."""
    made = sorted((folder / "evidence").glob("run-*/experiments/X*.png"))
    return {f"experiment_{p.stem}": p for p in made if p.is_file() and not p.is_symlink()}


def _page(result: SessionResult, folder: Path, artifacts: Sequence[Path]) -> str:
    from traindx.render import render_report_html
    from traindx_tools.errors import UnreadableInput
    from traindx_tools.on_logs.each_run import read_last_run
    from traindx_tools.on_logs.judge import judge_run
    from traindx_tools.plots import draw_pictures

    try:
        run = read_last_run([str(p) for p in artifacts])
        pictures = dict(draw_pictures(run, judge_run(run), folder / "plots"))
    except UnreadableInput:
        run, pictures = None, {}
    more = {**{p.stem: p for p in sorted((folder / "plots").glob("*.png")) if p not in pictures.values()},
            **experiment_pictures(folder)}
    shown = result.to_diagnosis_result().to_json()
    shown["analysis_artifacts"] = {**shown["analysis_artifacts"], **{k: str(p) for k, p in (pictures | more).items()}}
    return render_report_html(shown, {**pictures, **more}, run=run, diagnosis=result.diagnosis, reason=result.reason,
                              notes=result.notes, files=result.documents, subject=result.session, story=result)
