"""PyTorch's flight recorder: the last collectives of a rank as it dumped them, as JSON or as a pickle of plain values.

The pickle (`nccl_trace_rank_3`) is read by an interpreter of the opcodes that make plain values: nothing is executed.
Structure: torch/csrc/distributed/c10d/FlightRecorder.hpp (entries with collective_seq_id, profiling_name, input_sizes,
state, process_group).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_ranks.logs.told import Operation, Operations, Stream, Wait
from traindx_tools.on_torch.cuda_memory.plain_pickle import read_plain

MOST_BYTES = 64 * 2**20
_RANK = re.compile(r"rank[-_.]?(\d{1,6})(?:\D|$)|_(\d{1,6})$")
_JSON = re.compile(rb'\s*\{.{0,4000}"(?:entries|nccl_comm_state|pg_config)"', re.DOTALL)


def told_by_recorder(source: Source) -> Stream | None:
    """The collectives of one dump, or None where the file is none. Raises OSError."""
    head = source.stored_head
    pickled = head[:1] == b"\x80" and b"entries" in head and b"pg_config" in head
    if not pickled and _JSON.match(head) is None:
        return None
    with source.open() as stream:
        data = stream.read(MOST_BYTES)
    try:
        dump = read_plain(data) if pickled else json.loads(data)
    except (UnreadableInput, ValueError, RecursionError):
        return None
    entries = dump.get("entries") if isinstance(dump, Mapping) else None
    if not isinstance(entries, (list, tuple)):
        return None
    found = _RANK.search(PurePath(source.name).stem) or _RANK.search(PurePath(source.name).name)
    rank = dump.get("rank") if isinstance(dump.get("rank"), int) else None
    stream_ = Stream(source.name, rank if rank is not None else int(found[1] or found[2]) if found else None)
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, Mapping):
            _add(stream_, entry, number)
    return stream_


def _add(stream: Stream, entry: Mapping[str, Any], line: int) -> None:
    number, name = entry.get("collective_seq_id", entry.get("seq_id")), str(entry.get("profiling_name", ""))
    if not isinstance(number, int) or not name or entry.get("is_p2p"):
        return
    group = entry.get("process_group", ("",))
    group = str(group[0]) if isinstance(group, (list, tuple)) and group else str(group)
    sizes = entry.get("input_sizes") or ""
    operation = Operation(name.rpartition(":")[2].upper().replace("_", ""), str(sizes) if sizes else "")
    stream.now.operations.setdefault(group, Operations()).add(number, operation)
    if entry.get("state") in ("started", "scheduled") and not stream.now.waits:
        seconds = float(entry.get("timeout_ms") or 0) / 1000
        stream.now.waits.append(Wait(group, number, operation, seconds, line))
