"""Numbers as logs print them: signs, exponents, thousands separators, NaN, units.

`TOKEN` cuts a line into text and numeric tokens; durations, dates and dotted versions are tokens too, so that they are
never mistaken for values, but `value` refuses them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

TOKEN = re.compile(
    r"((?=[-+.\dnNiI])(?:"  # told first: at most signs of a line no token begins
    r"(?<![\w.])\d{4}[-/]\d\d[-/]\d\d(?:T(?=\d))?"  # 2026-11-27
    r"|(?<![\w.])\d+ ?d(?:ays?)?,? ?\d{1,2}:\d\d(?::\d\d)?(?:\.\d+)?"  # 1 day, 20:31:00
    r"|(?<![\w.])\d+(?::\d\d){1,2}(?:[.,]\d+)?(?![\d:])"  # 1:02:03.5
    r"|(?<![\w.])\d+ ?(?:h|m|min) ?\d+ ?(?:m|min|s|sec)\b"  # 3m12s
    r"|(?<![\w.])\d+(?:\.\d+){2,}"  # 2.13.0, 127.0.0.1
    r"|(?:(?<![\w.@])[+-]?|(?<=[Ee]poch)|(?<=[Ss]tep)|(?<=[Ii]ter)|(?<=\b[Ee]p)"
    r"|(?<=[\s\[(,|][Ii]t)|(?<=[\s\[(,|][Ii]tr)|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))"
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    r"|(?<![\w.])[+-]?(?:[nN]a[nN]|NAN|(?<!nan/)(?<!NaN/)(?<!NAN/)(?:[iI]nf(?:inity)?|INF))(?!\w|/(?![+-]?(?:\.?\d|[nN]a[nN]\b)))"
    r"(?!\s+(?:iterations|steps|batches|gradients|losses|values)\b)))"
)
"""One capturing group, so that `TOKEN.split(line)` alternates text and tokens."""

_PLAIN = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NONFINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def value(token: str) -> float | None:
    """The number that a token denotes, None for dates, durations, versions and anything else.

    Python's `1_000` is not accepted: no training log prints it, but file names do.
    """
    if _PLAIN.fullmatch(token):
        return float(token.replace(",", ""))
    sign = -1.0 if token.startswith("-") else 1.0
    special = _NONFINITE.get(token.lstrip("+-").lower())
    return None if special is None else sign * special


def whole(token: str) -> float | None:
    """A count: a finite whole number that is not negative, else None. "1e3" is not how a counter is printed."""
    digits = token.replace(",", "")
    return float(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


_SCALED = re.compile(r"(\d+(?:\.\d+)?)([kKMGBT])")
_UNSCALED = re.compile(r"\d+(?:\.\d+)?")


def count(text: str) -> float | None:
    """A count as counters are written: "12000", "12k", "1.2M"; None for anything else."""
    found = _SCALED.fullmatch(text)
    return whole(text) if found is None else float(round(float(found[1]) * _MAGNITUDE[found[2]]))


def magnitude(after: str) -> float:
    """What a count is times by what stands right behind it: 1,000 before "k | ", 1 before "km" and all else."""
    return _MAGNITUDE[after[0]] if after[:1] in _MAGNITUDE and not after[1:2].isalnum() else 1.0


def scaled(counted: float, scale: float) -> float:
    """So many thousands or millions as a whole number: 1.001 times 1,000 is a little less as a double."""
    return counted if scale == 1.0 or math.isnan(counted) else float(round(counted * scale))


def ratio(part: float, whole: float) -> float:
    """A share, NaN of nothing."""
    return part / whole if whole else math.nan


def may_be_scaled(token: str) -> bool:
    """Whether a token may have k or M right behind it for thousands or millions: 1e-4 may not."""
    return _UNSCALED.fullmatch(token) is not None


def kinds(tokens: Sequence[str]) -> str:
    """A letter for each token: "i" for digits alone, "f" for another number, "x" for a date, a version and the like."""
    return "".join("i" if t.isdigit() else "x" if value(t) is None else "f" for t in tokens)


_COMMA = re.compile(r"(?<![\w.,:])([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)(?![\w.,])")
_SURE_COMMA = re.compile(r"(?<![^\s:=;|])[+-]?0,\d{2,}(?![\d,])")
_POINT = re.compile(r"(?<![\d.:,])\d+\.\d+(?![\d.])")


def has_decimal_commas(text: str) -> bool:
    """Whether the numbers of a text are written "0,693", as many countries do: three at least, and few with points."""
    commas = len(_SURE_COMMA.findall(text))
    return commas >= 3 and commas > len(_POINT.findall(text))


def with_points(line: str) -> str:
    """The line with decimal points for its decimal commas; a time of day and a list of numbers stay as they are."""
    return _COMMA.sub(r"\1.\2", line) if "," in line else line


_MAGNITUDE = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
_TIME = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "µs": 1e-6, "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0,
         "seconds": 1.0, "min": 60.0, "mins": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0}
_MEMORY = {"B": 2.0**-20, "bytes": 2.0**-20, "KB": 2.0**-10, "kB": 2.0**-10, "KiB": 2.0**-10, "MB": 1.0, "MiB": 1.0,
           "mb": 1.0, "Mb": 1.0, "mib": 1.0, "GB": 1024.0, "GiB": 1024.0, "gb": 1024.0, "gib": 1024.0, "Gb": 1024.0,
           "TB": 2.0**20, "TiB": 2.0**20}
_MEMORY_GLUED = {"K": 2.0**-10, "M": 1.0, "G": 1024.0}
_COUNTED = r"(?:it|iters?|iterations?|steps?|batch(?:es)?|ba|updates?)"
_SECOND = r"(?:s|secs?|seconds?)"
_ITEMS = r"(?:samples?|examples?|ex|img|imgs|images?|seqs?|sequences?|rows?|frames?|env_steps?|episodes?)"
_TOKENS = r"(?:tok|toks|tokens?|words?)"
_RATES = (
    (re.compile(rf"{_SECOND}/{_COUNTED}"), "step_time", 1.0),
    (re.compile(rf"ms/{_COUNTED}"), "step_time", 1e-3),
    (re.compile(rf"min/{_COUNTED}"), "step_time", 60.0),
    (re.compile(rf"(?:{_COUNTED}|{_ITEMS})/{_SECOND}"), "throughput", 1.0),
    (re.compile(rf"{_TOKENS}/{_SECOND}(?:/(?:gpu|device|chip))?", re.IGNORECASE), "tokens_per_second", 1.0),
)
UNIT = re.compile(r"(?:\s?(%)|\s?([A-Za-zµ]+(?:/[A-Za-z_]+){0,2}))(?![\w@/=])")
"""What may stand right behind a number as its unit: group 1 is a percent sign, group 2 a word."""


def unit(word: str, glued: bool) -> tuple[str, float] | None:
    """The kind of a unit and the factor to the canonical one, None if the word is no unit.

    Kinds: "time" (to seconds), "memory" (to MiB; MB is taken for MiB, as most programs that print it divide by 2**20),
    "count" (1.2k; 2.1G may also be memory: the name decides), or the canonical metric that a rate names by itself.
    """
    if glued and word in _MAGNITUDE:
        return "count", _MAGNITUDE[word]
    if glued and word[1:] == "/s" and word[0] in _MAGNITUDE:  # "tokens=1.2k/s"
        return "throughput", _MAGNITUDE[word[0]]
    for table, kind in ((_TIME, "time"), (_MEMORY, "memory")):
        if word in table and (glued or len(word) > 1 or word == "s"):
            return kind, table[word]
    for pattern, metric, factor in _RATES:
        if pattern.fullmatch(word):
            return metric, factor
        if glued and word.endswith("/s") and word[0] in _MAGNITUDE and pattern.fullmatch(word[1:]):  # "1.52kit/s"
            return metric, factor * _MAGNITUDE[word[0]]
    return None


def as_memory(word: str) -> float | None:
    """Factor to MiB of a bare K, M or G behind a value whose name says that it is memory."""
    return _MEMORY_GLUED.get(word)
