"""From "the loss is NaN" to the operation that did it: tracing, places in the code, reasons."""
