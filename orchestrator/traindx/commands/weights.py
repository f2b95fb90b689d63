"""`traindx weights`: what a checkpoint holds, and what is wrong in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Severity

if TYPE_CHECKING:
    from traindx_tools.on_weights import Examined


def text(seen: Examined) -> str:
    """What was read, how the names of two files match, and the findings, a line each."""
    from traindx.commands.audit import line
    from traindx.safe_text import line as safe

    told = seen.summary()
    types = ", ".join(f"{n:,} {t}" for t, n in sorted(told["types"].items(), key=lambda item: -item[1]))
    lines = [f"{told['path']}: {told['format']}, {told['tensors']:,} tensors, {told['values']:,} values ({types})"]
    if told["optimizers"]:
        lines.append(f"states of optimizers: {', '.join(o or 'the file itself' for o in told['optimizers'])}")
    if "against" in told:
        lines.append(_against("against", told["against"]))
    if "model" in told:
        lines.append(_against("into the model", told["model"]))
    lines += [_of_code(beside) for beside in told.get("code", ())]
    if told["compared"]:
        lines.append(_compared(told["compared"]))
    lines += [line(f) for f in seen.findings]
    serious = sum(f.severity is not Severity.INFO for f in seen.findings)
    lines.append(f"{serious} found, {len(seen.findings) - serious} remarks")
    lines += [f"note: {n}" for n in seen.notes]
    if seen.left_out:
        lines.append(f"note: {len(seen.left_out)} tensors were not measured in the time given, such as "
                     f"{seen.left_out[0]}")
    return "\n".join(map(safe, lines))


def _compared(told: Mapping[str, Any]) -> str:
    """What was laid beside what, so that a file in which nothing is found is known to have been looked at."""
    groups = (f"{told['siblings']:,} of {told['measured']:,} measured tensors have siblings, in {told['groups']} groups"
              if told["groups"] else f"{told['measured']:,} tensors measured, none with siblings to compare with")
    if "moved" not in told:
        return groups
    if not told["moved"]:
        return f"{groups}; no value differs between the two"
    zero = f" ({told['from_zero']:,} of them from zero)" if told["from_zero"] else ""
    said = f"{groups}; {told['moved']:,} moved{zero} and {told['still']:,} did not"
    if "most" not in told:
        return said
    (most, far), (least, near) = told["most"], told["least"]
    return (f"{said}: {most} most (by {far:.3g} of its norm)"
            + (f", {least} least ({near:.3g})" if least != most else ""))


def _of_code(told: Mapping[str, Any]) -> str:
    where = f"loaded at {told['load']}" if told["load"] else "which nothing in the folder loads from a file"
    return (f"{told['class']} ({told['made']}, {where}): {told['matched']} of its {told['layers']} layers are in the "
            "file")


def _against(how: str, told: dict[str, object]) -> str:
    moved = str(told["renaming"]).startswith("layer numbers")  # counted anew, whether they match as they are or not
    more = f", {told['renamed']} {'in all' if moved else 'more'} with {told['renaming']}" if told["renaming"] else ""
    file = "there" if how == "against" else "in the file"
    return (f"{how} {told['path']}: {told['matched']} names match{more}; {told['missing']} missing {file}, "
            f"{told['unexpected']} only {file}, {told['other_shapes']} of another shape")


@click.command("weights")
@click.argument("file", type=str)
@click.argument("file2", type=str, required=False)
@click.option("--seconds", type=float, help="Time for measuring (default: as long as it takes). What is left out is "
                                            "named.")
@click.option("--model", metavar="MODULE:CLASS", help="Match the names against this model. The module is imported and "
                                                     "the class is called, in the protected runner.")
@click.option("--model-args", metavar="JSON", default="", help="Keyword arguments for the class, a JSON object.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on standard output.")
def command(file: str, file2: str | None, seconds: float | None, model: str | None, model_args: str,
            as_json: bool) -> int:
    """Look into the checkpoint FILE (safetensors, torch zip, npz, msgpack, an index of shards, or a folder).

    With FILE2, another checkpoint of the run, the names are matched and what moved between the two is judged. With
    --model they are matched against a model: what a load would leave as it was initialised. Python files in FILE's
    folder are read as text for the class that loads it, and the names of its layers are matched. Nothing of a file is
    executed, and nothing is written. The exit code is 1 where something above a remark was found.
    """
    from traindx.model_names import model_named
    from traindx_tools.code_audit import audit
    from traindx_tools.on_weights import examine
    from traindx_tools.on_weights.of_code import code_beside

    if seconds is not None and not seconds > 0:
        raise BadUsage(f"--seconds is a time above 0, got {seconds}")
    if model_args and model is None:
        raise BadUsage("--model-args goes to the class that --model names")
    shapes = model_named(model, Path.cwd(), model_args) if model is not None else None
    code = code_beside(file)
    programs = audit(code, rules=("C206",)).projects if code and model is None else ()
    seen = examine(file, file2, model=shapes, seconds=float("inf") if seconds is None else seconds, code=programs,
                   unloaded=True, between=True)
    click.echo(json.dumps(seen.to_json(), indent=1, allow_nan=False) if as_json else text(seen))
    return seen.exit_code
