"""From artifacts on disk to the result that a person reads and a program parses. Read-only; seconds; no model.

`diagnose()` is what `traindx diagnose` calls. Only `Report.write` touches the disk, and only the folder it is given.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from traindx import arguments, fixed_since, logs_beside, next_steps, offers, proposal, still_watched
from traindx.code_names import CodeNames, read_names
from traindx.context import DiagnosisResult, RankedHypothesis, RootCause
from traindx.examined import Examined
from traindx.model import Hypothesis
from traindx.offered import typed_again
from traindx.places import Places, common_root
from traindx.project_file import read_project_file
from traindx.recorded import recorded_command
from traindx.usual_lines import Anchor
from traindx_tools import triage, unlinked
from traindx_tools.examine import Examination, examine
from traindx_tools.finding import Finding
from traindx_tools.live.reading import workspace_of
from traindx_tools.on_data.named_lines import named_lines
from traindx_tools.on_logs.artifacts import STDIN
from traindx_tools.on_logs.in_memory import History, taken_out
from traindx_tools.on_logs.readers.line_forms import LineForm
from traindx_tools.scope import NOTHING_ASKED, Asked
from traindx_tools.scope.cells import Notebooks
from traindx_tools.set_aside import to_json
from traindx_tools.sources import as_paths, resolved


@dataclass(frozen=True, eq=False, repr=False)
class Report(Examined):
    """A finished diagnosis: what was examined and everything that is said of it."""

    def _repr_html_(self) -> str:
        from traindx.in_notebook import WIDTH, name_of, of_report

        more = f"print({name_of(self)}.terminal(verbose=True))"
        return of_report(self.seen, self.terminal(width=WIDTH, more=more))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that was seen, also what speaks for no cause."""
        return tuple(self.seen.findings)

    @property
    def experiments(self) -> tuple[Finding, ...]:
        """What was measured by changing one thing and running again: the findings of experiments."""
        return tuple(f for f in self.findings if f.rule[:1] == "X")

    @cached_property
    def next_checks(self) -> tuple[str, ...]:
        """Exact commands to run next, the most telling first."""
        return next_steps.commands(self)

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        """What more would settle it, in words, where more data is needed."""
        return next_steps.wanted(self)

    def root_causes(self) -> tuple[RootCause, ...]:
        """The causes in the result's format, the most likely first."""
        return tuple(self._cause(h, said) for h, said in
                     zip(self.seen.verdict.hypotheses, self.hypotheses, strict=True)
                     if self.status == "diagnosis_complete" and h.confidence >= triage.CONFIDENT)

    def _cause(self, found: triage.Hypothesis, said: Hypothesis) -> RootCause:
        targeted = proposal.options(found, self.seen.findings, self.places, self.offer(found), self.names)[0]
        return RootCause(
            issue=said.issue,
            severity=found.severity.value,
            evidence=tuple(f"[{self.exhibits[w.finding]}] {w.finding.statement} ({self.places.describe(w.finding)})"
                           for w in found.speaks_for),
            fix=proposal.fix_text(targeted),
            confidence=said.confidence,
            failure_mode=found.mode.id,
            location=said.location,
            mechanism=said.mechanism,
            will_change=found.mode.will_change,
            will_not_fix=found.mode.will_not_fix,
        )

    def quick_fixes(self) -> tuple[str, ...]:
        """Certain changes for causes that were seen directly: still to be approved, never applied from here."""
        return tuple(
            proposal.fix_text(proposal.options(h, self.seen.findings, self.places, names=self.names)[0])
            for h in self.seen.verdict.causes
            if proposal.patches(h, self.seen.findings) and self.offer(h) == offers.FREE
        )

    def result(self, artifacts: dict[str, str] | None = None) -> DiagnosisResult:
        """The result JSON as a model; `artifacts` are files that were written for it."""
        return DiagnosisResult(
            status=self.status,
            root_causes=self.root_causes(),
            hypotheses=tuple(RankedHypothesis.of(h) for h in self.hypotheses),
            findings=tuple({"id": self.exhibits[f], **self._told(f)} for f in self.seen.findings),
            quick_fixes=self.quick_fixes(),
            next_checks=self.next_checks,
            analysis_artifacts={**self._analyses(), **(artifacts or {})},
            runs=tuple(r.to_json() for r in self.seen.runs) if len(self.seen.runs) > 1 else None,
            judged_run=self.seen.which if len(self.seen.runs) > 1 else None,
            scope=self.seen.scope.to_json(self.places.name),
            comparison=self.comparison.to_json() if self.comparison is not None else None,
            symptom_answer=tuple(a.to_json() for a in self.seen.symptom_answers),
            set_aside=tuple(to_json(a, n) for a, n in self.seen.aside),
        )

    def _told(self, finding: Finding) -> dict[str, Any]:
        """A finding's JSON, without a change whose trial failed."""
        failed = any(finding is c for h in self.seen.verdict.causes if self.offer(h).refused
                     for c in proposal.carriers(h, self.seen.findings))
        return (replace(finding, patch=()) if failed else finding).to_json()

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the analysis itself: what could not be read, what was refused, what a new run showed."""
        return tuple(map(self._shown, (*self.remarks, *self.seen.notes)))

    def terminal(self, files: dict[str, str] | None = None, *, colour: bool = False, width: int = 100,
                 verbose: bool = False, more: str = "terminal(verbose=True)") -> str:
        """What `traindx diagnose` prints, with `verbose` all of it. `files`: what `write` returned; `more`: how all of
        it is asked for where it is read."""
        from traindx.beside_a_loop import in_a_notebook
        from traindx.in_a_cell import in_a_cell
        from traindx.terminal import render_terminal

        files = files or {}
        return render_terminal(self.to_json(files), run=self.run, diagnosis=self.diagnosis,
                               reason=self._shown(self.seen.verdict.reason), notes=self.notes, files=files,
                               colour=colour, width=width, verbose=verbose, more=more,
                               typed=in_a_cell if in_a_notebook() else str)

    def write(self, folder: Path) -> dict[str, str]:
        """Writes pictures, diagnosis.json, diagnosis.md and report.html; returns their paths by name."""
        from traindx.render import render_diagnosis, render_report_html
        from traindx_tools.plots import draw_pictures

        unlinked.made(folder)
        pictures = {**draw_pictures(self.seen.run, self.seen.findings, folder / "plots"),
                    **self._beside(folder / "plots" / "comparison.png"),
                    **self._ranks(folder / "plots" / "ranks.png"),
                    **self._samples(folder / "plots" / "samples.png"),
                    **self._experiments(folder / "plots")}
        files = {name: str(path) for name, path in pictures.items()}
        if self.diagnosis is not None:
            files["diagnosis"] = str(folder / "diagnosis.md")
            unlinked.write(Path(files["diagnosis"]), render_diagnosis(self.diagnosis))
        files |= {"report": str(folder / "report.html"), "result": str(folder / "diagnosis.json")}
        page = render_report_html(self.to_json(files), pictures, run=self.run, diagnosis=self.diagnosis,
                                  reason=self._shown(self.seen.verdict.reason), notes=self.notes, files=files,
                                  subject=self.subject)
        unlinked.write(Path(files["report"]), page)
        unlinked.write(Path(files["result"]), json.dumps(self.to_json(files), indent=1) + "\n")
        return files

    def _beside(self, out: Path) -> dict[str, Path]:
        """The picture of both runs, where there are two."""
        from traindx_tools.against.picture import draw_comparison
        from traindx_tools.plots.picture import drawn

        if self.comparison is None:
            return {}
        metrics, runs = self.comparison.metrics, self.comparison.runs
        picture = drawn(lambda: draw_comparison(metrics, *runs, out))
        return {} if picture is None else {"comparison": picture}

    def _experiments(self, folder: Path) -> dict[str, Path]:
        """The pictures of the experiments, kept: where they were drawn is gone when the command ends."""
        kept = {f"experiment_{path.stem}": path for path in self.drawn if path.is_file()}
        for name, path in kept.items():
            kept[name] = folder / f"{name}.png"
            unlinked.write(kept[name], path.read_bytes())
        return kept

    def _ranks(self, out: Path) -> dict[str, Path]:
        """The ranks by step, where the logs are of several."""
        from traindx_tools.plots.picture import drawn
        from traindx_tools.plots.ranks import plot_ranks

        ranks = self.seen.ranks
        picture = None if ranks is None else drawn(lambda: plot_ranks(ranks, out))
        return {} if picture is None else {"ranks": picture}

    def _samples(self, out: Path) -> dict[str, Path]:
        """Samples of the data beside their labels, where a finding is about them."""
        from traindx_tools.plots.contact_sheet import samples_of
        from traindx_tools.plots.picture import drawn

        picture = drawn(lambda: samples_of(self.seen.findings, out, self.places.root))
        return {} if picture is None else {"samples": picture}

    def _analyses(self) -> dict[str, str]:
        found = {"gradient_analysis": gradient_summary(self.seen), "missing_artifacts": ", ".join(self.missing),
                 "wanted": "; ".join(self.wanted), "program_facts": self.facts}
        return {k: v for k, v in found.items() if v}

    def to_json(self, artifacts: dict[str, str] | None = None) -> dict[str, Any]:
        """The result JSON as plain values."""
        made: dict[str, Any] = json.loads(self._shown(json.dumps(self.result(artifacts).to_json())))
        return made


def gradient_summary(seen: Examination) -> str:
    """The gradient norm over the run in one sentence, or "" where none was logged."""
    import numpy as np

    series = seen.run.first("grad_norm")
    if series is None:
        return ""
    values = series.values[series.finite]
    if not len(values):
        return f"grad_norm is never finite in {len(series)} records"
    bad = len(series) - len(values)
    tail = f"; {bad} of {len(series)} records are not finite" if bad else ""
    with np.errstate(over="ignore"):  # numbers beyond what a double holds
        median = float(np.median(values))
    return (f"grad_norm over {len(series)} records: first {values[0]:.4g}, median {median:.4g}, largest "
            f"{values.max():.4g}, last {values[-1]:.4g}{tail}")


def _read_code(code: Sequence[Path]) -> tuple[tuple[Anchor, ...], CodeNames]:
    """The lines that diagnoses are about, and the names in the code."""
    from traindx.usual_lines import anchors_in
    from traindx_tools.on_code.source import read_sources

    sources, _ = read_sources(code)  # the audit names the files that could not be read
    return (tuple(a for s in sources for a in anchors_in(s.path, s.tree, list(s.lines))),
            read_names(s.tree for s in sources))


def diagnose(paths: Sequence[str | Path | History] | str | Path | History, *, symptom: str = "",
             stdin: bytes | None = None, missing: Sequence[str] = (), root: Path | None = None,
             names: Mapping[str, str] | None = None, lines: Sequence[str | LineForm] = (), asked: Asked = NOTHING_ASKED,
             cluster: str | None = None) -> Report:
    """Reads artifacts and names the cause.

    `paths`: files, folders, globs, fsspec URLs, names of runs (`wandb:ENTITY/PROJECT/RUN`, `mlflow:RUN`) or "-"
    (then `stdin` holds the bytes); or a history in memory, alone or beside paths: a list of dicts, a dict of lists, a
    data frame; its places are `history:12`, the twelfth record. `symptom`: what a person saw, in their words; it is a
    hint and never a cause. `root`: the workspace that places are named from; by default the deepest folder that holds
    every path. `names`: what the log's own names stand for, as in {"Verlust": "loss"}. `lines`: what its lines mean, as
    in "{step} | {loss} | {lr}". `asked`: which files are the run's own, where the person says so
    (`traindx_tools.scope`).
    `cluster`: the address of a Ray cluster that reads the logs of many ranks.
    The project's `traindx.toml` adds to these what it says (`traindx.project_file`).
    Raises UnreadableInput for what cannot be read, BadUsage for an argument of another kind, an empty history, and an
    entry point that is no Python file.
    """
    symptom = arguments.text("symptom", symptom, '"the loss is NaN"')
    names, forms = arguments.names(names), arguments.lines(lines, LineForm)
    arguments.of_type("asked", asked, Asked, 'Asked(entry=("train.py",))')
    arguments.optional_text("cluster", cluster, '"auto"')
    root = None if root is None else arguments.path("root", root, "the path of a folder")
    missing = arguments.paths("missing", missing)
    taken, history = taken_out(paths, arguments.input_bytes(stdin))
    paths, stdin = as_paths(taken), history or stdin
    subject, paths = typed_again([p for p in paths if history is None or p != STDIN]), resolved(paths)
    paths = [os.path.abspath(p) if str(p).startswith("../") else p for p in paths]  # named from its own folder then
    here = root or workspace_of(paths) or common_root(paths)
    project = read_project_file(here)
    asked, names = project.asked(asked), {**project.names, **(names or {})}
    still_watched.written_so_far()
    look = functools.partial(examine, paths, symptom=symptom, stdin=stdin, root=here, names=names,
                             lines=(*project.lines, *forms), cluster=cluster)
    seen = look(asked=asked)
    logs = _logs(seen)
    older, before = fixed_since.older_beside_newer(here, logs, {os.path.realpath(p) for p in paths})
    seen = look(asked=replace(asked, older=older)) if older else seen
    said = still_watched.note_of(here / a.path for a in seen.run.artifacts)
    before = before or fixed_since.note_of(here, logs)
    seen = replace(seen, notes=(*filter(None, (before, said)), *seen.notes))
    anchors, in_code = _read_code(seen.code)
    places = Places(here.resolve(), seen.code, anchors, recorded_command(here.resolve(), paths),
                    named_lines(seen.code, here), Notebooks.read(seen.code), seen.scope.entry, seen.scope.arguments)
    beside = logs_beside.logs_beside(seen, paths)
    named = (logs_beside.in_words(beside),) if beside else ()
    return Report(seen, places, subject, missing, remarks=named, names=in_code, asked=asked,
                  with_log=logs_beside.with_folder(beside, symptom) if beside else "")


def _logs(seen: Examination) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(s.source for s in seen.run.series), *(e.source for e in seen.run.errors))))


_SIGNATURE = inspect.signature(diagnose)
_ELSEWHERE = {"against": "a run that works is compared by `traindx diagnose PATH --against GOOD`",
              "run": "a command is run by `traindx diagnose PATH --run CMD`, or in run_debug_session(..., verify=CMD)"}


def _called(*given: Any, **named: Any) -> Report:
    arguments.known("diagnose", named, tuple(_SIGNATURE.parameters), _ELSEWHERE)
    return diagnose(*given, **named)


class _Called(ModuleType):
    """This module, which can be called: `from traindx import diagnose` gives it, and then stands for its function."""

    __call__ = staticmethod(_called)
    __signature__ = _SIGNATURE


sys.modules[__name__].__class__ = _Called
