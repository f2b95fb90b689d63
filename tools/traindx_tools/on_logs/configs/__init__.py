"""Configuration of a run: from files and from what the log prints, under flat dotted keys."""

from traindx_tools.on_logs.configs.files import read_config
from traindx_tools.on_logs.configs.names import SYNONYMS, lookup, lookup_all
from traindx_tools.on_logs.configs.printed import read_config_lines

__all__ = ["SYNONYMS", "lookup", "lookup_all", "read_config", "read_config_lines"]
