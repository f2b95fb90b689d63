"""A checkpoint is not whole: it was cut, or shards and tensors that its index names are not there.

A file that ends inside a tensor, or a zip archive without its directory, was written by a process that was killed,
onto a full disk, or copied before it was finished.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location
from traindx_tools.finding import Severity as S
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.tensor import Damaged
from traindx_tools.rules import Rule

RULE = Rule(
    id="W116",
    name="damaged-checkpoint",
    title="A checkpoint is not whole",
    severity=S.HIGH,
    sees="Whether all bytes and all tensors are there that the file or its index says it has.",
    matters="Loading fails, or leaves what is missing at its random initialisation.",
    alike=("a download that is still running",),
    confirm=("compare its size with that of the checkpoint before", "load it with torch.load or safetensors"),
)


def check(seen: Seen) -> Iterator[Finding]:
    """Tensors that an index names and no shard holds."""
    lost = seen.checkpoint.values.get("index.missing")
    if seen.main and isinstance(lost, tuple) and lost:
        yield RULE.finding(
            f"{seen.path} names {len(lost)} tensors that its shards do not hold: {', '.join(map(str, lost[:4]))}"
            f"{f' and {len(lost) - 4} more' if len(lost) > 4 else ''}",
            Location(file=seen.path, module=str(lost[0])), seen.path, bearing=Bearing.CAUSE,
            measured={"name": str(lost[0]), "kind": "shards", "missing": len(lost)})


def damaged(path: str, why: Damaged) -> Finding:
    """The finding for a file that cannot be read because it is not whole."""
    text = str(why).removeprefix(f"{path}: ")
    return RULE.finding(f"{path} is not whole: {text}", Location(file=path), path, bearing=Bearing.CAUSE,
                        measured={"name": path, "kind": "cut"})
