"""Every log rule over one run."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import RuleModule, rules_in

_log = logging.getLogger(__name__)

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
    return tuple(f for room in LOG_ROOMS for module in rules_in(room) for f in _guarded(module, run, failed))
