"""Every line of a log is an event: which of them go along with what stands out in its series."""
