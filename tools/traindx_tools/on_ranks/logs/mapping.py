"""The same function over many files: in this process, in a pool of processes or on a Ray cluster, results in order.

A file that kills its worker costs that file only: a pool that breaks is made anew, and the files that were under way
are read one at a time until the one that does it is known.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from traindx_tools.errors import MissingExtra, UnreadableInput

Item = TypeVar("Item")
Result = TypeVar("Result")
AT_ONCE = 4
"""Tasks under way for each worker: what they return is kept until its turn comes."""
ALONE = 8 * 2**20
"""Bytes below which starting processes costs more than it saves."""
KILLED = 137
"""Exit code of a worker whose parent is gone: nobody is there to read it; that of a program which was killed."""


def workers_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over(function: Callable[[Item], Result], items: Sequence[Item], lost: Callable[[Item, str], Result], *,
         workers: int | None = None, cluster: str | None = None) -> Iterator[Result]:
    """The result of each item, in their order. `lost`: what stands for an item whose worker died, and why.

    `workers`: processes, 1 for none but this one; by default one a processor. `cluster`: the address of a Ray cluster
    ("auto", "ray://HOST:10001", "local"). Raises MissingExtra without ray, UnreadableInput where it cannot be reached.
    """
    if cluster is not None:
        return _on_ray(function, items, lost, cluster)
    count = min(workers if workers is not None else workers_here(), len(items))
    return map(function, items) if count < 2 else _in_pool(function, items, lost, count)


def _context() -> Any:
    """How processes start: forked where that is safe, which needs no importable main module; else by a server."""
    if sys.platform == "linux" and threading.active_count() == 1:
        return multiprocessing.get_context("fork")
    server = "forkserver" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if server else "spawn")


def pool_of(count: int) -> ProcessPoolExecutor:
    """A pool of processes that end with the one that started them, also where that one is killed.

    A worker waits for its next task on a pipe whose other end its siblings hold as well: without a watch a kill of
    the parent leaves all of them waiting for ever.
    """
    return ProcessPoolExecutor(count, _context(), initializer=_end_with_parent)


def _end_with_parent() -> None:
    threading.Thread(target=_wait_for_parent, name="traindx-parent", daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(KILLED)


def _in_pool(function: Callable[[Item], Result], items: Sequence[Item], lost: Callable[[Item, str], Result],
             count: int) -> Iterator[Result]:
    at = 0
    while at < len(items):
        done = 0
        try:
            with pool_of(count) as pool:
                for result in _ordered(pool, function, items[at:], count):
                    yield result
                    done += 1
            return
        except BrokenProcessPool:
            at += done
        for item in items[at: at + AT_ONCE * count]:
            yield _by_itself(function, item, lost)
            at += 1


def _ordered(pool: ProcessPoolExecutor, function: Callable[[Item], Result], items: Sequence[Item],
             count: int) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    for item in items:
        if len(waiting) >= AT_ONCE * count:
            yield waiting.popleft().result()
        waiting.append(pool.submit(function, item))
    while waiting:
        yield waiting.popleft().result()


def _by_itself(function: Callable[[Item], Result], item: Item, lost: Callable[[Item, str], Result]) -> Result:
    try:
        with pool_of(1) as pool:
            return pool.submit(function, item).result()
    except BrokenProcessPool:
        return lost(item, "left out: the process that read it was killed")


def _on_ray(function: Callable[[Item], Result], items: Sequence[Item], lost: Callable[[Item, str], Result],
            address: str) -> Iterator[Result]:
    try:
        import ray
    except ImportError as missing:
        raise MissingExtra("--cluster", "ray", "ray") from missing
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=None if address == "local" else address, log_to_driver=False, configure_logging=False)
        except Exception as failed:
            raise UnreadableInput(f"the Ray cluster {address!r} could not be reached: {failed}. Give its address "
                                  '("auto", "ray://HOST:10001"), or leave --cluster out to use this '
                                  'machine') from failed
    try:
        yield from _ray_results(ray, ray.remote(max_retries=0)(function), items, lost)
    finally:
        if ours:
            ray.shutdown()


def _ray_results(ray: Any, task: Any, items: Sequence[Item], lost: Callable[[Item, str], Result]) -> Iterator[Result]:
    most = AT_ONCE * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting: deque[tuple[Item, Any]] = deque()

    def first() -> Result:
        item, reference = waiting.popleft()
        try:
            result: Result = ray.get(reference)
        except ray.exceptions.RayError as failed:
            return lost(item, f"left out: its task on the cluster failed ({type(failed).__name__})")
        return result

    for item in items:
        if len(waiting) >= most:
            yield first()
        waiting.append((item, task.remote(item)))
    while waiting:
        yield first()
