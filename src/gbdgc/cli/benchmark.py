"""`gbdgc benchmark`."""

import re
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from gbdgc.benchmark import BENCHMARKS, FORMS, Settings, build_tables, read_cells, run_benchmark, write_tables
from gbdgc.benchmark.pages import fill_page
from gbdgc.benchmark.runner import Interrupted
from gbdgc.benchmark.tables import find_benchmark
from gbdgc.benchmark.text import to_rich
from gbdgc.cli.options import EngineName, Flag, Several
from gbdgc.errors import InputError, UsageError
from gbdgc.memory import keep_freed_memory
from gbdgc.progress import stderr, stdout

_CAPTIONS = "; ".join(f"{each.name}: {each.caption[:1].lower()}{each.caption[1:]}" for each in BENCHMARKS.values())


def benchmark(
    name: Annotated[str, Parameter(help=f"The table. {_CAPTIONS}.")],
    /,
    *overrides: str,
    data: Annotated[list[str] | None, Several] = None,
    drawn: Flag = False,
    sources: Annotated[list[str] | None, Several] = None,
    variants: Annotated[list[str] | None, Several] = None,
    config: str | None = None,
    seeds: str = "0",
    epochs: int | None = None,
    engine: EngineName | None = None,
    out: Path = Path("results"),
    runs: Path = Path("runs/benchmark"),
    tables_only: Flag = False,
    pages: Annotated[list[Path] | None, Several] = None,
    format: Literal["table", "csv", "markdown", "latex"] = "table",
    cluster: str | None = None,
    cores: int = 1,
    gpus: float = 0,
) -> None:
    """Reproduce the tables of the paper, with its own numbers beside ours.

    Finished cells are skipped: the same command continues where it was interrupted.

    Parameters
    ----------
    overrides
        Settings for every run, such as train.batch_size=16.
    data
        The available data sets, as NAME=PATH; the paper's names are SHA, SHB, QNRF and NWPU.
    drawn
        Use small drawn data sets instead, to try it out.
    sources
        Train on these only, such as SHA; the other data sets are targets.
    variants
        Fill these rows only, such as GBDGC or "granular balls"; by default all that the table has.
    config
        A preset or a YAML file: by default compact_sha, made for two CPU cores; sha is the paper's own setting. With
        --drawn it is demo.
    seeds
        Seeds such as 0,1,2: each cell is run once per seed, and the tables show the interval over them.
    epochs
        Train for this many epochs instead of the preset's, for example for a quick look.
    engine
        What counts the targets; onnx and openvino are faster on most CPUs.
    out
        The folder of the results: small files that can be committed.
    runs
        The folder of the training runs.
    tables_only
        Only regenerate the tables from existing results.
    pages
        Markdown pages with the comments "gbdgc benchmark OUT/NAME" and "end": the tables are inserted between them.
    format
        What to print to stdout; --out gets files in all forms but the first.
    cluster
        Run the cells side by side on Ray: "local" for the cores of this machine, "auto", or HOST:PORT of a cluster's
        head. Data, --out and --runs must be in folders that every node has.
    cores
        CPU cores per training on a cluster.
    gpus
        GPUs per training on a cluster.
    """
    from gbdgc.data.images import raise_pillow_limit

    find_benchmark(name)
    if not tables_only:
        from gbdgc.benchmark.drawn import draw_benchmark_data

        if bool(data) == drawn:
            raise UsageError("", "say what to run on", "--data SHA=PATH SHB=PATH ..., or --drawn")
        if not re.fullmatch(r"\d+(,\d+)*", seeds.replace(" ", "")):
            raise UsageError(f"--seeds {seeds}", "write whole numbers with commas between, such as 0,1,2")
        settings = Settings(
            data=draw_benchmark_data(runs / "drawn") if drawn else _named_paths(data or []),
            config=config or ("demo" if drawn else "compact_sha"),
            overrides=overrides,
            sources=sources or (),
            variants=variants or (),
            seeds=[int(part) for part in seeds.split(",")],
            epochs=epochs,
            engine=engine,
            out=out,
            runs=runs,
        )
        keep_freed_memory()
        raise_pillow_limit()
        try:
            if cluster is None:
                run_benchmark(name, settings)
            else:
                from gbdgc.cluster.benchmarking import benchmark_on_cluster

                benchmark_on_cluster(name, settings, cluster=cluster, cores=cores, gpus=gpus)
        except Interrupted as stopped:
            stderr.print(f"stopped and saved in {stopped}; the same command continues", soft_wrap=True, markup=False)
            sys.exit(130)
        except KeyboardInterrupt:
            stderr.print("stopped: the same command continues")
            sys.exit(130)
    cells = read_cells(out, name)  # all that are there, also from earlier calls with other sources and seeds
    tables = build_tables(name, cells)
    paths = write_tables(tables, out / name)
    for page in pages or ():
        fill_page(page, out / name, tables)
    if format == "table":
        for table in tables:
            stdout.print(to_rich(table))
    else:
        sys.stdout.write(FORMS[format](tables))
    where = stdout if format == "table" else stderr
    where.print(f"tables: {', '.join(map(str, paths))}", soft_wrap=True, markup=False)
    if any(cell.get("unreadable") for cell in cells):
        sys.exit(1)


def _named_paths(given: list[str]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for name, _, path in (item.partition("=") for item in given):
        if name in paths:
            raise UsageError(f"--data {name}", "there twice", "give each data set a name of its own")
        if not path:
            raise UsageError(f"--data {name}", "write NAME=PATH, such as SHA=data/ShanghaiTech/part_A")
        if "+" in name:
            raise InputError(f"--data {name}", "a + in a name means several data sets together", "choose another")
        if not Path(path).exists():
            raise InputError(f"--data {name}={path}", "no such file or folder")
        paths[name] = path
    return paths
