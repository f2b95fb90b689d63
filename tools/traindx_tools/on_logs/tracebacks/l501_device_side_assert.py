"""A CUDA kernel asserted: an index, a class label or a probability lies outside its range.

The kernel's file and the asserted condition say what was checked: `t >= 0 && t < n_classes` is a label beyond the
last class, `srcIndex < srcSelectDimSize` an id beyond the rows of an embedding or index_select. The Python line is
not reliable: kernels run later than they are called, so the traceback shows where the host noticed. After an assert
the CUDA context is dead, and every later CUDA or cuBLAS error is an echo of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks import fatal_lines
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 10
TOGETHER = True

RULE = Rule(
    id="L501",
    name="device-side-assert",
    title="A CUDA kernel asserted",
    severity=Severity.CRITICAL,
    sees="`Assertion ... failed` lines with the kernel's file and line, and 'device-side assert triggered'.",
    matters="The run is over, and the message's Python line is usually not the faulty one.",
    alike=("An illegal memory access (L502): an index that no kernel checked.",
           "cuBLAS errors (L503): often the same fault seen one call later."),
    confirm=("Run one batch on the CPU: the same fault raises an IndexError at the right line with the index.",
             "CUDA_LAUNCH_BLOCKING=1 python train.py makes the traceback point at the failing call.",
             "Print min and max of labels and ids of the failing batch against n_classes and num_embeddings."),
)

_TRIGGERED = re.compile(r"device-side assert triggered")
_KERNEL = re.compile(r"(?P<file>[^\s/\\]+\.(?:cu|cuh|cpp|hip|h)):(?P<line>\d+): (?:(?P<function>.{0,500}?): "
                     r")?Assertion "
                     r"`(?P<condition>.*)` failed")
_WHAT = (
    (re.compile(r"t >= 0 && t < n_classes|cur_target|target.*n_classes|label"), "class-target",
     "a class label is outside [0, n_classes)"),
    (re.compile(r"srcIndex < srcSelectDimSize|indexSelect|embedding", re.IGNORECASE), "embedding-index",
     "an index is not below the number of rows of an embedding or index_select"),
    (re.compile(r"idx_dim >= 0|ScatterGather|scatter|gather", re.IGNORECASE), "gather-index",
     "an index of gather or scatter is outside its dimension"),
    (re.compile(r"probability tensor|inf.*nan|isfinite|isnan"), "probability-nan",
     "probabilities to sample from hold nan, inf or a negative value"),
    (re.compile(r"input_val >= (?:zero|0)|input_val <= (?:one|1)"), "probability-outside-0-1",
     "an input of binary cross entropy is outside [0, 1]: a missing sigmoid, or nan"),
    (re.compile(r"index out of bounds|index < sizes|index >= -sizes|index >= 0"), "tensor-index",
     "an index is outside the indexed tensor"),
)


def claims(event: ErrorEvent) -> bool:
    """Asserts of kernels and the host's notice of them."""
    return event.type == fatal_lines.CUDA_ASSERT or (event.kind != "warning" and bool(_TRIGGERED.search(event.message)))


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    asserts = [e for e in (incident.error, *incident.companions) if e.type == fatal_lines.CUDA_ASSERT]
    surfaced = "CUDA reports errors later than they happen"
    if not asserts:
        return report(RULE, incident, "a CUDA kernel asserted (device-side assert triggered), its own line is not "
                                      "in the log",
                      bearing=Bearing.COMPANION, measured={"kind": "unnamed"}, surfaced=surfaced)
    kernel = _KERNEL.search(asserts[0].message)
    kind, meaning = next(((k, m) for p, k, m in _WHAT if p.search(asserts[0].message)), ("other", "a kernel's "
                                                                                                  "check failed"))
    count = sum(e.count for e in asserts)
    where = f"{kernel['file']}:{kernel['line']}" if kernel else "a CUDA kernel"
    condition = kernel["condition"] if kernel else asserts[0].message[-120:]
    return report(
        RULE, incident, f"{meaning}: {where} asserted `{condition}` ({count:,} threads)",
        bearing=Bearing.SIGN,
        measured={"kind": kind, "kernel": where, "condition": condition, "threads": count},
        surfaced=surfaced,
        counted=False,
    )
