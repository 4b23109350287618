from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gbdgc.data.sample import Sample, decimals


def test_no_labels_and_no_people_are_different_things():
    assert Sample("a", Path("a.jpg"), 4, 3).count is None
    assert Sample("a", Path("a.jpg"), 4, 3, np.zeros((0, 2), np.float32)).count == 0


def test_points_are_float32_whatever_they_were():
    sample = Sample("a", Path("a.jpg"), 4, 3, np.array([[1, 2], [3, 4]]))
    assert sample.points is not None
    assert (sample.points.dtype, sample.count) == (np.float32, 2)


@pytest.mark.parametrize("shape", [(2,), (4, 3), (2, 2, 2)])
def test_points_that_are_not_pairs_are_refused(shape):
    with pytest.raises(ValueError, match=r"a: points must be rows of \(x, y\)"):
        Sample("a", Path("a.jpg"), 4, 3, np.zeros(shape, np.float32))


@given(arrays(np.float32, (3, 2), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_decimals_read_back_to_the_same_bits(points):
    assert np.array_equal(np.asarray(decimals(points), dtype=np.float32), points)
