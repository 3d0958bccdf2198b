"""The array types that the project passes around, and numbers that every processor agrees on."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Numbers = IntArray | FloatArray


def twelve_digits(numbers: Iterable[float]) -> FloatArray:
    """Round to twelve significant digits.

    Powers and exponentials differ in their last bits from processor to processor. A simulation is seeded by
    what is simulated, to the last bit, so a problem made with them is rounded first.
    """
    return np.array([float(f"{number:.12g}") for number in numbers])
