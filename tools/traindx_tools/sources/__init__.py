"""Runs by the name that a tracker gave them: `wandb:ENTITY/PROJECT/RUN`, `mlflow:RUN`, `tensorboard:FOLDER`.

`resolved` turns such names into paths before anything is read; a path that exists is never taken for a name.
"""

from traindx_tools.sources.names import Named, named
from traindx_tools.sources.noting import Noting, noting_of
from traindx_tools.sources.resolving import as_paths, is_fetched, resolved

__all__ = ["Named", "Noting", "as_paths", "is_fetched", "named", "noting_of", "resolved"]
