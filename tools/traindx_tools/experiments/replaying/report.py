"""A step's study as Markdown and JSON files beside the records of the run."""

from __future__ import annotations

import json
from pathlib import Path

from traindx_tools import unlinked
from traindx_tools.experiments.replaying.finding import sentence
from traindx_tools.experiments.replaying.judging import SAID, Measured, number
from traindx_tools.experiments.replaying.study import Study

FOLDER = "replays"


def page(study: Study) -> str:
    """Markdown: what was seen, the table, the rows."""
    symptom = study.symptom
    out = [f"# Step {symptom.step}, run again with changes", "", f"{sentence(study)}.", "",
           f"- the step as it is, on copies: {study.same}",
           f"- loss before the last update: the loss of this step's batch with the parameters before it; {study.runs} "
           f"runs, {study.seconds:.1f} s",
           "- one step shows less than a run: what changes nothing here may have been done by earlier steps", "",
           "| change | verdict | loss before the last update | loss | gradient norm | update norm | note |",
           "|---|---|---|---|---|---|---|", _row("none (control)", "", study.control, "")]
    out += [_row(f"{t.change} ({t.about})", SAID[t.word], t.measured, t.why) for t in study.tried if t.measured]
    reasons = dict.fromkeys(t.why for t in study.of("untried"))
    if reasons:
        out += ["", "Cannot be tried:", ""]
        out += [f"- {', '.join(t.change for t in study.of('untried') if t.why == why)}: {why}" for why in reasons]
    if study.carries and study.rows is not None:
        told = f" (of the dataset: {_listed(study.row_numbers)})" if study.row_numbers else ""
        out += ["", f"Rows that show it alone, as the step was given them: {_listed(study.rows.found)}{told}."]
    return "\n".join(out) + "\n"


def write(study: Study, folder: Path) -> Path:
    """Writes both files and returns the page's path. Raises OSError."""
    folder = folder / FOLDER
    path = folder / f"rank{study.rank:05d}-step{study.symptom.step:08d}-{study.symptom.kind}.md"
    unlinked.write(path.with_suffix(".json"), json.dumps(study.to_json(), indent=1) + "\n")
    return unlinked.write(path, page(study))




def _row(name: str, verdict: str, measured: Measured | None, note: str) -> str:
    told = measured or Measured()
    cells = (name, verdict, number(told.before), number(told.loss), number(told.grad_norm), number(told.update_norm),
             note)
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


def _listed(rows: tuple[int, ...]) -> str:
    return ", ".join(map(str, rows[:20])) + (", ..." if len(rows) > 20 else "")
