"""What is done with values on their way to a loss, and results that nothing reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traindx_tools.program.known import Known
from traindx_tools.program.moments import Spot


@dataclass(frozen=True)
class Mismatch:
    """A loss whose sides do not belong together. `kind`: "broadcast" ((N, 1) against (N,)), "shift" (labels that lost
    their first position twice)."""

    kind: str
    name: str
    at: Any
    text: str = ""
    made: str = ""
    """Where the prediction is made; "itself" of a model that shifts labels itself."""
    origin: Any = field(default=None, repr=False, compare=False)
    shape: str = "(N, 1)"
    other: str = "(N,)"
    """Of a broadcast the shapes of both sides, N for samples."""


@dataclass(frozen=True)
class AxisUse:
    """One axis of a value of which an operation makes a whole: a softmax that sums to 1 over it, a mean over it."""

    operation: str
    """"softmax", "log_softmax"; "pooled": a mean or sum that a layer reads; "normalize"; "standardised"."""
    at: Any
    text: str
    axis: int
    role: str
    """What stands on the axis: "batch", "time", "features"; "" where that is not known; "elsewhere": another one is
    asked (`features`, by `asked`); "columns" of different quantities; "samples" that a layer takes for steps."""
    size: int | None = None
    """Its length, where it is known."""
    features: int | None = None
    """The length of the last axis, as the layer before left it."""
    is_sequence: bool = False
    in_loss: bool = False
    """A loss is given the result."""
    of_layer: bool = True
    """A layer with parameters gave the value."""
    asked: str = ""
    shape: str = ""
    known: Known = Known.DERIVED
    origin: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class AxisMoved:
    """A view or reshape in which an axis stands at another place than in memory."""

    at: Any
    text: str
    axis: int
    place: int


@dataclass(frozen=True)
class MaskUse:
    """One place where attention, or another choice among positions, is told which of them count."""

    how: str
    """"padding", "attention" (arguments of a layer or function of a library), "added" (to what a softmax gets),
    "filled" (a number where the mask is true), "missing" (a layer that is given none), "padded labels" (to a loss)."""
    at: Any
    text: str
    target: str = ""
    """What it is given to: "TransformerEncoder", "softmax"."""
    true_for: str = ""
    """"content", "blank", "triangle"; "" where that is not known."""
    boolean: bool | None = None
    low: float | None = None
    high: float | None = None
    value: float | None = None
    """What is filled in."""
    half: Known | None = None
    """What it is filled into is float16: so it was computed, or float16 is spoken of somewhere in the program."""
    guarded: bool = False
    """NaN is looked for, or replaced, in the same function."""
    next_token: Any = None
    """A loss compares the output with the next tokens of the same input (`moments.Spot`)."""
    origin: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Bootstrap:
    """A discounted value of the next state, times the flag of an episode's end itself."""

    at: Any
    text: str
    factor: str
    flag: str
    """What the factor is, and where it became so; "" where it is called so."""


@dataclass(frozen=True)
class Watch:
    """What compares a metric with its best value so far: a callback, a schedule, a trainer."""

    kind: str
    at: Any
    metric: str
    """Its name."""
    looks_for: str
    """"min" or "max"."""
    said: bool = True
    """It was told; False: this is what it does where nothing is said."""
    given_at: Any = None
    better: str = ""
    """The same for the metric by its name; "" where that does not say."""


@dataclass(frozen=True)
class WholeCut:
    """`z + (q - z)` that is cut from the graph as a whole, where only the difference was to be: `instead`."""

    text: str
    at: Any
    kept: str
    change: str
    instead: str
    origin: Any = None


@dataclass(frozen=True)
class Distance:
    """A distance of two values in a module, at least one of which is cut from the graph there."""

    at: Any
    text: str
    both_cut: bool
    """Neither side gets a gradient."""
    cut: str = ""
    """The side that is cut, as it is written."""
    of_a_table: bool = False
    """That side was looked up in a table of the model, which gradients are to train. Of two that are cut: one of them
    was, or another distance pulls one of the same two."""
    reached: bool = True
    """A loss reaches that value on another way."""
    last: bool = True
    """Of those of a function that cut a table which no loss reaches."""


@dataclass(frozen=True)
class UnusedResult:
    """A result, or a part of one, that nothing reads. `kind`: "parameters", "state", "array", "pure", "gradients" or
    "statistics"; "bound": one that a `partial` of before hides; "argument": gradients applied to something else;
    "masked": what a mask leaves out goes on as it came. Or a "method" that is named as a statement and not called; its
    `name`: the moment that it would be. Or an "inference" copy that takes the name under which training goes on. Or
    what a call "left" as it was: its `name`, and in `other` what it is."""

    kind: str
    call: str
    """What is called, as it is written."""
    at: Spot
    name: str = ""
    known: Known = Known.DERIVED
    origin: Any = None
    other: str = ""
    """Of an argument: what its gradients are applied to; see above."""


@dataclass(frozen=True)
class OwnRatio:
    """An exponential of a log-probability less the same one: where the second comes from, and the loop that repeats
    it."""

    text: str
    at: Spot
    old: str
    loop: int
    times: float | None = None


@dataclass(frozen=True)
class KeptArray:
    """An array that a loop keeps, and into which the method that handed it out writes at the next call."""

    text: str
    at: Spot
    handed: Spot
    written: str


@dataclass(frozen=True)
class UnreadSetting:
    """An entry of a configuration file that no code reads, although the code has the same setting by another name."""

    file: str
    key: str
    value: str
    known_as: str
    at: Any
