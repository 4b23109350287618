"""Several processes on this machine, watched over by torch elastic: when one dies, all end or start again together."""

import logging
import os
import signal
import sys
from collections.abc import Sequence

from gbdgc.errors import InputError

_SECONDS_TO_SAVE = 120
"""After a signal: for the step at hand and the checkpoint. After a death the survivors fail at once by themselves."""


def run_processes(arguments: Sequence[str], processes: int, max_restarts: int = 0) -> int:
    """Run ``gbdgc ARGUMENTS`` in several processes, which find their rank in the environment; return the exit code.

    When one dies, all of them are restarted, up to ``max_restarts`` times.
    """
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    # The store that elastic shares by default outlives a restart, and has the addresses of the dead processes in it.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    # What elastic logs of a death is the list of processes that it ends; which one died is said below.
    logging.disable(logging.ERROR)
    settings = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=max_restarts,
        shutdown_timeout=_SECONDS_TO_SAVE,
    )
    try:
        elastic_launch(settings, sys.executable)("-m", "gbdgc", *arguments)
    except SignalException:
        return 130
    except ChildFailedError as error:
        # The others die of the first death: by a lost connection, or by the SIGTERM that ends them.
        deaths = {rank: failure.exitcode for rank, failure in error.failures.items()}
        killed = {rank: -code for rank, code in deaths.items() if code < 0 and -code != signal.SIGTERM}
        if not killed:
            return max(1, *deaths.values())  # it has said itself what was wrong
        rank, number = next(iter(killed.items()))
        advice = "memory may have run out; " if number == signal.SIGKILL else ""
        raise InputError(
            f"process {rank} of {processes} (rank {rank})",
            f"ended by {signal.Signals(number).name}, and the others with it",
            f"{advice}go on from the last checkpoint with --resume, or let that happen by itself with --max-restarts",
        ) from error
    finally:
        logging.disable(logging.NOTSET)
    return 0
