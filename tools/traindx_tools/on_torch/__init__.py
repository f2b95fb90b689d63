"""Instruments inside a live PyTorch process. Nothing here is imported before the program itself imports torch."""
