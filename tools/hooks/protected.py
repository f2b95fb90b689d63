"""Runs a command while the kernel keeps the project as it is: for diagnostics before a fix is approved.

    python3 protected.py [--copy] [--] COMMAND ...

Files can be read as always. They can be written only below `scratch/debug/probes` of the current folder (which is the
folder for temporary files, too), in caches of libraries (~/.cache and the like) and on devices such as /dev/null. With
--copy the command runs in a copy of the current folder there, which it may change. Linux with Landlock (5.13 or newer),
no privileges, no other program; where that is missing, nothing is run and exit code 75 says so. A process that runs
already (a container engine, a notebook server) is outside of this protection.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import struct
import sys
from collections.abc import Mapping

UNPROTECTED = 75
PROBES = os.path.join("scratch", "debug", "probes")
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".venv", "venv", "env", "node_modules", "__pycache__", "scratch", "wandb",
                      ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".claude"})
LINKED_FROM = 32 * 2**20
"""Bytes; a larger file is linked into the copy: it can be read there and not written."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts", "/dev/nvidia*", "/dev/dri", "/dev/kfd",
           "/dev/infiniband", "/dev/shm")
"""What a training program writes to besides files; /dev/shm is where workers hand batches over."""

CACHES = ("~/.cache", "~/.nv", "~/.triton", "~/.keras", "~/.cupy")
CACHE_VARIABLES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TRANSFORMERS_CACHE",
                   "HF_DATASETS_CACHE")
"""Libraries lock and fill their caches also when they only read: data sets and models would not load without."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls, the same number on every architecture of Linux that Landlock has."""
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_WRITE_FILE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))


class CannotProtect(Exception):
    """This system has no Landlock, or refuses it."""


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    done = int(libc.syscall(number, *arguments))
    if done < 0:
        raise CannotProtect(os.strerror(ctypes.get_errno()))
    return done


def protect(writable: dict[str, bool]) -> None:
    """From here on this process and its children write only below these folders. True: files may be made and removed
    too.

    Raises CannotProtect.
    """
    if not sys.platform.startswith("linux"):
        raise CannotProtect(f"{sys.platform} has no Landlock")
    libc = ctypes.CDLL(None, use_errno=True)
    version = _call(libc, _CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    handled = _WRITE_FILE | _MAKE_AND_REMOVE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    attributes = struct.pack("=Q", handled)
    ruleset = _call(libc, _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for folder, all_of_it in writable.items():
        at = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        rights = handled if all_of_it else handled & (_WRITE_FILE | _TRUNCATE)
        _call(libc, _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, at), 0)
        os.close(at)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise CannotProtect(os.strerror(ctypes.get_errno()))
    _call(libc, _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def probes_folder(here: str) -> str:
    """The folder that may be written. Raises CannotProtect where a link leads elsewhere."""
    folder = os.path.join(os.path.realpath(here), PROBES)
    if os.path.realpath(folder) != folder:
        raise CannotProtect(f"{folder} leads to {os.path.realpath(folder)}")
    os.makedirs(os.path.join(folder, "tmp", "cache"), exist_ok=True)
    ignore = os.path.join(os.path.dirname(folder), ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w", encoding="utf-8") as file:
            file.write("*\n")
    return folder


def caches(here: str, environment: Mapping[str, str]) -> list[str]:
    """The caches that exist, without one that holds the project or lies in it, or that holds the gate's own state."""
    state = environment.get("TRAINDX_GATE_STATE") or os.path.join(
        environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "traindx", "gate")
    kept = [os.path.realpath(here), os.path.realpath(state)]
    named = [*map(os.path.expanduser, CACHES), *(environment.get(v, "") for v in CACHE_VARIABLES)]
    found = dict.fromkeys(os.path.realpath(folder) for folder in named if folder and os.path.isdir(folder))
    return [f for f in found if not any(_within(k, f) or _within(f, k) for k in kept)]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def copy_of(here: str, probes: str) -> str:
    """A copy of the folder that the command may change; large files are linked."""
    number = 1
    while os.path.lexists(os.path.join(probes, f"copy-{number}")):
        number += 1
    target = os.path.join(probes, f"copy-{number}")

    def put(source: str, to: str, **_: object) -> str:
        if os.path.getsize(source) > LINKED_FROM:
            os.symlink(os.path.realpath(source), to)
            return to
        return str(shutil.copy2(source, to))

    shutil.copytree(here, target, symlinks=True, copy_function=put,
                    ignore=lambda _, names: [n for n in names if n in LEFT_OUT])
    return target


def main(arguments: list[str]) -> int:
    """Runs the command in this process's place; returns only where it could not."""
    copy, rest = False, list(arguments)
    while rest and rest[0].startswith("-"):
        flag = rest.pop(0)
        if flag == "--":
            break
        if flag != "--copy":
            print(__doc__, file=sys.stdout if flag in ("-h", "--help") else sys.stderr)
            return 0 if flag in ("-h", "--help") else 2
        copy = True
    if not rest:
        print(__doc__, file=sys.stderr)
        return 2
    here = os.getcwd()
    try:
        probes = probes_folder(here)
        if copy:
            os.chdir(copy_of(here, probes))
        devices = {path: path == "/dev/shm" for pattern in DEVICES for path in glob.glob(pattern)}
        protect({probes: True, **devices, **dict.fromkeys(caches(here, os.environ), True)})
    except (CannotProtect, OSError, shutil.Error) as error:
        print(f"protected: not run, the project could not be protected ({error}). On Linux 5.13 or newer the kernel's "
              'Landlock does it; elsewhere the person can agree to runs without it: "allow runs".', file=sys.stderr)
        return UNPROTECTED
    temporary = os.path.join(probes, "tmp")
    cache = os.path.join(temporary, "cache")
    os.environ.update(TMPDIR=temporary, PYTHONDONTWRITEBYTECODE="1", TORCHINDUCTOR_CACHE_DIR=cache,
                      TRITON_CACHE_DIR=cache,
                      MPLCONFIGDIR=cache, NUMBA_CACHE_DIR=cache, PYTEST_ADDOPTS="-p no:cacheprovider")
    try:
        os.execvp(rest[0], rest)
    except OSError as error:
        print(f"protected: {rest[0]}: {error.strerror}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
