"""`traindx explain`: the page of a rule or a failure mode."""

from __future__ import annotations

import difflib

import click

from traindx_tools.errors import BadUsage


def page(name: str) -> str:
    """The page for a rule id or a failure-mode id. Raises BadUsage that names the nearest ids."""
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.catalog.page import mode_page, rule_page
    from traindx_tools.rules import all_rules

    rules, modes = all_rules(), load_catalog()
    if name.upper() in rules:
        return rule_page(rules[name.upper()])
    if name.lower() in modes:
        return mode_page(modes[name.lower()])
    near = difflib.get_close_matches(name, [*rules, *modes], n=3, cutoff=0.4)
    hint = f"Did you mean {', '.join(near)}?" if near else "`traindx explain --list` shows all."
    raise BadUsage(f"no rule and no failure mode is called '{name}'. {hint}")


def listing() -> str:
    """All rules and failure modes, a line each."""
    from traindx_tools.catalog.catalog import load_catalog
    from traindx_tools.rules import all_rules

    rules = [f"{k}  {m.rule.title}" for k, m in all_rules().items()]
    modes = [f"{k:38}{m.title}" for k, m in load_catalog().items()]
    return "\n".join(["Rules", *rules, "", "Failure modes", *modes])


@click.command("explain")
@click.argument("name", required=False)
@click.option("--list", "show_all", is_flag=True, help="List every rule and failure mode.")
def command(name: str | None, show_all: bool) -> None:
    """Print the page of NAME, a rule (L204) or a failure mode (lr.too-high)."""
    if name is None and not show_all:
        raise BadUsage("give the name of a rule or a failure mode, or --list")
    click.echo(listing() if name is None else page(name))
