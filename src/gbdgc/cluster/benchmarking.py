"""The cells of a benchmark as tasks of a Ray cluster, into the same files as on one machine."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from gbdgc import __version__
from gbdgc.benchmark import Settings
from gbdgc.benchmark.declaration import Cell
from gbdgc.benchmark.runner import Task, finished_cell, plan_benchmark, run_cell
from gbdgc.cluster.session import LOCAL, check_version, connected, warn_if_no_node_fits
from gbdgc.progress import progress_bar, stderr

_RETRIES = 3  # how many times a cell is resumed from its last checkpoint whose worker or node was lost


def benchmark_on_cluster(
    name: str, settings: Settings, *, cluster: str = LOCAL, cores: int = 1, gpus: float = 0
) -> list[Cell]:
    """Run the cells that are missing side by side, each training on so many cores and GPUs, and return all of them.

    Cells that share a training are one task. Data, results and runs must lie in folders that every node has. The
    cluster is "local" for this machine alone, "auto", or HOST:PORT of its head.
    """
    settings = replace(
        settings,
        data={key: Path(path).absolute() for key, path in settings.data.items()},
        config=Path(settings.config).absolute() if Path(settings.config).exists() else settings.config,
        out=Path(settings.out).absolute(),
        runs=Path(settings.runs).absolute(),
    )
    tasks = plan_benchmark(name, settings)
    trainings: defaultdict[Path, list[Task]] = defaultdict(list)
    for task in tasks:
        if finished_cell(task) is None:
            trainings[task.run_folder].append(task)
    if trainings:
        with connected(cluster) as ray, progress_bar("cells") as bar:
            warn_if_no_node_fits(ray, cores=cores, gpus=gpus)
            remote = ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=_RETRIES)(_run_cells)
            waiting = {remote.remote(cells, cores, __version__): cells for cells in trainings.values()}
            shown = bar.add_task(name, total=len(tasks), completed=len(tasks) - sum(map(len, waiting.values())))
            while waiting:
                (ready,), _ = ray.wait(list(waiting))
                cells = waiting.pop(ready)
                try:
                    ray.get(ready)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error  # as on one machine: an InputError stays one
                bar.advance(shown, len(cells))
                for task in cells:
                    stderr.print(f"done: {task}", markup=False)
    return [cell for task in tasks if (cell := finished_cell(task)) is not None]


def _run_cells(tasks: list[Task], cores: int, version: str) -> None:
    """Run cells that share a training, in a worker; a retry finds those that are done."""
    import torch

    check_version(version)
    torch.set_num_threads(cores)
    for task in tasks:
        if finished_cell(task) is None:
            run_cell(task)
