"""The MCP server of the plugin: the installed `traindx mcp`, or a stand-in that says what to install.

    python3 serve.py [ROOT]

Standard library only. Without traindx (or without its extra `mcp`) the host still gets a server that starts: it has one
tool, which names the command to install and what works meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any, BinaryIO

SOON = 20.0
"""Seconds; a server that ends with an error within them never served anybody."""

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = ROOT if os.path.isfile(os.path.join(ROOT, "pyproject.toml")) else "traindx"
"""What is installed: this checkout, whose name is on no index for certain, or what the pack was installed from."""

INSTALL = f"pip install '{SOURCE}[mcp]'"
TOOL = {
    "name": "how_to_install",
    "description": "The instruments of traindx are not available here: says what to install and what works now.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True},
}


def advice(why: str) -> str:
    """What is missing, what to install, and what works without it."""
    script = os.path.join(ROOT, "skills", "ml-debug", "scripts", "traindx_run.py")
    return (f"The MCP server of traindx could not start: {why}. Install it: {INSTALL}, then start the host again. "
            f"Meanwhile the same instruments run by script, with Python 3.10 or newer and numpy: python3 {script} "
            f"diagnose PATH")


def installed(root: str) -> str:
    """Serves with the installed traindx; returns why that was not possible, or ends the process when it is over."""
    command = shutil.which("traindx")
    if command is None:
        return "no `traindx` was found on PATH"
    begun = time.monotonic()
    done = subprocess.run([command, "mcp", "--root", root], stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode == 0 or time.monotonic() - begun > SOON:
        sys.stderr.write(said)
        sys.exit(done.returncode)
    return said.splitlines()[-1] if said else f"`traindx mcp` ended with exit code {done.returncode}"


def answer(request: dict[str, Any], why: str) -> dict[str, Any] | None:
    """The stand-in's answer to one message of the host; None for a notification."""
    if "id" not in request:
        return None
    results: dict[str, dict[str, Any]] = {
        "initialize": {"protocolVersion": (request.get("params") or {}).get("protocolVersion", "2025-06-18"),
                       "capabilities": {"tools": {}}, "serverInfo": {"name": "traindx", "version": "not-installed"},
                       "instructions": advice(why)},
        "ping": {},
        "tools/list": {"tools": [TOOL]},
        "tools/call": {"content": [{"type": "text", "text": advice(why)}], "isError": True},
    }
    result = results.get(str(request.get("method")))
    head = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        return {**head, "error": {"code": -32601, "message": f"no method {request.get('method')!r} without traindx"}}
    return {**head, "result": result}


def stand_in(why: str, incoming: BinaryIO, outgoing: BinaryIO) -> None:
    """Serves until the host goes away."""
    print(f"traindx: {advice(why)}", file=sys.stderr)
    for line in iter(incoming.readline, b""):
        try:
            request = json.loads(line)
        except ValueError:
            continue
        said = answer(request, why) if isinstance(request, dict) else None
        if said is not None:
            outgoing.write(json.dumps(said).encode() + b"\n")
            outgoing.flush()


def main() -> None:
    """Serves, with traindx or without."""
    root = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    why = installed(root)
    stand_in(why, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
