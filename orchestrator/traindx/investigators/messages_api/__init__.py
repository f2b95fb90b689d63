"""Specialists over the Messages API alone: the `anthropic` package, our own read-only tools, no CLI."""
