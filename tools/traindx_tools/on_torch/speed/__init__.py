"""Where the time of a step goes: waiting for data, compiling again, single slow steps, waiting for the device."""
