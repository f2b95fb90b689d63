"""The program of the runner: from its arguments to a plan, from the plan to the command that it starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from traindx.runner import bubblewrap, confinement, copying, landlock, syscalls
from traindx.runner.folders import (
    OPEN_SCRATCH,
    Private,
    fresh_folders,
    in_use,
    made_below,
    private_folders,
    shared_folders,
)
from traindx.runner.plan import UNPROTECTED, CannotProtect, Plan, plan_from, within
from traindx.runner.seccomp import marked

USAGE = """usage: protected.py [--copy] [--workspace DIR] [--] COMMAND ...
       protected.py [--copy] [--workspace DIR] --shell TEXT

Runs a command while Linux keeps the project as it is. Everything can be read. The command may write below
scratch/debug of the workspace (below scratch/debug/probes where a session lies there), in a private folder for
temporary files and in private caches; with --copy it runs in a copy of the workspace, which it may change. What it
starts ends with it. The workspace is the current folder unless named. Exit code 75: nothing was run, because it could
not be protected; otherwise the command's own.

  --open-workspace    the workspace itself may be written: the person agreed
  --writable DIR      a further folder that may be written
  --hide-keys         folders with keys are out of sight, where bubblewrap is there
  --read-only         nothing below the workspace is written, and no folder made there
  --fresh             temporary files and caches of this run alone: nothing that an earlier command left is used
"""
_INSIDE = "--inside"
_FLAGS = ("--copy", "--open-workspace", "--hide-keys", "--read-only", "--fresh")


class Request(NamedTuple):
    """What the arguments say."""

    command: tuple[str, ...]
    workspace: str
    copy: bool = False
    open_workspace: bool = False
    writable: tuple[str, ...] = ()
    hide_keys: bool = False
    read_only: bool = False
    fresh: bool = False


class BadArguments(Exception):
    """The arguments make no sense, or ask for help."""


def parsed(arguments: Sequence[str]) -> Request:
    """The request in these arguments. Raises BadArguments."""
    rest = list(arguments)
    flags: dict[str, bool] = {}
    named: dict[str, list[str]] = {"--workspace": [], "--writable": []}
    command: list[str] = []
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "--":
            break
        if flag in named and rest:
            named[flag].append(rest.pop(0))
        elif flag == "--shell" and len(rest) == 1:
            command = ["bash" if _has_bash() else "sh", "-c", rest.pop()]
        elif flag in _FLAGS:
            flags[flag] = True
        else:
            raise BadArguments(flag)
    if not (command or rest):
        raise BadArguments("no command")
    workspace = os.path.realpath((named["--workspace"] or [os.getcwd()])[-1])
    return Request(tuple(command or rest), workspace, "--copy" in flags, "--open-workspace" in flags,
                   tuple(map(os.path.realpath, named["--writable"])), "--hide-keys" in flags, "--read-only" in flags,
                   "--fresh" in flags)


def _has_bash() -> bool:
    return any(os.access(os.path.join(folder, "bash"), os.X_OK)
               for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder.startswith("/"))


def plan_of(request: Request, private: Private) -> tuple[Plan, list[in_use]]:
    """The folders of the run, made where they are missing, and the locks that it holds.

    Raises CannotProtect, OSError.
    """
    held = [in_use(private.keep, shared=True)]
    shares = not (request.open_workspace or request.read_only)
    if shares:
        held.append(in_use(made_below(private.keep, (OPEN_SCRATCH,)), shared=True))
    for lock in held:
        lock.__enter__()
    shared = tuple(shared_folders(request.workspace)) if shares else ()
    copy = copying.free_copy(request.workspace, private) if request.copy else None
    full = (private.tmp, private.cache, *((copy.folder,) if copy else ()), *request.writable)
    for folder in full[2:]:
        if within(request.workspace, folder) and not request.open_workspace:
            raise CannotProtect(f"{folder} holds the workspace")
    plan = Plan(request.workspace, full, shared, (), request.open_workspace, request.hide_keys, private.tmp,
                private.cache, copy.folder if copy else "", copy.manifest if copy else -1)
    return plan, [*held, *([copy.lock] if copy else [])]


def notes_of(known: int, wrapped: bool) -> tuple[str, ...]:
    """What this machine cannot enforce."""
    notes = []
    if syscalls.machine() is None:
        notes.append(f"not enforced here, for there is no filter of system calls for {os.uname().machine}: modes and "
                     "times of files, and sockets and processes of yours, are in reach")
    elif confinement.supervision() < 2:
        notes.append("connections cannot be looked at: no local socket is made, so that data loaders with workers may "
                     "fail, and logins and screens of this machine are in reach over TCP")
    if not confinement.supervision():
        notes.append("calls cannot be looked at: changes of modes and times of files fail, on older kernels also "
                     "signals to own workers")
    if not known and wrapped:
        notes.append("this kernel has no Landlock: bubblewrap holds alone, and links cannot be made")
    return tuple(notes)


def main(arguments: Sequence[str], script: str) -> int:
    """Runs the command; returns where it ended or was not run. `script`: this program's own file."""
    if arguments[:1] == [_INSIDE]:
        return _inside(arguments[1:])
    try:
        request = parsed(arguments)
    except BadArguments as error:
        asked = str(error) in ("-h", "--help")
        print(USAGE, end="", file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    try:
        if not sys.platform.startswith("linux"):
            raise CannotProtect(f"{sys.platform} has no Landlock")
        return _nested(request) if marked() else _protected(request, script)
    except (CannotProtect, OSError) as error:
        print(f"protected: not run, the project could not be protected ({error}). On Linux 5.13 or newer the kernel's "
              'Landlock does it, or bubblewrap; elsewhere the person can agree to runs without it: "allow runs".',
              file=sys.stderr)
        return UNPROTECTED


def _protected(request: Request, script: str) -> int:
    program = bubblewrap.find(os.environ, request.workspace)
    known = landlock.version()
    wrapped = program is not None and bubblewrap.works(program)
    if not wrapped and not known:
        raise CannotProtect("this kernel has no Landlock, and bubblewrap is not there or not permitted")
    private = private_folders(request.workspace, os.environ)
    if request.fresh:
        private = fresh_folders(private)
    plan, held = plan_of(request, private)
    notes = notes_of(known, wrapped)
    if not (plan.shared or plan.open_workspace or request.read_only):
        notes = (*notes, "too many files lie below scratch/debug: nothing is written there; remove some by hand")
    plan = plan._replace(notes=notes)
    if plan.notes:
        print(f"protected: {'; '.join(plan.notes)}", file=sys.stderr, flush=True)
    cwd = os.getcwd()
    if wrapped and program is not None:
        _in_bubblewrap(program, plan, private, cwd, request, script, held)
    return confinement.run(plan, request.command, cwd, os.environ, known)


def _in_bubblewrap(program: str, plan: Plan, private: Private, cwd: str, request: Request, script: str,
                   held: Sequence[in_use]) -> NoReturn:
    import json

    for number in (plan.manifest, *(lock.file for lock in held)):
        if number >= 0:
            os.set_inheritable(number, True)
    inside = plan._replace(tmp="/tmp", full=("/tmp", *(f for f in plan.full if f != private.tmp)),
                           closed=tuple(bubblewrap.kept_of_tmp(private.tmp, _needed(request.command))))
    inner = [sys.executable, "-I", "-S", script, _INSIDE, json.dumps(inside.to_json()), cwd, *request.command]
    os.execv(program, bubblewrap.around(program, inside, private.tmp, cwd, inner))


def _needed(command: Sequence[str]) -> list[str]:
    """What the command cannot be without: its interpreter, its own files and the folders of PATH and PYTHONPATH."""
    folders = [f for name in ("PATH", "PYTHONPATH") for f in os.environ.get(name, "").split(os.pathsep)]
    words = (sys.executable, sys.prefix, sys.base_prefix, __file__, *command, *folders)
    return [word for word in words if os.path.isabs(word)]


def _inside(arguments: Sequence[str]) -> int:
    import json

    plan = plan_from(json.loads(arguments[0]))
    return confinement.run(plan, arguments[2:], arguments[1], os.environ, landlock.version())


def _nested(request: Request) -> int:
    """Below a protected run everything is protected already."""
    if request.copy:
        import tempfile

        folder = tempfile.mkdtemp(prefix="copy-")
        copying.bring(request.workspace, folder)
        os.chdir(folder)
    try:
        os.execvp(request.command[0], list(request.command))
    except OSError as error:
        print(f"protected: {request.command[0]}: {error.strerror}", file=sys.stderr)
        return 127
