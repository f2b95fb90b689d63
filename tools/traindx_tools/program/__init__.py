"""The training program as entities and a timeline, whoever filled it: a live process or a reader of text."""
