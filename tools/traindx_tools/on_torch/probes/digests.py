"""On request: digests of batches, random states, parameters, outputs of modules and gradients of each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.live.digests import STEPS, DigestFile, digest, of_value, python_state
from traindx_tools.on_torch.probe import Scene, TorchProbe

MOST_ROWS = 4_096
"""Rows of a batch that get a digest each."""
MOST_TENSORS = 64
ROW_BYTES = 6


class DigestProbe(TorchProbe):
    """Writes down what each step computed, bit for bit, so that two runs can be held against each other.

    Every tensor is copied to the host, which waits for a device. Nothing is changed, no random number is drawn.
    """

    name = "digests"
    on_request = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        asked = scene.options.get("digests")
        self._steps = int(asked.get("steps", STEPS)) if isinstance(asked, dict) else STEPS
        self._made: DigestFile | None = None
        self._calls: dict[int, int] = {}

    @property
    def _file(self) -> DigestFile:
        """Made with the first event, when the rank is known."""
        if self._made is None:
            recorder: Any = self.scene.recorder
            self._made = DigestFile(recorder.batch_path.parent, recorder.rank, _environment())
            self._random(-1)
        return self._made

    def _random(self, step: int | None = None) -> None:
        for name, value in (python_state() | _torch_state()).items():
            self._file.event(self.scene.step if step is None else step, "random", name, value)

    # ---- the moments

    def model_found(self, model: torch.nn.Module) -> None:
        """The parameters that it starts with."""
        self._state("initial", model)

    def before_batch(self) -> None:
        """The random states that order and augmentation draw from."""
        self._random()

    def batch_given(self, batch: Any) -> None:
        """Each tensor of the batch, and its rows."""
        for name, tensor in _tensors(batch, "batch"):
            self._file.event(self.scene.step, "batch", name, of_tensor(tensor), _rows(tensor))

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The arguments, and the random states that dropout draws from."""
        self._random()
        for name, tensor in _tensors({**dict(enumerate(args)), **kwargs}, ""):
            self._file.event(self.scene.step, "input", f"argument {name}", of_tensor(tensor), _rows(tensor))
        self._calls.clear()
        if self._inside not in self.scene.inner:
            self.scene.inner.append(self._inside)

    def _inside(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """What one module made, and of what. Its second call in one pass is an event of its own."""
        number = self._calls[id(module)] = self._calls.get(id(module), 0) + 1
        path = self.scene.module_paths.get(id(module), "") or type(module).__name__
        given = [of_tensor(t) for _, t in _tensors((args, kwargs), "")]
        name = f"{path} ({type(module).__name__})" + (f", call {number}" if number > 1 else "")
        made = [of_tensor(t) for _, t in _tensors(output, "")]
        self._file.event(self.scene.step, "module", name, digest("".join(made).encode()),
                         digest("".join(given).encode()))

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """The modules are told no longer."""
        if self._inside in self.scene.inner:
            self.scene.inner.remove(self._inside)

    def before_backward(self, loss: torch.Tensor) -> None:
        """The loss."""
        self._file.event(self.scene.step, "loss", f"{float(loss.detach().float().mean()):.9g}", of_tensor(loss))

    def after_backward(self, loss: torch.Tensor) -> None:
        """The gradient of each parameter, last layer first, as they are computed."""
        named = [(n, p.grad) for m in self.scene.models for n, p in m.named_parameters()]
        for name, grad in reversed(named):
            if grad is not None:
                self._file.event(self.scene.step, "gradient", name, of_tensor(grad))

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The parameters and buffers after the step."""
        for model in self.scene.models:
            self._state("after the step", model)
        self._file.flush()
        if self.scene.step >= self._steps:
            self.done = True

    def finish(self) -> Iterable[Finding]:
        """The last events go to the system."""
        if self._made is not None:
            self._made.flush()
        return ()

    def _state(self, kind: str, model: torch.nn.Module) -> None:
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            self._file.event(self.scene.step, kind, name, of_tensor(tensor))


def of_tensor(tensor: torch.Tensor) -> str:
    """Of type, shape and every bit."""
    held = tensor.detach()
    if held.layout != torch.strided or held.is_quantized or held.device.type == "meta":
        return of_value((str(held.dtype), tuple(held.shape), str(held.layout)))
    plain = held.cpu().contiguous().reshape(-1)
    head = f"{held.dtype}{tuple(held.shape)}".encode()
    return digest(head + plain.view(torch.uint8).numpy().tobytes()) if plain.numel() else digest(head)


def _rows(tensor: torch.Tensor) -> list[str] | None:
    held = tensor.detach()
    if not held.ndim or not 0 < held.shape[0] <= MOST_ROWS or held.layout != torch.strided or held.is_quantized:
        return None
    rows = held.cpu().contiguous().reshape(held.shape[0], -1)
    if not rows.numel():
        return None
    return [digest(row.tobytes(), ROW_BYTES) for row in rows.view(torch.uint8).numpy()]


def _tensors(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    for count, item in enumerate(_walk(value, name, 6)):
        if count == MOST_TENSORS:
            return
        yield item


def _walk(value: Any, name: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping) and depth:
        for key in value:
            yield from _walk(value[key], f"{name}[{key!r}]" if name else str(key), depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for index, part in enumerate(value):
            yield from _walk(part, f"{name}[{index}]" if name else str(index), depth - 1)


def _torch_state() -> dict[str, str]:
    found = {"torch": digest(torch.get_rng_state().numpy().tobytes())}
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for number, state in enumerate(torch.cuda.get_rng_state_all()):
            found[f"cuda:{number}"] = digest(state.numpy().tobytes())
    return found


def _environment() -> dict[str, Any]:
    return {"framework": "torch", "torch": torch.__version__, "cuda": torch.version.cuda,
            "threads": torch.get_num_threads(), "deterministic": torch.are_deterministic_algorithms_enabled(),
            "cudnn_benchmark": torch.backends.cudnn.benchmark, "default_dtype": str(torch.get_default_dtype())}
