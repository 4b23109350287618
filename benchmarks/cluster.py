"""Counting on Ray against counting without, on the same drawn pictures.

    python benchmarks/cluster.py [--only rates|loss|memory] [--pictures 500] [--size 640x480] [--lose N] [--many N]

Rates are those between a fifth and nine tenths of the pictures: starting Ray, its workers and their models is left out,
and the end, when one worker has nothing left to do; a job of hours notices neither. The whole time is printed beside.
How much two cores of a machine do together differs: two processes without Ray, side by side, are the measure. Where
other programs run too, the rate without them is that of the time in which a process had a core or did not want one
(Linux tells how long it waited for one); so are the processor's seconds per picture. Ray's workers give way to every
other process unless they are told not to, as here.
"""

import argparse
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
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

PART = 16
"""Pictures per part, few enough to see the rate of a short job; the default of 64 costs less per picture."""

SMALL = ((64, 48), (192, 144))
"""The least and the largest sides of pictures for memory, where it is their number that counts, and different sizes."""

os.environ.setdefault("RAY_worker_niceness", "0")


class Work(NamedTuple):
    """What a process did in some time."""

    seconds: float
    """How long it was looked at."""
    processor: float
    """How long it had a core."""
    waited: float
    """How long its first thread, which counts, wanted a core and had none."""
    pictures: float


class Speed(NamedTuple):
    """What was reached after the start."""

    work: list[Work]
    """Of each process that counts."""
    whole: float
    """Seconds from the first process to the last picture."""
    others: float = 0.0
    """Seconds of the processor of all else that Ray runs, the caller included."""

    @property
    def rate(self) -> float:
        """Pictures per second."""
        return sum(each.pictures / each.seconds for each in self.work)

    @property
    def undisturbed(self) -> float:
        """The same had every process got a core when it wanted one."""
        return sum(each.pictures / (each.seconds - each.waited) for each in self.work)

    @property
    def charged(self) -> float:
        """The same had the rest of Ray run in the workers' time."""
        rest = self.others / len(self.work)
        return sum(each.pictures / (each.seconds - each.waited + rest) for each in self.work)

    @property
    def processor(self) -> float:
        """Seconds of the processor per picture, of those who count."""
        return sum(each.processor for each in self.work) / self.pictures

    @property
    def rest(self) -> float:
        """The same of all else."""
        return self.others / self.pictures

    @property
    def pictures(self) -> float:
        return sum(each.pictures for each in self.work)

    def __str__(self) -> str:
        numbers = (self.rate, self.undisturbed, self.processor * 1000, self.rest * 1000, self.whole)
        return " | ".join(f"{number:.2f}" for number in numbers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--size", default="640x480")
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
    print("| processes | pictures per second | undisturbed | processor, ms per picture | the rest of Ray | whole, s |")
    print("|---|---|---|---|---|---|")

    def shown(name: str, speed: Speed) -> Speed:
        print(f"| {name} | {speed} |", flush=True)
        return speed

    alone, pair = (shown(f"{number} without Ray", without_ray(archive, number)) for number in (1, 2))
    one, two = (shown(f"{number} on Ray", on_ray(archive, folder / f"out-{number}", number)) for number in (1, 2))
    print("pictures per second:")
    verdict("one worker against one thread without Ray", one.rate / alone.rate, at_least=0.9)
    verdict("two workers against one", two.rate / one.rate, at_least=1.8)
    print(f"  two processes without Ray against one: {pair.rate / alone.rate:.2f}")
    # Waiting for the rest of Ray looks like waiting for other programs: at the worst it took all its time from workers.
    print("undisturbed, the rest of Ray at the cost of the workers:")
    verdict("one worker against one thread without Ray", one.charged / alone.undisturbed, at_least=0.9)
    verdict("two workers against one", two.charged / one.undisturbed, at_least=1.8)
    print(f"  two processes without Ray against one: {pair.undisturbed / alone.undisturbed:.2f}")
    picture_bytes = sum(path.stat().st_size for path in archive.iterdir()) / len(list(archive.iterdir()))
    print_costs(one.undisturbed, picture_bytes)


def without_ray(archive: Path, processes: int) -> Speed:
    """Return the speed of processes that share the pictures, each with one thread."""
    context = get_context("spawn")
    paths = sorted(map(str, archive.iterdir()))
    first = len(paths) // 5
    together, answers = context.Barrier(processes), context.SimpleQueue()
    taken = context.Value("i", first) if processes > 1 else None
    started = [
        context.Process(target=count_share, args=(paths, first // processes, taken, together, answers))
        for _ in range(processes)
    ]
    start = time.perf_counter()
    for process in started:
        process.start()
    work = [answers.get() for _ in started]
    for process in started:
        process.join()
    return Speed(work, time.perf_counter() - start)


def count_share(paths: list[str], first: int, taken: Any, together: Any, answers: Any) -> None:
    """Count some, and then what nobody else has taken yet, or all where there is nobody else, as `gbdgc count` does."""
    counter = Counter.load(threads=1)
    list(count_sources(counter, list(find_sources(paths[:first]))))

    def left() -> Iterator[str]:
        while True:
            with taken.get_lock():
                number, taken.value = taken.value, taken.value + 1
            if number >= len(paths):
                return
            yield paths[number]

    together.wait()
    began, before = time.monotonic(), times(os.getpid())
    counted = len(list(count_sources(counter, left() if taken else list(find_sources(paths[first:])))))
    processor, waited = (after - since for after, since in zip(times(os.getpid()), before, strict=True))
    answers.put(Work(time.monotonic() - began, processor, waited, counted))


def on_ray(archive: Path, out: Path, workers: int) -> Speed:
    """Return the speed of workers with one core each."""
    pictures = len(list(archive.iterdir()))
    at: list[tuple[float, dict[int, tuple[float, float]]]] = []
    marks = [pictures // 5, pictures * 9 // 10]
    start = time.perf_counter()
    with connected(cores=workers):
        watching = watch(out, marks, lambda _: at.append((time.time(), all_times())))
        count_on_cluster(archive, out, part_size=PART)
        whole = time.perf_counter() - start
        watching.join()
        (began, before), (ended, after) = at
        gained = {
            process: tuple(np.subtract(spent, before.get(process, (0.0, 0.0)))) for process, spent in after.items()
        }
        counting = {process: spent for process, spent in gained.items() if is_worker(process)}
    total = sum(processor for processor, _ in counting.values())
    # Two workers finish parts together or in turns, so the number done at two moments is off by a part: fit a line.
    written = np.sort([path.stat().st_mtime for path in out.glob("part-*")])
    written = written[(began <= written) & (written <= ended)]
    counted = PART * np.polyfit(written, np.arange(len(written)), 1)[0] * (ended - began)
    # Who counted which picture is not known, but each takes as long.
    work = [
        Work(ended - began, processor, waited, counted * processor / total) for processor, waited in counting.values()
    ]
    return Speed(work, whole, sum(processor for processor, _ in gained.values()) - total)


def watch(out: Path, marks: list[int], act: Callable[[int], None]) -> threading.Thread:
    """Call a function with the number of pictures done when it reaches each mark, in a thread."""

    def look() -> None:
        for mark in marks:
            while (done := PART * len(list(out.glob("part-*")))) < mark:
                time.sleep(0.1)
            act(done)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    return thread


def all_times() -> dict[int, tuple[float, float]]:
    """Return `times` of this process and of all that it has started."""
    found = {}
    for process in [os.getpid(), *descendants(os.getpid())]:
        with suppress(OSError):  # it ended meanwhile
            found[process] = times(process)
    return found


def times(process: int) -> tuple[float, float]:
    """Return how long a process has had a core, and its first thread has waited for one, in seconds (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    waited = int(Path(f"/proc/{process}/schedstat").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), waited / 1e9


def descendants(process: int) -> list[int]:
    """Return the processes that a process has started, and those that these have (Linux)."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it ended meanwhile
        return []
    return [each for child in children for each in (child, *descendants(child))]


def is_worker(process: int) -> bool:
    """Whether a process is one of those in which Ray runs tasks; its agents, named likewise, are not."""
    try:
        name = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return name.startswith((b"ray::_count_part", b"ray::IDLE"))


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
