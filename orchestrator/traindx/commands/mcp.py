"""`traindx mcp`: the instruments as an MCP server."""

from __future__ import annotations

import click


@click.command("mcp")
@click.option("--root", default=".", show_default=True, help="The folder that may be read; nothing outside it is.")
def command(root: str) -> None:
    """Serve the instruments over MCP on standard input and output, for Claude Code, Cursor, Codex and others.

    \b
        claude mcp add traindx -- traindx mcp
    """
    from traindx.mcp_server import serve

    serve(root)
