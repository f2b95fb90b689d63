"""Names of torch and what they stand for, read from `names.toml`."""

from __future__ import annotations

from collections.abc import Mapping

from traindx_tools.knowledge.tables import table, words

_NAMES = table("names.toml")
LOSSES: frozenset[str] = frozenset(_NAMES["loss_functions"])
"""Loss functions of torch.nn.functional."""
THING_ATTRIBUTES: frozenset[str] = frozenset(_NAMES["thing_attributes"])
"""Attributes of foreign objects that are values and no methods."""
LOSS_CLASSES: Mapping[str, str] = _NAMES["loss_classes"]
"""The loss classes of torch.nn and the function that each calls."""
DTYPES: Mapping[str, str] = _NAMES["dtypes"]
"""What a dtype is called in torch, NumPy, JAX and plain text, by its name there; all integers are "int"."""
CONTEXTS = words("names.toml", "contexts")
"""Calls that give a context in which others run."""
NO_ARRAYS: tuple[str, ...] = tuple(_NAMES["no_arrays"])
"""How names begin of calls of array libraries that give no array."""
MODEL_FACTORIES = ("torchvision.models.", "timm.create_model", "torch.hub.load")
"""Lower-case functions of installed packages that return a model."""
SQUASHES = frozenset({"softmax", "log_softmax", "sigmoid", "logsigmoid"})
"""Methods that only an array has."""
OPTAX_LOSSES = words("names.toml", "optax_losses")
"""Losses of optax."""
