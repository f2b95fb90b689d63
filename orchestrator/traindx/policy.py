"""May this tool call happen in this phase? One predicate for the SDK hook, the MCP server and the plugin hook alike.

It fails closed: a tool, a command, a flag or an argument that is not known to be harmless is refused, with a reason
and with what to do instead. It reads the file system to resolve links and to look for secrets, and changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from traindx.covering import DESCRIBED, OUTSIDE, SHOWN, Approved, Change, covers, said_of
from traindx.phases import PHASES
from traindx.runner.disarming import NAMES
from traindx.scratch import SCRATCH

WALKED_AT_MOST = 20_000
"""Files looked at for secrets below a searched folder; a larger folder must be searched in parts."""

SECRET_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", ".netrc", ".pgpass", ".pypirc", ".npmrc", ".git-credentials", ".htpasswd",
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "id_rsa*", "id_dsa*",
    "id_ecdsa*", "id_ed25519*", "*credential*", "*secret*", "*password*", "token", "token.*", "*.token",
    "*_token", "*_token.*",
    "*apikey*", "*api_key*", "service_account*.json", "service-account*.json", "kubeconfig", "htpasswd",
)
SECRET_FOLDERS = frozenset({".ssh", ".aws", ".gnupg", ".kube", ".azure", ".gcloud", ".docker", ".git-credentials"})
_NOT_SECRET = ("*.py", "*.md", "*.rst", ".env.example", ".env.sample", ".env.template")
"""Source code about secrets (`secrets_loader.py`) is code."""

_SESSION_WRITABLE = frozenset({"evidence", "plots"})
"""Folders of a session that a diagnostic may write to; the journal, the diagnosis and the backups are the session's."""


class Verdict(NamedTuple):
    """Whether a tool call may happen; if not, why, and what to do instead."""

    allow: bool
    reason: str
    next_step: str = ""
    ask: bool = False
    """Not allowed by itself; a person who reads the reason may allow it."""


class Scope(NamedTuple):
    """What a session may reach. `fix` is the approved option, and only set while its approval stands."""

    workspace: Path
    readable: tuple[Path, ...] = ()
    """Further files and folders that may be read: artifacts that the user handed over, a library's source."""
    fix: Approved | None = None
    mcp_read_only: frozenset[str] = frozenset()
    """Full names of MCP tools that only read (`mcp__traindx__analyze_loss`)."""
    baseline: Mapping[str, str] = MappingProxyType({})
    """Texts as they were at the approval, by path: several edits are judged together, by the lines that were shown."""
    web: bool = False
    """The user agreed to research on the web."""
    runs: frozenset[str] = frozenset()
    """Full names of tools that run code in the protected runner, where the user agreed that code is run."""
    helpers: frozenset[str] = frozenset()
    """Kinds of subagents that may be sent; each of their calls is judged like any other."""


_ALLOW = Verdict(True, "reads only")


def allowed(tool: str, arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    """Whether this call may happen. Never raises: what cannot be judged is refused."""
    judge = _TOOLS.get(tool)
    try:
        if phase not in PHASES:
            return _no(f"unknown phase {phase!r}", "resume the session")
        if tool in scope.mcp_read_only:
            return _mcp(arguments, scope)
        if tool in scope.runs:
            return Verdict(True, "runs in a protected copy, as the user agreed")
        if tool in ("Agent", "Task"):
            return _helper(arguments, scope)
        if judge is None:
            return _no(f"the tool {tool!r} is not known to be harmless", "use Read, Grep, Glob or the traindx tools")
        return judge(arguments, phase, scope)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        return _no(f"the call could not be judged ({error})", "give plain paths inside the workspace")


def _no(reason: str, next_step: str) -> Verdict:
    return Verdict(False, reason, next_step)


def _text(arguments: Mapping[str, Any], *names: str) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    raise TypeError(f"no {' or '.join(names)} given")


def resolve(path: str, workspace: Path) -> Path:
    """The real path of an argument: relative to the workspace, `~` expanded, links followed."""
    if "\0" in path or len(path) > 4096:
        raise ValueError("no path holds a NUL byte or is that long")
    return (workspace.resolve() / os.path.expanduser(path)).resolve()


def is_secret(path: Path) -> bool:
    """True for files that hold keys, tokens or passwords by their name or folder."""
    if SECRET_FOLDERS.intersection(path.parts):
        return True
    name = path.name.lower()
    if any(fnmatch(name, p) for p in _NOT_SECRET):
        return False
    return any(fnmatch(name, p) for p in SECRET_NAMES)


def readable(path: str, scope: Scope) -> Verdict:
    """May this file or folder be read?"""
    real = resolve(path, scope.workspace)
    given = Path(os.path.expanduser(path))
    if is_secret(real) or is_secret(given):
        return _no(f"{path} may hold secrets", "ask the user for the one value that matters, not for the file")
    roots = (scope.workspace, *scope.readable)
    if not any(real.is_relative_to(r.resolve()) for r in roots):
        return _no(f"{path} leads to {real}, outside the workspace", "ask the user to hand it over as an artifact")
    return _ALLOW


def secrets_below(folder: Path, glob: str | None = None) -> list[str] | None:
    """Secret files below a folder that a search with this glob would open; None where the folder is too large."""
    found, seen = [], 0
    for where, folders, files in os.walk(folder):
        seen += len(files) + len(folders)
        if seen > WALKED_AT_MOST:
            return None
        for name in files:
            path = Path(where) / name
            opened = glob is None or fnmatch(name, glob.rsplit("/", 1)[-1])
            if opened and (is_secret(path) or is_secret(path.resolve())):
                found.append(str(path.relative_to(folder)))
    return found


def _read(arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    return readable(_text(arguments, "file_path", "path", "notebook_path"), scope)


def _grep(arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    path = str(arguments.get("path") or scope.workspace)
    verdict = readable(path, scope)
    if not verdict.allow:
        return verdict
    glob = arguments.get("glob")
    return searchable(resolve(path, scope.workspace), glob if isinstance(glob, str) else None)


def searchable(folder: Path, glob: str | None) -> Verdict:
    """May the contents of everything below this folder be searched?"""
    if not folder.is_dir():
        return _ALLOW
    if glob is not None and any(c in glob for c in "{}!,"):
        return _no(f"the glob {glob!r} cannot be judged", "use a plain one such as *.py")
    secrets = secrets_below(folder, glob)
    if secrets is None:
        return _no(f"{folder} holds too many files to search safely", "search one of its folders")
    if secrets:
        return _no(f"the search would open files that may hold secrets: {', '.join(secrets[:3])}",
                   "narrow it with a glob such as *.py, or to a folder without them")
    return _ALLOW


def _glob(arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    pattern = _text(arguments, "pattern")
    if ".." in Path(pattern).parts or pattern.startswith(("/", "~")):
        return _no(f"the pattern {pattern!r} leaves the workspace", "give a pattern relative to the workspace")
    return readable(str(arguments.get("path") or scope.workspace), scope)


def _mcp(arguments: Mapping[str, Any], scope: Scope) -> Verdict:
    """A read-only tool of our own: every text among its arguments that names a path must be readable."""
    for text in _strings(arguments):
        looks_like_path = "/" in text or text.startswith((".", "~")) or (scope.workspace / text[:255]).exists()
        if looks_like_path and "\n" not in text and len(text) < 4096:
            verdict = readable(text, scope)
            if not verdict.allow:
                return verdict
    return _ALLOW


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _strings(inner)


def diagnostic(real: Path, scope: Scope) -> bool:
    """True for a path below scratch/debug that a diagnostic may write: never a session's own state or the ledger."""
    scratch = scope.workspace.resolve() / SCRATCH
    if scratch.resolve() != scratch or not real.is_relative_to(scratch) or real == scratch:
        return False
    if real.is_file() and real.stat().st_nlink > 1:
        return False  # its other name may be a file of the project
    if NAMES.intersection(real.relative_to(scratch).parts):
        return False  # other programs act on it
    parts = real.relative_to(scratch).parts
    if (scratch / parts[0] / "journal.jsonl").exists():
        return len(parts) > 2 and parts[1] in _SESSION_WRITABLE
    if len(parts) == 1:
        return not parts[0].startswith(("strikes", "."))
    return parts[-1] != "journal.jsonl"


def _edit(arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    path = _text(arguments, "file_path", "path")
    real = resolve(path, scope.workspace)
    if diagnostic(real, scope):
        return Verdict(True, "a diagnostic below scratch/debug")
    refusal = _writable_now(path, real, phase, scope)
    if refusal is not None:
        return refusal
    old, new = arguments.get("old_string"), arguments.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str) or arguments.get("replace_all"):
        return _no("only an exact edit of one place can be checked", "give old_string and new_string, no replace_all")
    text = real.read_text(encoding="utf-8") if real.exists() else ""
    if text.count(old) != 1 and old:
        return _no(f"old_string occurs {text.count(old)} times in {path}", "quote enough lines to name one place")
    return _covered(path, text, text.replace(old, new, 1) if old else new + text, scope)


def _write(arguments: Mapping[str, Any], phase: str, scope: Scope) -> Verdict:
    path = _text(arguments, "file_path", "path")
    real = resolve(path, scope.workspace)
    if diagnostic(real, scope):
        return Verdict(True, "a diagnostic below scratch/debug")
    refusal = _writable_now(path, real, phase, scope)
    if refusal is not None:
        return refusal
    content = arguments.get("content")
    if not isinstance(content, str):
        return _no("no content given", "give the whole content")
    return _covered(path, real.read_text(encoding="utf-8") if real.exists() else "", content, scope)


def _writable_now(path: str, real: Path, phase: str, scope: Scope) -> Verdict | None:
    root = scope.workspace.resolve()
    if phase != "fix" or scope.fix is None:
        return _no(f"nothing is written before an approved Gate 4 (phase {phase})",
                   "write diagnostics below scratch/debug, present the diagnosis and wait for the approval")
    if not real.is_relative_to(root) or ".git" in real.relative_to(root).parts or real.is_relative_to(root / SCRATCH):
        return _no(f"{path} leads to {real}, which no fix may touch", "change only what the approval names")
    return None


def _covered(path: str, old: str, new: str, scope: Scope) -> Verdict:
    """Is all that changes within the approved option? What stands there already is no change of this edit."""
    assert scope.fix is not None, "_writable_now refuses without a fix"
    relative = resolve(path, scope.workspace).relative_to(scope.workspace.resolve()).as_posix()
    before, now, after = scope.baseline.get(relative, old).split("\n"), old.split("\n"), new.split("\n")
    within = Verdict(True, f"within option {scope.fix.option} of the approved diagnosis")
    whole = _differing(before, after)
    if whole is None or said_of(scope.fix, relative, whole, before) == SHOWN:
        return within
    if len(before) * max(len(now), len(after)) > 10**8:
        return _no(f"{path} is too large to compare", "let the session apply the approved patch")
    there = frozenset(_changes(before, now))
    made = [c for c in _changes(before, after) if c not in there]
    said = [said_of(scope.fix, relative, change, before) for change in made]
    if OUTSIDE in said:
        return _outside(scope.fix, relative, path, made[said.index(OUTSIDE)])
    return _in_words(scope.fix, relative, _changes(now, after)) if DESCRIBED in said else within


def _in_words(fix: Approved, path: str, changes: Sequence[Change]) -> Verdict:
    """The question about text that nobody was shown, with that text."""
    texts = "\n".join(line for c in changes for line in (f"{path}:{c.line}", *(f"-{o}" for o in c.old),
                                                         *(f"+{n}" for n in c.new)))
    from traindx.unseen import escaped  # seldom reached, and each call of a hook pays for what is imported

    return Verdict(False, f"option {fix.option} was approved in words, without the new text of {path}. This would be "
                   f"written:\n{escaped(texts)}\n", "show that text as a diff in the diagnosis, and have it approved",
                   ask=True)


def _outside(fix: Approved, relative: str, path: str, change: Change) -> Verdict:
    """The refusal, which names what was shown where the lines are right and the text is another one."""
    what = f"{path}:{change.line}-{max(change.end_line, change.line)} is outside the approved change"
    if covers(fix, relative, change.line, change.end_line):
        shown = [line for b in fix.bound if b.path == relative for line in b.lines]
        what += f": the text that was shown and approved is {' | '.join(shown)[:300]!r}"
    return _no(what, "change only the approved lines, to the text that was shown; for more, present a new diagnosis")


def _differing(before: Sequence[str], after: Sequence[str]) -> Change | None:
    """What lies between the common beginning and end; None for equal texts. An empty file has no line."""
    start, stop, last = 0, len(before), len(after)
    while start < min(stop, last) and before[start] == after[start]:
        start += 1
    while stop > start and last > start and before[stop - 1] == after[last - 1]:
        stop, last = stop - 1, last - 1
    if start == stop == last:
        return None
    return Change(start + 1, () if before == [""] else tuple(before[start:stop]), tuple(after[start:last]))


def _changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The blocks of lines that differ."""
    whole = _differing(before, after)
    if whole is None or before == [""]:
        return [] if whole is None else [whole]
    import difflib  # slow to import, and seldom reached

    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [Change(start + 1, tuple(before[start:stop]), tuple(after[first:last]))
            for kind, start, stop, first, last in blocks if kind != "equal"]


def _helper(arguments: Mapping[str, Any], scope: Scope) -> Verdict:
    """A subagent of a kind that is offered, with a prompt and nothing that changes what it is."""
    kind = arguments.get("subagent_type")
    if kind not in scope.helpers:
        offered = ", ".join(sorted(scope.helpers)) or "none"
        return _no(f"no subagent of the kind {str(kind)[:60]!r} is offered", f"send one of: {offered}")
    unknown = sorted(set(arguments) - {"description", "prompt", "subagent_type", "run_in_background"})
    if unknown or arguments.get("run_in_background"):
        return _no(f"a subagent is sent without {', '.join(unknown) or 'run_in_background'}",
                   "give description, prompt and subagent_type alone")
    return Verdict(True, "a specialist that only reads, and whose calls are judged")


def _web(scope: Scope) -> Verdict:
    return Verdict(True, "research was agreed to") if scope.web else _no(
        "the session may not use the network", "work from the artifacts, or ask the user to allow research")


_TOOLS: Mapping[str, Callable[[Mapping[str, Any], str, Scope], Verdict]] = {
    "Read": _read,
    "NotebookRead": _read,
    "Grep": _grep,
    "Glob": _glob,
    "LS": _read,
    "Edit": _edit,
    "Write": _write,
    "NotebookEdit": lambda a, p, s: _no("a notebook's cells have no lines that an approval could cover",
                                        "give the user the exact change to make"),
    "Bash": lambda a, p, s: _no("no shell command is judged by its words", "use Read, Grep, Glob or the traindx tools; "
                                "a coding agent's commands run in the protected runner"),
    "WebSearch": lambda a, p, s: _web(s),
    "WebFetch": lambda a, p, s: _web(s),
    "TodoWrite": lambda a, p, s: Verdict(True, "the agent's own list"),
}
