"""`--follow` of `traindx diagnose`: its options, what it prints, and what it does not go together with."""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import click

from traindx.follow.hysteresis import News
from traindx.page import coloured
from traindx.safe_text import line
from traindx_tools.errors import BadUsage, UnreadableInput

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Following:
    """What was asked of `--follow`."""

    every: float
    notify: bool
    on_finding: str | None


def follow_options(command: Command) -> Command:
    """Adds the four options, as `follow`, `every`, `notify` and `on_finding`."""
    for option in (
        click.option("--on-finding", metavar="CMD", help="With --follow: a command run at each finding, without a "
                     "shell; it gets the finding as JSON on standard input and as TRAINDX_RULE, TRAINDX_STATEMENT ..."),
        click.option("--notify", is_flag=True, help="With --follow: a notice on the desktop at each finding."),
        click.option("--every", type=click.FloatRange(min=0.1), default=5.0, show_default=True, metavar="SECONDS",
                     help="With --follow: how often it is looked whether something was written."),
        click.option("--follow", is_flag=True, help="Logs that are still written: findings as they come, each once, "
                     "until Ctrl-C."),
    ):
        command = option(command)
    return command


def asked_to_follow(follow: bool, every: float, notify: bool, on_finding: str | None) -> Following | None:
    """What the options say. Raises BadUsage where some are given without `--follow`."""
    if not follow and (notify or on_finding is not None):
        raise BadUsage("--notify and --on-finding go with --follow")
    return Following(every, notify, on_finding) if follow else None


def follow(following: Following, paths: Sequence[str], refused: Mapping[str, object], as_json: bool, *,
           symptom: str = "", names: Mapping[str, str] | None = None, lines: Sequence[str] = (),
           which: int | None = None, cluster: str | None = None) -> int:
    """Follows files until Ctrl-C; the exit code. `refused`: other options as they were given, which do not go with it.

    Raises BadUsage, and UnreadableInput where a path names nothing at the beginning.
    """
    from traindx.diagnose import Report, diagnose
    from traindx.follow.alarms import alarm_of
    from traindx.follow.following import Follower
    from traindx_tools.scope import Asked

    _checked(paths, refused)

    def look() -> Report:
        return diagnose(paths, symptom=symptom, names=names, lines=lines, cluster=cluster,
                        asked=Asked(code=(), which=which))

    words = AsJson() if as_json else Printed(coloured(sys.stdout))
    return Follower(paths, look, words, alarm_of(following.notify, following.on_finding), following.every).follow()


def _checked(paths: Sequence[str], refused: Mapping[str, object]) -> None:
    for name, given in refused.items():
        if given:
            raise BadUsage(f"{name} does not go with --follow: end it with Ctrl-C and diagnose the log then")
    for path in paths:
        if path == "-" or "://" in path:
            raise BadUsage(f"{path!r} cannot be followed: --follow looks again and again at files and folders on this "
                           "machine")
        if not os.path.exists(path) and not glob.glob(path, recursive=True):
            raise UnreadableInput(f"there is no file or folder {path!r} to follow. Check the path")


class Printed:
    """Lines for a person: findings on standard output, remarks on standard error."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def remark(self, text: str) -> None:
        """A word on the files."""
        click.echo(f"traindx: {line(text)}", err=True)

    def news(self, news: News, place: str) -> None:
        """A finding that came or has gone."""
        found = news.finding
        if news.kind == "gone":
            click.echo(f"{_now()} gone: {found.rule} {line(found.title)}")
            return
        word = click.style(found.severity.value, fg="red" if found.severity.rank > 2 else "yellow", bold=True)
        click.echo(f"{_now()} {word if self.colour else found.severity.value}: {line(found.statement)}\n"
                   f"         {line(place)}; traindx explain {found.rule}")

    def cause(self, claim: str, mode: str, confidence: float) -> None:
        """A cause that is sure."""
        click.echo(f"{_now()} cause: {line(claim)} ({confidence:.2f}); traindx explain {mode}")


class AsJson:
    """An object a line, for a program."""

    def remark(self, text: str) -> None:
        """A word on the files: on standard error, as for a person."""
        click.echo(f"traindx: {line(text)}", err=True)

    def news(self, news: News, place: str) -> None:
        """A finding that came or has gone."""
        self._say(news.kind, finding=news.finding.to_json(), place=place)

    def cause(self, claim: str, mode: str, confidence: float) -> None:
        """A cause that is sure."""
        self._say("cause", claim=claim, failure_mode=mode, confidence=round(confidence, 4))

    def _say(self, kind: str, **told: Any) -> None:
        click.echo(json.dumps({"at": f"{datetime.now():%Y-%m-%dT%H:%M:%S}", "news": kind, **told}, allow_nan=False))


def _now() -> str:
    return f"{datetime.now():%H:%M:%S}"
