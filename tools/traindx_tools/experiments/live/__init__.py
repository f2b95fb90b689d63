"""Changes applied inside the running process: each by hooks, told to the rank's record, and never half.

`attach.py` starts them from `Settings.options["changes"]`, `ledger.py` keeps what they did, `applied.py` reads it back.
`on_python/`, `on_torch/` and `on_jax/` hold what applies them.
"""
