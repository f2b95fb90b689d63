"""What the tools of the MCP server answer: a function for each, from checked arguments to a text.

Nothing here approves, applies or edits: those are a person's decisions (`traindx approve`). All only read, but for
`plot_run`, `run_probe`, `run_experiment` and `replay_step`, which write below scratch/debug of the root. `run_probe`
runs code in the protected runner or not at all; `jaxpr` imports a file and `run_experiment` and `replay_step` run a
command, only where the person started the server with that consent.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from traindx import mcp_arguments as asked
from traindx.mcp_paths import Admitted, Reach
from traindx_tools.errors import BadUsage, TraindxError
from traindx_tools.finding import Finding, Severity

Say = Callable[[str], None]
"""Tells the client what is being done at the moment."""

GATE = "Approving is a person's decision (`traindx approve`); no tool here can."


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _notes(*groups: Sequence[str]) -> list[str]:
    return [note for group in groups for note in group][:20]


def diagnose_run(reach: Reach, given: asked.DiagnoseRun, say: Say) -> str:
    """The result of `traindx diagnose`, facts before guesses, whole or without what a first look does not need."""
    from dataclasses import replace

    from traindx.diagnose import diagnose
    from traindx.mcp_brief import brief, full

    admitted = _logs(reach, given.paths, say)
    say("judging curves, errors and code, weighing failure modes")
    made = diagnose(admitted.files, symptom=given.symptom, root=reach.root, asked=reach.asked(given))
    report = replace(made, subject=" ".join(given.paths))
    if given.against:
        from traindx.against import with_comparison

        report = with_comparison(report, _logs(reach, given.against, say).files)
    notes = {"notes": _notes(admitted.left_out, report.notes)}
    return _json({**(full if given.detail == "full" else brief)(report), **notes})


def compare_ranks(reach: Reach, given: asked.CompareRanks, say: Say) -> str:
    """The ranks of a job held against each other: findings, how each group of ranks ended, lines of few ranks."""
    from traindx_tools.on_logs.artifacts import discover
    from traindx_tools.on_ranks.logs import examine_ranks
    from traindx_tools.on_ranks.logs.listing import told

    admitted = _logs(reach, given.paths, say)
    many = examine_ranks(discover(admitted.files).sources, asked=True)
    if many is None:
        return "no ranks were told apart: the logs of at least two ranks are needed\n"
    return reach.shorten("\n".join([*told(many, every=given.lines), *map("note: {}".format, admitted.left_out)])) + "\n"


def extract_metrics(reach: Reach, given: asked.ExtractMetrics, say: Say) -> str:
    """Metrics as CSV: a line a metric, or the values of the chosen ones."""
    from traindx.mcp_metrics import chosen, summary, values
    from traindx_tools.on_logs import read_run

    admitted = _logs(reach, given.paths, say)
    run = read_run(admitted.files)
    series = chosen(run, given.metrics, given.group)
    if not series:
        return "no metrics were found in what was given\n"
    table = values(series, given.start, given.end, given.max_rows) if given.metrics else summary(series)
    notes = _notes(admitted.left_out, [f"{a.path}: {a.note}" for a in run.artifacts if a.note])
    return table + "".join(f"# {n}\n" for n in notes)


def list_findings(reach: Reach, given: asked.ListFindings, say: Say) -> str:
    """One finding a line, as JSON, with the ids that diagnoses cite."""
    from traindx.proposal import Exhibits
    from traindx_tools.examine import examine
    from traindx_tools.scope import Asked

    admitted = _logs(reach, given.paths, say)
    say("judging curves, errors and code")
    seen = examine(admitted.files, root=reach.root, asked=Asked(named=reach.named(given.paths)))
    exhibits = Exhibits.of(seen.findings)
    wanted = list(_wanted(seen.findings, given.rule, given.min_severity))
    lines = [_compact({"id": exhibits[f], **{k: v for k, v in f.to_json().items() if k not in ("patch", "title")}})
             for f in wanted]
    return _listing(lines, f"{len(wanted)} of {len(seen.findings)} findings", _notes(admitted.left_out, seen.notes))


def audit_code(reach: Reach, given: asked.AuditCode, say: Say) -> str:
    """One finding of the static audit a line, as JSON; with the proposed changes where asked for."""
    from traindx.git_changes import lines_changed_since
    from traindx_tools.code_reports.report import audit_report
    from traindx_tools.code_reports.selection import Selection

    say("reading code")
    admitted = reach.code(given.paths)
    chosen = Selection(home=reach.root).narrowed((), given.ignore)
    changes = lines_changed_since(reach.root, given.diff) if given.diff else None
    say(f"following {len(admitted.files)} files")
    result = audit_report(admitted.files, selection=chosen, changes=changes)
    wanted = list(_wanted(result.findings, given.rule, given.min_severity))
    hidden = ("title", "source") if given.patches else ("title", "source", "patch")
    lines = [_compact({k: v for k, v in f.to_json().items() if k not in hidden}) for f in wanted]
    ignored = [f"{s.finding.where.code}: {s.finding.rule} ignored by a comment: {s.reason}" for s in result.suppressed]
    notes = _notes(admitted.left_out, [f"{n.path}: {n.note}" for n in result.notes], ignored)
    of = f" of {len(admitted.files)}" if changes is not None else ""
    return _listing(lines, f"{len(wanted)} of {len(result.findings)} findings in {len(result.texts)}{of} files", notes)


DATA_SECONDS = 30.0
"""After which no further data file is begun: a client waits about a minute for an answer."""


def examine_data(reach: Reach, given: asked.ExamineData, say: Say) -> str:
    """What data files hold: one finding a line, then what was read and what was not."""
    from traindx.data_report import lines_of
    from traindx_tools.on_data import examine
    from traindx_tools.on_data.examination import require_data

    admitted = _logs(reach, given.paths, say)
    report = examine(admitted.files, seconds=DATA_SECONDS, all_rows=given.all_rows)
    require_data(report, given.paths)
    wanted = list(_wanted(report.findings, "D", given.min_severity))
    return "\n".join([*lines_of(report, wanted), *(f"note: {n}" for n in _notes(admitted.left_out))]) + "\n"


def jaxpr(reach: Reach, given: asked.Jaxpr, say: Say) -> str:
    """What a JAX function became when it was traced. Raises BadUsage without consent: the file would be executed."""
    from traindx.commands.jaxpr import summary_of

    command = f'traindx jaxpr {given.file}:{given.function} --args "{given.arguments}" --run'
    if not reach.allow_run:
        raise BadUsage(f"importing {given.file} executes it, and this server has no consent to that. The person can "
                       f"run `{command}`, or start the server with `traindx mcp --run`")
    file = reach.code([given.file]).files[0]
    say("importing and tracing")
    return str(summary_of(str(file), given.function, given.arguments, gradient=given.gradient)["text"]) + "\n"


def replay_batch(reach: Reach, given: asked.ReplayBatch, say: Say) -> str:
    """Every index and label of a kept batch, checked against its table on the CPU."""
    from traindx_tools.live.batch_file import read_batch, replay
    from traindx_tools.on_logs.artifacts import BATCH

    files = reach.logs([given.file]).files
    kept = [f for f in files if str(f).endswith(BATCH)]  # the folder of a run holds other files too
    if len(kept) > 1:
        raise BadUsage(f"{given.file} holds the batches of {len(kept)} ranks: name one of them, such as {kept[0]}")
    arrays, checks = read_batch((kept or files)[0])
    lines = [f"{name}: {array.dtype} {list(array.shape)}" for name, array in arrays.items()]
    told = [str(outcome) for outcome in replay(arrays, checks)]
    return "\n".join([*lines, *(told or ["nothing in it is known to be an index or a label"])]) + "\n"


def examine_weights(reach: Reach, given: asked.ExamineWeights, say: Say) -> str:
    """What a checkpoint holds as JSON, then one finding a line."""
    from traindx_tools.on_weights import examine

    files = [reach.weights(name) for name in (given.file, given.against) if name]
    say("reading weights")
    seen = examine(*files, seconds=given.seconds, between=True)
    wanted = list(_wanted(seen.findings, "", given.min_severity))
    lines = [_compact({k: v for k, v in f.to_json().items() if k not in ("title", "source", "patch")}) for f in wanted]
    left = [f"{len(seen.left_out)} tensors were not measured in {given.seconds:g} s"] if seen.left_out else []
    return _listing([_compact(seen.summary()), *lines], f"{len(wanted)} of {len(seen.findings)} findings",
                    _notes(seen.notes, left))


def run_probe(reach: Reach, given: asked.RunProbe, say: Say) -> str:
    """What a probe printed. Raises NotRun where nothing can protect the project."""
    from traindx.mcp_probe import run_probe as run

    say("running the probe in a protected copy")
    return run(reach, given)


def list_experiments(reach: Reach, given: asked.ListExperiments, say: Say) -> str:
    """What can be changed, one a line; with a name the page of that change."""
    from traindx_tools.experiments.interventions import example, interventions
    from traindx_tools.experiments.interventions import page as page_of_change

    if given.name:
        return page_of_change(given.name)
    known = interventions().values()
    return _listing([f"{example(i)}  {i.about}" for i in known], f"{len(known)} changes; with `name` its page", [])


def _folder_of(given: asked.RunExperiment, reach: Reach) -> Path:
    """Where the command is run: the root, or the one folder that was named where only that holds its script."""
    named = [reach.root / p for p in given.paths if (reach.root / p).is_dir()]
    inside = [p.resolve() for p in named if p.resolve().is_relative_to(reach.root)]
    try:
        words = shlex.split(given.command)
    except ValueError:
        return reach.root
    if len(inside) == 1 and any((inside[0] / w).is_file() for w in words) and not any(
            (reach.root / w).is_file() for w in words):
        return inside[0]
    return reach.root


def run_experiment(reach: Reach, given: asked.RunExperiment, say: Say) -> str:
    """One change, one control, one verdict, as JSON, a screen, or planted values. Raises BadUsage without consent: the
    command trains."""
    from traindx.experiments import Request, run_experiments
    from traindx.planting import run_planting
    from traindx.screening import run_screen
    from traindx_tools.experiments.change import parse_change
    from traindx_tools.experiments.choosing import chosen_for
    from traindx_tools.experiments.outcome import parse_outcome

    if (given.plant and (given.change or given.screen)) or not (given.plant or given.change or given.screen):
        raise BadUsage("give `change`, as in learning-rate:times=0.1, `screen`, as in settings,files (with a `change` "
                       "that is tried first, if you like), or `plant` alone")
    asked_for = [w for option, value in (("--change", given.change), ("--screen", given.screen)) if value
                 for w in (option, value)]
    asked_for = ["--plant"] if given.plant else asked_for
    folder = _folder_of(given, reach)
    where = folder.relative_to(reach.root).as_posix()
    typed = shlex.join(["traindx", "experiment", where, "--run", given.command, *asked_for])
    if not reach.allow_run:
        raise BadUsage(f"an experiment runs the training, and this server has no consent to that. The person can run "
                       f"`{typed}`, or start the server with `traindx mcp --run`")
    files = reach.logs(given.paths).files if given.paths else []
    outcome = parse_outcome(given.outcome) if given.outcome else chosen_for(files or [reach.root], given.symptom)
    changes = (parse_change(given.change),) if given.change else ()
    request = Request(folder, given.command, changes, outcome, given.budget, seed_option=given.seed_option,
                      resume=True, chosen=not given.outcome, symptom=given.symptom)
    if given.plant:
        return _json(run_planting(request, say).to_json())
    if given.screen:
        return _json(run_screen(request, [k.strip() for k in given.screen.split(",")], say).to_json())
    answer = run_experiments(request, say).to_json()
    return _json({**{k: answer[k] for k in ("outcome", "sandbox", "rest")}, **answer["experiments"][0]})


def replay_step(reach: Reach, given: asked.ReplayStep, say: Say) -> str:
    """A captured step run again with changes, as JSON. Raises BadUsage without consent: the command is started."""
    from traindx.step_replay import Request, chosen
    from traindx.step_replay import replay_step as replayed

    typed = shlex.join(["traindx", "replay", given.file, "--run", given.command])
    if not reach.allow_run:
        raise BadUsage(f"a replay starts the program, and this server has no consent to that. The person can run "
                       f"`{typed}`, or start the server with `traindx mcp --run`")
    step = reach.weights(str(chosen(reach.weights(given.file))))
    return _json(replayed(Request(step, given.command, reach.root, given.budget), say).to_json())


def explain(reach: Reach, given: asked.Explain, say: Say) -> str:
    """The page of a rule or a failure mode."""
    from traindx.commands.explain import page as page_of

    return page_of(given.name)


def plot_run(reach: Reach, given: asked.PlotRun, say: Say) -> str:
    """Draws the run below scratch/debug/plots and says where, and what is marked in it."""
    from traindx_tools.on_logs.each_run import read_last_run
    from traindx_tools.on_logs.judge import judge_run
    from traindx_tools.plots import plot_run as draw

    target = reach.picture(given.name)
    admitted = _logs(reach, given.paths, say)
    run = read_last_run(admitted.files)
    findings = judge_run(run)
    say("drawing")
    draw(run, findings, target)
    marked = "".join(f"\nmarked: {f.rule} {f.statement}" for f in findings)
    return f"{target} ({target.stat().st_size:,} bytes, PNG)" + marked


def list_failure_modes(reach: Reach, given: asked.ListFailureModes, say: Say) -> str:
    """One failure mode a line: id, family, severity, title."""
    from traindx_tools.catalog.catalog import FAMILIES, SYMPTOMS, load_catalog
    from traindx_tools.symptoms import observed_symptoms

    if given.family and given.family not in FAMILIES:
        raise BadUsage(f"there is no family {given.family!r}. There are: {', '.join(sorted(FAMILIES))}")
    words = given.symptom.lower().replace(",", " ").split()
    seen = observed_symptoms(given.symptom) | SYMPTOMS.intersection(words)
    if given.symptom and not seen:
        raise BadUsage(f"{given.symptom!r} names no known symptom. There are: {', '.join(sorted(SYMPTOMS))}")
    text = given.text.lower()
    found = [m for m in load_catalog().values()
             if (not given.family or m.family == given.family) and (not seen or seen.intersection(m.symptoms))
             and (not text or text in f"{m.id} {m.title} {m.claim}".lower())]
    lines = [f"{m.id}  [{m.family}, {m.severity.value}]  {m.title}" for m in found]
    return _listing(lines, f"{len(found)} failure modes; `explain` has the page of each", [])


def session_status(reach: Reach, given: asked.SessionStatus, say: Say) -> str:
    """Where a session stands, or all of them in a line each."""
    from traindx.session_result import result_of

    if given.session:
        result = result_of(reach.session(given.session)).to_json()
        keys = ("session", "status", "phase", "reason", "next_step", "digest", "strikes", "needs", "changed", "notes",
                "questions", "documents")
        tried = [{"option": a["option"], "summary": a["summary"], "reverted": a["reverted"],
                  "passed": (a["verification"] or {}).get("passed")} for a in result["attempts"]]
        return _json({**{k: result[k] for k in keys if result[k]}, "attempts": tried, "gate": GATE})
    lines = []
    for folder in reach.sessions():
        try:
            found = result_of(folder)
            lines.append(f"{found.session}  {found.status}  {found.reason}")
        except (TraindxError, OSError) as error:
            lines.append(f"{folder.path.name}  unreadable  {error}")
    return _listing(lines, f"{len(lines)} sessions", [])


def read_diagnosis(reach: Reach, given: asked.ReadDiagnosis, say: Say) -> str:
    """The Gate 4 diagnosis of a session, with its digest and its questions."""
    from traindx.render import render_diagnosis
    from traindx.session_result import result_of

    result = result_of(reach.session(given.session))
    if result.diagnosis is None:
        raise BadUsage(f"session {result.session} has no diagnosis: {result.status}, {result.reason}")
    if given.format == "json":
        shown = {"session": result.session, "status": result.status, "digest": result.digest,
                 **result.diagnosis.to_json(), "questions": list(result.questions), "gate": GATE}
        return _json(shown)
    head = f"session {result.session}, {result.status}, digest {result.digest}\n{GATE}\n\n"
    return head + render_diagnosis(result.diagnosis)


def _logs(reach: Reach, paths: Sequence[str], say: Say) -> Admitted:
    say("finding files")
    admitted = reach.logs(paths)
    say(f"reading {len(admitted.files)} files")
    return admitted


def _wanted(findings: Sequence[Finding], rule: str, least: str) -> Iterator[Finding]:
    floor = Severity(least).rank
    yield from (f for f in findings if f.rule.startswith(rule.upper()) and f.severity.rank >= floor)


def _listing(lines: Sequence[str], head: str, notes: Sequence[str]) -> str:
    return "\n".join([head, *lines, *(f"note: {n}" for n in notes)]) + "\n"
