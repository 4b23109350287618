"""Counting on Ray against counting without, on the same drawn pictures.

Run with ``python benchmarks/cluster.py [--pictures 500] [--many 5000] [--size 320x240]``. The ratios are what counts.
Starting Ray and its workers is left out: a short count on the same cluster comes before each timed one.
"""

import argparse
import os
import re
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

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

SMALL = (64, 48)
"""For memory, where it is the number of pictures that counts."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=500)
    parser.add_argument("--many", type=int, default=5000, help="small pictures, to watch a worker's memory over")
    parser.add_argument("--size", default="320x240")
    arguments = parser.parse_args()
    width, height = (int(side) for side in arguments.size.split("x"))
    with TemporaryDirectory() as name:
        folder = Path(name)
        warm = draw(folder / "warm", 8, (width, height))
        archive = draw(folder / "archive", arguments.pictures, (width, height))
        alone = rate_alone(warm, archive, arguments.pictures)
        rates = {workers: rate(warm, archive, folder, workers, arguments.pictures) for workers in (1, 2)}
        on_ray = ", ".join(f"{found:.2f} with {workers}" for workers, found in rates.items())
        print(
            f"{arguments.pictures} pictures of {arguments.size}, per second: {alone:.2f} alone; on Ray {on_ray} workers"
        )
        verdict("one worker against one thread without Ray", rates[1] / alone, at_least=0.9)
        verdict("two workers against one", rates[2] / rates[1], at_least=1.8)
        print_costs(rates[1], sum(path.stat().st_size for path in archive.iterdir()) / arguments.pictures)

        whole, lost = (lose_node(archive, folder / f"nodes-{kill}", kill, arguments.pictures) for kill in (False, True))
        print(f"two nodes: {whole:.0f} s; one killed after a quarter of the pictures: {lost:.0f} s, each counted once")

        many = draw(folder / "many", arguments.many, SMALL)
        first, last = memory(many, folder / "many-out", arguments.many)
        print(f"memory of a worker: {first:.0f} MB after a tenth of {arguments.many} pictures, {last:.0f} MB after all")
        verdict("memory of a worker, end against a tenth", last / first, at_most=1.05)


def draw(folder: Path, number: int, size: tuple[int, int], different: int = 50) -> Path:
    """Write drawn pictures; beyond so many they repeat, under other names."""
    folder.mkdir()
    random = np.random.default_rng(0)
    for index in range(min(number, different)):
        scene = draw_scene(SOURCE_DOMAINS[index % len(SOURCE_DOMAINS)], random, size)[0]
        Image.fromarray(scene).save(folder / f"{index}.jpg")
    for index in range(different, number):
        os.link(folder / f"{index % different}.jpg", folder / f"{index}.jpg")
    return folder


def rate_alone(warm: Path, archive: Path, pictures: int) -> float:
    """Return pictures a second on one thread, without Ray."""
    counter = Counter.load(threads=1)
    list(count_sources(counter, list(find_sources([str(warm)]))))
    began = time.perf_counter()
    list(count_sources(counter, list(find_sources([str(archive)]))))
    return pictures / (time.perf_counter() - began)


def rate(warm: Path, archive: Path, folder: Path, workers: int, pictures: int) -> float:
    """Return pictures a second, with workers that have loaded their model."""
    with connected(cores=workers):
        count_on_cluster(warm, folder / f"warm-{workers}", part_size=8 // workers)
        began = time.perf_counter()
        count_on_cluster(archive, folder / f"out-{workers}", part_size=16)
        return pictures / (time.perf_counter() - began)


def print_costs(per_core: float, picture_bytes: float) -> None:
    """Print what a million such pictures take, and what their store must deliver for that."""
    print("| cores | a million pictures | read per second |\n|---|---|---|")
    for cores in (1, 16, 64, 256, 1024):
        hours = 1e6 / (per_core * cores) / 3600
        print(f"| {cores} | {hours:.1f} hours | {per_core * cores * picture_bytes / 1e6:.1f} MB |")


def lose_node(archive: Path, out: Path, kill: bool, pictures: int) -> float:
    """Return the seconds that two nodes of one core take, of which one may be killed on the way."""
    node = {"num_cpus": 1, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    second = cluster.add_node(**node)

    def kill_second() -> None:
        while 16 * len(list(out.glob("part-*"))) < pictures / 4:
            time.sleep(0.1)
        cluster.remove_node(second, allow_graceful=False)

    try:
        ray.init(address=cluster.address, log_to_driver=False)
        began = time.perf_counter()
        if kill:
            threading.Thread(target=kill_second, daemon=True).start()
        count_on_cluster(archive, out, part_size=16)
        seconds = time.perf_counter() - began
    finally:
        ray.shutdown()
        cluster.shutdown()
    counted = pq.read_table(out).column("source").to_pylist()
    assert sorted(counted) == sorted(map(str, archive.iterdir()))
    return seconds


def memory(archive: Path, out: Path, pictures: int) -> tuple[float, float]:
    """Return a worker's memory in MB after a tenth of the pictures and after all of them."""
    with connected(cores=1):
        tenth = out.with_name("tenth")
        tenth.mkdir()
        for path in sorted(archive.iterdir())[: pictures // 10]:
            os.link(path, tenth / path.name)
        count_on_cluster(tenth, out.with_name("tenth-out"))
        first = resident()
        count_on_cluster(archive, out)
        assert pq.read_table(out).num_rows == pictures
        return first, resident()


def resident() -> float:
    """Return the memory of the largest of Ray's workers on this machine, in MB."""
    sizes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::"):
                sizes.append(int(re.search(r"VmRSS:\s+(\d+)", (process / "status").read_text())[1]) / 1024)
        except (OSError, TypeError):  # it ended meanwhile
            continue
    return max(sizes)


if __name__ == "__main__":
    main()
