"""The file that the NWPU-Crowd server takes: a line a picture of the test part, `id count` with four decimals.

As its guideline asks for it: plain text, 1,500 lines, such as ``3610 100.0000``; the ids are 3610 to 5109.
"""

from collections.abc import Sequence
from pathlib import Path

from gbdgc.errors import InputError
from gbdgc.evaluation.table import Row
from gbdgc.files import atomic_write

NWPU_TEST_IDS = range(3610, 5110)


def write_nwpu_submission(rows: Sequence[Row], path: Path) -> Path:
    """Write the submission; every picture of the test part must have been counted, and no other."""
    try:
        counts = {int(row.id): row.count for row in rows}
    except ValueError as error:
        raise InputError(f"not pictures of NWPU-Crowd: their ids are numbers ({error})") from error
    if missing := [id for id in NWPU_TEST_IDS if id not in counts]:
        raise InputError(
            f"{path.name}: the server wants all {len(NWPU_TEST_IDS)} test pictures, {NWPU_TEST_IDS[0]} to "
            f"{NWPU_TEST_IDS[-1]}; {len(missing)} are not counted, such as {missing[0]}"
        )
    if strangers := sorted(counts.keys() - set(NWPU_TEST_IDS)):
        raise InputError(f"{path.name}: {strangers[0]} is not of the test part; count it with --split test")
    with atomic_write(path, "w") as file:
        file.writelines(f"{id} {counts[id]:.4f}\n" for id in NWPU_TEST_IDS)
    return path
