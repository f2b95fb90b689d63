"""`traindx audit`: read training code and list what is wrong in it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.finding import Finding

if TYPE_CHECKING:
    from traindx_tools.artifact import Artifact
    from traindx_tools.code_audit.cache import Cache
    from traindx_tools.code_reports.changed_code import ChangedLines
    from traindx_tools.code_reports.report import AuditReport
    from traindx_tools.code_reports.selection import Selection
    from traindx_tools.source_files.texts import Text

HEAD = "HEAD"
STDIN = "-"


def line(finding: Finding) -> str:
    """One finding as compilers print theirs, so that editors find the place: place, rule, severity, statement."""
    from traindx import safe_text

    where = finding.where.code or str(finding.where)
    rule = f"{finding.rule} {finding.severity.value}"
    return safe_text.line(f"{where}: {rule}: {finding.statement}")


def _text(report: AuditReport) -> str:
    lines = []
    for finding in report.findings:
        lines.append(line(finding))
        lines += [f"    fix: {summary}" for summary in dict.fromkeys(patch.summary for patch in finding.patch)]
    return "\n".join(lines)


def _json(report: AuditReport) -> str:
    return json.dumps([f.to_json() for f in report.findings], indent=1, allow_nan=False)


def _sarif(report: AuditReport) -> str:
    from traindx_tools.code_reports.sarif import document
    from traindx_tools.rules import explained_rules

    said = document(report.findings, report.suppressed, report.notes, explained_rules(), _home())
    return json.dumps(said, indent=1, allow_nan=False)


def _github(report: AuditReport) -> str:
    from traindx_tools.code_reports.github import workflow_command

    return "\n".join(workflow_command(f, str(_home())) for f in report.findings)


def _home() -> Path:
    """The folder that paths are given from: in GitHub Actions the checkout, else the current one."""
    given = os.environ.get("GITHUB_WORKSPACE", "")
    here = Path.cwd()
    return Path(given) if given and here.is_relative_to(Path(given).resolve()) else here


FORMATS: dict[str, Callable[[AuditReport], str]] = {"text": _text, "json": _json, "sarif": _sarif, "github": _github}


def _without_change(report: AuditReport) -> str:
    """What a diff leaves open."""
    left = [f.rule for f in report.findings if not f.patch]
    return f"; {len(left)} without a certain change ({', '.join(sorted(set(left)))})" if left else ""


def _summary(report: AuditReport, chosen: Selection) -> str:
    """How much was found in how much, and, where the exit code is 0 all the same, why."""
    count, files = len(report.findings), report.judged
    failing = any(chosen.fails(f) for f in report.findings)
    mild = f", none that fails (--fail-on {chosen.fail_on})" if count and not failing else ""
    of = f" of {report.found}" if files != report.found else ""
    ignored = f", {len(report.suppressed)} ignored by comments" if report.suppressed else ""
    return f"{count} finding{'s' * (count != 1)}{ignored} in {files}{of} file{'s' * (report.found != 1)}{mild}"


@click.command("audit", epilog="""\b
Exit codes: 0 nothing at or above --fail-on (medium, if not set: a finding of
severity low or info alone exits with 0), 1 something at or above it, 2 bad
usage or nothing readable. Files that cannot be read beside others are
named on standard error and do not change the code.
""")
@click.argument("paths", nargs=-1)
@click.option("--diff", "base", is_flag=False, flag_value=HEAD, metavar="[BASE]",
              help="Tell only what belongs to the difference from BASE (default HEAD): committed, staged, in the "
                   "worktree or untracked. Write --diff=BASE, or put it last.")
@click.option("--staged", is_flag=True,
              help="With --diff, or alone: only what is committed since BASE or staged, as a commit hook needs it.")
@click.option("--format", "shape", type=click.Choice(list(FORMATS)), default=None,
              help="text (default), JSON, SARIF 2.1.0, or workflow commands of GitHub Actions.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json. Holds proposed changes too.")
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules: ids or beginnings, with commas.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Not these rules.")
@click.option("--fail-on", metavar="SEVERITY", help="critical, high, medium (default), low, info or never.")
@click.option("--patch", "--fix-diff", "as_patch", is_flag=True,
              help="Print the proposed changes as a unified diff, and only that. Nothing is written.")
@click.option("--isolated", is_flag=True, help="Do not read [tool.traindx.audit] of pyproject.toml.")
@click.option("--no-cache", is_flag=True, help="Judge anew and remember nothing.")
@click.option("--stdin-filename", default="<stdin>", show_default=True, help="What to call standard input.")
def command(paths: tuple[str, ...], base: str | None, staged: bool, shape: str | None, as_json: bool,
            select: tuple[str, ...], ignore: tuple[str, ...], fail_on: str | None, as_patch: bool, isolated: bool,
            no_cache: bool, stdin_filename: str) -> int:
    """Read the Python files and notebooks in PATHS (never importing or running them) and list what is wrong in them.

    PATHS are files, folders, or - for standard input. A finding is taken out by a comment with a reason:
    `# traindx: ignore[C104] frozen for good`.
    """
    from traindx import safe_text
    from traindx_tools.code_reports.report import audit_report

    paths, base = _sorted_out(paths, base or (HEAD if staged else None))
    shape = _shape(shape, as_json, as_patch)
    chosen = _selection(paths, isolated).narrowed(select, ignore, _severity(fail_on))
    changes = _changes(paths, base, staged) if base is not None else None
    given = [_standard_input(stdin_filename)] if STDIN in paths else []
    report = audit_report([p for p in paths if p != STDIN], given=given, selection=chosen, changes=changes,
                          cache=None if no_cache else _cache(), say=_say if sys.stderr.isatty() else None, is_last=True)
    _refuse_nothing(report, base, chosen.exclude)
    for note in report.notes:
        click.echo(f"traindx: {safe_text.line(f'{note.path}: {note.note}')}", err=True)
    _print(report, shape, as_patch)
    if base is not None and not report.texts:
        how = "is staged against" if staged else "differs from"
        click.echo(f"traindx: no Python file in {' '.join(paths)} {how} {base}", err=True)
    else:
        click.echo(f"traindx: {_summary(report, chosen)}{_without_change(report) if as_patch else ''}", err=True)
    return int(any(chosen.fails(f) for f in report.findings))


def _say(text: str) -> None:
    click.echo(f"traindx: {text}", err=True)


def _sorted_out(paths: tuple[str, ...], base: str | None) -> tuple[tuple[str, ...], str | None]:
    """`--diff src` means the path: git's own commands tell them apart in the same way."""
    if base is not None and base != HEAD and os.path.exists(base) and not paths:
        return (base,), HEAD
    if "" in paths:
        raise BadUsage("an empty path names nothing: give . for the current folder")
    if not paths and base is None:
        raise BadUsage("give Python files, notebooks, folders or - for standard input, e.g. `traindx audit .`")
    if base is not None and STDIN in paths:
        raise BadUsage("--diff and standard input do not go together: git knows no difference of what is piped in")
    return paths or (".",), base


def _shape(asked: str | None, as_json: bool, as_patch: bool) -> str:
    """The form to print in. Two at once are refused: a program that reads one would be given the other."""
    if as_json and asked not in (None, "json"):
        raise BadUsage(f"--json and --format {asked} name two forms: give one of them")
    shape = "json" if as_json else asked or "text"
    if as_patch and shape != "text":
        raise BadUsage(f"--patch prints a diff and nothing else, so --format {shape} does not go with it: leave out "
                       "--patch for the findings (in JSON each holds its changes as `patch`), or the form for the diff")
    return shape


def _severity(name: str | None) -> str:
    from traindx_tools.code_reports.selection import FAIL_ON

    if name is not None and name not in FAIL_ON:
        raise BadUsage(f"--fail-on is one of {', '.join(FAIL_ON)}, got {name[:40]!r}")
    return name or ""


def _selection(paths: Sequence[str], isolated: bool) -> Selection:
    from traindx_tools.code_reports.selection import Selection, read_selection

    if isolated:
        return Selection(home=Path.cwd())
    first = next((p for p in paths if p != STDIN), ".")
    return read_selection(Path(first))


def _changes(paths: Sequence[str], base: str, staged: bool) -> ChangedLines:
    from traindx.git_changes import lines_changed_since

    first = Path(paths[0])
    if not first.exists():
        raise UnreadableInput(f"{first}: not found. Give Python files, notebooks, or a folder of them")
    return lines_changed_since(first if first.is_dir() else first.parent, base, staged)


def _standard_input(name: str) -> Text | Artifact:
    from traindx_tools.source_files.texts import MAX_BYTES, text_of

    return text_of(name, sys.stdin.buffer.read(MAX_BYTES + 1))


def _cache() -> Cache | None:
    from traindx_tools.code_audit.cache import Cache, default_folder

    folder = default_folder()
    return None if folder is None else Cache(folder)


def _refuse_nothing(report: AuditReport, base: str | None, excluded: Sequence[str]) -> None:
    """Raises UnreadableInput where not one file could be judged; a change without Python is no such case."""
    if report.judged or (base is not None and not report.texts and not report.notes):
        return
    left_out = f" that is not excluded by {', '.join(excluded[:5])} in pyproject.toml" if excluded else ""
    told = "; ".join(f"{note.path}: {note.note}" for note in report.notes[:5]) or f"no Python file{left_out} is there"
    raise UnreadableInput(f"nothing could be audited: {told}. Give Python files, notebooks, or a folder of them")


def _print(report: AuditReport, shape: str, as_patch: bool) -> None:
    if not as_patch:
        if text := FORMATS[shape](report):
            click.echo(text)
        return
    from traindx import safe_text
    from traindx.trial import sound
    from traindx_tools.code_reports.unified_diff import has_bare_returns, proposed

    offered, failed = sound(report.findings, report.texts)
    made = proposed(offered, report.by_path)
    click.echo(made.raw, nl=False)
    for patch, reason in failed.items():
        told = safe_text.line(f"{patch.file}:{patch.line}: left out of the diff, its trial failed ({reason}): "
                              f"{patch.summary}")
        click.echo(f"traindx: {told}", err=True)
    for patch in made.left_out:
        audited = report.by_path.get(patch.file)
        bare = audited is not None and has_bare_returns(audited.text)
        why = ("its lines end in a bare carriage return" if bare
               else "another change touches these lines, or the file's encoding lacks a letter of it")
        click.echo(f"traindx: {patch.file}:{patch.line}: left out of the diff, {why}: {patch.summary}", err=True)
