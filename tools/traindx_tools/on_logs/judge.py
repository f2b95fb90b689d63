"""Every log rule over one run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.events.seen import seen_in
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import RuleModule, rules_in

_log = logging.getLogger(__name__)

EVENT_ROOM = "traindx_tools.on_logs.events.rules"
LOG_ROOMS = ("traindx_tools.on_logs.curves", "traindx_tools.on_logs.tracebacks")


def _guarded(module: RuleModule, run: Run, failures: list[str]) -> Iterator[Finding]:
    try:
        yield from module.check(run)
    except Exception as error:  # noqa: BLE001 - one broken rule must not cost a person the other sixty
        _log.debug("rule %s failed", module.rule.id, exc_info=True)
        failures.append(f"rule {module.rule.id} failed on this input ({type(error).__name__}: {error}) and was skipped")


def judge_run(run: Run, failures: list[str] | None = None) -> tuple[Finding, ...]:
    """What the log rules see in a run, in rule order. A rule that fails is skipped and named in `failures`."""
    failed = failures if failures is not None else []
    found = _judged(run, failed)
    if not any(s.inferred for s in run.series):
        return found
    certain = replace(run, series=tuple(s for s in run.series if not s.inferred))
    sure = {(f.rule, f.statement) for f in _judged(certain, [])}
    return tuple(f if (f.rule, f.statement) in sure else _as_pattern(f) for f in found)


def _judged(run: Run, failed: list[str]) -> tuple[Finding, ...]:
    return tuple(f for room in LOG_ROOMS for module in rules_in(room) for f in _guarded(module, run, failed))


def _as_pattern(finding: Finding) -> Finding:
    """A finding that rests on a metric whose meaning was guessed from its course."""
    severity = finding.severity if finding.severity.rank <= Severity.MEDIUM.rank else Severity.MEDIUM
    return replace(finding, bearing=Bearing.COMPANION, severity=severity,
                   statement=f"{finding.statement} (what the metric is was guessed from its course)")


def judge_events(run: Run, sources: Sequence[Source], failures: list[str] | None = None) -> tuple[Finding, ...]:
    """What goes along with the anomalies of a run, and ahead of its first trouble.

    `sources`: the files that it was read from, which are read again where a series has anomalies. Failures as of
    `judge_run`.
    """
    try:
        seen = seen_in(run, sources)
        return tuple(f for module in rules_in(EVENT_ROOM) for f in module.check(seen))
    except Exception as error:  # noqa: BLE001 - as above: what else was seen stays
        _log.debug("events failed", exc_info=True)
        if failures is not None:
            failures.append(f"the events of the log were not compared ({type(error).__name__}: {error})")
        return ()
