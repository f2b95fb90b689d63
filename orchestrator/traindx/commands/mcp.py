"""`traindx mcp`: the instruments as an MCP server."""

from __future__ import annotations

import os
import signal
import sys

import click


@click.command("mcp")
@click.option("--root", default=".", show_default=True,
              help="The folder that the instruments read; none of them reads outside. Code that an agent hands to "
                   "`run_probe` can read what you can, and write a copy alone.")
@click.option("--run", "allow_run", is_flag=True,
              help="Your consent that `jaxpr` imports files below the root, which executes them, and that "
                   "`run_experiment` and `replay_step` run your training in copies.")
def command(root: str, allow_run: bool) -> None:
    """Serve the instruments over MCP on standard input and output, for Claude Code, Cursor, Codex and others.

    \b
        claude mcp add traindx -- traindx mcp
    """
    from traindx.mcp_server import serve

    if sys.stdin.isatty():
        _greet()
    serve(root, allow_run=allow_run)


def _greet() -> None:
    """For a person who typed it: what it is, and Ctrl-C ends it at once, although the server waits for a line."""
    click.echo("traindx: an MCP server on standard input and output: a coding agent starts it (claude mcp add traindx "
               "-- traindx mcp). Ctrl-C ends it.", err=True)
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
