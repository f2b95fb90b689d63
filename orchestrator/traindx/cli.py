"""`traindx`: the command line's start and end. Whatever comes in between, a person reads one message, no traceback.

The rest is imported inside `run`: an import here lies outside its `try`, and Ctrl-C may come at any moment.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module `typing` takes longer to import than all of this
    from collections.abc import Sequence
    from typing import Any

    import click

TRACEBACK = "TRAINDX_TRACEBACK"
"""Set to anything, this environment variable lets an error that is ours show where it came from."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; errors become one message on standard error."""
    try:
        _open_closed()
        _any_text(sys.stdout, sys.stderr)
        return _outcome(arguments)
    except KeyboardInterrupt as pressed:
        return _interrupted(pressed)


def _outcome(arguments: Sequence[str] | None) -> int:
    import click

    from traindx.group import traindx
    from traindx_tools.errors import TraindxError

    if "_TRAINDX_COMPLETE" in os.environ:
        from traindx.completing import with_files

        with_files()
    try:
        outcome: Any = traindx.main(args=list(arguments) if arguments is not None else None, prog_name="traindx",
                                    standalone_mode=False)
        sys.stdout.flush()  # so that a full disk or a closed pipe is noticed here, and not at the exit
    except TraindxError as error:
        return _say(str(error), error.exit_code)
    except click.exceptions.Abort as aborted:  # what click makes of Ctrl-C
        return _interrupted(aborted.__cause__)
    except click.ClickException as error:
        return _usage(error)
    except (BrokenPipeError, SystemExit):
        _forget(sys.stdout)  # the reader (head, less) went away; click makes a SystemExit of it
        return 0
    except OSError as error:
        _forget(sys.stdout)
        return _say(_of_system(error), 2)
    except MemoryError:
        return _say("there is not enough memory for this input: give a part of it, or raise the limit", 2)
    except Exception as error:  # the last resort: a defect of ours is no reason to show a traceback
        if TRACEBACK in os.environ:
            raise
        return _say(f"a defect of traindx, not of your run: {type(error).__name__}: {error}. Nothing of yours was "
                    f"changed by it. Please report it with what {TRACEBACK}=1 shows", 2)
    return outcome if isinstance(outcome, int) else 0


def _interrupted(pressed: BaseException | None) -> int:
    """Ctrl-C, with what it leaves behind and how to go on, where the command says so."""
    told = pressed.args if isinstance(pressed, KeyboardInterrupt) else ()
    return _say("; ".join(("interrupted", *map(str, told))), 130)


def _open_closed() -> None:
    """Standard streams that were closed before the start (`<&-`, a service) are empty, or take what nobody reads."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - to the end of the process


def _any_text(*streams: object) -> None:
    """Names that are no valid text, and terminals that know few letters, are shown with escapes instead of failing."""
    import io

    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _forget(stream: Any) -> None:
    """Points a stream that takes nothing more at nothing: Python would complain again when it flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, AttributeError):  # a stream of a caller's own may have no descriptor
        return


def _of_system(error: OSError) -> str:
    """What the operating system refused, and what to do."""
    import errno

    todo = {errno.ENOSPC: "free some space", errno.EFBIG: "free some space or raise the limit on file sizes",
            errno.EDQUOT: "free some space in your quota", errno.EMFILE: "raise the limit on open files",
            errno.EROFS: "name a writable folder", errno.EACCES: "check its permissions"}
    said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    return f"the system refused: {said}; {todo.get(error.errno or 0, 'check the path and try again')}"


def _usage(error: click.ClickException) -> int:
    """What click says of arguments that it does not know."""
    try:
        error.show()
    except OSError:
        _forget(sys.stderr)
    return 2


def _say(message: str, code: int) -> int:
    """One line on standard error: paths and texts in it may hold line breaks and terminal sequences."""
    from traindx.safe_text import line

    try:
        print(f"traindx: {line(message)}", file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)  # nobody listens any more; the exit code still tells
    return code


def _raised_again(raised: Any) -> None:
    """Ctrl-C in a destructor or a callback, where Python would print it and go on: it counts as pressed just after."""
    if raised.exc_type is KeyboardInterrupt:
        import _thread

        _thread.start_new_thread(_thread.interrupt_main, ())  # raised from here, it would be swallowed as well
    else:
        sys.__unraisablehook__(raised)


def main() -> None:
    """Entry point of the console script."""
    try:
        sys.unraisablehook = _raised_again
        gc.set_threshold(50_000, 20, 20)  # a start makes 300,000 objects that stay: looking at them costs a fifteenth
        code = run()
        _end_at_once()
    except KeyboardInterrupt:  # pressed again while the first was being told, or after the end
        code = 130
    raise SystemExit(code)


def _end_at_once() -> None:
    """From here on Ctrl-C ends the process without Python: all is said and written."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
