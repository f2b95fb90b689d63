"""A cuBLAS or cuDNN error that is often an index error in truth.

CUBLAS_STATUS_ALLOC_FAILED, NOT_INITIALIZED, EXECUTION_FAILED and INTERNAL_ERROR are what the host sees at the first
matrix product after a kernel went out of bounds: typically an embedding whose ids or positions exceed its rows, or a
label beyond the classes. They also appear when the GPU is really full, so free memory decides between the two.
CUBLAS_STATUS_INVALID_VALUE and NOT_SUPPORTED are about the call itself: shapes, strides, dtype, or a library mismatch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule

PRIORITY = 30
TOGETHER = True

RULE = Rule(
    id="L503",
    name="cublas-masked-index",
    title="A cuBLAS error that may hide an index out of range",
    severity=Severity.CRITICAL,
    sees="CUBLAS_STATUS_* and CUDNN_STATUS_* with the call that returned it.",
    matters="The message blames linear algebra; the fault is usually an index in an earlier, asynchronous kernel.",
    alike=("A GPU that is really full: then memory in use is near the total (L508).",
           "Mismatched CUDA libraries: then the first matrix product of any script fails."),
    confirm=("Run one batch on the CPU: an IndexError names the table and the line.",
             "CUDA_LAUNCH_BLOCKING=1 python train.py",
             "nvidia-smi while it runs: with gigabytes free it is no allocation problem.",
             "Compare max(ids), max(positions), max(labels) of the failing batch with num_embeddings and num_classes."),
)

_STATUS = re.compile(r"(?P<library>CUBLAS|CUDNN)_STATUS_(?P<status>[A-Z_]+)(?: when calling `?(?P<call>[\w:]+))?")
_MASKED = frozenset({"ALLOC_FAILED", "NOT_INITIALIZED", "EXECUTION_FAILED", "INTERNAL_ERROR", "MAPPING_ERROR"})


def claims(event: ErrorEvent) -> bool:
    """Statuses of cuBLAS and cuDNN."""
    return event.kind != "warning" and _STATUS.search(event.message) is not None


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(incident)


def _judged(incident: Incident) -> Finding:
    match = _STATUS.search(incident.text)
    assert match is not None
    status, call = match["status"], match["call"] or "a library call"
    name = f"{match['library']}_STATUS_{status}"
    measured = {"kind": status.lower().replace("_", "-"), "status": name, "call": call,
                "in_backward": "backward" in (incident.frame.code if incident.frame else "")}
    if status in _MASKED and match["library"] == "CUBLAS":
        return report(RULE, incident, f"{name} from {call}: commonly an index out of range in an earlier kernel "
                                      f"(embedding, "
                      "positions, labels), not a fault of the matrix product", bearing=Bearing.SIGN,
                      measured=measured, surfaced="CUDA reports errors later than they happen")
    return report(RULE, incident, f"{name} from {call}", bearing=Bearing.COMPANION, measured=measured,
                  surfaced="the library only returned the status of earlier work" if status in _MASKED else "")
