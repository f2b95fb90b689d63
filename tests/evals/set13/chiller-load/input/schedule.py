import math


def cyclic(step, first=300, growth=2.0, decay=0.7, ramp=20, floor=0.005):
    """Multiplier of the base rate: cycles of growing length, each with a short ramp and a cosine fall."""
    length, peak = first, 1.0
    while step >= length:
        step -= length
        length, peak = int(length * growth), peak * decay
    if step < ramp:
        return peak * step / ramp
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * (step - ramp) / (length - ramp)))
