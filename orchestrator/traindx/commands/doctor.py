"""`traindx doctor`: what is installed and what will work."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import sys

import click

from traindx_tools import __version__

EXTRAS = (
    ("mcp", "mcp", "the instruments as an MCP server (traindx mcp)"),
    ("claude_agent_sdk", "agent", "specialists on the Claude Agent SDK (traindx debug --backend claude)"),
    ("anthropic", "api", "specialists over the Messages API alone (traindx debug --backend api)"),
    ("wandb", "wandb", "runs of Weights & Biases whose files are not here, and --note (wandb:ENTITY/PROJECT/RUN)"),
    ("mlflow", "mlflow", "runs of MLflow whose files are not here, and --note (mlflow:RUN)"),
    ("torch", "torch", "instruments in a running PyTorch training (traindx run, --run)"),
    ("jax", "jax", "instruments in a running JAX training (traindx run, --run)"),
)
"""Module, extra, and what it is for. Reading logs and code needs none of them, event files of TensorBoard included."""

PROGRAMS = (("git", "what changed since the last good commit is read as evidence"),
            ("bwrap", "namespaces of its own for protected commands (package bubblewrap; Landlock holds without it)"))


def report() -> list[str]:
    """One line for each thing that matters: what is there, in which version, and what it serves."""
    from traindx.pack import pack_root
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.errors import install_line
    from traindx_tools.rules import all_rules

    lines = [
        f"traindx {__version__}, Python {platform.python_version()} on {platform.system()} ({sys.executable})",
        f"offline engine: {len(all_rules())} rules, {len(load_catalog())} failure modes: works",
        f"pack (skills, agents, templates): {pack_root()}",
    ]
    for module, extra, use in EXTRAS:
        found = importlib.util.find_spec(module)
        there = found is not None and found.origin is not None  # a mere folder of that name is no library
        state = _version(module) if there else f"not installed ({install_line(extra, module)})"
        lines.append(f"{module.replace('_', '-')}: {state}: {use}")
    for program, use in PROGRAMS:
        lines.append(f"{program}: {shutil.which(program) or 'not found'}: {use}")
    return lines


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module.replace("_", "-"))
    except importlib.metadata.PackageNotFoundError:
        return "installed"


@click.command("doctor")
def command() -> None:
    """Show what is installed and what will work."""
    click.echo("\n".join(report()))
