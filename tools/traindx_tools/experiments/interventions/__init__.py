"""What can be changed in a run, by name: the table, its check, and how a run with a change is prepared.

One module a family of interventions; each declares its own in `INTERVENTIONS`. What takes hold inside the process is
applied by `experiments/live/`.
"""

from traindx_tools.experiments.interventions.intervention import Intervention, Setting
from traindx_tools.experiments.interventions.table import (
    check,
    example,
    intervention,
    interventions,
    page,
    prepare,
    prepare_all,
    settings_options,
    with_words,
)

__all__ = ["Intervention", "Setting", "check", "example", "intervention", "interventions", "page", "prepare",
           "prepare_all", "settings_options", "with_words"]
