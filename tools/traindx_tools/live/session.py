"""The one session of a process: its settings, its recorder, and what is called when the program ends."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from traindx_tools.live.files_read import FilesRead, watch_files
from traindx_tools.live.notice import say
from traindx_tools.live.recording import FileRecorder
from traindx_tools.live.settings import Settings, settings_here


@dataclass
class Session:
    """What every instrument of this process shares."""

    settings: Settings
    recorder: FileRecorder
    at_error: list[Callable[[BaseException], None]] = field(default_factory=list)
    """Called with the error that ends the program."""
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """Called once when the program ends, well or not."""
    at_step: list[Callable[[], None]] = field(default_factory=list)
    """Called after each step of a training: an optimizer's, or a call of a compiled function."""
    how: str = "ok"
    process: int = field(default_factory=os.getpid)
    ended: bool = False
    folder: str = field(default_factory=lambda: _here())
    """Where the program was started."""
    files: FilesRead = field(default_factory=watch_files)
    """The data files that the program reads."""
    steps: int = 0
    told_originals: bool = False
    asleep: bool = False
    """A forked child that has not trained yet: a DataLoader worker never does, a rank of multiprocessing will."""

    def wake(self) -> None:
        """The child trains by itself: it records under its own name from here on."""
        self.asleep = False
        self.recorder.after_fork()

    def note_files(self) -> None:
        """Writes which data files were read so far: a process that trains does so, at its first step and at its end."""
        told = self.files.told()
        if told:
            self.recorder.mark("files", read=told)

    def note_settings(self) -> None:
        """What became of the configuration files that this process read, judged where it trained."""
        if self.files.settings:
            from traindx_tools.on_settings.observe import observed
            from traindx_tools.on_variables.composed import kept

            for finding in observed(self.files.settings, self.folder, kept()):
                self.recorder.finding(finding)

    def note_originals(self) -> None:
        """Writes which modules come from the folder that this run has a copy of: what was changed in the copy, they
        are not."""
        told = self.settings.options.get("copied_from")
        if self.told_originals or not isinstance(told, (list, tuple)) or len(told) != 2:
            return
        original, copy = (os.path.join(os.path.realpath(str(p)), "") for p in told)
        files = {os.path.realpath(f) for m in list(sys.modules.values())
                 if isinstance(f := getattr(m, "__file__", None), str)}
        foreign = sorted(f for f in files if f.startswith(original) and not f.startswith(copy))
        own = [f for f in foreign if os.sep + "site-packages" + os.sep not in f and f.endswith(".py")]
        if own:
            self.told_originals = True
            self.recorder.mark("originals", files=[f[len(original):] for f in own[:5]])

    def stepped(self) -> None:
        """The training made a step."""
        if self.steps == 0:
            _guarded(self.note_originals)
        self.steps += 1
        for call in self.at_step:
            _guarded(call)

    def failed(self, error: BaseException) -> None:
        """The program ends with this error."""
        if self.asleep:
            return
        self.how = _told(error)
        if self.at_error:
            self.recorder.failed(error)
        for call in self.at_error:
            _guarded(call, error)

    def end(self) -> None:
        """The program ends; a second call, and one in a forked child, does nothing."""
        if self.ended or self.asleep or self.process != os.getpid():
            return
        self.ended = True
        for call in self.at_end:
            _guarded(call)
        if self.recorder.began:
            _guarded(self.note_settings)
        _guarded(self.note_originals)
        _guarded(self.recorder.end, self.how)


_current: list[Session] = []


def current_session() -> Session | None:
    """The session of this process, opened by the first call where the settings ask for one."""
    if not _current:
        settings = settings_here()
        if settings is None:
            return None
        open_session(settings)
    return _current[0]


def watching() -> Session | None:
    """The session that is open in this process; None is never a reason to open one."""
    return _current[0] if _current and not _current[0].ended else None


def open_session(settings: Settings) -> Session:
    """Opens the session of this process; where one is open already, that one."""
    if _current:
        return _current[0]
    recorder = FileRecorder(Path(settings.folder), bound=settings.bound, mode=settings.mode)
    session = Session(settings, recorder)
    session.files.settings_anew()
    _current.append(session)
    _listen(session)
    return session


def close_session() -> None:
    """Ends the session of this process, so that another can be opened (one in a notebook, a test)."""
    while _current:
        _current.pop().end()


def _listen(session: Session) -> None:
    """To errors, to the end of the program (also of a child of multiprocessing, which skips `atexit`) and to forks."""
    from multiprocessing import util

    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not session.ended:
            session.failed(error)
        before(kind, error, trace)

    sys.excepthook = hook
    atexit.register(session.end)
    util.Finalize(None, session.end, exitpriority=100)
    os.register_at_fork(before=session.recorder.flush, after_in_child=lambda: _in_child(session))


def _in_child(session: Session) -> None:
    from multiprocessing import util

    session.process, session.ended, session.how, session.asleep = os.getpid(), False, "ok", True
    session.recorder.let_go()
    util.register_after_fork(session, lambda s: util.Finalize(None, s.end, exitpriority=100))


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _told(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an exception's own __str__ may raise
        return type(error).__name__


def _guarded(call: Callable[..., None], *args: object) -> None:
    try:
        call(*args)
    except Exception as error:  # noqa: BLE001 - an instrument's fault must not become the program's
        say(f"an instrument failed ({type(error).__name__}: {error})")
