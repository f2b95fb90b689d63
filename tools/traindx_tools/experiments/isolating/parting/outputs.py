"""What two runs print, line by line, without what differs between any two: times, speeds, addresses, folders."""

from __future__ import annotations

import re

from traindx_tools.experiments.isolating.parting.compare import Parting

_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d[T ]?|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"  # dates and times of the day, progress bars
    r"|\d+(?:\.\d+)?\s*(?:s|ms|us|sec|secs|seconds|min|minutes|h|it/s|s/it|samples/s|tok(?:ens)?/s|[KMG]i?B(?:/s)?)\b"
    r"|0x[0-9a-fA-F]+|/tmp/\S+|\bpid[ =:]*\d+|\b(?:time|elapsed|duration|took|eta)\w*[\"']?\s*[=:]?\s*\d+(?:\.\d+)?",
    re.IGNORECASE)


def output_parts(one: str, other: str, rank: int = 0) -> Parting | None:
    """The first line that differs; None where all lines that both have are equal."""
    pairs = zip(_lines(one), _lines(other), strict=False)
    for number, (a, b) in enumerate(pairs, 1):
        if a != b:
            return Parting(rank, 0, "output", f"line {number}: {a[:100]!r} / {b[:100]!r}", "output",
                           equal_events=number - 1)
    return None


def _lines(text: str) -> list[str]:
    return [_VOLATILE.sub("#", line).strip() for line in text.replace("\r", "\n").split("\n") if line.strip()]
