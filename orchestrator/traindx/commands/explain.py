"""`traindx explain`: the page of a rule or a failure mode."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping

import click

from traindx.completing import page_ids
from traindx.page import columns, reflowed
from traindx_tools.errors import BadUsage

MOST_NEAR = 8
"""Ids that are offered at most where a name is none."""


_OF_A_FINDING = re.compile(r"[A-Za-z]\d{3}-\d+")


def page(name: str) -> str:
    """The page for a rule id or a failure-mode id, a line for a rule that was withdrawn.

    Raises BadUsage that names the nearest ids.
    """
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.catalog.page import mode_page, rule_page
    from traindx_tools.rules import explained_rules
    from traindx_tools.withdrawn import withdrawn

    rules, modes = explained_rules(), load_catalog()
    if _OF_A_FINDING.fullmatch(name) and name.lower() not in modes:
        name = name.rpartition("-")[0]  # L102-1, the first finding of L102: as a report prints it
    if name.upper() in rules:
        return rule_page(rules[name.upper()])
    if name.lower() in modes:
        return mode_page(modes[name.lower()])
    if gone := withdrawn(name):
        return gone
    titles = {k: m.rule.title for k, m in rules.items()} | {k: m.title for k, m in modes.items()}
    found = near(name, titles)
    hint = f"Did you mean {', '.join(found)}? " if found else ""
    raise BadUsage(f"no rule and no failure mode is called '{name}'. {hint}`traindx explain --list` shows all.")


def near(name: str, titles: Mapping[str, str]) -> list[str]:
    """Ids that begin so, else those written nearly so, else those whose id or title holds the words."""
    asked = name.strip().lower()
    lower = {i.lower(): i for i in titles}
    begun = [i for low, i in lower.items() if low.startswith(asked)]
    close = [lower[c] for c in difflib.get_close_matches(asked, lower, n=3, cutoff=0.7)]
    held = [i for i, title in titles.items() if asked in f"{i} {title}".lower()]
    return (begun or close or held)[:MOST_NEAR] if asked else []


def listing(word: str = "") -> str:
    """Rules and failure modes, a line each: all of them, or those whose id or title has a word that begins so.

    Raises BadUsage where none has.
    """
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.rules import explained_rules

    rules = [f"{k}  {m.rule.title}" for k, m in explained_rules().items()]
    modes = [f"{k:38}{m.title}" for k, m in load_catalog().items()]
    if not word:
        return "\n".join(["Rules", *rules, "", "Failure modes", *modes])
    begins = re.compile(rf"(?<![^\W_]){re.escape(word.strip())}", re.IGNORECASE)
    rules, modes = [r for r in rules if begins.search(r)], [m for m in modes if begins.search(m)]
    if not rules and not modes:
        raise BadUsage(f"no rule and no failure mode has the word '{word}': `traindx explain --list` shows all")
    return "\n".join([*(["Rules", *rules] if rules else []), *([""] if rules and modes else []),
                      *(["Failure modes", *modes] if modes else [])])


@click.command("explain")
@click.argument("name", required=False, shell_complete=page_ids)
@click.option("--list", "show_all", is_flag=True, help="List every rule and failure mode, or those with the word NAME.")
def command(name: str | None, show_all: bool) -> None:
    """Print the page of NAME: a rule (L204, or L204-1 as a report prints it) or a failure mode (lr.too-high)."""
    if name is None and not show_all:
        raise BadUsage("give the name of a rule or a failure mode, or --list")
    click.echo(listing(name or "") if show_all else reflowed(page(name or ""), columns(sys.stdout)))
