"""The running average of the weights."""

import pytest
import torch

from gbdgc.training.state import running_average


def average_of(values: list[float], decay: float) -> float:
    update = running_average(decay)
    averaged = torch.tensor([values[0]])
    for seen, value in enumerate(values[1:], start=1):
        update([averaged], [torch.tensor([value])], seen)
    return float(averaged)


def test_it_begins_quickly_and_slows_down_to_its_decay() -> None:
    assert average_of([0.0, 1.0], 0.99) == pytest.approx(1 - 2 / 11)
    assert average_of([0.0, 1.0, 1.0], 0.99) == pytest.approx(1 - 2 / 11 * 3 / 12)
    assert average_of([0.0, 1.0], 0.1) == pytest.approx(0.9)


def test_a_short_run_forgets_its_first_step() -> None:
    assert average_of([0.0] + [1.0] * 66, 0.99) > 0.999
