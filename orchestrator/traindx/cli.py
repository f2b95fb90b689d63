"""`traindx`: the command line. Commands are imported when they are called, so that `traindx --help` stays quick."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from traindx_tools import __version__
from traindx_tools.errors import TraindxError

COMMANDS = {
    "diagnose": "Read artifacts and name the cause: offline, read-only, seconds.",
    "debug": "A whole session: diagnosis, your approval, one fix, verification.",
    "approve": "Approve the diagnosis a session waits with.",
    "reject": "Reject the diagnosis a session waits with.",
    "revise": "Send a diagnosis back with what you know.",
    "sessions": "List the debug sessions of a workspace.",
    "show": "Show a session: its phase, diagnosis and attempts.",
    "resume": "Go on with a session that was interrupted.",
    "log": "Metrics of any run in one table (table, CSV, JSON).",
    "plot": "Draw loss, gradient norm and learning rate with the findings marked.",
    "audit": "Read training code and list what is wrong in it.",
    "run": "Run a training command with instruments attached, no change to its code.",
    "jaxpr": "What a JAX function became when it was traced, in few lines.",
    "replay": "Check the batch that a program failed on: which index, where, in which table.",
    "explain": "The page of a rule (L204) or a failure mode (lr.too-high).",
    "mcp": "The instruments as an MCP server (stdio).",
    "doctor": "What is installed and what will work.",
}

TRACEBACK = "TRAINDX_TRACEBACK"
"""Set to anything, this environment variable lets an error that is ours show where it came from."""

EPILOG = """\b
Exit codes: 0 nothing wrong found, 1 a problem was diagnosed,
2 bad usage or unreadable input, 3 more data is needed.
"""


class LazyGroup(click.Group):
    """A group whose commands live in `traindx.commands.<name>` as `command` and are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"traindx.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="traindx")
def traindx() -> None:
    """Find out why a training run failed, with proof, and change nothing before you agree."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code; errors become one message on standard error."""
    _any_text(sys.stdout, sys.stderr)
    try:
        outcome: Any = traindx.main(args=list(arguments) if arguments is not None else None, prog_name="traindx",
                                    standalone_mode=False)
        _flush(sys.stdout)
    except TraindxError as error:
        return _say(str(error), error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("interrupted", 130)
    except click.ClickException as error:
        error.show()
        return 2
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


def _any_text(*streams: object) -> None:
    """Names that are no valid text, and terminals that know few letters, are shown with escapes instead of failing."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush(stream: Any) -> None:
    """What is still buffered goes out now, so that a full disk or a closed pipe is noticed here; None when closed."""
    if stream is not None:
        stream.flush()


def _forget(stream: Any) -> None:
    """Points a stream that takes nothing more at nothing: Python would complain again when it flushes at exit."""
    with contextlib.suppress(OSError, AttributeError):  # a stream of a caller's own may have no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _of_system(error: OSError) -> str:
    """What the operating system refused, and what to do."""
    todo = {errno.ENOSPC: "free some space", errno.EFBIG: "free some space or raise the limit on file sizes",
            errno.EDQUOT: "free some space in your quota", errno.EMFILE: "raise the limit on open files",
            errno.EROFS: "name a writable folder", errno.EACCES: "check its permissions"}
    said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    return f"the system refused: {said}; {todo.get(error.errno or 0, 'check the path and try again')}"


def _say(message: str, code: int) -> int:
    """One line on standard error: paths and texts in it may hold line breaks and terminal sequences."""
    from traindx.safe_text import line

    try:
        click.echo(f"traindx: {line(message)}", err=True)
    except OSError:
        _forget(sys.stderr)  # nobody listens any more; the exit code still tells
    return code


def main() -> None:
    """Entry point of the console script."""
    raise SystemExit(run())
