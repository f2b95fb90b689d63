"""Starts the command confined, answers what it asks, and ends with it: nothing that it started outlives it."""

from __future__ import annotations

import _socket
import ctypes
import os
import signal
import stat
import sys
from collections.abc import Callable, Mapping, Sequence

from traindx.runner import capabilities, copying, landlock, seccomp, syscalls
from traindx.runner.devices import PLAIN, SHARED_MEMORY, passed_on
from traindx.runner.disarming import acting, disarm
from traindx.runner.environment import environment_of
from traindx.runner.plan import UNPROTECTED, CannotProtect, Plan, within
from traindx.runner.processes import end_all, reap
from traindx.runner.syscalls import Machine

_PARENT_DEATH_SIGNAL, _ADOPT_ORPHANS = 1, 36
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_NOT_FOUND = 127


def rules_of(plan: Plan) -> list[landlock.Rule]:
    """What Landlock lets be written."""
    rules = [(path, landlock.FULL) for path in plan.full]
    rules += [(path, landlock.SHARED) for path in plan.shared]
    rules += [(plan.workspace, landlock.FULL)] if plan.open_workspace else []
    rules += [(path, landlock.DEVICE) for path in (*PLAIN, *passed_on()) if os.path.exists(path)]
    if os.path.isdir(SHARED_MEMORY) and not within(plan.workspace, SHARED_MEMORY):
        rules.append((SHARED_MEMORY, landlock.FULL & ~landlock.MAKE_SYM))
    return rules + [(path, landlock.FILE) for path in _outputs(plan)]


def _outputs(plan: Plan) -> list[str]:
    """Files that the command's output goes to already: /dev/stderr opens them again."""
    found = []
    for number in (1, 2):
        try:
            about, path = os.fstat(number), os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        inside = within(path, plan.workspace) and not plan.open_workspace
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and not inside and os.path.exists(path):
            found.append(path)
    return found


def run(plan: Plan, command: Sequence[str], cwd: str, environment: Mapping[str, str], known: int) -> int:
    """Runs the command; returns its exit code, or ends by the signal that ended it. `known`: Landlock's version.

    Raises CannotProtect.
    """
    on = syscalls.machine()
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    armed = acting(plan.shared)
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    rules = rules_of(plan)
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # one that comes before the handlers are there waits
    child = os.fork()
    if child == 0:
        _start(lambda: _confined(plan, rules, on, theirs, known, parent), command, cwd, environment, plan)
    theirs.close()
    how = _watched(child, _received(ours), on, plan)
    disarm(armed, plan.shared)
    return _as_ended(how)


def _start(confined: Callable[[], None], command: Sequence[str], cwd: str, environment: Mapping[str, str],
           plan: Plan) -> None:
    """In the child: confine it and become the command. Never returns."""
    code = UNPROTECTED
    try:
        os.setsid()
        confined()
        with_caches = environment_of(plan.cache, environment, plan.tmp)
        os.chdir(plan.copy or cwd)
        os.closerange(3, 65_536)
        for restored in (signal.SIGPIPE, signal.SIGXFSZ, *_FORWARDED):
            signal.signal(restored, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        code = _NOT_FOUND
        os.execvpe(command[0], list(command), with_caches)
    except CannotProtect as error:
        print(f"protected: not run, the project could not be protected ({error})", file=sys.stderr)
    except OSError as error:
        print(f"protected: {command[0]}: {error.strerror}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def wanted_of(known: int) -> seccomp.Wanted:
    """What the filter holds on this machine, where Landlock has this version."""
    answers = supervision()
    return seccomp.Wanted(answers >= 1, answers >= 2, known < landlock.SCOPES_SINCE, known < landlock.TRUNCATE_SINCE,
                          known == 0)


def supervision() -> int:
    """2: somebody can answer all that is asked; 1: all but connections; 0: nothing."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            if int(file.read()) >= 2 and os.geteuid() != 0:
                return 0
    except (OSError, ValueError):
        pass
    try:
        own = os.pidfd_open(os.getpid())
    except OSError:
        return 0
    taken = int(ctypes.CDLL(None).syscall(438, own, 2, 0))
    os.close(own)
    if taken < 0:
        return 1
    os.close(taken)
    return 2


def _confined(plan: Plan, rules: Sequence[landlock.Rule], on: Machine | None, theirs: _socket.socket, known: int,
              parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        raise CannotProtect("the runner ended before the command began")
    capabilities.drop()
    if known:
        landlock.restrict(rules, known)
    if plan.copy:
        copying.bring(plan.workspace, plan.copy, plan.manifest)
    if on is None:
        return
    listener = _filtered(on, wanted_of(known))
    if listener is not None:
        theirs.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener.to_bytes(4, sys.byteorder))])


def _filtered(on: Machine, wanted: seccomp.Wanted) -> int | None:
    """Installs the filter; where another program answers this process's calls already, without an answerer of ours."""
    try:
        return seccomp.install(on, wanted)
    except CannotProtect as error:
        if not wanted.supervised:
            raise
        print(f"protected: calls cannot be looked at here ({error}): local sockets, changes of modes and times of "
              "files fail", file=sys.stderr, flush=True)
        return seccomp.install(on, wanted._replace(supervised=False, connects=False))


def _received(ours: _socket.socket) -> int:
    """The descriptor on which the child's calls are asked; -1 where it sent none."""
    _, given, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(4))
    ours.close()
    return int.from_bytes(given[0][2][:4], sys.byteorder) if given else -1


def _watched(child: int, listener: int, on: Machine | None, plan: Plan) -> int:
    """Answers until the command ends, and ends what it left behind; returns its status."""
    import select

    from traindx.runner.supervisor import Supervisor

    woken, wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for forwarded in _FORWARDED:
        signal.signal(forwarded, lambda sign, _: _forward(child, sign))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    polled = select.poll()
    polled.register(woken, select.POLLIN)
    supervisor = None
    if listener >= 0 and on is not None:
        supervisor = Supervisor(listener, on, plan)
        polled.register(listener, select.POLLIN)
    while True:
        ended = reap()
        if child in ended:
            end_all(os.getpid())
            return ended[child]
        for number, what in polled.poll():
            if number == woken:
                os.read(woken, 4096)
            elif what & select.POLLIN and supervisor is not None:
                supervisor.serve_one()
            else:
                polled.unregister(number)


def _forward(child: int, sign: int) -> None:
    try:
        os.killpg(child, sign)
    except OSError:
        return


def _as_ended(how: int) -> int:
    """The exit code; a command that a signal ended ends the runner in the same way."""
    if os.WIFSIGNALED(how):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(how)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.waitstatus_to_exitcode(how)
