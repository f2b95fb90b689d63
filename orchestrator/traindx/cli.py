"""`traindx`: the command line. Commands are imported when they are called, so that `traindx --help` stays quick."""

from __future__ import annotations

import importlib
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
    "explain": "The page of a rule (L204) or a failure mode (lr.too-high).",
    "mcp": "The instruments as an MCP server (stdio).",
    "doctor": "What is installed and what will work.",
}

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
    try:
        outcome: Any = traindx.main(args=list(arguments) if arguments is not None else None, prog_name="traindx",
                                    standalone_mode=False)
    except TraindxError as error:
        click.echo(f"traindx: {error}", err=True)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("traindx: interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except BrokenPipeError:
        # The reader (head, less) went away. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return outcome if isinstance(outcome, int) else 0


def main() -> None:
    """Entry point of the console script."""
    raise SystemExit(run())
