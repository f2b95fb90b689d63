"""A stream as whole lines, about a megabyte at a time, read and worked on while the ones before are kept."""

from __future__ import annotations

import io
import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from queue import SimpleQueue
from threading import Lock
from typing import BinaryIO, TypeVar

import numpy as np

from traindx_tools.on_logs.plain_text import PlainText
from traindx_tools.on_logs.readers.lines import MAX_LINE

CHUNK = 1 << 20
_PEEK = 4096
"""Bytes in which the end of a chunk's last line is looked for before the chunk is read."""
_LARGEST = 31 << 20
"""Bytes just below the largest bound that glibc takes for "seldom needed, to be given back at once"."""
MOST_THREADS = 3
"""More do not help: what one thread keeps of the blocks is a third of the work."""

T = TypeVar("T")


def chunks(stream: BinaryIO, times: int = 1, longest: int = MAX_LINE) -> Iterator[bytes]:
    """Whole lines up to the end of the stream; a chunk without an end of line behind it is as long as a line may be.

    `times`: how many times as many bytes as usual are read at once; `longest`: bytes of a line.

    After each the stream stands behind it. Raises OSError.
    """
    file = stream.stored if isinstance(stream, PlainText) else stream
    if isinstance(file, io.BufferedReader) and isinstance(file.raw, io.FileIO) and hasattr(os, "pread"):
        yield from _of_file(file, file.raw.fileno(), times * CHUNK, longest)
    while data := stream.read(times * CHUNK):
        yield _to_line_end(data, stream, longest)


def _of_file(stream: BinaryIO, file: int, size: int, longest: int) -> Iterator[bytes]:
    """Chunks that are read once and not put together, as long as lines are short, the file has some and no zeros."""
    at = stream.tell()
    while (end := os.pread(file, _PEEK, at + size).find(b"\n")) >= 0:
        data = os.pread(file, size + end + 1, at)
        if b"\0" in data:
            return
        stream.seek(at + len(data))
        if not data.endswith(b"\n"):  # a file that is written anew meanwhile
            data = _to_line_end(data, stream, longest)
        at += len(data)
        yield data


def _to_line_end(data: bytes, stream: BinaryIO, longest: int) -> bytes:
    return data if data.endswith(b"\n") else data + stream.readline(longest + 1)


def worked_ahead(items: Iterator[T], work: Callable[[T], None] | None) -> Iterator[T]:
    """The items in their order. Where there is more than one core, they come of a thread that did `work` on them.

    Not the first: what is learned of it may be needed for the others.
    """
    threads = min(MOST_THREADS, _cores()) if work is not None else 1
    if work is None or threads < 2:
        yield from items
        return
    yield from islice(items, 1)
    _keep_what_is_freed()
    turn, come = Lock(), SimpleQueue[Future[list[T]]]()

    def one() -> None:
        done: Future[list[T]] = Future()
        try:
            with turn:
                come.put(done)
                item = list(islice(items, 1))
            for each in item:
                work(each)
            done.set_result(item)
        except BaseException as error:  # noqa: BLE001 - raised where the item is taken
            done.set_exception(error)

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(threads + 1):
            pool.submit(one)
        while item := come.get().result():
            pool.submit(one)
            yield item[0]


@cache
def _keep_what_is_freed() -> None:
    """Lets the allocator of the C library keep freed blocks for the next ones. It gives back what is larger than the
    largest one that was freed so far: pages of each megabyte went back and came anew, a tenth of all time."""
    np.empty(_LARGEST, np.uint8)


def _cores() -> int:
    """Processors that this process may use; one where others like it run beside it."""
    if multiprocessing.parent_process() is not None:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
