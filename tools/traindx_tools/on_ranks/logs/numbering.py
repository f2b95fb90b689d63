"""Which rank a file or a process is, where its lines do not say so: by names, folders, pods and local ranks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

from traindx_tools.on_ranks.logs.told import FileTold, Stream

_NAMED = re.compile(r"(?:^|[^a-zA-Z])(?:global[-_]?)?(?:rank|proc(?:ess)?|task)[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
_ATTEMPT = re.compile(r"(?i)^(?:attempt|restart|try|retry)[-_.]?(\d{1,4})$")
_NAMED_ATTEMPT = re.compile(r"(?i)(?:^|[^a-z])(?:attempt|restart|try|retry)[-_.]?(\d{1,4})(?!\d)")
_NUMBERS = re.compile(r"\d+")


def rank_named(name: str) -> int | None:
    """The rank that a file's name says."""
    found = _NAMED.search(PurePath(name).name)
    return int(found[1]) if found else None


def attempt_named(name: str) -> int | None:
    """The number of the start that a folder or a file's name says."""
    path = PurePath(name)
    found = next((m for p in path.parts[:-1] if (m := _ATTEMPT.match(p))), None) or _NAMED_ATTEMPT.search(path.name)
    return int(found[1]) if found else None


def numbered(files: Sequence[FileTold]) -> None:
    """Gives every stream its rank where anything says it, and every attempt its number."""
    for file in files:
        _attempts(file)
        _by_name(file)
    _by_siblings(files)
    _by_varying_number([f for f in files if _unknown(f)])
    _by_local_rank(files)


def _attempts(file: FileTold) -> None:
    number = attempt_named(file.name)
    if number is not None:
        for stream in file.streams:
            for i, attempt in enumerate(stream.attempts):
                attempt.number = number + i


def _by_name(file: FileTold) -> None:
    named = rank_named(file.name)
    own = [s for s in file.streams if s.rank is None and s.local is None]
    others = {s.rank for s in file.streams if s.rank is not None}
    if named is not None and len(own) == 1 and (named not in others or others == {named}):
        own[0].rank = named  # also where only its watchdog writes its rank in front


def _unknown(file: FileTold) -> bool:
    return len(file.streams) == 1 and file.streams[0].rank is None and file.streams[0].local is None


def _by_siblings(files: Sequence[FileTold]) -> None:
    """The file whose lines say no rank, among files of its name that do: the one that failed first printed no prefix.

    The number that is another in each name is the rank of those that are known, or apart from it by the same amount.
    Lines without a prefix in such a file are of its rank, too: only a watchdog writes one.
    """
    groups: dict[str, list[FileTold]] = defaultdict(list)
    for file in files:
        groups[_NUMBERS.sub("#", "/".join(PurePath(file.name).parts[-2:]))].append(file)
    for several in groups.values():
        told = {f.name: {s.rank for s in f.streams if s.rank is not None} for f in several}
        known = [(f, next(iter(told[f.name]))) for f in several if len(told[f.name]) == 1]
        others = [f for f in several if len(told[f.name]) != 1]
        if len(known) < 2 or len(known) < len(others) or not all(map(_unknown, others)):
            continue
        for at in range(len(_numbers(known[0][0])) - 1, -1, -1):
            apart = {rank - _numbers(f)[at] for f, rank in known}
            by = next(iter(apart))
            ranks = [_numbers(f)[at] + by for f in several]
            if len(apart) == 1 and len({*ranks}) == len(several) and min(ranks) >= 0:
                for file, rank in zip(several, ranks, strict=True):
                    for stream in file.streams:
                        stream.rank = rank if stream.rank is None and stream.local is None else stream.rank
                break


def _numbers(file: FileTold) -> list[int]:
    """The numbers of its folder's and its own name, in order."""
    return [int(n) for n in _NUMBERS.findall("/".join(PurePath(file.name).parts[-2:]))]


def _by_varying_number(files: Sequence[FileTold]) -> None:
    """`slurm-1234_37.out` among its siblings: the last number that is another in each of them."""
    groups: dict[str, list[tuple[FileTold, list[int]]]] = defaultdict(list)
    for file in files:
        path = PurePath(file.name)
        name = "/".join(path.parts[-2:]) if _NUMBERS.fullmatch(path.parent.name) else path.name
        numbers = [int(n) for n in _NUMBERS.findall(name)]
        groups[f"{_NUMBERS.sub('#', name)}"].append((file, numbers))
    for several in groups.values():
        width = len(several[0][1])
        for at in range(width - 1, -1, -1):
            values = [n[at] for _, n in several]
            if len(several) > 1 and len(set(values)) == len(values) and max(values) < 1_000_000 and min(values) <= 1:
                for (file, _), value in zip(several, values, strict=True):
                    file.streams[0].rank = value
                break


def _by_number(name: str) -> list[tuple[int, str]]:
    """The order of names with their numbers as numbers: worker-9 before worker-10."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]


def _by_local_rank(files: Sequence[FileTold]) -> None:
    """`[default3]:` on the second of hosts with eight processes is rank 11, if no line of that process says
    otherwise."""
    hosts: dict[tuple[str, str], list[Stream]] = defaultdict(list)
    for file in files:
        for stream in file.streams:
            if stream.local is not None:
                hosts[file.name, stream.host or ""].append(stream)
    if not hosts:
        return
    width = max(s.local or 0 for several in hosts.values() for s in several) + 1
    ordered = sorted(hosts, key=lambda h: _by_number("/".join(h)))
    known = {h: (s.rank - s.local) for h, several in hosts.items() for s in several
             if s.rank is not None and s.local is not None}
    for place, host in enumerate(ordered):
        first = known.get(host, place * width)
        for stream in hosts[host]:
            if stream.rank is None and stream.local is not None:
                stream.rank = first + stream.local
