import threading
import time

import pytest

from gbdgc.data.parallel import map_unordered


@pytest.mark.parametrize("workers", [1, 4, None])
def test_every_item_is_worked_on_once(workers):
    assert sorted(map_unordered(lambda number: number**2, range(50), workers=workers)) == [n**2 for n in range(50)]


def test_nothing_to_do_is_nothing():
    assert list(map_unordered(str, [])) == []


def test_a_failure_stops_the_rest_but_loses_nothing_that_was_done():
    begun = []
    failed = threading.Event()

    def work(number: int) -> int:
        begun.append(number)
        if number == 1:
            failed.set()
            raise ZeroDivisionError
        failed.wait(5)
        time.sleep(0.02)  # or a thousand of them would be done before this machine, if busy, gets to stop them
        return number

    outcomes = map_unordered(work, range(1000), workers=2)
    done = []
    with pytest.raises(ZeroDivisionError):
        done.extend(outcomes)
    assert len(begun) < 1000
    assert 0 in done
    assert sorted([*done, 1]) == sorted(begun)
