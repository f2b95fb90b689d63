"""At a terminal, the run that would prove the cause is offered: y/N, and No where nobody answers.

Never in a pipe, never in CI, never where nothing protects the project, and only where reading left the cause open.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traindx.diagnose import Report

CI = ("CI", "GITHUB_ACTIONS", "BUILD_NUMBER")
"""Variables that CI services set: nobody sits there, even where they emulate a terminal."""


def accepted_run(report: Report) -> str | None:
    """The command that trains, where the person at the terminal agrees that a copy of it is run; else None."""
    from traindx.at_terminal import agreed, interactive
    from traindx.in_brief import is_rerun, lasted
    from traindx.sandbox import find_sandbox

    training = report.places.training_command
    wanted = report.status == "needs_more_data" and any(is_rerun(c) for c in report.next_checks)
    if not wanted or not training or not interactive() or any(os.environ.get(name) for name in CI):
        return None
    if find_sandbox().warning:
        return None
    lasts = lasted(report.run)
    about = f" (a run takes about {lasts})" if lasts else ""
    return training if agreed(f"Prove it now: run `{training}` in a protected copy{about}?") else None
