"""`traindx audit`: read training code and list what is wrong in it."""

from __future__ import annotations

import json

import click

from traindx_tools.errors import UnreadableInput
from traindx_tools.finding import Finding, Severity


def line(finding: Finding) -> str:
    """One finding as compilers print theirs: place, rule, severity, statement."""
    return f"{finding.where}: {finding.rule} {finding.severity.value} ({finding.strength.value}): {finding.statement}"


@click.command("audit")
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="The findings as JSON on standard output.")
def command(paths: tuple[str, ...], as_json: bool) -> int:
    """Read the Python files in PATHS (never importing or running them) and list what is wrong in them."""
    from traindx_tools.on_code import audit

    result = audit(paths)
    if not result.project.files:
        told = "; ".join(f"{note.path}: {note.note}" for note in result.notes) or "no Python file is there"
        raise UnreadableInput(f"nothing could be audited: {told}. Give Python files, notebooks, or a folder of them")
    for note in result.notes:
        click.echo(f"traindx: {note}", err=True)
    if as_json:
        click.echo(json.dumps([f.to_json() for f in result.findings], indent=1, allow_nan=False))
    else:
        for finding in result.findings:
            click.echo(line(finding))
            for patch in finding.patch:
                click.echo(f"    fix: {patch.summary}")
    return int(any(f.severity.rank >= Severity.MEDIUM.rank for f in result.findings))
