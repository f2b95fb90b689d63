"""What the probes measure: functions of tensors that change nothing, and the plain values they hand to the rules."""
