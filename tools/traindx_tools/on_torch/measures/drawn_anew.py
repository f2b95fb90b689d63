"""Whether a dataset makes an item anew each time, found out in a forked child: the training's own dataset stays.

The child asks for an item twice, and with what the training changed on the dataset between epochs set back to its first
value. It writes one line and ends; what it does to generators, files and memory is gone with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from traindx_tools.on_torch.measures.batch import named_tensors

SECONDS = 10.0
ITEMS = 3
"""Items that are asked for."""
MOST_ANSWER = 4096


def digest(item: Any) -> str:
    """Of all numbers that an item holds: tensors, arrays and plain numbers in nested lists and mappings."""
    found = hashlib.blake2b(digest_size=12)
    for _, t in named_tensors(item, ""):
        found.update(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
                     if t.dtype != torch.bool else bytes(t.detach().cpu().reshape(-1).to(torch.uint8).tolist()))
    _plain(item, found, 4)
    return found.hexdigest()


def _plain(item: Any, found: Any, depth: int) -> None:
    if isinstance(item, Mapping) and depth:
        for value in item.values():
            _plain(value, found, depth - 1)
    elif isinstance(item, (list, tuple)) and depth:
        for value in item:
            _plain(value, found, depth - 1)
    elif isinstance(item, (int, float, str, bytes)):
        found.update(repr(item).encode())
    elif hasattr(item, "tobytes") and not isinstance(item, torch.Tensor):
        found.update(item.tobytes())


def asked_twice(dataset: Any, rows: Sequence[int], before: Mapping[str, int]) -> dict[str, Any]:
    """{"anew": whether an item differs from itself, "by": the attribute that it changes with}; empty where not known.

    `before`: attributes as they were in the first epoch, of those that are others now.
    """
    if not hasattr(os, "fork") or not rows:
        return {}
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forking with threads: the child calls nothing but the dataset
            child = os.fork()
    except (OSError, RuntimeError):
        os.close(reading)
        os.close(writing)
        return {}
    if not child:
        _answer(dataset, list(rows)[:ITEMS], before, writing)
    os.close(writing)
    try:
        return _read(reading)
    finally:
        os.close(reading)
        _gone(child)


def _answer(dataset: Any, rows: Sequence[int], before: Mapping[str, int], writing: int) -> None:
    """In the child: never returns."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        torch.set_num_threads(1)
        first = [digest(dataset[r]) for r in rows]
        anew = any(digest(dataset[r]) != d for r, d in zip(rows, first, strict=True))
        by = "" if anew else _changed_by(dataset, rows, first, before)
        os.write(writing, json.dumps({"anew": anew, "by": by}).encode())
    except BaseException:  # noqa: BLE001 - a dataset of the user may do anything
        pass
    finally:
        os._exit(0)


def _changed_by(dataset: Any, rows: Sequence[int], now: Sequence[str], before: Mapping[str, int]) -> str:
    for name, value in before.items():
        kept = getattr(dataset, name)
        setattr(dataset, name, value)
        if any(digest(dataset[r]) != d for r, d in zip(rows, now, strict=True)):
            return name
        setattr(dataset, name, kept)
    return ""


def _read(reading: int) -> dict[str, Any]:
    ready, _, _ = select.select([reading], [], [], SECONDS)
    told = os.read(reading, MOST_ANSWER) if ready else b""
    try:
        answer = json.loads(told)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _gone(child: int) -> None:
    """Waits a moment for the child, and ends it."""
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        select.select([], [], [], 0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
