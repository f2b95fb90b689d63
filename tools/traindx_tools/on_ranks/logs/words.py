"""What one line of a rank's log says, without its prefix: a record, a collective, a wait, a count, a setting, an error.

Worked out once for each shape of line (every digit as 0); lines of a known shape are a lookup and their numbers.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from traindx_tools.on_logs.readers.prefixes import parse_prefix
from traindx_tools.on_ranks.logs.speaking import speaks_of_error, speaks_of_others
from traindx_tools.on_ranks.logs.told import Operation

Span = tuple[int, int]
DULL, RECORD, SPEAKS, SETTING, COLLECTIVE = range(5)
_NUMBER = r"[-+]?(?:nan|inf(?:inity)?|\d[\d.]*(?:[eE][-+]?\d+)?)"
_STEP = re.compile(r"(?i)(?<![\w/-])(?:global[_ ]?step|train(?:ing)?[_ ]step|step|iter(?:ation)?|update|it)"
                   r"[\"']?\s{0,2}[=:#\[ ]{0,3}\s{0,6}(\d{1,12})(?![\d.]*[\w%-]*\.\w)")
_METRICS = (
    ("loss", r"(?:train[_/ ]?|lm[_ ]|total[_ ])?loss"),
    ("grad_norm", r"(?:grad(?:ient)?[_ ]?norm|gnorm)"),
    ("learning_rate", r"(?:lr|learning[_ ]rate)"),
    ("step_time", r"(?:step[_ ]?time|iter[_ ]?time|time[_/]step|elapsed time per iteration(?: \((?:ms|s)\))?)"),
    ("data_time", r"(?:data[_ ]?(?:load(?:ing)?[_ ]?)?time|data[_ ]wait|time[_/]data)"),
)
_VALUES = tuple((name, re.compile(rf"(?i)(?<![\w/]){words}[\"']?\s{{0,2}}[=:|]?\s{{0,4}}\[?({_NUMBER})(?![\w])"))
                for name, words in _METRICS)
KEPT = frozenset({"loss", "step_time", "data_time"})
"""Metrics whose values rules and pictures ask for; the others only show that a line is a record."""


class Plan(NamedTuple):
    """What is known of all lines of a shape. Spans are from the beginning of the whole line."""

    kind: int
    step: Span | None = None
    values: tuple[tuple[str, int, int], ...] = ()
    rank: Span | None = None
    message: int = 0
    template: str = ""
    sequence: Span | None = None
    """Of a collective: where its number stands."""


def plan_of(text: str, start: int) -> Plan:
    """The plan of a line; `start`: where the message begins behind the launcher's prefix."""
    prefix = parse_prefix(text[start:])
    at = start + prefix.end
    rank = None if prefix.rank_at is None else (start + prefix.rank_at[0], start + prefix.rank_at[1])
    step = _STEP.search(text, at)
    values = tuple((name, *m.span(1)) for name, p in _VALUES if (m := p.search(text, at)))
    if step is not None and values and not _says_error(text[at:]):
        return Plan(RECORD, step.span(1), tuple(v for v in values if v[0] in KEPT), rank, at)
    return _other(text, at, rank)


def _other(text: str, at: int, rank: Span | None) -> Plan:
    """The plan of a line that is no record: what it says is looked for here, once for all lines of its shape."""
    message = text[at:]
    template = template_of(message.strip())
    if speaks_of_error(text) or speaks_of_others(text):
        return Plan(SPEAKS, rank=rank, message=at, template=template)
    called = collective_in(message)
    if called is not None and (number := _SEQUENCE.search(text, at)) is not None:
        return Plan(COLLECTIVE, rank=rank, message=at, template=template, sequence=number.span(1))
    said = (called, world_in(message), rank_in(message), host_in(message), counts_in(message) or None)
    if any(x is not None for x in said) or resumes(message) or finishes(message):
        return Plan(SPEAKS, rank=rank, message=at, template=template)
    return Plan(SETTING if settings_in(message) else DULL, rank=rank, message=at, template=template)


def _says_error(text: str) -> bool:
    return re.search(r"Error\b|Exception\b|Traceback|WorkNCCL|OpType", text) is not None


# --- collectives

_WORK = re.compile(r"WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<in>\d+))?"
                   r"(?:, NumelOut=(?P<out>\d+))?(?:, Timeout\(ms\)=(?P<limit>\d+))?\)(?: ran for (?P<ran>\d+))?")
_GROUP = re.compile(r"\[PG (?:ID )?(\S+)(?: PG GUID (?P<guid>[^\s\]]+))?")
_LAST = re.compile(r"last enqueued(?: NCCL)? work: (-?\d+), last completed(?: NCCL)? work: (-?\d+)")
_INFO = re.compile(r"NCCL INFO (\w+): opCount ([0-9a-f]+) .*?\bcount (\d+) datatype (\d+) .*?\bcomm (0x[0-9a-f]+)")
_TRACED = re.compile(
    r"(?i)(?<![\w])(?P<op>all_?reduce|all_?gather(?:_into_tensor)?|reduce_?scatter(?:_tensor)?|broadcast|barrier|"
    r"all_?to_?all(?:_single)?|gather|scatter|reduce)\b")
_SEQUENCE = re.compile(r"(?i)\b(?:collective_)?seq(?:uence)?(?:[_ ]?(?:num(?:ber)?|id|no))?[\"']?\s?[=:# ]\s?(\d+)")
_SIZES = re.compile(r"(?i)(?:shape|sizes?|numel|count|elements)[\"']?\s?[=:]?\s?(?:torch\.Size)?\(?"
                    r"(\[[\d, \[\]]*\]|\(\d[\d, ]*\)|\d+)")
_PRINT = re.compile(r"CollectiveFingerPrint\(SequenceNumber=(\d+), ?OpType=(\w+)(?:, ?TensorShape=(\[[\d, ]*\]))?")
_RUNNING = re.compile(r"[Rr]ank (\d+) is running (?:in)?(?:consistent )?collective: " + _PRINT.pattern)
_PG = re.compile(r"(?i)\b(?:group|pg|process_group|comm)[\"']?\s?[=:]\s?([\w().-]+)")
_RENDEZVOUS = re.compile(r"Termination timeout for [`'\"]?([\w -]+?)[`'\"]?(?:; [^`]*?)? of (\d+) seconds exceeded")
"""XLA: the processes that came wait for the ones that did not; no sequence number is printed."""
_ABSENT = re.compile(r"[Rr]anks? (?P<ranks>\d+(?:, ?\d+)*) failed to pass monitoredBarrier"
                     r"|(?:timed out task names?|(?:un)?connected tasks?):\s*(?P<tasks>\S*task:\d+.*)"
                     r"|/task:(?P<beat>\d+) (?:heartbeat timeout|stopped sending heartbeats)")


UNNUMBERED = -1
"""In place of a sequence number where a log prints none."""


class Called(NamedTuple):
    """One collective that a line names."""

    group: str
    number: int
    operation: Operation
    waited: float | None = None
    """Seconds until the timeout; None where the line only says that it was called."""


def _op(name: str) -> str:
    return re.sub(r"[-_ ]|(?:INTO)?TENSOR|SINGLE", "", re.sub(r"[-_ ]", "", name.upper()))


def collective_in(text: str) -> Called | None:
    """The collective that a watchdog, NCCL's own log or the program's own trace names in this line."""
    if work := _WORK.search(text):
        group = _GROUP.search(text)
        shape = f"{int(work['in']):,} elements" if work["in"] else ""
        return Called((group["guid"] or group[1]) if group else "", int(work["seq"]), Operation(_op(work["op"]), shape),
                      int(work["ran"] or work["limit"] or 0) / 1000)
    if info := _INFO.search(text):
        return Called(info[5], int(info[2], 16), Operation(_op(info[1]), f"{int(info[3]):,} elements"))
    if waited := _RENDEZVOUS.search(text):
        return Called("xla", UNNUMBERED, Operation(_op(waited[1])), float(waited[2]))
    if "failed to pass" in text or "atchdog" in text:
        return None
    traced, number = _TRACED.search(text), _SEQUENCE.search(text)
    if traced is None or number is None:
        return None
    sizes, group = _SIZES.search(text), _PG.search(text)
    return Called(group[1] if group else "", int(number[1]), Operation(_op(traced["op"]), sizes[1] if sizes else ""))


def last_works(text: str) -> tuple[int, int] | None:
    """Sequence numbers of the last collective that was enqueued and of the last one that was completed."""
    found = _LAST.search(text)
    return (int(found[1]), int(found[2])) if found else None


def fingerprints(text: str) -> list[tuple[int, int, Operation]]:
    """Rank, sequence number and operation, as TORCH_DISTRIBUTED_DEBUG=DETAIL tells them where ranks differ."""
    return [(int(m[1]), int(m[2]), Operation(_op(m[3]), (m[4] or "").replace(" ", "").replace(",", ", ")))
            for m in _RUNNING.finditer(text)]


def absent_in(text: str) -> list[int]:
    """Ranks that did not come to a barrier, as torch's monitored barrier or JAX's coordination service says."""
    found = _ABSENT.search(text)
    if found is None:
        return []
    if found["ranks"]:
        return [int(r) for r in found["ranks"].split(",")]
    return [int(r) for r in re.findall(r"task:(\d+)", found["tasks"])] if found["tasks"] else [int(found["beat"])]


# --- what it says of itself

_WORLD = re.compile(r"(?i)\b(?:world[_ ]?size|process_count|num_processes|nranks)[\"']?\s?[=:]?\s?(\d{1,6})\b"
                    r"|\bMEMBER: \d+/(\d{1,6})|\brank (?:\d{1,6}) ?(?:of|/) ?(\d{1,6})\b")
_RANK = re.compile(r"(?i)(?<![\w.])(?:global[_ ]?rank|process_index|process_id|(?<!local )(?<!local_)rank|RANK)"
                   r"[\"']?\s?[=:]?\s?(\d{1,6})\b(?!\s?(?:ranks|failed|is ))")
_HOST = re.compile(r"(?i)\b(?:host(?:name)?|node(?:name)?|SLURMD_NODENAME)[\"']?\s?[=:]\s?[\"']?([A-Za-z][\w.-]{1,60})")
_COUNT = re.compile(r"(?i)\b(\d{1,12}) (?:\w+ )?(batches|iterations|samples|examples|steps|files|shards)\b")
_NAMED_COUNT = re.compile(r"(?i)\b(num_batches|n_batches|batches|len\(\w+\)|steps_per_epoch|num_samples)[\"']?\s?[=:]"
                          r"\s?(\d{1,12})\b")
_RESUME = re.compile(r"(?i)\bresum(?:e|ing|ed)\b|\bloaded checkpoint|restor(?:ed|ing) .*checkpoint"
                     r"|restart(?:ing|ed)? (?:worker|training|from)")
_FINISHED = re.compile(r"(?i)\b(?:training|run|job) (?:is )?(?:done|finished|completed?|ended normally)\b")
_SETTING = re.compile(r"(?<![\w.])([A-Za-z][\w.]{1,40})[\"']?\s?[=:]\s?[\"']?([\w.+/-]{1,60})"
                      r"(?![\w.+/-]|\s?=)")


def world_in(text: str) -> int | None:
    found = _WORLD.search(text)
    return int(next(g for g in found.groups() if g)) if found else None


def rank_in(text: str) -> int | None:
    found = _RANK.search(text)
    return int(found[1]) if found else None


def host_in(text: str) -> str | None:
    found = _HOST.search(text)
    return found[1] if found else None


def counts_in(text: str) -> list[tuple[str, float]]:
    """Each number of batches, samples or steps with its noun."""
    named = [(m[1].lower(), float(m[2])) for m in _NAMED_COUNT.finditer(text)]
    return named or [(m[2].lower(), float(m[1])) for m in _COUNT.finditer(text)]


def resumes(text: str) -> bool:
    return _RESUME.search(text) is not None


def finishes(text: str) -> bool:
    return _FINISHED.search(text) is not None


def settings_in(text: str) -> list[tuple[str, str]]:
    """Names and values as in `torch=2.4.0, nccl: 2.21.5`."""
    return [(m[1].lower(), m[2].rstrip(".,")) for m in _SETTING.finditer(text)]


def template_of(text: str) -> str:
    """The line with every number as #: lines of one template are one event."""
    return re.sub(r"0x[0-9a-fA-F]+|(?<![A-Za-z])[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?|\d+", "#", text)[:300]
