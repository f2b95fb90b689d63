"""An experiment as a table, a line for each run: Markdown for a file, plain lines for a terminal."""

from __future__ import annotations

import math

from traindx_tools.experiments.arms import Run
from traindx_tools.experiments.experiment import Made, Result
from traindx_tools.experiments.on_numbers import shared
from traindx_tools.experiments.reading import event, number, read_from
from traindx_tools.experiments.verdict import SAID


def heading(result: Result) -> str:
    """`X001 removes the symptom: learning-rate:times=0.1`"""
    return f"{result.id} {SAID[result.verdict.word]}: {result.design.change}"


def rows(result: Result) -> list[tuple[str, str, str, str]]:
    """(run, outcome, seconds, note) of each run, in the order in which they were made."""
    return [(m.run.name, shown(result, m.run), f"{m.run.trace.seconds:.1f}", _note(m)) for m in result.made]


def shown(result: Result, run: Run) -> str:
    """What one run shows of the outcome."""
    outcome = result.design.outcome
    if outcome.is_event:
        seen = event(outcome, run.trace)
        reached = "" if math.isnan(seen.at) else f" up to {seen.unit} {seen.at:g}"
        return f"yes, {seen.unit} {seen.at:g}" if seen.there else f"no{reached}"
    by = shared(outcome, result.runs, result.verdict.at)
    measured = number(outcome, run.trace, result.verdict.at, by)
    return "-" if measured is None else f"{measured.value:.4g}"


def _note(made: Made) -> str:
    trace = made.run.trace
    ended = {"": f"exit code {trace.exit_code}" if trace.exit_code else "", "decided": "ended when it had shown enough",
             "time": "time was up", "memory": "too much memory"}.get(trace.stopped, trace.stopped)
    held = ""
    if made.run.changed:
        applied = trace.applied
        place = f" ({applied.where})" if applied.where else ""
        held = f"took hold {applied.times} times{place}" if applied.times else f"took hold nowhere: {applied.problem}"
    return "; ".join(x for x in (ended, held, "kept from before" if made.kept else "") if x)


def lines(result: Result) -> list[str]:
    """For a terminal."""
    told = rows(result)
    width = max((len(r[0]) for r in told), default=0)
    value = max((len(r[1]) for r in told), default=0)
    out = [heading(result), f"  {result.verdict.why}"]
    out += [f"  {name:<{width}}  {seen:<{value}}  {took:>6} s  {note}".rstrip() for name, seen, took, note in told]
    kept = sum(m.kept for m in result.made)
    out.append(f"  {len(result.made)} runs ({kept} kept from before), {result.seconds:.0f} s of {result.budget:.0f} s")
    return out


def page(result: Result, picture: str = "") -> str:
    """Markdown: verdict, what was asked, the table, the picture."""
    verdict = result.verdict
    out = [f"# {heading(result)}", "", verdict.why + ".", "", f"- outcome: {result.design.outcome.said} "
           f"(`{result.design.outcome}`)", f"- change: `{result.design.change}`"]
    read = next((t for m in result.made if (t := read_from(result.design.outcome, m.run.trace))), "")
    out += [f"- read from: {read} of a run"] if read else []
    if verdict.effect is not None:
        out.append(f"- effect: {verdict.effect:.4g} (between {verdict.low:.4g} and {verdict.high:.4g}); standard "
                   f"deviation of a run: {verdict.spread:.3g}")
    if verdict.at is not None:
        out.append(f"- compared up to {verdict.unit} {verdict.at:g}")
    out += [f"- runs: {len(result.made)}, {result.seconds:.1f} s of a budget of {result.budget:.0f} s", "",
            f"| run | {result.design.outcome.kind} | seconds | note |", "|---|---|---|---|"]
    out += ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows(result)]
    if picture:
        out += ["", f"![{result.id}]({picture})"]
    return "\n".join(out) + "\n"
