"""Sizes in out-of-memory messages, in GiB: torch's CUDA allocator (old and new wording), MPS, XLA, hosts.

Wordings: PyTorch CUDACachingAllocator.cpp ("Tried to allocate 2.00 GiB. GPU 0 has a total capacity of ...", before 2.1
"(GPU 0; 15.78 GiB total capacity; 14.20 GiB already allocated; ...)"), MPSAllocator.mm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SIZE = r"([\d.]+) ?([KMGTP]?i?B|bytes|[KMGTP])\b"
_UNITS = {"b": 2.0**-30, "k": 2.0**-20, "m": 2.0**-10, "g": 1.0, "t": 2.0**10, "p": 2.0**20}

_CLAIM = re.compile(r"(?:CUDA|HIP|MPS|XPU)\w*(?: backend)?(?: error:)? out of memory|out of memory\. Tried to allocate"
                    r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|CUDA driver error: out of memory")
_TRIED = re.compile(rf"[Tt]ried to allocate (?:more than )?{_SIZE}")
_TOTAL = re.compile(rf"total capaci?ty (?:of |is )?{_SIZE}|{_SIZE} total capacity|max allowed: {_SIZE}")
_FREE = re.compile(rf"of which {_SIZE} is free|{_SIZE} free")
_ALLOCATED = re.compile(rf"[Oo]f the allocated memory {_SIZE} is allocated by PyTorch|{_SIZE} already allocated"
                        rf"|MPS allocated: {_SIZE}")
_UNALLOCATED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_RESERVED = re.compile(rf"{_SIZE} reserved in total by PyTorch")
_THIS_PROCESS = re.compile(rf"this process has {_SIZE} memory in use")
_OTHER = re.compile(rf"Process \d+ has {_SIZE} memory in use|other allocations: {_SIZE}")
_DEVICE = re.compile(r"GPU (\d+)")


@dataclass(frozen=True)
class Allocation:
    """What a message tells, each in GiB or None."""

    tried: float | None = None
    total: float | None = None
    free: float | None = None
    allocated: float | None = None
    reserved: float | None = None
    unallocated: float | None = None
    """Reserved by PyTorch but unallocated: what fragmentation costs."""
    others: float | None = None
    """In use by other processes."""
    device: int | None = None

    def named(self) -> tuple[tuple[str, float | None], ...]:
        """Name and value of every size, in the order in which a person reads them."""
        return (("tried", self.tried), ("total", self.total), ("free", self.free), ("allocated", self.allocated),
                ("reserved", self.reserved), ("unallocated", self.unallocated), ("others", self.others))


def claims_memory(type_: str, message: str) -> bool:
    """Whether an error is a torch device running out of memory."""
    if _CLAIM.search(message) is not None:
        return True
    of_others = "RESOURCE_EXHAUSTED" in message or "allocator" in message.lower()
    return type_.endswith("OutOfMemoryError") and not of_others


def allocation(message: str) -> Allocation:
    """The sizes that an allocator's message names."""
    allocated, reserved = _first(_ALLOCATED, message), _first(_RESERVED, message)
    unallocated = _first(_UNALLOCATED, message)
    if unallocated is None and reserved is not None and allocated is not None:
        unallocated = max(reserved - allocated, 0.0)
    if reserved is None and unallocated is not None and allocated is not None:
        reserved = allocated + unallocated
    total, free = _first(_TOTAL, message), _first(_FREE, message)
    device = _DEVICE.search(message)
    return Allocation(
        tried=_first(_TRIED, message), total=total, free=free, allocated=allocated, reserved=reserved,
        unallocated=unallocated, others=_others(message, total, free, reserved),
        device=int(device[1][:4]) if device else None,
    )


def _others(message: str, total: float | None, free: float | None, reserved: float | None) -> float | None:
    """Named by the message, else what is left over. Inside a container a process is listed under a foreign number:
    without a "this process" the listed memory includes its own."""
    own = 0.0 if _THIS_PROCESS.search(message) else reserved or 0.0
    named = [gib(m) for m in _OTHER.finditer(message)]
    if named:
        return max(sum(named) - own, 0.0)
    if _THIS_PROCESS.search(message) or total is None or free is None or reserved is None:
        return None
    return max(total - free - reserved, 0.0)


def _first(pattern: re.Pattern[str], message: str) -> float | None:
    match = pattern.search(message)
    return None if match is None else gib(match)


def gib(match: re.Match[str]) -> float:
    """The size that a match of number and unit stands for, in GiB (decimal and binary units are taken alike)."""
    number, unit = [g for g in match.groups() if g is not None][:2]
    try:
        return float(number) * _UNITS[unit[0].lower()]
    except ValueError:
        return 0.0


def readable(size: float) -> str:
    """A size in GiB for a sentence: "2.00 GiB", "20 MiB"."""
    if size >= 2**20:
        return f"{size / 2**20:.3g} PiB"
    if size >= 2**10:
        return f"{size / 2**10:.3g} TiB"
    return f"{size:.2f} GiB" if size >= 1 else f"{size * 1024:.3g} MiB"
