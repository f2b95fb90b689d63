"""Bubblewrap, where it is there and permitted: namespaces of its own for mounts, processes, IPC and the session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from traindx.runner.devices import passed_on
from traindx.runner.plan import Plan, within

PROGRAM = "bwrap"
ENTRIES_OF_TMP = 300
"""At most, of /tmp, that stay readable at their place: each costs a mount."""

KEYS = ("~/.ssh", "~/.aws", "~/.gnupg", "~/.kube", "~/.azure", "~/.docker", "~/.config/gcloud", "~/.netrc",
        "~/.git-credentials", "~/.pypirc", "~/.config/gh")
"""Keys that no training run needs."""
_AS_ROOT = ("--cap-drop", "ALL", "--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_DAC_READ_SEARCH")


SWITCH = "TRAINDX_BUBBLEWRAP"
"""Set to `off`, it leaves bubblewrap aside: Landlock and seccomp hold alone. An absolute path names the program."""


def find(environment: Mapping[str, str], workspace: str) -> str | None:
    """The program that is named, else that of an absolute folder of PATH; never one of the workspace."""
    named = environment.get(SWITCH, "")
    if named == "off":
        return None
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    programs = [named] if os.path.isabs(named) else [os.path.join(f, PROGRAM) for f in folders if os.path.isabs(f)]
    fitting = (p for p in programs if os.access(p, os.X_OK) and not within(os.path.realpath(p), workspace))
    return next(fitting, None)


def works(program: str) -> bool:
    """True where it starts here: containers and some distributions forbid its namespaces."""
    try:
        child = os.posix_spawn(program, [*_base(program), "--", "/bin/sh", "-c", ":"], os.environ,
                               file_actions=[(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_RDWR, 0) for n in (0, 1, 2)])
        return os.waitpid(child, 0)[1] == 0
    except OSError:
        return False


def _base(program: str) -> list[str]:
    root = _AS_ROOT if os.geteuid() == 0 else ()
    return [program, "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", *root, "--ro-bind", "/",
            "/", "--dev", "/dev", "--proc", "/proc"]


def around(program: str, plan: Plan, private_tmp: str, cwd: str, inner: Sequence[str]) -> list[str]:
    """The words that start `inner` in namespaces of its own, with the folders of the plan in them.

    `plan.closed` is what stays readable of the real /tmp, see `kept_of_tmp`.
    """
    words = _base(program)
    for device in passed_on():
        words += ["--dev-bind-try", device, device]
    words += ["--bind", private_tmp, "/tmp", "--bind", private_tmp, "/var/tmp"]
    for path in plan.closed:
        words += ["--ro-bind-try", path, path]
    words += ["--ro-bind", plan.workspace, plan.workspace]
    sessions = os.path.join(plan.workspace, "scratch", "debug")
    if plan.open_workspace:
        words += ["--bind", plan.workspace, plan.workspace, "--ro-bind-try", sessions, sessions]
    for path in sorted(dict.fromkeys(p for p in (*plan.full, *plan.shared) if p != "/tmp"), key=len):
        words += ["--bind", path, path]
    for path in map(os.path.expanduser, KEYS) if plan.hide_keys else ():
        words += ["--tmpfs", path] if os.path.isdir(path) else []
        words += ["--ro-bind", "/dev/null", path] if os.path.isfile(path) else []
    return [*words, "--chdir", cwd, "--", *inner]


def kept_of_tmp(private_tmp: str, needed: Sequence[str] = ()) -> Iterator[str]:
    """What lies in the real /tmp and stays readable, but where the private one has something of that name.

    Of a crowded folder that is a part: what the `needed` paths lie in comes first, also below /var/tmp, and then the
    names in order.
    """
    used = [place for path in map(os.path.abspath, needed) for place in _tops(path)]
    try:
        names = sorted(os.listdir("/tmp"))
    except OSError:
        names = []
    for path in list(dict.fromkeys([*used, *(os.path.join("/tmp", name) for name in names)]))[:ENTRIES_OF_TMP]:
        place = os.path.join(private_tmp, os.path.basename(path))
        if os.path.islink(path) or not (os.path.isdir(path) or os.path.isfile(path)):
            continue
        if not os.path.lexists(place) or _is_empty(place):
            yield path


def _tops(path: str) -> Iterator[str]:
    """The entry of /tmp or /var/tmp that the path lies in, also by its real path."""
    for seen in dict.fromkeys((path, os.path.realpath(path))):
        for folder in ("/tmp/", "/var/tmp/"):
            if seen.startswith(folder):
                yield folder + seen[len(folder):].split("/", 1)[0]


def _is_empty(place: str) -> bool:
    if os.path.islink(place):
        return False
    return not os.listdir(place) if os.path.isdir(place) else os.path.getsize(place) == 0
