"""A project behind a closed gate, on a machine that other things happen on: commands are run for real, as the host runs
them after the hook, and what they could reach is compared.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import os
import pty
import select
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RUNNER = ROOT / "tools" / "hooks" / "protected.py"
DATA = ROOT / "tests" / "orchestrator" / "runner" / "data"
SYSTEM_PYTHON = "/usr/bin/python3"
"""Another user may not reach the Python of the tests."""
MARKER = "foreign-process-of-the-person"
TRAIN = ("import math\n\nEPS = 1e-12\n\n\ndef loss(p):\n    return -math.log(1.0 - p + EPS)\n\n\n"
         "print('loss', loss(0.5))\n")

_RACE_CONNECT = """import os, socket, sys, threading, time
# The address is exchanged while the connection is being judged.
own = os.environ["TMPDIR"] + "/own"
server = socket.socket(socket.AF_UNIX); server.bind(own); server.listen(99)
import ctypes
libc = ctypes.CDLL(None)
good = b"\\1\\0" + own.encode() + b"\\0"; bad = b"\\1\\0" + sys.argv[1].encode() + b"\\0"
size = max(len(good), len(bad)); buffer = ctypes.create_string_buffer(good.ljust(size, b"\\0"), size)
stop = False
def swap():
    while not stop:
        ctypes.memmove(buffer, bad.ljust(size, b"\\0"), size); ctypes.memmove(buffer, good.ljust(size, b"\\0"), size)
thread = threading.Thread(target=swap, daemon=True); thread.start()
end = time.monotonic() + 1.0
while time.monotonic() < end:
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    if libc.connect(s.fileno(), buffer, size) == 0:
        try: s.send(b"approve A")
        except OSError: pass
    s.close()
stop = True
"""
_RACE_CHMOD = """import os, sys, threading, time
# The file is exchanged for a link to the project while a change of its mode is being judged.
os.chdir(os.environ["TMPDIR"])
open("mine", "w").close()
stop = False
def swap():
    while not stop:
        for to in ("mine", sys.argv[1]):
            os.symlink(to, "next"); os.replace("next", "file")
os.symlink("mine", "file")
thread = threading.Thread(target=swap, daemon=True); thread.start()
end = time.monotonic() + 1.0
while time.monotonic() < end:
    try: os.chmod("file", 0o777); os.utime("file", (1, 1))
    except OSError: pass
stop = True
"""
_INT80 = """import ctypes, mmap, sys
# The call chmod of 32-bit programs, from 64-bit code, with the path below 4 GiB.
low = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
at = ctypes.addressof(ctypes.c_char.from_buffer(low))
path = sys.argv[1].encode() + b"\\0"
low[4096:4096 + len(path)] = path
code = (b"\\x53\\xb8" + (15).to_bytes(4, "little") + b"\\xbb" + (at + 4096).to_bytes(4, "little") +
        b"\\xb9" + (0o777).to_bytes(4, "little") + b"\\xcd\\x80\\x5b\\xc3")
low[0:len(code)] = code
print(ctypes.CFUNCTYPE(ctypes.c_int)(at)())
"""


class ClosedGate:
    """The project `work`, a home, an outside folder, the data; a process, a terminal and sockets of the person."""

    def __init__(self, base: Path, extra: Mapping[str, str] | None = None, user: int | None = None) -> None:
        self.base, self.work, self.home = base, base / "work", base / "home"
        self.outside, self.state = base / "outside", base / "home" / ".local" / "state" / "traindx" / "gate"
        self.user = user
        self.start: Path | None = None
        """A program that is started in the runner's place."""
        self.python = sys.executable if user is None else SYSTEM_PYTHON
        self.environment = {"PATH": f"{Path(self.python).parent}{os.pathsep}{os.environ['PATH']}",
                            "HOME": str(self.home), "TRAINDX_RUNS": str(base / "runs"),
                            "TRAINDX_GATE_STATE": str(self.state), "CLAUDE_PROJECT_DIR": str(self.work),
                            "TMUX": "/none", "LC_ALL": "C.UTF-8", **(extra or {})}
        self.cwd = self.work
        self.make()
        self.received: list[bytes] = []
        self._stack = contextlib.ExitStack()
        self._person()

    # -- the world -------------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Everything anew, as it is before the gate closes."""
        for folder in (self.work, self.home, self.base / "datasets"):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.outside.mkdir(exist_ok=True)
        for path in self.outside.iterdir():
            if not path.is_socket():  # the person still listens there
                path.unlink() if not path.is_dir() or path.is_symlink() else shutil.rmtree(path)
        work = self.work
        for name, text in (("train.py", TRAIN), ("check.py", "import sys\nsys.exit(0)\n"), ("a", "1\n"),
                           ("config.json", '{"lr": 0.1}'), ("log.csv", "1,0.5\n2,nan\n3,0.25\n"), ("b", "2\n"),
                           (".env", "TOKEN=x\n")):
            (work / name).write_text(text)
        for folder in ("src", "tests", "empty", "scratch/debug/probes"):
            (work / folder).mkdir(parents=True)
        (work / "src" / "model.py").write_text("x = 1\n")
        (work / "tests" / "test_it.py").write_text("def test_it():\n    assert True\n")
        (work / ".gitignore").write_text("scratch\n.env\n")
        (self.base / "datasets" / "rows.csv").write_text("1,2\n")
        (work / "data").symlink_to("../datasets")
        self._formats()
        self._git()
        self._scratch()
        (self.outside / "kept.txt").write_text("not yours\n")
        (self.home / ".bashrc").write_text("# mine\n")
        for path in (".cache/uv/archive/module.py", ".cache/pypoetry/virtualenvs/e/site-packages/x.py"):
            (self.home / path).parent.mkdir(parents=True, exist_ok=True)
            (self.home / path).write_text("x = 1\n")
        os.link(self.home / ".cache/uv/archive/module.py", work / "src" / "linked.py")
        self._owned_by_user()

    def _formats(self) -> None:
        work = self.work
        (work / "x.bin").write_bytes(bytes(range(64)))
        (work / "log.gz").write_bytes(gzip.compress(b"step 1\n", mtime=0))
        with tarfile.open(work / "x.tar", "w") as tar:
            tar.add(work / "train.py", "train.py", filter=_without_time)
        with zipfile.ZipFile(work / "x.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo("train.py", (2026, 1, 1, 0, 0, 0)), TRAIN)  # else the commits differ
        base = sqlite3.connect(work / "runs.db")
        base.executescript("create table m (a int); insert into m values (1), (2);")
        base.close()

    def _git(self) -> None:
        def git(*words: str) -> None:
            then = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
            subprocess.run(["git", "-c", "user.name=p", "-c", "user.email=p@example.org", *words], cwd=self.work,
                           check=True, capture_output=True, env={**os.environ, **then})

        git("init", "-q", ".")
        git("add", "-A")
        git("commit", "-qm", "first")
        (self.work / "train.py").write_text(TRAIN.replace("0.5)", "0.25)"))
        git("commit", "-qam", "second")
        (self.work / "train.py").write_text(TRAIN)

    def _scratch(self) -> None:
        scratch = self.work / "scratch" / "debug"
        (scratch / "probe.py").write_text("print('a probe')\n")
        (scratch / "way.py").symlink_to("../../train.py")
        (scratch / "up").symlink_to("../..")
        os.link(self.work / "check.py", scratch / "old_hard.py")
        for name, text in (("race_connect.py", _RACE_CONNECT), ("race_chmod.py", _RACE_CHMOD), ("int80.py", _INT80)):
            (scratch / name).write_text(text)

    def _owned_by_user(self) -> None:
        if self.user is not None:
            for path in (self.base, *self.base.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)

    def _person(self) -> None:
        """A process, a terminal, sockets and a screen that are not the command's."""
        self.foreign = subprocess.Popen(
            [self.python, "-c", f"import sys; '{MARKER}'; sys.stdin.read()"], stdin=subprocess.PIPE,
            start_new_session=True, user=self.user)
        self.terminal, other = pty.openpty()
        self.pts = os.ttyname(other)
        self._stack.callback(os.close, other)
        if self.user is not None:
            os.chown(self.pts, self.user, -1)
        self.sock, self.dgram = self.outside / "person.sock", self.outside / "person.dgram"
        self.abstract = f"person-{os.getpid()}-{id(self)}"
        listeners = [self._listens(socket.AF_UNIX, str(self.sock)), self._listens(socket.AF_UNIX, "\0" + self.abstract)]
        self.x11 = 0
        for port in range(6040, 6063):
            with contextlib.suppress(OSError):
                listeners.append(self._listens(socket.AF_INET, ("127.0.0.1", port)))
                self.x11 = port
                break
        gram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        gram.bind(str(self.dgram))
        self._stack.callback(gram.close)
        if self.user is not None:
            for path in (self.sock, self.dgram):
                os.chown(path, self.user, self.user)
        wakes, self._wake = os.pipe()
        thread = threading.Thread(target=self._accepts, args=(listeners, gram, wakes), daemon=True)
        thread.start()
        self.tmux = self.outside / "tmux"
        self.has_tmux = shutil.which("tmux") is not None and self._tmux("new-session", "-d", "cat").returncode == 0
        if self.user is not None and self.has_tmux:
            os.chown(self.tmux, self.user, self.user)
        self._stack.callback(self._tmux, "kill-server")

    def _tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["tmux", "-S", str(self.tmux), *words], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"], "TERM": "xterm"})

    def _windows(self) -> str:
        """What the person's terminal multiplexer shows."""
        if not self.has_tmux:
            return ""
        return self._tmux("list-windows", "-F", "#I").stdout + self._tmux("capture-pane", "-p").stdout

    def _listens(self, family: int, address: Any) -> socket.socket:
        made = socket.socket(family)
        self._stack.callback(made.close)
        made.bind(address)
        made.listen(99)
        return made

    def _accepts(self, listeners: list[socket.socket], gram: socket.socket, wakes: int) -> None:
        while True:
            ready, _, _ = select.select([*listeners, gram, wakes], [], [])
            if wakes in ready:
                os.close(wakes)
                return
            for one in ready:
                if one is gram:
                    self.received.append(gram.recv(100))
                else:
                    one.accept()[0].close()
                    self.received.append(b"connected")

    def close(self) -> None:
        """The person goes home."""
        os.close(self._wake)
        self.foreign.kill()
        self.foreign.wait()
        os.close(self.terminal)
        self._stack.close()

    # -- the host --------------------------------------------------------------------------------------------------

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        """An event of the host, answered by the hook in this process."""
        from traindx.gate_hook import program

        said = {"hook_event_name": name, "session_id": "c1", "cwd": str(self.cwd), "transcript_path": "/none", **fields}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = program.main(name, str(ROOT), json.dumps(said), self.environment)
        assert code == 0, out.getvalue()
        answer: dict[str, Any] = json.loads(out.getvalue() or "{}")
        return {**answer, **answer.get("hookSpecificOutput", {})}

    def opens(self) -> None:
        """A debug session begins."""
        self.event("UserPromptSubmit", prompt="open a debug session")
        self._owned_by_user()

    def hooked(self, command: str) -> str | None:
        """What the host runs in this command's place; None where the hook refuses it."""
        said = self.event("PreToolUse", tool_name="Bash", tool_input={"command": command})
        if said.get("permissionDecision") == "deny":
            return None
        line = str(said.get("updatedInput", {"command": command})["command"])
        line = line.replace(f"'{sys.executable}' -I -S", f"'{self.python}' -I -S")
        return line if self.start is None else line.replace(f"-I -S '{RUNNER}'", f"-I -S '{self.start}'")

    def shell(self, line: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Runs a line as the host's shell does."""
        return subprocess.run(["bash", "-c", f"eval {_quoted(line)}"], cwd=self.cwd, env=self.environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout, check=False,
                              errors="replace", user=self.user, group=self.user,
                              extra_groups=[] if self.user is not None else None)

    def runs(self, command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """The agent's command, through the hook and then for real."""
        line = self.hooked(command)
        assert line is not None, f"denied: {command}"
        return self.shell(line, timeout)

    def filled(self, command: str) -> str:
        """A command of the data with its names filled in."""
        return command.format(work=self.work, home=self.home, outside=self.outside, state=self.state, runner=RUNNER,
                              pid=self.foreign.pid, marker=MARKER, pts=self.pts, sock=self.sock, dgram=self.dgram,
                              abstract=self.abstract, x11=self.x11, tmux=self.tmux)

    # -- what is compared ------------------------------------------------------------------------------------------

    def seen(self) -> dict[str, tuple[Any, ...]]:
        """Everything that a command must not change: files with modes, times and contents, the gate, the person."""
        found: dict[str, tuple[Any, ...]] = {}
        for root in (self.work, self.home, self.outside, self.base / "datasets"):
            for path in (root, *sorted(root.rglob("*"))):
                if not path.is_relative_to(self.work / "scratch" / "debug"):
                    found[str(path)] = _about(path, times=not path.is_relative_to(self.state))
        for name in ("way.py", "up"):
            found[name] = (os.readlink(self.work / "scratch" / "debug" / name),)
        found["windows"] = (self._windows(),)
        found["process"] = (self.foreign.poll(), _scheduling(self.foreign.pid))
        found["terminal"] = (self._typed(),)
        found["sockets"] = (*self.received, self.sock.exists(), self.dgram.exists())
        found["machine"] = (os.uname().nodename,)
        return found

    def _typed(self) -> bytes:
        typed = b""
        while select.select([self.terminal], [], [], 0)[0]:
            typed += os.read(self.terminal, 1000)
        return typed


def _quoted(line: str) -> str:
    return "'" + line.replace("'", "'\"'\"'") + "'"


def _without_time(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    return entry


def _about(path: Path, times: bool) -> tuple[Any, ...]:
    about = path.lstat()
    kind = stat.S_IFMT(about.st_mode)
    content = (os.readlink(path) if kind == stat.S_IFLNK else
               hashlib.sha1(path.read_bytes()).hexdigest() if kind == stat.S_IFREG else "")
    attributes = os.listxattr(path, follow_symlinks=False)
    links = about.st_nlink if kind == stat.S_IFREG and path.name != "check.py" else 0
    content = "a socket" if path.name == "tmux" else content
    if path.name == "tmux":  # its owner changes its mode with each client
        return (content,)
    return (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns if times else 0, content, attributes, links,
            _flags(path) if kind in (stat.S_IFREG, stat.S_IFDIR) else 0)


def _flags(path: Path) -> int:
    """Flags of the inode (chattr), where the file system has them."""
    file = os.open(path, os.O_RDONLY)
    try:
        return int.from_bytes(fcntl.ioctl(file, 0x80086601, bytes(8)), "little")
    except OSError:
        return 0
    finally:
        os.close(file)


def _scheduling(pid: int) -> tuple[Any, ...]:
    if not Path(f"/proc/{pid}").exists():
        return ("gone",)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (fields[0] in "TtZ", os.getpriority(os.PRIO_PROCESS, pid), tuple(os.sched_getaffinity(pid)),
            Path(f"/proc/{pid}/limits").read_text(), Path(f"/proc/{pid}/oom_score_adj").read_text())


def differences(before: dict[str, tuple[Any, ...]], after: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """What is not as it was."""
    return {name: (before.get(name), after.get(name)) for name in {*before, *after}
            if before.get(name) != after.get(name)}


def commands(name: str) -> Iterator[Any]:
    """The entries of a file of commands."""
    yield from json.loads((DATA / f"{name}.json").read_text())
