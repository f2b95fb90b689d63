"""Fatal lines that are no Python traceback: CUDA asserts, watchdogs, signals, the OOM killer, launchers, XLA.

One table: what a line must contain (cheap), the pattern, and the type of the event. Wordings are those of PyTorch
(CUDAKernelAssert, ProcessGroupNCCL.cpp, torchrun), Linux, Slurm, Kubernetes, glibc, faulthandler and XLA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CUDA_ASSERT = "CudaAssert"
COLLECTIVE_TIMEOUT = "CollectiveTimeout"
KILLED = "Killed"
OOM_KILLER = "OomKiller"
SEGFAULT = "SegmentationFault"
TERMINATED = "Terminated"
TIME_LIMIT = "TimeLimit"
EXIT_CODE = "ExitCode"
ABORTED = "Aborted"
NATIVE = "NativeException"
PYTHON_FATAL = "FatalPythonError"
HANG_DUMP = "FaulthandlerTimeout"
XLA_FATAL = "XlaFatal"
DEVICE_MEMORY = "OutOfMemoryError"
SHARED_MEMORY = "SharedMemoryError"
WORKER_CRASH = "WorkerCrash"
CUDA_ERROR = "CudaError"
NCCL_ERROR = "NcclError"


@dataclass(frozen=True)
class Signature:
    """A line of the table: `needs` is a substring that the line must hold before the pattern is tried."""

    type: str
    needs: str
    pattern: re.Pattern[str]


def _signature(type_: str, needs: str, pattern: str) -> Signature:
    return Signature(type_, needs, re.compile(pattern))


SIGNATURES = (
    _signature(COLLECTIVE_TIMEOUT, "collective operation timeout", r"Watchdog caught collective operation timeout"),
    _signature(COLLECTIVE_TIMEOUT, "Timeout at ", r"Timeout at (?:NCCL work|collective): "),
    _signature(COLLECTIVE_TIMEOUT, "detected by watchdog", r"(?:error or timeout\)|failure) detected by watchdog"),
    _signature(COLLECTIVE_TIMEOUT, "monitoredBarrier", r"Rank \d+ failed to pass monitoredBarrier"),
    _signature(COLLECTIVE_TIMEOUT, "Heartbeat monitor timed out", r"Heartbeat monitor timed out"),
    _signature(OOM_KILLER, "oom-kill", r"oom-kill:constraint=|oom-kill(?:er)? event|oom_kill event"),
    _signature(OOM_KILLER, "Killed process", r"[Oo]ut of memory: Killed process \d+"),
    _signature(OOM_KILLER, "OOMKilled", r"\bOOMKilled\b"),
    _signature(OOM_KILLER, "OOM Killed", r"\bOOM Killed\b"),
    _signature(OOM_KILLER, "out-of-memory handler", r"by the cgroup out-of-memory handler"),
    _signature(OOM_KILLER, "running low on memory", r"node (?:running low on memory|was running low on memory)"),
    _signature(KILLED, "Killed", r"^Killed$|^.{0,200}: line \d+: +\d+ Killed\b|^\[\d+\].{0,20} Killed +"),
    _signature(KILLED, "SIGKILL", r"died with <Signals\.SIGKILL: 9>|[Ss]ignal 9 \(SIGKILL\)"
                                  r"|terminated with signal SIGKILL|process \d+ terminated with SIGKILL"),
    _signature(KILLED, "exit", r"(?:exit(?:s|ed)?(?: with)?(?: exit| return)?[ _]?(?:code|status)|exitcode)"
                               r"\s{0,3}[:=]?\s{0,3}(?:-9|137)\b(?!\.)"),
    _signature(KILLED, "return", r"\breturn[ _]?code(?: is| was)?\s{0,3}[:=]?\s{0,3}(?:-9|137)\b(?!\.)"),
    _signature(TIME_LIMIT, "TIME LIMIT", r"DUE TO TIME LIMIT"),
    _signature(TERMINATED, "CANCELLED", r"slurmstepd: error: \*\*\* .{1,200} CANCELLED"),
    _signature(TERMINATED, "SIGTERM", r"received signal 15|SignalException: Process \d+ got signal: 15"),
    _signature(SEGFAULT, "egmentation fault", r"(?:^|: |\) ?|\d )Segmentation fault(?: +\(core dumped\)|$)"
                                              r"|Fatal Python error: Segmentation fault"),
    _signature(SEGFAULT, "SIGSEGV", r"Signal 11 \(SIGSEGV\)|SIGSEGV received|<Signals\.SIGSEGV"),
    _signature(SEGFAULT, "Segfault encountered", r"!!! Segfault encountered !!!"),
    _signature(SEGFAULT, "exitcode", r"exitcode\s{0,3}: (?:-11|139)\b"),
    _signature(WORKER_CRASH, "encountered in worker", r"Unexpected (?:segmentation fault|floating-point "
                                                      r"exception) encountered"),
    _signature(SHARED_MEMORY, "insufficient shared memory", r"Unexpected bus error encountered in worker"),
    _signature(SEGFAULT, "Bus error", r"(?:^|: |\d )Bus error(?: +\(core dumped\)|$)"),
    _signature(PYTHON_FATAL, "Fatal Python error", r"^Fatal Python error: "),
    _signature(HANG_DUMP, "Timeout (", r"^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$"),
    _signature(NATIVE, "terminate called", r"terminate called after throwing an instance of '[\w:.<>, ]{1,200}'"),
    _signature(ABORTED, "Aborted", r"(?:^|: |\d )Aborted(?: +\(core dumped\)|$)"),
    _signature(XLA_FATAL, "Check failed", r"(?:^F\d{4} |: F ).{1,300}Check failed: "),
    _signature(DEVICE_MEMORY, "RESOURCE_EXHAUSTED", r"RESOURCE_EXHAUSTED: "),
    _signature(DEVICE_MEMORY, "Resource exhausted", r"Resource exhausted: Out of memory"),
    _signature(DEVICE_MEMORY, "ran out of memory trying to allocate", r"ran out of memory trying to allocate [\d.]+\w+"
                                                                      r"(?!.*not a failure)"),
    _signature(DEVICE_MEMORY, "out of memory. Tried to allocate", r"out of memory\. Tried to allocate "),
    _signature(CUDA_ERROR, "CUDA error: ", r"CUDA error: (?:device-side assert|an illegal memory access|CUBLAS_STATUS"
                                           r"|misaligned address|unspecified launch failure|uncorrectable ECC)"),
    _signature(NCCL_ERROR, "NCCL WARN", r"NCCL WARN (?:Call to .{1,100} failed|.{0,100}(?:Connection refused|Connection"
                                        r" closed|Cuda failure|Mismatched collective|unhandled))"),
    _signature(EXIT_CODE, "exitcode", r"failed \(exitcode: -?\d+\) local_rank: \d+"),
)
PROCESS_ENDS = frozenset(
    {KILLED, OOM_KILLER, SEGFAULT, PYTHON_FATAL, NATIVE, ABORTED, TIME_LIMIT, TERMINATED, HANG_DUMP}
)
"""Types that end a process: whatever message was under way is over."""


def fatal_type(text: str) -> str | None:
    """The type of fatal line that `text` is, or None. A lower-case "killed" in a sentence is none."""
    for signature in SIGNATURES:
        if signature.needs in text and signature.pattern.search(text) is not None:
            return signature.type
    return None


def ends_process(text: str) -> bool:
    """Whether the line says that the process is gone; an indented line is part of a message ("  exitcode: -9")."""
    return not text[:1].isspace() and fatal_type(text) in PROCESS_ENDS


def cuda_assert(text: str) -> str | None:
    """A failed CUDA assert without its block and thread, so that a thousand of them read alike; else None.

    >>> cuda_assert("Loss.cu:242: nll: block: [0,0,0], thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.")
    'Loss.cu:242: nll: Assertion `t >= 0 && t < n_classes` failed.'
    """
    start, found, rest = text.partition(": block: [")
    if not found:
        return None
    _, found, condition = rest.partition("Assertion `")
    end = condition.rfind("` failed")
    return f"{start[-500:]}: Assertion `{condition[:end]}` failed." if found and end >= 0 else None
