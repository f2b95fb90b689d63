"""What the files of a run say of each other: conversions, averages, parts that went back, lists and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from traindx_tools.errors import TraindxError
from traindx_tools.finding import Finding
from traindx_tools.on_weights.checkpoint import Checkpoint
from traindx_tools.on_weights.conversions import forget
from traindx_tools.rules import rules_in

if TYPE_CHECKING:
    from traindx_tools.on_code.project import Project

ROOM = "traindx_tools.on_weights.rules"


def between_files(held: Sequence[Checkpoint], code: Sequence[Project] = (), every: Sequence[str] = (),
                  until: float = math.inf) -> list[Finding]:
    """The findings of all rules that ask more than one thing of a file.

    `held`: the files of weights; `code`: the programs; `every`: the paths of all files, whatever they hold; `until`: of
    `time.monotonic`, when no further rule is asked.
    """
    found: list[Finding] = []
    for rule in rules_in(ROOM):
        try:
            given = {"check_files": (held,), "check_run": (held, code), "check_beside": (every,)}.get(rule.asks)
            if given is not None and given[0] and monotonic() < until:
                found += list(rule.check(*given))
        except TraindxError:
            continue  # what cannot be read was told of the file
    forget()
    return found
