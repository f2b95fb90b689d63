"""`traindx completion`: what a shell needs to complete commands, options, sessions and the names of pages."""

from __future__ import annotations

import os

import click

from traindx_tools.errors import BadUsage

_ADD_TO = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/traindx.fish"}


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(list(_ADD_TO)))
def command(shell: str | None) -> None:
    """Print what makes SHELL (default: that of $SHELL) complete traindx: add it to your shell's start file.

    Completed are commands, options, the ids of sessions, and the rules and failure modes of `explain`.

    \b
    bash:  traindx completion bash >> ~/.bashrc
    zsh:   traindx completion zsh >> ~/.zshrc
    fish:  traindx completion fish > ~/.config/fish/completions/traindx.fish
    """
    from click.shell_completion import get_completion_class

    from traindx.group import traindx

    named = shell or os.path.basename(os.environ.get("SHELL", ""))
    made = get_completion_class(named)
    if made is None or named not in _ADD_TO:
        raise BadUsage(f"the shell {named!r} is not known here: give one of {', '.join(_ADD_TO)}")
    try:
        click.echo(made(traindx, {}, "traindx", "_TRAINDX_COMPLETE").source())
    except RuntimeError as error:  # bash before 4.4
        raise BadUsage(f"{named}: {error}") from error
