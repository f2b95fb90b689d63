"""The caching allocator's state by device: what is in use, what lies idle, who allocated it and what request failed.

Structure of a snapshot as torch writes it (`torch.cuda.memory._snapshot`, torch 2.1 to 2.13; older ones keep a block's
stack in `history`): segments (device, total_size, blocks), blocks (size, requested_size, state, frames), device_traces
by device (action, size, frames, time_us; "oom" with device_free). Frames are the innermost first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_torch.cuda_memory.plain_pickle import read_plain

MAX_BYTES = 256 * 2**20
"""Bytes of a file that is read."""
IN_USE = frozenset({"active_allocated", "active_pending_free", "active_awaiting_free"})
_LIBRARIES = ("site-packages/", "dist-packages/", "/lib/python3", "torch/nn/", "torch/autograd/", "torch/optim/",
              "torch/_", "torch/utils/", "torch/cuda/", "torch/csrc/", "torch/functional.py", "torch/amp/")
_WEIGHTS = ("_apply", "convert", "to", "cuda", "__init__", "reset_parameters")


@dataclass(frozen=True)
class Site:
    """A line that allocates, in the user's own code where a stack shows one."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" ({self.function})" if self.function else "")


@dataclass(frozen=True)
class Use:
    """What one line holds. Bytes as the allocator rounds them."""

    site: Site | None
    """None: no stack was recorded, or one without a Python line (a backward pass, or before recording began)."""
    bytes: int
    blocks: int


@dataclass(frozen=True)
class Failed:
    """A request that the device could not serve."""

    size: int
    device_free: int
    last: bool
    """Nothing was allocated or given back after it: the snapshot shows the state at that moment."""
    site: Site | None


@dataclass(frozen=True)
class DeviceMemory:
    """One device. Bytes."""

    device: int
    reserved: int
    allocated: int
    largest_free: int
    segments: int
    uses: tuple[Use, ...]
    """By line, the most first."""
    states: int
    """Bytes of parameters and optimizer state, as far as stacks tell."""
    failed: Failed | None = None

    @property
    def idle(self) -> int:
        """Bytes that are reserved and not in use."""
        return self.reserved - self.allocated

    @property
    def known(self) -> int:
        """Bytes whose line is known."""
        return sum(u.bytes for u in self.uses if u.site is not None)


@dataclass(frozen=True)
class MemorySnapshot:
    """The devices that hold anything, and when it was taken (microseconds; 0 where nothing tells)."""

    devices: tuple[DeviceMemory, ...]
    taken: float = 0.0


def is_memory_snapshot(head: bytes) -> bool:
    """Whether a file that begins like this may be one: a pickle of a dict with the key "segments" in the beginning."""
    return head[:1] == b"\x80" and b"segments" in head[:64]


def read_memory_snapshot(path: str | Path) -> MemorySnapshot:
    """What a file of `torch.cuda.memory._dump_snapshot` says. It is interpreted, never unpickled: no code of it runs.

    Raises UnreadableInput where it cannot be read, is larger than 256 MiB, holds anything but plain values or is no
    snapshot.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableInput(f"{path}: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise UnreadableInput(f"{path}: larger than {MAX_BYTES // 2**20} MiB. Record a shorter history: "
                              "torch.cuda.memory._record_memory_history(max_entries=100000)")
    try:
        return from_plain(read_plain(data))
    except UnreadableInput as error:
        raise UnreadableInput(f"{path}: {error}") from None


def from_plain(value: Any) -> MemorySnapshot:
    """The same from what `torch.cuda.memory._snapshot()` returns. Raises UnreadableInput."""
    segments = value.get("segments") if isinstance(value, Mapping) else None
    if not isinstance(segments, list):
        raise UnreadableInput("no CUDA memory snapshot: a dict with a list of `segments` was expected, as "
                              "torch.cuda.memory._dump_snapshot writes it")
    traces = value.get("device_traces")
    traces = traces if isinstance(traces, list) else []
    by_device: dict[int, list[Mapping[str, Any]]] = {}
    for segment in _dicts(segments):
        by_device.setdefault(_whole(segment.get("device")), []).append(segment)
    devices = tuple(_device(number, held, traces[number] if 0 <= number < len(traces) else [])
                    for number, held in sorted(by_device.items()))
    ends = [entry for trace in traces for entry in _dicts(trace)[-1:]]
    times = [float(t) for e in ends if isinstance(t := e.get("time_us"), (int, float))]
    return MemorySnapshot(devices, max(times, default=0.0))


def _device(number: int, segments: list[Mapping[str, Any]], trace: Any) -> DeviceMemory:
    uses: dict[Site | None, list[int]] = {}
    allocated = largest = states = 0
    for block in (b for s in segments for b in _dicts(s.get("blocks"))):
        size = _whole(block.get("size"))
        if block.get("state") not in IN_USE:
            largest = max(largest, size)
            continue
        allocated += size
        frames = _frames(block)
        states += size if _of_state(frames) else 0
        use = uses.setdefault(_site(frames), [0, 0])
        use[0] += size
        use[1] += 1
    ranked = sorted((Use(site, size, count) for site, (size, count) in uses.items()), key=lambda u: -u.bytes)
    reserved = sum(_whole(s.get("total_size")) for s in segments)
    return DeviceMemory(number, reserved, allocated, largest, len(segments), tuple(ranked), states, _failed(trace))


def _failed(trace: Any) -> Failed | None:
    """The last request that failed, unless the program went on for long: then it was no end."""
    entries = _dicts(trace)
    for after, entry in enumerate(reversed(entries)):
        if entry.get("action") == "oom":
            later = entries[len(entries) - after:]
            changed = any(e.get("action") in ("alloc", "free_completed", "segment_free") for e in later)
            return Failed(_whole(entry.get("size")), _whole(entry.get("device_free")), not changed,
                          _site(_frames(entry)))
    return None


def _frames(holder: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    frames = _dicts(holder.get("frames"))
    if frames:
        return frames
    history = _dicts(holder.get("history"))
    return _dicts(history[0].get("frames")) if history else []


def _site(frames: list[Mapping[str, Any]]) -> Site | None:
    """The innermost line of the user's own; where there is none, the innermost Python line."""
    python = [f for f in frames if _file(f).endswith(".py") or "ipykernel" in _file(f)]
    own = (f for f in python if not any(part in _file(f) for part in _LIBRARIES))
    frame = next(own, python[0] if python else None)
    return None if frame is None else Site(_file(frame), _whole(frame.get("line")), str(frame.get("name") or "")[:200])


def _of_state(frames: list[Mapping[str, Any]]) -> bool:
    """Whether a stack is that of an optimizer's state or of a module that is made or moved."""
    return any("torch/optim/" in _file(f) or ("torch/nn/modules/" in _file(f) and f.get("name") in _WEIGHTS)
               for f in frames)


def _file(frame: Mapping[str, Any]) -> str:
    return str(frame.get("filename") or "").replace("\\", "/")[:1000]


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return list(_only_dicts(value)) if isinstance(value, (list, tuple)) else []


def _only_dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in value if isinstance(item, Mapping))


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int) and 0 <= value < 2**62 else 0
