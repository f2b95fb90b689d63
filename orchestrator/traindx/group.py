"""The commands of `traindx`. Each is imported when it is called, so that `traindx --help` stays quick."""

from __future__ import annotations

import importlib

import click

from traindx_tools import __version__

COMMANDS = {
    "diagnose": "Read artifacts and name the cause: offline, read-only, seconds.",
    "debug": "A whole session: diagnosis, your approval, one fix, verification.",
    "approve": "Approve the diagnosis a session waits with.",
    "reject": "Reject the diagnosis a session waits with.",
    "revise": "Send a diagnosis back with what you know.",
    "review": "Read the diagnosis a session waits with in a browser, and decide there.",
    "sessions": "List the debug sessions of a workspace.",
    "show": "Show a session: its phase, diagnosis and attempts.",
    "resume": "Go on with a session that was interrupted.",
    "hang": "The logs of all ranks of a job as one: which rank is odd, and where.",
    "log": "Metrics of any run in one table (table, CSV, JSON).",
    "plot": "Draw loss, gradient norm and learning rate with the findings marked.",
    "audit": "Read training code and list what is wrong in it.",
    "data": "What data files hold: extremes, odd shards, label maps, leaks, damage.",
    "weights": "Read checkpoints and list what is wrong in them, nothing executed.",
    "fingerprint": "What a good run was given, in numbers, and what is otherwise in a bad one.",
    "experiment": "Prove a cause: one change, one control, one verdict, in protected copies.",
    "run": "Run a training command with instruments attached, no change to its code.",
    "isolate": "Between a good and a bad run: the smallest difference that matters.",
    "jaxpr": "What a JAX function became when it was traced, in few lines.",
    "replay": "Replay what a program failed on: a captured step (with --run CMD), or a batch.",
    "explain": "The page of a rule (L204) or a failure mode (lr.too-high).",
    "mcp": "The instruments as an MCP server (stdio).",
    "try": "What is known of a training program from its text: what, how, in what order.",
    "doctor": "What is installed and what will work.",
    "clean": "Remove reports, pictures and kept runs below scratch/debug.",
    "completion": "What makes bash, zsh or fish complete these commands.",
}

MODULES = {"try": "try_text"}
"""Commands whose name is a word of Python."""

EPILOG = """\b
Exit codes: 0 nothing wrong found, 1 a problem was diagnosed,
2 bad usage or unreadable input, 3 more data is needed.
"""


class LazyGroup(click.Group):
    """A group whose commands live in `traindx.commands.<name>` as `command` and are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = MODULES.get(cmd_name, cmd_name)
        command: click.Command = importlib.import_module(f"traindx.commands.{module}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]
                        ) -> tuple[str | None, click.Command | None, list[str]]:
        """A name that is not known is answered by the one that is nearest to it."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="traindx")
def traindx() -> None:
    """Find out why a training run failed, with proof, and change nothing before you agree."""
