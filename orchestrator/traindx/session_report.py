"""report.html and the pictures of a session: for a person's eyes, never needed to go on."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.durable import write_state
from traindx.session_folder import SessionFolder
from traindx.session_result import SessionResult, result_of
from traindx_tools.errors import TraindxError

if TYPE_CHECKING:
    from traindx_tools.on_logs.run import Run

_log = logging.getLogger(__name__)

BOTH = "before_after"
"""Begins the name of a picture of the run before a change and with it."""


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

    run, drawn = (None, {}) if result.attempts else _drawn(folder, artifacts)
    pictures = {**drawn, **kept_pictures(folder, drawn.values())}
    shown = result.to_diagnosis_result().to_json()
    shown["analysis_artifacts"] = {**shown["analysis_artifacts"], **{k: str(p) for k, p in pictures.items()}}
    return render_report_html(shown, pictures, run=run, diagnosis=result.diagnosis, reason=result.reason,
                              notes=result.notes, files=result.documents, subject=result.session, story=result)


def _drawn(folder: Path, artifacts: Sequence[Path]) -> tuple[Run | None, dict[str, Path]]:
    """The run that is diagnosed, and its pictures: only while the workspace holds it and nothing else.

    From the first fix on its files may hold the new run beside what is left of the old one; the pictures of the old
    run stay as they were drawn at the gate.
    """
    from traindx_tools.errors import UnreadableInput
    from traindx_tools.on_data.run_data import told_as_data
    from traindx_tools.on_logs.each_run import read_last_run
    from traindx_tools.on_logs.judge import judge_run
    from traindx_tools.plots import draw_pictures
    from traindx_tools.plots.picture import NARROW, NARROW_INCHES, plot_run

    try:
        run = read_last_run([str(p) for p in artifacts])
        run = replace(run, artifacts=told_as_data(run.artifacts))
        found = judge_run(run)
        pictures = dict(draw_pictures(run, found, folder / "plots"))
        if whole := pictures.get("loss_visualization"):
            plot_run(run, found, whole.with_suffix(NARROW), NARROW_INCHES)
        return run, pictures
    except UnreadableInput:
        return None, {}


def kept_pictures(folder: Path, but: Collection[Path] = ()) -> dict[str, Path]:
    """Pictures of a session that were drawn before, by their names: those of both runs first; no links are followed."""
    from traindx_tools.plots.picture import NARROW

    made = [p for p in sorted((folder / "plots").glob("*.png")) if p not in but and p.is_file() and not p.is_symlink()
            and not p.name.endswith(NARROW)]
    made.sort(key=lambda p: not p.stem.startswith(BOTH))
    return {**{p.stem: p for p in made}, **experiment_pictures(folder)}
