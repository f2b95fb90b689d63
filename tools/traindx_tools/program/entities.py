"""What a training program is made of. Roles are known from what was done with a thing, never from its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from traindx_tools.program.known import Known


class Role(str, Enum):
    """What a model, or a part of one, is for."""

    TRAINED = "trained"
    """Gets gradients, is held by an optimizer that steps."""
    PROBED = "head trained on a fixed part"
    """What comes first requires no gradient, what comes last is trained: a linear probe, a fine-tuned head."""
    REFERENCE = "fixed, called while another one is trained"
    """A teacher, a reference policy, a perceptual loss: never changes, and its output enters the training step."""
    AVERAGE = "follows without an optimizer"
    """Changes though no optimizer holds it: an average of weights, a target network."""
    ADVERSARY = "takes turns with another trained model"
    """Several optimizers step several models: a generator and its discriminator, an actor and its critic."""
    EVALUATED = "evaluated"
    """Called without gradients outside of training steps."""
    IDLE = "called, neither trained nor used"
    """Nothing above: it gets no gradient and does not move."""


@dataclass
class Model:
    """An outermost module."""

    name: str
    parameters: int = 0
    """Values of all its parameters, each once."""
    trainable: int = 0
    held: int = 0
    """Of those, values that an optimizer that stepped holds."""
    moved: int = 0
    """Values of parameters that changed from the first call to the end."""
    reached: int = 0
    """Values of parameters that had a gradient."""
    calls: dict[str, int] = field(default_factory=dict)
    """Calls by what they were: "train", "train in eval mode", "no gradients in eval mode", ..."""
    inputs: dict[str, str] = field(default_factory=dict)
    """What the first call of each kind was given: dtype, shape, range."""
    roles: tuple[Role, ...] = ()
    made: str | None = None
    """Where it is made, as `file.py:12`."""
    inside: frozenset[int] = frozenset()
    """Identities of itself and of the modules inside it, where a reader of text knows them."""
    by_mode: dict[int, str] = field(default_factory=dict)
    """The layers inside that act otherwise in eval mode, by identity: what and where made."""
    layers_known: bool = False
    """Whether all layers inside are known."""
    frozen: bool = False
    learning: frozenset[int] = frozenset()
    """Identities of the layers inside that have weights and that nothing freezes, where a reader of text knows them."""
    set_aside: str = ""
    """Why it may be there to be read and not trained: frozen, pretrained, loaded from a file, called a teacher."""
    keeps_statistics: bool = False
    """A layer inside keeps running statistics."""
    only_read: bool = False
    """Weights of a file stand in it, all of it is frozen, and nothing changes or follows it."""
    average_of: frozenset[int] = frozenset()
    """Identities of the parts of the module of which it is a copy that is changed by hand: an average."""
    born_in: frozenset[str] = frozenset()
    """The loops, as `file.py:12`, in each turn of which it is made anew."""
    born: Any = None
    """Its place (`moments.Spot`) where it is made by the program, or copied."""
    known: Known = Known.RAN
    origin: Any = field(default=None, repr=False, compare=False)

    @property
    def place(self) -> tuple[str, int] | None:
        """File and line of where it is made."""
        file, _, line = (self.made or "").rpartition(":")
        return (file, int(line)) if line.isdigit() else None


@dataclass(frozen=True)
class Given:
    """Parameters of one module that an optimizer is given at once."""

    module: int
    """The identity of the module."""
    inside: frozenset[int]
    made: str
    """Where the module is made; "?" where that is not known."""
    chosen: bool = False
    """Some of them only: by requires_grad, by a condition, one by one."""


@dataclass
class Optimizer:
    """One optimizer that stepped."""

    kind: str
    steps: int = 0
    values: int = 0
    """Values of all parameters that it holds."""
    rates: list[tuple[int, float]] = field(default_factory=list)
    """(step, learning rate of the first group): where it turned, bounded."""
    line: str | None = None
    """Where `step` was called first."""
    made: str | None = None
    """Where it is made."""
    holds: tuple[Model, ...] | None = None
    """The modules whose parameters it was given; None where that is not known."""
    given: tuple[Given, ...] = ()
    """What it was built over, in order; () where that is not known."""
    grouped: bool = False
    """It was given groups."""
    parts: frozenset[int] = frozenset()
    """Identities of the modules that were inside when it was built."""
    frozen: frozenset[int] = frozenset()
    """Of those, the ones that were frozen then and are left out, for it holds what required gradients only."""
    by_gradient: bool = False
    """Some of its parameters were chosen by whether they require a gradient."""
    nothing_trains: str = ""
    """Why nothing that it holds required a gradient when it was built; "" where that is not so."""
    used_up: str = ""
    """Where an iterator over parameters that it is given was gone through before: that group is empty."""
    stateful: bool = True
    """Whether it keeps moments or momentum from step to step."""
    clears_itself: bool = False
    """An engine that has backward and step, and clears the gradients by itself."""
    made_in_a_loop: bool = False
    remade: bool = False
    """It is made anew over modules that are older than the turn of the loop that makes it."""
    transforms: tuple[str, ...] = ()
    """Of a chain of transformations (optax): their names, in the order in which they see the gradient."""
    known: Known = Known.RAN


@dataclass
class Scaler:
    """A gradient scaler."""

    made: str | None = None
    enabled: bool | None = True
    """None where a condition of the program decides."""
    known: Known = Known.RAN


@dataclass
class Schedule:
    """One learning-rate scheduler."""

    kind: str
    steps: int = 0
    """How often it was stepped."""
    reached: int | None = None
    """The step of its own at which it stood at the end: more than `steps` where it was resumed."""
    horizon: int | None = None
    """Steps of its own that it was made for, where it says so."""
    warmup: int | None = None
    turns: bool = False
    """Beyond its end it climbs again."""
    line: str | None = None
    """Where it was stepped first."""
    made: str | None = None
    """Where its function is defined, or it was made."""
    peak: int | None = None
    """The step of its own at which its function is highest, where it could be asked beyond the run."""
    known: Known = Known.RAN


@dataclass
class StateFile:
    """A file that was read or written."""

    path: str
    written: bool
    step: int
    """Optimizer steps that were complete."""
    tensors: int = 0
    parts: tuple[str, ...] = ()
    """The names of its top level, bounded."""
    taken: tuple[str, ...] = ()
    """What was loaded from it: "model", "optimizer", "scheduler", "scaler"."""
    line: str | None = None
    known: Known = Known.RAN


@dataclass(frozen=True)
class Drop:
    """A place where units are dropped: a layer that is made, or a function that is called."""

    name: str
    probability: float | None
    at: Any
    """Its place (`moments.Spot`)."""
    is_layer: bool
    fixed: bool = True
    """False: the probability is a default that a caller may override."""
    mode: str = "asks"
    """"asks" (the layer knows its mode, or the call is given it), "never" (training=False), "default" (nothing says
    that it is off in eval mode), "forced" (training=True)."""
    in_module: bool = False
    """It is called in a method of a module."""
    known: Known = Known.DERIVED
    origin: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Collection:
    """A plain list or dict of layers that a module keeps as an attribute, or something else that it does not register.
    """

    attribute: str
    at: Any
    """Where it is stored (`moments.Spot`)."""
    layer: str
    """What the first of its layers is, in a word."""
    registered: bool
    """Its layers are registered with the module in another way too, or may be."""
    origin: Any = field(default=None, repr=False, compare=False)
    kind: str = "container"
    """"container", "object of CLASS" (which is no module), "tensor", "pass" (layers that each forward pass makes)."""


@dataclass(frozen=True)
class OutputLayer:
    """A layer that is made in the program and whose output a loss compares, or that replaces one of a loaded model."""

    kind: str
    made: Any
    """Where it is made, and `frozen` where it was frozen (`moments.Spot`)."""
    module: int
    """Its identity."""
    frozen: Any = None
    """None where it requires gradients, or where that is not known."""
    loaded: bool = False
    """Weights from a file may stand in it."""
    origin: Any = field(default=None, repr=False, compare=False)


@dataclass
class Loss:
    """One loss function, called from one line."""

    name: str
    line: str | None
    calls: int = 0
    shapes: tuple[str, ...] = ()
    """Dtype, shape and range of its tensors in the first call."""
    first: float | None = None
    last: float | None = None
    domains: tuple[str, ...] = ()
    """What its arguments hold, one word each ("logits", "probabilities", "log-probabilities", "classes", "?")."""
    known: Known = Known.RAN


@dataclass(frozen=True)
class Argument:
    """What is known of a value that a loss is given."""

    made_by: str = ""
    """The operation that gave it, in a word: "softmax", "linear"; "" where that is not known."""
    made: Any = None
    """Where (`moments.Spot`)."""
    gradient: bool | None = None
    of_a_model: bool = False
    of_data: bool = False
    """A batch held it, or it was made, and no model had a part in it."""
    text: str = ""
    """As it is written."""
    draw: str = ""
    """Where it was drawn at random, if it is that draw unchanged."""
    noise: frozenset[str] = frozenset()
    """Of a loss whose target is a draw: where all noise was drawn that the value was computed from."""
    mixed: frozenset[str] = frozenset()
    """Of that noise what was added to something else on the way."""
    origin: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class LossCall:
    """One call of a loss in the text."""

    name: str
    """As people call it: "CrossEntropyLoss"."""
    function: str
    """By which its contract is known: "cross_entropy"."""
    at: Any
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    """By the names of the contract."""
    settings: Mapping[str, object] = field(default_factory=dict)
    """Switches on which the contract depends, where they are given."""
    open: frozenset[str] = frozenset()
    """Switches that are given and whose value is not known."""
    trains: bool = True
    """Autograd records."""
    known: Known = Known.DERIVED
    origin: Any = field(default=None, repr=False, compare=False)
    qualified: str = ""
    """The whole name of the function, "optax.ctc_loss"."""


@dataclass(frozen=True)
class Objective:
    """What is sent backward, or returned by a training step: what an optimizer makes smaller."""

    at: Any
    """Where it is sent, and where it was computed (`moments.Spot`)."""
    made: Any
    quantities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What it rises ("+") or falls ("-") with, by name: entropy, spread, ratio, divergence, chosen."""
    places: Mapping[str, Any] = field(default_factory=dict)
    """Where such a quantity was computed, by name."""
    form: str = ""
    """"loss" of a library, as it is; "negated"; "log_prob"."""
    alone: bool = True
    """Nothing else is sent backward in the loop."""
    optimizers: int = 1
    maximized_by: str = ""
    """The optimizer that makes it larger, with its place; "?" where that is not known."""
    against_data: bool = False
    """The loss compares an output with what came out of the data."""
    meant: bool = False
    """Something in the program is called as one that makes a loss larger on purpose."""
    origin: Any = field(default=None, repr=False, compare=False)
