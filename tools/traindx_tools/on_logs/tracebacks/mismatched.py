"""Words by which a process says that its collective met another one of a peer: other sizes, or another operation.

It is a complaint of another rank, as a timeout is: the process that says it ends, and did not fail by itself. Wordings
of gloo (`op.preamble.length <= op.nbytes`), NCCL, torch's wrapper of TORCH_DISTRIBUTED_DEBUG=DETAIL and MPI.
"""

from __future__ import annotations

import re

_MISMATCH = re.compile(
    r"op\.preamble\.length <= op\.nbytes|[Rr]eceived data size doesn't match expected size"
    r"|(?:[Cc]ollective|COLLECTIVE)s?(?: call| operation)? mismatch|[Mm]ismatched collective"
    r"|mismatch between collectives|running inconsistent collective|MPI_ERR_TRUNCATE|[Mm]essage truncated.{0,80}MPI")


def speaks_of_mismatch(text: str) -> bool:
    """Whether a message says that the collectives of two ranks do not belong together."""
    return _MISMATCH.search(text) is not None
