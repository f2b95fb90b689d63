"""Words without which a line is of no error and says nothing of another process: most lines hold none."""

from __future__ import annotations

import re

_ERROR = re.compile(r"rror|raceback|xception|atal|illed|SIG|egmentation|imeout|imed out|borted|oom|OOM|atchdog|memory"
                    r"|terminate called|exitcode|onitoredBarrier|NCCL WARN|UNAVAILABLE|nterrupt|last enqueued"
                    r"|Bus error")
_OTHERS = re.compile(r"srun: error|slurmstepd|exitcode|exit code|SIGKILL|SIGTERM|SIGSEGV|OOMKilled|NotReady|NODE FAIL|"
                     r"Node failure|monitoredBarrier|task:\d|rank +: \d|evicted|preempt|rebooted|CollectiveFingerPrint"
                     r"|op\.preamble|ollectives?\b.{0,40}ismatch|ismatch.{0,40}ollective|inconsistent collective"
                     r"|TRUNCATE|truncated")


def speaks_of_error(text: str) -> bool:
    """Whether a line may belong to an error."""
    return _ERROR.search(text) is not None


def speaks_of_others(text: str) -> bool:
    """Whether a launcher, a scheduler or a barrier may speak of other processes."""
    return _OTHERS.search(text) is not None
