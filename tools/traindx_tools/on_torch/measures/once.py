"""Findings that a probe writes early, in case the program is killed, are not written again at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traindx_tools.finding import Finding


class Once:
    """Lets each rule's kind through once for each module."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str | None, object]] = set()

    def new(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """Those that were not let through before."""
        for f in findings:
            key = f.rule, f.where.module, f.measured.get("kind")
            if key not in self._told:
                self._told.add(key)
                yield f
