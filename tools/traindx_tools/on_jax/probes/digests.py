"""On request: digests of arguments and results of each compiled function that is called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.live.digests import STEPS, DigestFile, digest, of_value, python_state
from traindx_tools.on_jax.probe import Call, JaxProbe, Scene

MOST_LEAVES = 1_000
FLUSH_EVERY = 16


class DigestProbe(JaxProbe):
    """Writes down what each compiled function took and gave, bit for bit, so that two runs can be compared.

    Every leaf is copied to the host, which waits for a device. Nothing is changed, no key is used.
    """

    name = "digests"
    on_request = True
    looks_before = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        asked = scene.options.get("digests")
        self._calls = int(asked.get("steps", STEPS)) if isinstance(asked, dict) else STEPS
        self._made: DigestFile | None = None

    @property
    def _file(self) -> DigestFile:
        if self._made is None:
            import jax

            recorder: Any = self.scene.recorder
            told = {"framework": "jax", "jax": jax.__version__, "backend": jax.default_backend(),
                    "devices": jax.device_count(), "x64": bool(getattr(jax.config, "jax_enable_x64", False))}
            self._made = DigestFile(recorder.batch_path.parent, recorder.rank, told)
        return self._made

    def before_call(self, call: Call) -> None:
        """The random states of Python and NumPy, and every leaf of the arguments: they may be donated."""
        if call.step > self._calls:
            return
        for name, value in python_state().items():
            self._file.event(call.number, "random", name, value)
        self._tell(call, "argument", (call.args, call.kwargs) if call.kwargs else call.args)

    def after_call(self, call: Call) -> None:
        """Every leaf of the result."""
        if call.step > self._calls:
            return
        self._tell(call, "result", call.output)
        if call.number % FLUSH_EVERY == 0:
            self._file.flush()

    def finish(self) -> Iterable[Finding]:
        """The last events go to the system."""
        if self._made is not None:
            self._made.flush()
        return ()

    def _tell(self, call: Call, kind: str, tree: Any) -> None:
        import jax

        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0][:MOST_LEAVES]:
            name = f"{kind} {jax.tree_util.keystr(path)} of {call.watched.name}"
            self._file.event(call.number, kind, name, of_leaf(leaf))


def of_leaf(leaf: Any) -> str:
    """Of type, shape and every bit; of a key its data; of anything else its text."""
    import jax

    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
        return of_value(leaf)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        leaf = leaf.addressable_data(0)
    held = np.ascontiguousarray(leaf)
    return digest(f"{held.dtype}{held.shape}".encode() + held.tobytes())
