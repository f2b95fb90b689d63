"""MCP tools of a coding agent's servers: judged by what they declare, never by what they are called.

Our own server is known. Of another one the host may hand on the annotations (readOnlyHint, destructiveHint); a tool
that declares nothing is asked about, and the person says. Claude Code 2.1.332 hands none on: it says of a tool's server
what it is called and where it comes from (`mcp_server`), so that there each tool of another server is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

OUR_TOOLS = frozenset({
    "diagnose_run", "compare_ranks", "extract_metrics", "list_findings", "audit_code", "examine_data",
    "examine_weights", "jaxpr",
    "replay_batch", "replay_step", "run_probe", "explain", "plot_run", "list_experiments", "run_experiment",
    "list_failure_modes", "session_status", "read_diagnosis"})
_OURS = re.compile(r"mcp__plugin_traindx_traindx__\w+")
"""The plugin's own server: it writes pictures below scratch/debug at most, and imports a file only where the person
started it with that consent."""
_OURS_WITHOUT_PLUGIN = "mcp__traindx__"


def is_ours(tool: str, known: frozenset[str], event: Mapping[str, Any]) -> bool:
    """True for the tools of this project's server; a server of another origin that took the plugin's name is not ours.
    """
    if _OURS.fullmatch(tool):
        server = event.get("mcp_server")
        return not isinstance(server, Mapping) or server.get("source") == "plugin"
    return tool.startswith(_OURS_WITHOUT_PLUGIN) and tool.removeprefix(_OURS_WITHOUT_PLUGIN) in known


def declared(event: Mapping[str, Any]) -> bool | None:
    """True where the tool declares that it only reads, False where it declares that it does not, None where it says
    nothing or the host does not tell."""
    for name in ("tool_annotations", "annotations"):
        hints = event.get(name)
        if isinstance(hints, Mapping):
            reads, destroys = hints.get("readOnlyHint"), hints.get("destructiveHint")
            if reads is True and destroys is not True:
                return True
            if reads is False or destroys is True:
                return False
    return None
