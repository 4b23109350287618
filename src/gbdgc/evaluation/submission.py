"""The submission file of the NWPU-Crowd server: one line per picture of the test part, `id count` with four decimals.

Its guideline asks for plain text of 1,500 lines such as ``3610 100.0000``, with the ids 3610 to 5109.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from gbdgc.errors import InputError, UsageError
from gbdgc.evaluation.table import Row
from gbdgc.files import atomic_write

NWPU_TEST_IDS = [str(number) for number in range(3610, 5110)]


def check_nwpu_ids(ids: Iterable[str]) -> None:
    """Refuse anything but the complete test part of NWPU-Crowd."""
    given = set(ids)
    part = f"the test part of NWPU-Crowd, {NWPU_TEST_IDS[0]} to {NWPU_TEST_IDS[-1]}"
    if strangers := sorted(given.difference(NWPU_TEST_IDS)):
        advice = "a submission wants the test part of NWPU-Crowd and no other"
        raise UsageError(f"picture {strangers[0]!r}", f"not of {part}", advice)
    if missing := [id for id in NWPU_TEST_IDS if id not in given]:
        reason = f"the server wants all of {part}, and {len(missing)} of them are missing or cannot be read"
        raise InputError(f"picture {missing[0]!r}", reason, "give NWPU-Crowd with all of them, or make no submission")


def write_nwpu_submission(rows: Sequence[Row], path: Path) -> Path:
    """Write the submission; every picture of the test part must have been counted, and no other."""
    counts = {row.id: row.count for row in rows}
    check_nwpu_ids(counts)
    with atomic_write(path, "w") as file:
        file.writelines(f"{id} {counts[id]:.4f}\n" for id in NWPU_TEST_IDS)
    return path
