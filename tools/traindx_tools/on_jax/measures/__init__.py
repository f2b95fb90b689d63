"""What a step can measure of itself inside `jit`: pure functions, and one transfer to the host an interval.

    from traindx_tools.on_jax import measures

    @jax.jit
    def train_step(state, batch):
        ...
        seen = measures.codes(indices, 512) | measures.loss_terms({"recon": recon, "commit": commit})
        measures.report(state.step, seen | measures.activations({"encoder": h}), every=100)

Outside `traindx run` a report compiles to nothing.
"""

from traindx_tools.on_jax.measures.activations import activations
from traindx_tools.on_jax.measures.codes import codes
from traindx_tools.on_jax.measures.losses import loss_terms, term_gradients
from traindx_tools.on_jax.measures.memory import held
from traindx_tools.on_jax.measures.reporting import report

__all__ = ["activations", "codes", "held", "loss_terms", "report", "term_gradients"]
