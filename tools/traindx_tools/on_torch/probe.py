"""What one torch instrument implements: the moments of a training step, each a method that does nothing by default.

The attachment (`attachment.py`) finds model, optimizer, loss and batches by global hooks and calls the probes in
order. A probe that raises is switched off with one line and never again called: the training goes on. A probe
never changes a value, a gradient, the RNG or the mode of a module, never synchronises with the device outside
`after_step`, and there only on what was computed a step before (`lagged.py`), and never keeps a graph alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from traindx_tools.on_torch.measures.cadence import SETTLED, Cadence
from traindx_tools.program.program import Program

if TYPE_CHECKING:
    import torch

    from traindx_tools.finding import Finding
    from traindx_tools.live.recorder import Recorder
    from traindx_tools.on_torch.drawn import Draw


@dataclass
class Scene:
    """What is known of the training in this process; filled by the attachment as it shows itself."""

    recorder: Recorder
    step: int = 0
    """Optimizer steps that are complete (of the optimizer that steps most)."""
    models: list[torch.nn.Module] = field(default_factory=list)
    """Outermost modules that were called, unwrapped (DDP, FSDP, `torch.compile`), in the order of their first call."""
    optimizers: list[torch.optim.Optimizer] = field(default_factory=list)
    called: torch.nn.Module | None = None
    """The outermost module of the last call as the program called it: the wrapper, where it has one."""
    loss: torch.Tensor | None = None
    """The last tensor that `backward` was called on, detached; on its device."""
    batch: Any = None
    """The last batch that a DataLoader gave out, or the arguments of the outermost call where there is none."""
    draw: Draw | None = None
    """Which rows of which dataset the last batch of a DataLoader holds; None where its sampler does not say."""
    drawn: Draw | None = None
    """The same, also of a loader that asks for one item at a time: how many rows that holds nobody knows."""
    module_paths: dict[int, str] = field(default_factory=dict)
    """Module path by `id(module)`, for every module of `models`."""
    parameter_paths: dict[int, str] = field(default_factory=dict)
    """Parameter path by `id(parameter)`."""
    replicas: int = 1
    """Processes that average their gradients with this one: the world size under DDP, 1 without it."""
    sharded: bool = False
    """A wrapper shards gradients: what a process holds of them is a part."""
    options: dict[str, Any] = field(default_factory=dict)
    program: Program = field(default_factory=lambda: Program("torch"))
    """Entities and timeline; filled by the probe `program` where that is on."""
    inner: list[Callable[[torch.nn.Module, tuple[Any, ...], dict[str, Any], Any], None]] = field(default_factory=list)
    """What is called with module, arguments and output after each module within an outermost call, and that itself;
    empty most of the time: a probe adds itself in `before_forward` of a step that it samples. Compiled regions are
    not seen. Unlike hooks of modules these are not copied, pickled or guarded on by `torch.compile`."""

    watch_lookups: Callable[[], None] = lambda: None
    """From then on `looked_up` is told; set by the attachment."""

    @property
    def settled(self) -> bool:
        """The training goes on evenly: probes rest between two looks. With several optimizers none does, because the
        steps of one may never fall into the looks that follow the other's."""
        return self.step >= SETTLED and len(self.optimizers) == 1

    def due(self, cadence: Cadence, count: int) -> bool:
        """Whether a probe measures now. `count`: what it counted itself (calls, steps) while it saw all of them."""
        return cadence.due(self.step if self.settled else count)


class TorchProbe:
    """One instrument. `name` is what `--probe` takes; `always_on` ones run unless told otherwise."""

    name: str = ""
    always_on: bool = False
    on_request: bool = False
    """Costs so much memory or time that "all" does not stand for it: it is asked for by its own name."""

    done: bool = False
    """It has seen what it wanted: of its moments only `failed` and `finish` are still called."""

    NEVER: ClassVar[int] = 1 << 60
    """A `next_look` that does not come."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def next_look(self) -> int:
        """The step (as `scene.step` counts) up to which it can do without the moments of training steps; 0: without
        none. Asked once the training is settled, after steps that it saw. Evaluations are never kept from it."""
        return 0

    def model_found(self, model: torch.nn.Module) -> None:
        """An outermost module is about to be called for the first time."""

    def optimizer_found(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step for the first time."""

    def before_batch(self) -> None:
        """A DataLoader is asked for a batch."""

    def rows_asked(self, dataset: Any, index: Any) -> None:
        """A DataLoader in this process is about to read these rows of its dataset: a number, or a list of them."""

    def rows_read(self, dataset: Any, index: Any) -> None:
        """It has, or it has failed."""

    def collated(self, fields: Mapping[str, list[Any]], batch: Any) -> None:
        """A collate function in this process has made a batch of rows; the values of each field in the first ones."""

    def rows_collated(self, collate: Callable[..., Any], rows: Sequence[Any], batch: Any) -> None:
        """A collate function of this process made a batch of these rows."""

    def converted(self, before: Any, after: Any, place: tuple[str, int] | None) -> None:
        """A column or a table of numbers has become a tensor, by `torch.tensor` or `torch.as_tensor`."""

    def batch_given(self, batch: Any) -> None:
        """A DataLoader hands out a batch."""

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """An outermost module is called."""

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """An outermost module has returned."""

    def before_backward(self, loss: torch.Tensor) -> None:
        """`backward` is about to run on this tensor: its graph is still there."""

    def after_backward(self, loss: torch.Tensor) -> None:
        """Gradients of this backward pass are in `.grad`."""

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer is about to change the parameters."""

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer has changed the parameters."""

    def scaler_updated(self, scaler: torch.amp.GradScaler) -> None:
        """A GradScaler ends a step; where it skipped the optimizer's, there was no `before_step`."""

    # ---- beside the step

    def replicated(self, wrapper: torch.nn.Module) -> None:
        """A DistributedDataParallel has been made."""

    def reduced(self) -> None:
        """A collective of `torch.distributed` that combines or exchanges tensors has returned."""

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """A loss of `torch.nn.functional` has returned."""

    def looked_up(self, source: torch.Tensor, indices: Sequence[torch.Tensor]) -> None:
        """`source[index]`, `source[i, j]` or `source.index_select(0, index)` is about to be taken while gradients are
        off; told once a probe has asked for it (`scene.watch_lookups`)."""

    def state_given(self, module: torch.nn.Module, state: Any) -> None:
        """`state_dict` of a module has returned."""

    def state_loaded(self, kind: str, owner: Any, state: Any, result: Any) -> None:
        """`load_state_dict` of a "model", "optimizer", "scheduler" or "scaler" has returned."""

    def file_read(self, path: Any, value: Any) -> None:
        """`torch.load` or `safetensors.torch.load_file` has returned."""

    def file_written(self, path: Any, value: Any) -> None:
        """`torch.save` or `safetensors.torch.save_file` has returned."""

    def scheduled(self, scheduler: Any) -> None:
        """A learning-rate scheduler has stepped; the first time by itself, where it is made."""

    def watched(self, scheduler: Any, value: Any) -> None:
        """A `ReduceLROnPlateau` has stepped with a value; its best and the rate are what came of it."""

    def cleared(self, owner: Any) -> None:
        """`zero_grad` of an optimizer or a module has returned."""

    def clipped(self) -> None:
        """Gradients have been clipped by `torch.nn.utils`."""

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """The program ends with this error: what the probe knows about it."""
        return ()

    def finish(self) -> Iterable[Finding]:
        """The program ends, well or not: what the probe saw and has not written yet."""
        return ()

    def let_go(self) -> None:
        """The probe is called no more, because of a fault or of threads: takes back what it has switched on in torch.

        It may be called in the middle of any other moment, and again.
        """
