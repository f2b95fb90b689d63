"""Whether damaged logs are read without a crash and without a stall: a count of mangled inputs, what became of them.

    python benchmarks/mangled.py [--count 10000] [--workers N] [--seed 0] [--seconds S] [--only NUMBER]
        [--folder FOLDER ...] [--journal FOLDER [--told]] [--first NUMBER]

`make mangled` runs ten million of them: six hours of a processor, three on two cores. Each is made of pieces of the
logs of `tests/fixtures` (what real writers left, in every format that is known): cut, spliced with another one, its
lines shuffled or repeated, bytes turned over, numbers replaced by such as no writer should write. One in fifty is
judged as well, one in ten is given an example of its own lines (`--line`). A crash is any exception but the refusals
that are part of the interface; a stall is more than `STALL` seconds of a processor for one input of at most `LARGEST`
bytes. `--only NUMBER` makes one again and shows where it fails. The exit code is 1 where there was a crash or a stall.

--journal notes each batch that was read in a file of that folder, one a seed. The next run with it goes on behind what
is noted, after it has read again what failed: what does so no more is noted too. --told prints the figure and ends.
--first begins with that input, so that one night's part can be read on another machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = (ROOT / "tests" / "fixtures",)
LARGEST = 3_000
ON_THE_WAY = 100_000
"""Bytes before they are cut to so many: a line that is repeated again and again would be most of the memory."""
STALL = 5.0
"""Seconds of a processor: a thousand times what such an input takes. Less would be the machine's own hiccups."""
BATCH = 500
"""Inputs that a process takes at once."""
SHOWN = 5
_ODD = (b"nan", b"-inf", b"1e999", b"-1e-999", b"9" * 40, b"0x1f", b"1_000", b"1,234,567", b"--5", b"1.2.3",
        b"\xff\xfe", b"\x00",
        b"\x1b[31m", b"\r", b"\x08\x08\x08", b"{", b"}", b"[", b"]", b'"', b"'", b"\\", b"|", b",,,", b"\t",
        "\u0663\u0664".encode(), "\u2212".encode(), "\u00b5s".encode(), b"loss", b"step", b"epoch", b"=", b":",
        b"Traceback (most recent call last):\n", b"100%|####| 5/5 [", b"[rank", b"%", b"(((((", b"e+", b"\n\n\n",
        b"--- ---")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


class Stalled(Exception):
    """One input took too long."""


@dataclass
class Tally:
    """What became of some inputs."""

    count: int = 0
    values: int = 0
    refused: int = 0
    judged: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[int, str]] = field(default_factory=list)
    """Number and last line of the crash or the stall."""
    slowest: tuple[float, int] = (0.0, -1)
    memory: int = 0
    """Most kilobytes of one process."""
    seconds: float = 0.0
    """Of a processor."""

    def add(self, other: Tally) -> None:
        """Joins another tally."""
        self.count, self.values = self.count + other.count, self.values + other.values
        self.refused, self.judged = self.refused + other.refused, self.judged + other.judged
        self.formats += other.formats
        self.seconds += other.seconds
        self.failed += other.failed
        self.slowest, self.memory = max(self.slowest, other.slowest), max(self.memory, other.memory)


@lru_cache(maxsize=1)
def originals(folders: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    """The files that are mangled, as far as they are logs: their names and first bytes."""
    files = sorted(p for f in folders for p in Path(f).rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc"))
    told = tuple((p.name, p.read_bytes()[:200_000]) for p in files)
    return tuple((name, data) for name, data in told if data)


def mangled(number: int, seed: int, folders: tuple[str, ...]) -> tuple[str, bytes]:
    """The name and the bytes of one input: the same for the same number and seed."""
    chance = random.Random(f"{seed}/{number}")
    files = originals(folders)
    name, data = chance.choice(files)
    data = _piece(chance, data)
    for _turn in range(chance.randint(1, 4)):
        data = chance.choice(_WAYS)(chance, data, files)[:ON_THE_WAY]
    return name, data[:LARGEST]


def _piece(chance: random.Random, data: bytes) -> bytes:
    length = chance.choice((100, 300, 1_000))
    start = 0 if chance.random() < 0.6 else chance.randrange(max(1, len(data) - length))
    return data[start:start + length]


Files = tuple[tuple[str, bytes], ...]


def _flipped(chance: random.Random, data: bytes, _: Files) -> bytes:
    found = bytearray(data)
    for _turn in range(chance.randint(1, 8)):
        if found:
            found[chance.randrange(len(found))] = chance.randrange(256)
    return bytes(found)


def _cut(chance: random.Random, data: bytes, _: Files) -> bytes:
    start, end = sorted((chance.randint(0, len(data)), chance.randint(0, len(data))))
    return data[:start] + data[end:]


def _spliced(chance: random.Random, data: bytes, files: Files) -> bytes:
    other, at = _piece(chance, chance.choice(files)[1]), chance.randint(0, len(data))
    return data[:at] + other + data[at:]


def _shuffled(chance: random.Random, data: bytes, _: Files) -> bytes:
    lines = data.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


def _repeated(chance: random.Random, data: bytes, _: Files) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    line = chance.choice(lines)
    return data + line * chance.choice((2, 60)) if chance.random() < 0.7 else line * 80


def _odd_numbers(chance: random.Random, data: bytes, _: Files) -> bytes:
    share = chance.choice((0.02, 0.3))
    return _NUMBER.sub(lambda m: chance.choice(_ODD) if chance.random() < share else m.group(), data)


def _odd_words(chance: random.Random, data: bytes, _: Files) -> bytes:
    for _turn in range(chance.randint(1, 6)):
        at = chance.randint(0, len(data))
        data = data[:at] + chance.choice(_ODD) * chance.choice((1, 1, 1, 50)) + data[at:]
    return data


def _one_line(chance: random.Random, data: bytes, _: Files) -> bytes:
    return data.replace(b"\n", chance.choice((b" ", b"\r", b"", b"\r\n", b"\x0b")))


_WAYS = (_flipped, _cut, _spliced, _shuffled, _repeated, _odd_numbers, _odd_numbers, _odd_words, _one_line)


def example(number: int, data: bytes) -> tuple[str, ...]:
    """A line of the input as a person would say what it means, for one in ten."""
    lines = [text for text in data.decode("utf-8", "replace").splitlines() if re.search(r"\d", text)]
    if number % 10 != 3 or not lines:
        return ()
    parts = re.split(r"(\d+(?:\.\d+)?)", lines[number // 10 % len(lines)])
    names = iter(("step", "loss", "lr", "grad_norm"))
    return ("".join(f"{{{next(names, '')}}}" if i % 2 else p for i, p in enumerate(parts))[:400],)


def one(number: int, seed: int, folders: tuple[str, ...], tally: Tally) -> None:
    """Reads one input. Raises what a reader raises."""
    from traindx_tools.errors import TraindxError
    from traindx_tools.on_logs.artifacts import Discovery, Source
    from traindx_tools.on_logs.judge import judge_run
    from traindx_tools.on_logs.reading import joined, read_parts

    name, data = mangled(number, seed, folders)
    try:
        read = read_parts([name], lines=example(number, data), found=Discovery([Source(name, data=data)]))
        run = joined(read, code=())
    except TraindxError:
        tally.refused += 1
        return
    tally.formats.update(a.format for a in run.artifacts)
    tally.values += sum(len(s) for s in run.series)
    if number % 50 == 7:
        tally.judged += 1
        failures: list[str] = []
        judge_run(run, failures)
        if failures:
            raise AssertionError(f"a rule failed: {failures[0]}")


Task = tuple[int, int, int, tuple[str, ...]]
"""The first input, that behind the last, the seed, the folders of what is mangled."""


def batch(task: Task) -> tuple[Task, Tally]:
    """Reads some inputs; a crash or a stall is noted and the next one read."""
    first, last, seed, folders = task
    tally, begin = Tally(), time.process_time()
    signal.signal(signal.SIGVTALRM, _stalled)
    for number in range(first, last):
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, STALL)
        try:
            one(number, seed, folders, tally)
        except KeyboardInterrupt:
            raise
        except BaseException as crash:  # noqa: BLE001 - whatever it is, it is what is looked for
            tally.failed.append((number, f"{type(crash).__name__}: {crash}"[:200]))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        tally.slowest = max(tally.slowest, (time.process_time() - start, number))
        tally.count += 1
    tally.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tally.seconds = time.process_time() - begin
    return task, tally


def _stalled(*_: int | FrameType | None) -> None:
    raise Stalled(f"more than {STALL:g} s of a processor")


def tasks(count: int, seed: int, folders: tuple[str, ...], journal: Journal, first: int = 0) -> Iterator[Task]:
    """The inputs from one on in batches, but for those that are noted; whole ones where they are."""
    yield from ((at, at + BATCH if journal.path else min(at + BATCH, count), seed, folders)
                for at in range(first, count, BATCH) if at not in journal.done)


class Journal:
    """The batches of one seed that were read, a line each. A line that a killed run did not end is left out."""

    def __init__(self, folder: Path | None, seed: int) -> None:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.path = None if folder is None else folder / f"seed-{seed}.jsonl"
        self.done: set[int] = set()
        self.whole = Tally()
        for told in self._lines():
            if "mended" in told:
                mended = set(told["mended"])
                self.whole.failed = [f for f in self.whole.failed if f[0] not in mended]
            elif told["first"] not in self.done:
                self._add(told["first"], Tally(**told["tally"]))

    def _lines(self) -> Iterator[dict[str, Any]]:
        text = self.path.read_text() if self.path is not None and self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        if self.path is not None and whole != text:
            self.path.write_text(whole)
        yield from map(json.loads, whole.splitlines())

    def _add(self, first: int, tally: Tally) -> None:
        self.done.add(first)
        tally.formats, tally.slowest = Counter(tally.formats), (tally.slowest[0], tally.slowest[1])
        tally.failed = [(number, why) for number, why in tally.failed]
        self.whole.add(tally)

    def add(self, first: int, tally: Tally) -> None:
        """Notes a batch."""
        self._write({"first": first, "tally": vars(tally)})
        self._add(first, tally)

    def read_again(self, seed: int, folders: tuple[str, ...]) -> None:
        """Reads what failed, and notes what does so no more."""
        again = [batch((number, number + 1, seed, folders))[1] for number, _ in self.whole.failed]
        mended = {n for (n, _), tally in zip(self.whole.failed, again, strict=True) if not tally.failed}
        if mended:
            self._write({"mended": sorted(mended)})
            self.whole.failed = [f for f in self.whole.failed if f[0] not in mended]

    def _write(self, told: dict[str, Any]) -> None:
        if self.path is not None:
            with self.path.open("a") as out:
                out.write(json.dumps(told) + "\n")


def report(tally: Tally, seconds: float | None) -> str:
    """The figure, in a few lines. `seconds`: by the clock, None where nothing was read."""
    shown = "".join(f"\n  input {number}: {why}  (--only {number})" for number, why in tally.failed[:SHOWN])
    common = ", ".join(f"{name} {n:,}" for name, n in tally.formats.most_common(12))
    clock = "" if seconds is None else f", this run {seconds:,.0f} s by the clock"
    return (f"{tally.count:,} mangled inputs in {tally.seconds:,.0f} s of a processor "
            f"({tally.count / max(tally.seconds, 1e-9):,.0f} a second){clock}: "
            f"{len(tally.failed)} crashes or stalls{shown}\n{tally.values:,} values read, {tally.refused:,} refused in "
            f"words, {tally.judged:,} judged; slowest {tally.slowest[0]:.2f} s of a processor (input "
            f"{tally.slowest[1]}); most memory of a process {tally.memory / 1e3:.0f} MB\n{common}")


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000, help=f"inputs; with --journal in batches of {BATCH}")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long, with what was read")
    parser.add_argument("--only", type=int, help="make this one again, read it and show where it fails")
    parser.add_argument("--folder", action="append", help="logs that are mangled (default: tests/fixtures)")
    parser.add_argument("--journal", type=Path, help="folder that notes what was read, and from which is gone on")
    parser.add_argument("--first", type=int, default=0, help=f"the first input, a multiple of {BATCH}; up to --count")
    parser.add_argument("--told", action="store_true", help="print what the journal says, and end")
    options = parser.parse_args(given)
    if options.told and options.journal is None:
        parser.error("--told: expected --journal FOLDER with it")
    if options.first < 0 or options.first % BATCH:
        parser.error(f"--first {options.first}: expected a multiple of {BATCH}, from 0 on")
    folders = tuple(map(str, options.folder or FIXTURES))
    if options.only is not None:
        sys.stdout.buffer.write(mangled(options.only, options.seed, folders)[1] + b"\n")
        try:
            one(options.only, options.seed, folders, Tally())
        except Exception:  # noqa: BLE001 - shown
            traceback.print_exc()
            return 1
        return 0
    journal, start = Journal(options.journal, options.seed), time.monotonic()
    if options.told:
        print(report(journal.whole, None))
        return 1 if journal.whole.failed else 0
    journal.read_again(options.seed, folders)
    told = journal.whole.count // 100_000
    with multiprocessing.get_context("spawn").Pool(max(1, options.workers)) as pool:
        for task, tally in pool.imap_unordered(batch, tasks(options.count, options.seed, folders, journal,
                                                      options.first)):
            journal.add(task[0], tally)
            if journal.whole.count // 100_000 > told:
                told = journal.whole.count // 100_000
                print(report(journal.whole, time.monotonic() - start), flush=True)
            if time.monotonic() - start > options.seconds:
                break
    print(report(journal.whole, time.monotonic() - start))
    return 1 if journal.whole.failed else 0


if __name__ == "__main__":
    sys.exit(main())
