"""What loggers and launchers put before a message: time, level, logger, rank."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache

from traindx_tools.on_logs.readers.counters import EPOCH_WORDS, STEP_WORDS

_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|FATAL|SUCCESS)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_COUNTED = f"(?i:{'|'.join(map(re.escape, (*STEP_WORDS, *EPOCH_WORDS)))})"
"""Words of a counter: "step:12 - loss 0.3" begins with no place of a program."""
_PARTS = tuple(re.compile(p) for p in (
    # the time, in the forms of logging, loguru, MMEngine, ISO 8601
    rf"[\[(<]?(?P<date>\d{{4}}[-/]\d\d[-/]\d\d)[ T_,]\s?(?P<clock>{_CLOCK})(?:Z|\s?[+-]\d\d:?\d\d)?(?:\s?UTC)?[\])>]?"
    r"[ \t,:|-]*",
    rf"[\[(]?(?P<us_date>\d\d/\d\d(?:/\d{{2,4}})?) (?P<us_clock>{_CLOCK})(?:\s(?P<detectron>[\w.]+))?[\])]?[ \t,:|-]*",
    rf"(?P<glog>[IWEFDC])(?P<glog_date>\d{{4}}) (?P<glog_clock>{_CLOCK})\s+\d+ [\w./<>-]+:\d+\] ?",
    rf"\[?(?P<bare_clock>{_CLOCK})\]?(?=[ \t,:|\]-])[ \t,:|-]*",
    rf"(?P<syslog>{_MONTH} [ \d]\d \d\d:\d\d:\d\d) [\w.-]+ "
    r"[\w.-]+(?:\[\d+\])?: ",
    # `date`, asctime, dmesg -T; the one of web servers
    rf"[\[(]?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?P<ctime>{_MONTH} [ \d]\d \d\d:\d\d:\d\d)(?:\.\d+)?"
    r"(?: [AP]M)?(?: [A-Z]{3,4})?(?: \d{4})?[\])]?(?=[ \t,:|-])[ \t,:|-]*",
    rf"[\[(]?(?P<dated>\d\d[/ -]{_MONTH}[/ -]\d{{4}}[: ]\d\d:\d\d:\d\d)(?:[.,]\d+)?(?: [+-]\d{{4}})?[\])]?"
    r"(?=[ \t,:|-])[ \t,:|-]*",
    # the rank, as torchrun, accelerate, Slurm, DeepSpeed and hand-written prints give it
    r"[\[(<]?(?:default|global[_ ]?rank|[Rr]ank|RANK|[Pp]rocess|proc|[Ww]orker)[ :=_#-]?(?P<rank>\d{1,6})"
    r"(?:/\d+)?(?:[\])>](?:[ \t]*[:|,-])?[ \t]?|:[ \t]|[ \t]*\|[ \t]*|[ \t]+-[ \t]+)",
    r"[\[(](?:GPU|gpu|cuda|device)[ :_-]?(?P<gpu>\d{1,4})[\])]:?[ \t]+",
    # the level with or without brackets; the logger behind it
    rf"[\[(<]?(?P<level>{_LEVEL})[\])>]?(?::(?P<root>[\w.]+):|(?![\w/])[ \t,:|-]*)",
    r"\[[A-Za-z][\w.-]{0,40}\] \[(?P<spoken>Trace|Debug|Info|Warning|Error|Fatal)\][ \t]*",
    r"(?<=[|] )[A-Za-z_]\w*(?:\.\w+)+ \| ",
    r"\[(?:titan|[\w./-]+\.py(?::\d+)?(?::\w+)?|[\w.]+:\d+(?::\w+)?)\][ \t:|-]*",
    r"[\w./-]+\.py:\d+(?::\w+)?(?:[ \t]*[-|>:]+[ \t]*|[ \t]+)",
    rf"(?!{_COUNTED}:)[\w.]+(?::[\w.<>]+)?:\d+ [|>-] ?|(?:__main__|root)[ \t]*[-|:][ \t]*|"
    rf"[\w.]+ - (?={_LEVEL}\b)|pid=\d+[ \t]+",
))
_CLOCK_AT = re.compile(rf"[ T_,]\s?({_CLOCK})")
_MAY_START = re.compile(r"\s{0,4}(?:[\[(<\dTDINWECFSrRgGpPwd_]|[JFMASOND][a-z]{2} [ \d]\d |Mon,? |"
                        r"[\w./-]+(?:\.py:\d| - |:\w+:\d))")
_LEVELS = {"W": "WARNING", "E": "ERROR", "F": "FATAL", "C": "CRITICAL", "I": "INFO", "D": "DEBUG"}


@dataclass(frozen=True)
class Prefix:
    """`end`: where the message starts. `time`: seconds of some clock, None where none was printed.

    `time_at`, `rank_at`: from where to where in the text they stand, which is the same in all lines of a shape.
    """

    end: int = 0
    time: float | None = None
    rank: int | None = None
    level: str | None = None
    logger: str | None = None
    time_at: tuple[int, int] | None = None
    rank_at: tuple[int, int] | None = None
    host_at: tuple[int, int] | None = None
    """From where to where the number of the host stands, where a launcher counts the ranks of each by itself."""
    width: int = 1
    """Ranks of a host."""
    first: int = 0
    """The rank of the first process of the first such host."""
    processes: dict[int, int] | None = field(default=None, compare=False)
    """Which rank a number is, where that at `host_at` is the id of a process; a new one is the next."""

    def same_shape(self, text: str) -> Prefix:
        """The prefix of another line whose text differs in digits only."""
        if self.time_at is None and self.rank_at is None and self.host_at is None:
            return self
        time, rank = self.time_and_rank(text)
        return replace(self, time=time, rank=rank)

    def time_and_rank(self, text: str) -> tuple[float | None, int | None]:
        """What differs in the prefix of another line whose text differs in digits only."""
        rank = None if self.rank_at is None else int(text[self.rank_at[0]:self.rank_at[1]])
        if self.host_at is not None and self.processes is not None:
            rank = self.processes.setdefault(int(text[self.host_at[0]:self.host_at[1]]), len(self.processes))
        elif self.host_at is not None:
            rank = self.first + self.width * int(text[self.host_at[0]:self.host_at[1]]) + (rank or 0)
        return None if self.time_at is None else moment(text[self.time_at[0]:self.time_at[1]]), rank


_NONE = Prefix()


def parse_prefix(text: str) -> Prefix:
    """What stands before the message of a line."""
    if not _MAY_START.match(text):
        return _NONE
    at, level, logger = 0, None, None
    time_at: tuple[int, int] | None = None
    rank_at: tuple[int, int] | None = None
    while at < len(text) and text[at] in " \t":
        at += 1
    start = at
    for _ in range(8):
        found = next((m for m in (p.match(text, at) for p in _PARTS) if m), None)
        if found is None or found.end() == at:
            break
        at = found.end()
        fields = found.groupdict()
        time_at = _time_span(found, fields) if time_at is None else time_at
        rank_at = next((found.span(n) for n in ("rank", "gpu") if fields.get(n)), rank_at)
        spoken = (fields.get("spoken") or "").upper()
        level = fields.get("level") or spoken or _LEVELS.get(fields.get("glog") or "") or level
        logger = fields.get("root") or logger
    if at == start:
        return _NONE
    return Prefix(at, None, None, level, logger, time_at, rank_at).same_shape(text)


def _time_span(found: re.Match[str], fields: dict[str, str | None]) -> tuple[int, int] | None:
    for first, last in _SPANS:
        if fields.get(first):
            return found.start(first), found.end(last)
    return None


_SPANS = (("date", "clock"), ("us_date", "us_clock"), ("glog_date", "glog_clock"), ("bare_clock", "bare_clock"),
          ("syslog", "syslog"), ("ctime", "ctime"), ("dated", "dated"))


def moment(text: str) -> float | None:
    """Seconds of a printed time: with a date since 1970, with a day since a new year, else since midnight."""
    if len(text) >= 19 and text[4] in "-/" and text[13] == ":":
        whole, part = _second(text[:19]), text[20:]
        return whole if whole is None or not part.isdigit() else whole + float(f"0.{part}")
    if (len(text) >= 19 and text[4] in "-/") or text[:1].isalpha() or text[3:4].isalpha():
        return stamp(text)
    day, space, clock = text.rpartition(" ")
    if not space:
        return _clock(text)
    return _clock(clock) + _day_of_year(day.replace("/", "")) * 86400.0


@lru_cache(maxsize=64)
def _day_of_year(month_day: str) -> int:
    try:
        return datetime(2000, int(month_day[:2]), int(month_day[2:4])).timetuple().tm_yday
    except ValueError:
        return 0


def _clock(text: str) -> float:
    return int(text[:2]) * 3600.0 + int(text[3:5]) * 60.0 + float(text[6:].replace(",", "."))


@lru_cache(maxsize=64)
def _date(text: str) -> float | None:
    try:
        return datetime(int(text[:4]), int(text[5:7]), int(text[8:10]), tzinfo=timezone.utc).timestamp()
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _second(text: str) -> float | None:
    """`stamp` to the second: lines that follow each other often share it."""
    return stamp(text)


def stamp(text: str) -> float | None:
    """Seconds since 1970 of a date and time as printed, None if it is none."""
    if len(text) >= 19 and text[4] in "-/":
        day = _date(text[:10])
        try:
            found = _CLOCK_AT.match(text, 10)
            return day + _clock(found.group(1)) if found and day is not None else None
        except ValueError:
            return None
    try:
        parsed = (datetime.strptime(re.sub("[/: -]", " ", text), "%d %b %Y %H %M %S") if text[3:4].isalpha() else
                  datetime.strptime(f"2000 {text}", "%Y %b %d %H:%M:%S"))
    except ValueError:
        return None
    return parsed.replace(tzinfo=timezone.utc).timestamp()
