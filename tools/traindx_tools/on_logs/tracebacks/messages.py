"""Where the message of an exception ends: Python marks neither its lines nor its last one.

A message goes on until a line that only a training log writes, or until a paragraph that no library is known to
write. Some libraries print several paragraphs (JAX, torchrun, PyTorch's state dict); their openings are listed here.
"""

from __future__ import annotations

import re

MOST_LINES = 80
MOST_CHARACTERS = 4_000

CHAINED = re.compile(
    r"\s*(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):"
)
TRACEBACK = "Traceback (most recent call last)"

NOISE = re.compile(
    r"(?:-{10,}|\"\"\"|'''|For simplicity, JAX has removed its internal frames"
    r"|The stack trace below excludes JAX-internal|The preceding is the original exception that occurred"
    r"|Set JAX_TRACEBACK_FILTERING)"
)
"""Lines that belong to an exception's text and say nothing of it."""

_LOG_LINE = re.compile(
    r"""\[?\d{4}[-/]\d\d[-/]\d\d[ T] | \[?\d\d:\d\d:\d\d | [IWEF]\d{4}\ \d\d: | \[\w*\ ?\w*:?\[?[IWE]\d{0,4}\s
      | (?:\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL)\b) | (?:wandb|srun|slurmstepd|mpirun|pod|\+\ \w+):
      | [Ee]poch\b | (?:[Ss]tep|[Ii]ter(?:ation)?)\b\W{0,3}\d | \{['"] | \s*\d{1,3}%\|
      | Process\ \w*Process-?\d | Exception\ (?:in|ignored) | Killed$ | .{0,300}\.py:\d+:\ \w*Warning
      | .{0,300}?\b(?:loss|acc|accuracy|lr|grad_norm)['"]?\s?[:=]\s?-?(?:\d|nan|inf)
      | .{0,300}Assertion\ `.{1,300}failed
    """,
    re.VERBOSE,
)
_PARAGRAPH = re.compile(
    r"""\s | Revise\ the | The\ (?:input|output|error|problem|following|function|carry|loop|size|tensor|argument|model)
      | (?:This|These|It\ |You|Your|For|If|In\ addition|Please|Note|See|To\ |Set\ |Try|While|When|Make\ sure)\b
      | (?:Expected|Got)\b
      | from\ user\ code | Compile\ with | CUDA\ kernel\ errors | Device-side | Search\ for | Parameter\ (?:indices|at)
      | \w+\ is\ .{1,200}\ at\ \S+:\d+
      | Traced | Alternatively | Hint | Root\ Cause | Failures: | \[\d+\]: | ={10,} | -{10,}
      | Original\ Traceback
      | --\ Process | Last\ error: | ncclSystemError | Encountered | \w+\ \(\d+\) | [+|]\s | A\ \w
      | Component\ | Allocation\ type | Total\ (?:bytes|hbm) | Largest | HLO | BufferAssignment
    """,
    re.VERBOSE,
)


def goes_on(text: str, *, after_blank: bool) -> bool:
    """Whether `text` belongs to the message whose lines came before it."""
    if _LOG_LINE.match(text) is not None:
        return False
    return not after_blank or _PARAGRAPH.match(text) is not None or NOISE.match(text) is not None


def joined(lines: list[str]) -> str:
    """The message: trailing blank lines dropped, bounded to `MOST_CHARACTERS`."""
    return "\n".join(lines).rstrip()[:MOST_CHARACTERS]
