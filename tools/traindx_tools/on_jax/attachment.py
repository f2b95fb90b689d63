"""Sees the calls of any JAX program: `jax.jit`, `grad`, `value_and_grad` and `vmap` are replaced after the import.

What they make stands for the original in every respect and adds one look at each call from outside a trace: calls
within a trace, of other threads and of our own go straight through. Functions that were jitted before (those of JAX
itself) are not seen. Nothing is patched twice, and a probe that raises costs itself and one line.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.knowledge.contracts import optax_losses
from traindx_tools.live.import_hook import after_import
from traindx_tools.live.notice import say
from traindx_tools.live.session import Session, current_session
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.paths.marking import marked_call
from traindx_tools.on_jax.probe import Call, JaxProbe, Mapped, Scene
from traindx_tools.on_jax.registry import probes_for
from traindx_tools.on_jax.state import Feeding
from traindx_tools.on_jax.watched import Watched, caller, static_names
from traindx_tools.on_variables.narrowed import is_converted
from traindx_tools.program_texts.of_run import bounded

USES = ("bits", "bernoulli", "categorical", "choice", "gumbel", "normal", "permutation", "randint", "split",
        "truncated_normal", "uniform")
"""Functions of `jax.random` that use up a key and are noticed when they are called eagerly."""

MOST_FUNCTIONS = 1000
"""Functions of one process that are watched: a program that makes more of them jits in a loop, which was told."""

_attached: list[Attachment] = []


def attach(session: Session | None = None) -> Attachment | None:
    """Attaches the probes that the session asks for; None where there is no session. A second call changes nothing."""
    if _attached:
        return _attached[0]
    session = session or current_session()
    if session is None:
        return None
    internals.check()
    scene = Scene(session.recorder, dict(session.settings.options))
    made = Attachment(scene, probes_for(scene, session.settings.probes, session.settings.mode), session)
    session.at_error.append(made.failed)
    session.at_end.append(made.finish)
    made.patch()
    _attached.append(made)
    return made


def detach() -> None:
    """Takes every patch out again; functions that were made meanwhile go straight through from now on."""
    while _attached:
        _attached.pop().unpatch()


class Attachment:
    """The patches of one process and what they have seen."""

    def __init__(self, scene: Scene, probes: Sequence[JaxProbe], session: Session) -> None:
        self.scene, self.probes, self.session = scene, list(probes), session
        self.calls = self._functions = 0
        self._busy = self._off = False
        self._current: Watched | None = None
        self._lowered: list[Any] = []
        self._thread = threading.get_ident()
        self._undo: list[Callable[[], None]] = []

    # ---- patches

    def patch(self) -> None:
        """Puts the patches in."""
        import jax

        self._replace(jax, "jit", self._jit)
        for name in ("grad", "value_and_grad"):
            self._replace(jax, name, functools.partial(self._gradient, name))
        self._replace(jax, "vmap", self._vmap)
        for name in USES:
            if hasattr(jax.random, name):
                self._replace(jax.random, name, functools.partial(self._random, name))
        for home, name in ((jax.numpy, "asarray"), (jax.numpy, "array"), (jax, "device_put")):
            self._replace(home, name, self._converting)
        after_import("optax", self._patch_losses)
        after_import("optax", self._patch_schedules)
        try:
            self._undo.append(internals.on_lowering(self._on_lowering))
        except internals.JaxMoved as error:
            say(f"compiled functions are not looked into: {error}")

    def unpatch(self) -> None:
        """Takes the patches out again; what was patched over ours by others stays."""
        self._off = True
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        ours = make(original)
        setattr(owner, name, ours)
        self._undo.append(lambda: setattr(owner, name, original) if getattr(owner, name) is ours else None)

    def _patch_losses(self) -> None:
        """Losses of optax whose two arguments must have one shape: what is told of them is their shapes."""
        homes = [sys.modules[name] for name in ("optax", "optax.losses") if name in sys.modules]
        for name, contract in optax_losses().items():
            for home in homes:
                if not self._off and contract.same_shape and callable(getattr(home, name, None)):
                    self._replace(home, name, functools.partial(self._loss, name))

    def _patch_schedules(self) -> None:
        """What makes an optimizer follow a schedule; optax itself calls it by the module that defines it."""
        homes = [sys.modules[name] for name in ("optax", "optax._src.transform") if name in sys.modules]
        for home in homes:
            if not self._off and callable(getattr(home, "scale_by_schedule", None)):
                self._replace(home, "scale_by_schedule", self._schedule)

    def _schedule(self, original: Any) -> Any:
        @functools.wraps(original)
        def schedule(*args: Any, **options: Any) -> Any:
            function = args[0] if args else options.get("step_size_fn")
            if not self._off and not self._busy and callable(function):
                self._tell("schedule_made", function, caller())
            return original(*args, **options)

        return schedule

    def _loss(self, name: str, original: Any) -> Any:
        @functools.wraps(original)
        def loss(*args: Any, **options: Any) -> Any:
            if not self._off and not self._busy and threading.get_ident() == self._thread:
                given = (*args, *options.values())[:2]
                self._tell("loss_called", name, tuple(tuple(a.shape) for a in given if hasattr(a, "shape")), caller())
            return original(*args, **options)

        return loss

    def _jit(self, original: Any) -> Any:
        @functools.wraps(original)
        def jit(*args: Any, **options: Any) -> Any:
            made = original(*args, **options)
            if not args or not hasattr(made, "lower"):  # called for its options alone: a decorator comes back
                return functools.partial(jit, **options) if not args else made
            donated = any(options.get(o) not in (None, ()) for o in ("donate_argnums", "donate_argnames"))
            static = static_names(args[0], options.get("static_argnums"), options.get("static_argnames"))
            return self._made(Watched(made, self, static=static, donated=donated))

        return jit

    def _gradient(self, kind: str, original: Any) -> Any:
        @functools.wraps(original)
        def gradient(*args: Any, **options: Any) -> Any:
            made = original(*args, **options)
            watched = self._made(Watched(made, self, kind=kind))
            watched.argnums = args[1] if len(args) > 1 else options.get("argnums", 0)

            @functools.wraps(made)
            def call(*given: Any, **named: Any) -> Any:
                if self._current is None:
                    return watched(*given, **named)
                self._current.differentiates = True  # it is traced: releases before 0.5 do not mark what this makes
                return self._marked(watched, given, named, bool(options.get("has_aux")))

            return call

        return gradient

    def _marked(self, watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any], aux: bool) -> Any:
        """The call of a gradient within a trace; its leaves are given names where a probe asks for them."""
        output = watched(*args, **kwargs)
        if self._off or self._busy or not any(p.marks_gradients for p in self.probes):
            return output
        try:
            found, marks = marked_call(watched, args, kwargs, output, aux, caller())
        except Exception as error:  # noqa: BLE001 - a fault of ours must not become the training's
            say(f"a gradient is not measured: {type(error).__name__}: {error}; the training goes on")
            return output
        if marks is not None:
            self._tell("marked", marks)
        return found

    def _vmap(self, original: Any) -> Any:
        @functools.wraps(original)
        def vmap(fun: Any, in_axes: Any = 0, out_axes: Any = 0, *more: Any, **options: Any) -> Any:
            made = original(fun, in_axes, out_axes, *more, **options)

            @functools.wraps(made)
            def call(*given: Any, **named: Any) -> Any:
                output = made(*given, **named)
                if given and not self.quiet():
                    self._tell("mapped", Mapped(fun, in_axes, out_axes, given, output, caller()))
                return output

            return call

        return vmap

    def _random(self, name: str, original: Any) -> Any:
        @functools.wraps(original)
        def use(*args: Any, **options: Any) -> Any:
            if args and not self.quiet():
                self._tell("key_used", name, args[0], caller())
            return original(*args, **options)

        return use

    def _converting(self, original: Any) -> Any:
        @functools.wraps(original)
        def convert(*args: Any, **options: Any) -> Any:
            made = original(*args, **options)
            if args and is_converted(args[0]) and not self.quiet():
                self._tell("converted", args[0], made, caller())
            return made

        return convert

    def _made(self, watched: Watched) -> Watched:
        if not self.quiet():
            self._tell("made", watched)
        return watched

    # ---- moments

    def quiet(self) -> bool:
        """Whether what happens now is no moment: within a trace, of another thread, or of our own."""
        if self._off or self._busy or threading.get_ident() != self._thread or not internals.at_top_level():
            return True
        if self.session.asleep:
            self.session.wake()
        return False

    def observed(self, watched: Watched, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call from outside."""
        if not watched.calls:
            if self._functions >= MOST_FUNCTIONS:
                return watched.inner(*args, **kwargs)
            self._functions += 1
        self.calls += 1
        watched.calls += 1
        call = Call(watched, self.calls, watched.calls, args, kwargs)
        if any(p.looks_before for p in self.probes):
            self._tell("before_call", call)
        outer, self._current = self._current, watched
        try:
            call.output = watched.inner(*args, **kwargs)
        finally:
            self._current = outer
            self._compiled(call)
        self._learn(call)
        self._tell("after_call", call)
        if self.session.at_step:
            self.session.stepped()
        return call.output

    def _learn(self, call: Call) -> None:
        """Which outputs are state: found out in the first calls."""
        watched = call.watched
        if watched.feeding is None:
            watched.feeding = Feeding(call)
        elif watched.feeding.learning:
            watched.feeding.look(call)

    def _on_lowering(self, jaxpr: Any, name: str) -> None:
        if self._current is not None and not self._busy and len(self._lowered) < 64:
            self._lowered.append(jaxpr)

    def _compiled(self, call: Call) -> None:
        """The largest of what was compiled during a call is the function itself; the others are constants of it."""
        if self._lowered:
            jaxpr = max(self._lowered, key=lambda j: len(j.jaxpr.eqns))
            self._lowered.clear()
            self._tell("compiled", call, jaxpr)

    def _tell(self, moment: str, *what: Any) -> None:
        self._busy = True
        try:
            for probe in tuple(self.probes):
                try:
                    getattr(probe, moment)(*what)
                except Exception as error:  # noqa: BLE001 - a fault of a probe must not become the training's
                    self.probes.remove(probe)
                    say(f"the probe {probe.name} is off: {type(error).__name__}: {error}; the training goes on")
        finally:
            self._busy = False

    # ---- the end

    def failed(self, error: BaseException) -> None:
        """The program ends with this error: writes what the probes know about it."""
        self._write("failed", error)

    def finish(self) -> None:
        """The program ends: writes what the probes have not written yet."""
        if self.calls:  # a program whose outputs hold no loss was watched all the same
            self.scene.recorder.mark("jax", calls=self.calls)
            self.session.note_files()
        self._write("finish")

    def _write(self, moment: str, *what: Any) -> None:
        self._busy = True
        for probe in self.probes:
            try:
                found: Iterable[Finding] = getattr(probe, moment)(*what)
                for finding in found:
                    self.scene.recorder.finding(finding)
            except Exception as error:  # noqa: BLE001 - see above
                say(f"the probe {probe.name} failed at the end: {type(error).__name__}: {error}")
        if self.scene.facts:
            self.scene.recorder.facts(bounded(self.scene.facts, os.getcwd()))
        self._busy = False
