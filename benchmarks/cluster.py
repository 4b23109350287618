"""Counting on Ray against counting without, on the same drawn pictures.

    python benchmarks/cluster.py [--only rates|loss|memory] [--pictures 500] [--size 1024x768] [--lose N] [--many N]

Rates are those of the last four fifths of the pictures: starting Ray, its workers and their models is left out, which a
job of hours does not notice. How much two cores of a machine do together differs: two processes without Ray, side by
side, are the measure. The processor's seconds per picture are printed too; what else runs does not lengthen these.
"""

import argparse
import os
import re
import signal
import threading
import time
from collections import Counter as Tally
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import ray
from PIL import Image
from ray.cluster_utils import Cluster

from gbdgc import Counter, count_on_cluster
from gbdgc.cluster.session import connected
from gbdgc.counting import count_sources, find_sources
from gbdgc.synthetic import SOURCE_DOMAINS, draw_scene
from timing import verdict

PART = 8
"""Pictures per part, few enough for the last parts of two workers to end together."""

SMALL = ((64, 48), (192, 144))
"""The least and the largest sides of pictures for memory, where it is their number that counts, and different sizes."""


class Speed(NamedTuple):
    """What was reached after the start."""

    rate: float
    """Pictures per second."""
    processor: float
    """Seconds of the processor per picture, of those who count."""
    rest: float = 0.0
    """The same of everything else that Ray runs, the caller included."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--size", default="1024x768")
    parser.add_argument("--lose", type=int, default=200, help="pictures to lose a node over")
    parser.add_argument("--many", type=int, default=5000, help="small pictures, to watch a worker's memory over")
    parser.add_argument("--only", choices=("rates", "loss", "memory"))
    parser.add_argument("--limit", type=int, default=1800, help="seconds after which a lost node ends all")
    arguments = parser.parse_args()
    width, height = (int(side) for side in arguments.size.split("x"))
    with TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.only in {None, "rates"}:
            rates(draw(folder / "archive", arguments.pictures, [(width, height)]), folder)
        if arguments.only in {None, "loss"}:
            archive = draw(folder / "loss", arguments.lose, [(width, height)])
            whole = lose_node(archive, folder / "whole", kill=False, limit=arguments.limit)
            lost = lose_node(archive, folder / "lost", kill=True, limit=arguments.limit)
            print(f"two nodes, {arguments.lose} pictures: {whole:.0f} s; with one killed after a quarter: {lost:.0f} s")
        if arguments.only in {None, "memory"}:
            sizes = np.linspace(*SMALL, 50).astype(int).tolist()
            many = draw(folder / "many", arguments.many, [(wide, high) for wide, high in sizes])
            sizes_mb = memory(many, folder / "many-out")
            print(f"memory of a worker after each tenth of {arguments.many} pictures, MB:", *map(round, sizes_mb))
            verdict("memory of a worker, end against the first tenth", sizes_mb[-1] / sizes_mb[0], at_most=1.05)


def draw(folder: Path, number: int, sizes: list[tuple[int, int]], different: int = 50) -> Path:
    """Write drawn pictures, their sizes in turn; beyond so many they repeat, under other names."""
    folder.mkdir()
    random = np.random.default_rng(0)
    for index in range(min(number, different)):
        domain = SOURCE_DOMAINS[index % len(SOURCE_DOMAINS)]
        Image.fromarray(draw_scene(domain, random, sizes[index % len(sizes)])[0]).save(folder / f"{index}.jpg")
    for index in range(different, number):
        os.link(folder / f"{index % different}.jpg", folder / f"{index}.jpg")
    return folder


def rates(archive: Path, folder: Path) -> None:
    """Print the speed of one and two processes, with Ray and without."""
    found = {f"{processes} without Ray": without_ray(archive, processes) for processes in (1, 2)}
    found |= {f"{workers} on Ray": on_ray(archive, folder / f"out-{workers}", workers) for workers in (1, 2)}
    print("| processes | pictures per second | processor seconds per picture | the rest of Ray |\n|---|---|---|---|")
    for name, speed in found.items():
        print(f"| {name} | {speed.rate:.2f} | {speed.processor:.4f} | {speed.rest:.4f} |")
    alone, pair, one, two = found.values()
    verdict("one worker against one thread without Ray", one.rate / alone.rate, at_least=0.9)
    verdict("the same by the processor's time", alone.processor / (one.processor + one.rest), at_least=0.9)
    verdict("two workers against one", two.rate / one.rate, at_least=1.8)
    verdict("two workers against two processes without Ray", two.rate / pair.rate, at_least=0.9)
    print(f"  two processes without Ray are {pair.rate / alone.rate:.2f} times one: what this machine has to give")
    print_costs(one.rate, sum(path.stat().st_size for path in archive.iterdir()) / len(list(archive.iterdir())))


def without_ray(archive: Path, processes: int) -> Speed:
    """Return the speed of processes that share the pictures, each with one thread."""
    context = get_context("spawn")
    paths = sorted(map(str, archive.iterdir()))
    together, answers = context.Barrier(processes), context.SimpleQueue()
    started = [
        context.Process(target=count_share, args=(paths[number::processes], together, answers))
        for number in range(processes)
    ]
    for process in started:
        process.start()
    told = [answers.get() for _ in started]
    for process in started:
        process.join()
    began, ended, processor, counted = zip(*told, strict=True)
    return Speed(sum(counted) / (max(ended) - min(began)), sum(processor) / sum(counted))


def count_share(paths: list[str], together: Any, answers: Any) -> None:
    counter = Counter.load(threads=1)
    first = len(paths) // 5
    list(count_sources(counter, list(find_sources(paths[:first]))))
    together.wait()
    began, processor = time.monotonic(), time.process_time()
    list(count_sources(counter, list(find_sources(paths[first:]))))
    answers.put((began, time.monotonic(), time.process_time() - processor, len(paths) - first))


def on_ray(archive: Path, out: Path, workers: int) -> Speed:
    """Return the speed of workers with one core each."""
    pictures = len(list(archive.iterdir()))
    at: list[tuple[int, float, Tally[str]]] = []
    with connected(cores=workers):
        watch(out, [pictures // 5], lambda done: at.append((done, time.perf_counter(), processor_seconds())))
        count_on_cluster(archive, out, part_size=PART)
        ended, used = time.perf_counter(), processor_seconds()
    ((done, began, before),) = at
    left = pictures - done
    used.subtract(before)
    return Speed(left / (ended - began), used["worker"] / left, used["rest"] / left)


def watch(out: Path, marks: list[int], act: Callable[[int], None]) -> threading.Thread:
    """Call a function with the number of pictures done when it reaches each mark, in a thread."""

    def look() -> None:
        for mark in marks:
            while (done := PART * len(list(out.glob("part-*")))) < mark:
                time.sleep(0.02)
            act(done)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def processor_seconds() -> Tally[str]:
    """Return the processor's time that Ray's workers have used, and that the rest has: this process and its others."""
    spent: Tally[str] = Tally()
    for process in [os.getpid(), *descendants(os.getpid())]:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        kind = "worker" if is_worker(process) else "rest"
        spent[kind] += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and those that these have (Linux)."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it ended meanwhile
        return []
    return [each for child in children for each in (child, *descendants(child))]


def is_worker(process: int) -> bool:
    """Whether a process is one of those in which Ray runs tasks; its own actors are not."""
    try:
        name = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return name.startswith(b"ray::") and b"Actor" not in name


def print_costs(per_core: float, picture_bytes: float) -> None:
    """Print what a million such pictures take, and what their store must deliver for that."""
    print(f"{picture_bytes / 1000:.0f} kB per picture\n| cores | a million pictures | read per second |\n|---|---|---|")
    for cores in (1, 16, 64, 256, 1024):
        hours = 1e6 / (per_core * cores) / 3600
        print(f"| {cores} | {hours:.2f} hours | {per_core * cores * picture_bytes / 1e6:.1f} MB |")


def lose_node(archive: Path, out: Path, kill: bool, limit: int) -> float:
    """Return the seconds that two nodes of one core take, of which one may be killed on the way."""
    node = {"num_cpus": 1, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    second = cluster.add_node(**node)
    killed: list[int] = []

    def kill_second(done: int) -> None:
        (raylet,) = (each.process.pid for each in second.all_processes["raylet"])
        for process in (raylet, *descendants(raylet)):
            os.kill(process, signal.SIGKILL)
        killed.append(done)

    def give_up(*_: object) -> None:
        raise TimeoutError(f"the job was not over after {limit} s; {len(list(out.glob('part-*')))} parts were done")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(limit)
    paths = sorted(map(str, archive.iterdir()))
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        began = time.perf_counter()
        if kill:
            watch(out, [len(paths) // 4], kill_second)
        count_on_cluster(archive, out, part_size=PART)
        seconds = time.perf_counter() - began
    finally:
        signal.alarm(0)
        ray.shutdown()
        cluster.shutdown()
    assert len(killed) == kill, "the job was over before the node was"
    assert sorted(pq.read_table(out).column("source").to_pylist()) == paths, "not every picture was counted once"
    return seconds


def memory(archive: Path, out: Path) -> list[float]:
    """Return a worker's memory in MB after each tenth of the pictures."""
    sizes: list[float] = []
    pictures = len(list(archive.iterdir()))
    with connected(cores=1):
        watching = watch(out, [pictures * tenth // 10 for tenth in range(1, 11)], lambda _: sizes.append(resident()))
        count_on_cluster(archive, out, part_size=PART)
        watching.join()
    assert pq.read_table(out).num_rows == pictures
    return sizes


def resident() -> float:
    """Return the memory of the largest of Ray's workers on this machine, in MB."""
    workers = [process for process in descendants(os.getpid()) if is_worker(process)]
    texts = [Path(f"/proc/{process}/status").read_text() for process in workers]
    return max(int(found[1]) / 1024 for text in texts if (found := re.search(r"VmRSS:\s+(\d+)", text)))


if __name__ == "__main__":
    main()
