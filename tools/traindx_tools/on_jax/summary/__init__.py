"""A jaxpr in few lines: what goes in and out, what each line of the user's code became, what to look at."""

from traindx_tools.on_jax.summary.shapes import arguments
from traindx_tools.on_jax.summary.summarise import Summary, summarise

__all__ = ["Summary", "arguments", "summarise"]
