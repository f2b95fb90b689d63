"""Which shell commands only read. A table of commands and of the flags that each may have; everything else is refused.

The text is never expanded by a shell here: substitutions, redirections to files, background jobs, variables, braces and
line breaks are refused before it is cut into words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

_REFUSED_TEXT = re.compile(r"[`$\n\r\\{}!]|<\(|>\(|<<")
_HARMLESS_REDIRECTION = re.compile(r"(?<=\s)(?:2>\s?/dev/null|2>&1)(?=\s|$)")
_SEPARATORS = frozenset({"|", "||", "&&", ";"})
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_WILDCARD = re.compile(r"[*?\[]")


class Judgement(Protocol):
    """What a path check answers."""

    @property
    def allow(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class Reader(NamedTuple):
    """A command that only reads. `flags` must match each flag whole; `skip` positional words are no paths."""

    flags: str
    skip: int = 0
    takes_paths: bool = True
    searches: str = ""
    """Flags (one letter each) that make it read all that lies below a folder; "*" for always."""
    valued: str = ""
    """Flags that take the next word as a value that is no path."""


_NUMBER = r"-\d+"
READERS: dict[str, Reader] = {
    "cat": Reader(r"-[nbAsETv]+"),
    "head": Reader(rf"-[nqvc]\d*|{_NUMBER}|--(?:lines|bytes)=\d+", valued="-n -c"),
    "tail": Reader(rf"-[nqvc]\+?\d*|{_NUMBER}|--(?:lines|bytes)=\+?\d+", valued="-n -c"),
    "wc": Reader(r"-[lwcmL]+"),
    "nl": Reader(r"-[ba]+"),
    "ls": Reader(r"-[lahtrSR1dFi]+"),
    "stat": Reader(r"-[cLt]", valued="-c"),
    "file": Reader(r"-[biL]+"),
    "du": Reader(r"-[shacbkm]+|--max-depth=\d+|-d\d*", valued="-d"),
    "df": Reader(r"-[hTkmi]+"),
    "free": Reader(r"-[hmgkb]+", takes_paths=False),
    "nproc": Reader(r"--all", takes_paths=False),
    "uname": Reader(r"-[asrmpio]+", takes_paths=False),
    "pwd": Reader(r"-[LP]", takes_paths=False),
    "date": Reader(r"-u", takes_paths=False),
    "sort": Reader(r"-[nrufhkt]\d*[,\d]*", valued="-k -t"),
    "cut": Reader(r"-[dfc][\d,\-]*.?", valued="-d -f -c"),
    "grep": Reader(r"-[nicvwoEFPHhlLqsaxrR]+|-[ABCm]\d*|-e|--include=[\w.*\-]+|--color=never", skip=1, searches="rR",
                   valued="-A -B -C -m -e"),
    "rg": Reader(r"-[nicvwoFSHlN]+|-[ABCm]\d*|-[et]|--no-heading", skip=1, searches="*", valued="-A -B -C -m -e -t"),
    "find": Reader(r"-(?:name|iname|type|size|mtime|mmin|newer|maxdepth|mindepth|path|print|not|o|empty|ls)",
                   valued="-name -iname -type -size -mtime -mmin -maxdepth -mindepth -path"),
    "diff": Reader(r"-[uwbBNqyi]+|-U\d*", valued="-U"),
    "cmp": Reader(r"-[lsb]+"),
    "sha256sum": Reader(r""),
    "md5sum": Reader(r""),
    "nvidia-smi": Reader(r"-[Lq]|-i|-d|--query-[\w\-]+=[\w.,\-]+|--format=[\w,]+", valued="-i -d", takes_paths=False),
    "ps": Reader(r"-ef|-e|-f", takes_paths=False),
    "traindx": Reader(r"--[a-z\-]+(?:=[\w.,\-]+)?", skip=1),
}
"""Commands by name. Not here on purpose: interpreters, `env`, `xargs`, `awk`, `tee`, `less`, whatever runs others."""

_TRAINDX_READS = frozenset({"diagnose", "log", "audit", "data", "weights", "explain", "sessions", "show", "doctor"})
_TRAINDX_WRITES = ("--run", "--out", "--context")
_GIT_READS: dict[str, str] = {
    "log": r"--oneline|--stat|--name-(?:only|status)|--no-merges|--follow|-n\d*|-\d+|--since=[\w .:\-]+"
           r"|--format=[%\w :.\-]+",
    "status": r"-s|--short|--porcelain|-b",
    "diff": r"--stat|--name-only|--name-status|--cached|--staged|-U\d+|-w",
    "show": r"--stat|--name-only|--oneline",
    "blame": r"-L\d+,\d+|-L|-w",
    "branch": r"-a|-v|-vv|--show-current",
    "rev-parse": r"HEAD|--short|--abbrev-ref|--show-toplevel",
    "ls-files": r"-m|-o|--exclude-standard",
    "shortlog": r"-s|-n|-sn",
}
_GIT_PRINTS_CONTENT = frozenset({"diff", "show", "blame"})
_GIT_HIDES_CONTENT = frozenset({"--stat", "--name-only", "--name-status"})

Check = Callable[[str], Judgement]


def refused_command(command: str, readable: Check, searchable: Check) -> str | None:
    """Why the command line may not run, or None where every command in it only reads what may be read."""
    text = _HARMLESS_REDIRECTION.sub(" ", f"{command} ").strip()
    if not text:
        return "there is no command"
    found = _REFUSED_TEXT.search(text)
    if found is not None:
        return f"{found[0]!r} in a command cannot be judged"
    try:
        words = _words(text)
        bare = _words(_QUOTED.sub("x", text))
    except ValueError as error:
        return f"the command cannot be parsed ({error})"
    if sum(map(_is_operator, words)) != sum(map(_is_operator, bare)):
        return "a quoted operator cannot be judged"
    for part in _split(words):
        reason = _refused(part, readable, searchable)
        if reason is not None:
            return reason
    return None


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _is_operator(word: str) -> bool:
    return bool(word) and set(word) <= set("()<>|&;")


def _split(words: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in [*words, ";"]:
        if word in _SEPARATORS:
            if part:
                yield part
            part = []
        else:
            part.append(word)


def _refused(words: list[str], readable: Check, searchable: Check) -> str | None:
    name = words[0]
    odd = next((w for w in words if _is_operator(w)), None)
    if odd is not None:
        return f"{odd!r} in a command cannot be judged"
    if name == "git":
        return _refused_git(words[1:], readable)
    if name == "sed":
        return _refused_sed(words[1:], readable)
    reader = READERS.get(name)
    if reader is None:
        return f"the command {name!r} is not known to only read"
    if name == "traindx" and (len(words) < 2 or words[1] not in _TRAINDX_READS or
                              any(w.startswith(_TRAINDX_WRITES) for w in words)):
        return "of traindx only the reading commands may run here"
    flags, paths = _sort_words(words[1:], reader)
    if paths and not reader.takes_paths:
        return f"{name} with {paths[0]!r} is not known to only read"
    bad = next((f for f in flags if not re.fullmatch(reader.flags, f)), None)
    if bad is not None:
        return f"{name} with {bad!r} is not known to only read"
    return _refused_paths(paths, readable) or _refused_search(name, reader, flags, paths, searchable)


def _sort_words(words: Sequence[str], reader: Reader) -> tuple[list[str], list[str]]:
    flags: list[str] = []
    plain: list[str] = []
    valued = set(reader.valued.split())
    skip = reader.skip
    iterator = iter(words)
    for word in iterator:
        if word == "--":
            plain += list(iterator)
        elif word.startswith("-") and word != "-":
            flags.append(word)
            if word in valued:
                next(iterator, None)
                skip -= word == "-e"
        else:
            plain.append(word)
    return flags, plain[max(skip, 0):]


def _refused_paths(paths: Sequence[str], readable: Check) -> str | None:
    for path in paths:
        if _WILDCARD.search(path):
            return f"{path!r} may stand for any file: name the files, or use Glob"
        verdict = readable(path)
        if not verdict.allow:
            return verdict.reason
    return None


def _refused_search(name: str, reader: Reader, flags: Sequence[str], paths: Sequence[str],
                    searchable: Check) -> str | None:
    recursive = reader.searches == "*" or any(set(f.lstrip("-")) & set(reader.searches)
                                              for f in flags if not f.startswith("--"))
    if not reader.searches or not recursive:
        return None
    for path in paths or ["."]:
        verdict = searchable(path)
        if not verdict.allow:
            return verdict.reason
    return None


def _refused_sed(words: Sequence[str], readable: Check) -> str | None:
    """Only `sed -n 'A,Bp' FILE`: sed can write files and run commands."""
    if len(words) < 3 or words[0] != "-n" or not re.fullmatch(r"\d+(?:,\d+)?p", words[1]):
        return "of sed only `sed -n '10,20p' FILE` may run here"
    if any(w.startswith("-") for w in words[2:]):
        return "sed with more flags is not known to only read"
    return _refused_paths(words[2:], readable)


def _refused_git(words: Sequence[str], readable: Check) -> str | None:
    """Reading subcommands; those that print content only for named files, so that no old secret is shown."""
    if not words or words[0] not in _GIT_READS:
        return "of git only log, status, diff, show, blame and the like may run here"
    name = words[0]
    cut = words.index("--") if "--" in words else len(words)
    flags = [w for w in words[1:cut] if w.startswith("-")]
    bad = next((f for f in flags if not re.fullmatch(_GIT_READS[name], f)), None)
    if bad is not None:
        return f"git {name} with {bad!r} is not known to only read"
    revisions = [w for w in words[1:cut] if not w.startswith("-")]
    if name == "branch" and revisions:
        return "git branch with a name makes a branch"
    if any(":" in r for r in revisions):
        return "a file of another commit cannot be judged: use git diff REVISION -- FILE"
    paths = words[cut + 1:]
    if name in _GIT_PRINTS_CONTENT and not set(flags) & _GIT_HIDES_CONTENT:
        named = paths or (revisions if name == "blame" else [])
        if not named or any(_WILDCARD.search(p) or p.startswith(":") or "." not in Path(p).name for p in named):
            return f"git {name} prints content: name the files after `--`, or use --stat"
        paths = named
    for path in paths:
        verdict = readable(path)
        if not verdict.allow:
            return verdict.reason
    return None
