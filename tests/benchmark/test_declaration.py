"""What is run: the paper's pairs and rows, on the data sets that are there."""

import pytest

from gbdgc import published
from gbdgc.benchmark import BENCHMARKS, Settings
from gbdgc.benchmark.declaration import Job
from gbdgc.benchmark.tables import find_benchmark
from gbdgc.config import Config
from gbdgc.errors import InputError
from gbdgc.methods.build import build_method

SIZES = {"SHA": 300, "SHB": 400, "QNRF": 1201}
ALL = ["SHA", "SHB", "QNRF", "NWPU"]


def jobs(benchmark: str, names: list[str]) -> list[Job]:
    return find_benchmark(benchmark).jobs(names, SIZES.__getitem__)


@pytest.mark.parametrize("benchmark", ["transfer", "partition", "k", "components"])
def test_every_published_cell_of_our_own_methods_has_a_run_of_ours(benchmark: str) -> None:
    ours = {(job.variant, job.source, target) for job in jobs(benchmark, ALL) for target in job.targets}
    tables = ["transfer", "nwpu"] if benchmark == "transfer" else [benchmark]
    rows = [row for table in tables for row in published.transfers(table)]
    if benchmark == "transfer":
        rows = [row for row in rows if row.method == "GBDGC"]
    assert {(row.method, row.source, row.target) for row in rows} <= ours


def test_separation_asks_about_the_sources_alone() -> None:
    found = jobs("separation", ALL)
    assert all(job.targets == () for job in found)
    assert {(row.source, row.partition) for row in published.separations()} <= {(j.source, j.variant) for j in found}


def test_k_goes_around_the_fourth_root_of_the_number_of_pictures_as_in_the_paper() -> None:
    rows: dict[str, list[str]] = {}
    for job in jobs("k", ALL):
        rows.setdefault(job.source, []).append(job.variant)
    assert rows == {"SHA": ["K=3", "K=4", "K=5"], "SHB": ["K=3", "K=4", "K=5"], "QNRF": ["K=5", "K=6", "K=7"]}


def test_any_subset_of_the_data_sets_will_do() -> None:
    assert {(job.source, job.targets) for job in jobs("transfer", ["SHA", "SHB"])} == {
        ("SHA", ("SHB",)),
        ("SHB", ("SHA",)),
    }
    assert {(job.source, job.targets) for job in jobs("transfer", ["SHA", "NWPU"])} == {("SHA", ("NWPU",))}
    assert {(job.source, job.targets) for job in jobs("within", ["SHA", "NWPU"])} == {("SHA", ("SHA",))}
    assert next((job.source, job.targets) for job in jobs("partition", ["mine", "yours"])) == ("mine", ("yours",))
    with pytest.raises(InputError, match="two data sets"):
        jobs("transfer", ["SHA"])
    with pytest.raises(InputError, match=", ".join(BENCHMARKS)):
        jobs("speed", ALL)


def config_of(variant: str, source: str, benchmark: str = "components", *overrides: str) -> Config:
    settings = Settings(data=dict.fromkeys(["SHA", "SHB", "QNRF"], "."), config="sha", overrides=overrides)
    job = next(job for job in jobs(benchmark, ALL) if (job.source, job.variant) == (source, variant))
    return settings.config_of(job, 0)


@pytest.mark.parametrize(
    ("variant", "losses", "codebook"),
    [
        ("baseline", {"density"}, False),
        ("+SCR", {"density"}, True),
        ("+SCR+SBR", {"density", "semantic", "style", "orthogonality"}, True),
        ("without L_sem", {"density", "style", "orthogonality"}, True),
        ("without L_sty", {"density", "semantic", "orthogonality"}, True),
        ("without L_orth", {"density", "semantic", "style"}, True),
    ],
)
def test_each_row_of_the_components_trains_what_its_name_says(variant: str, losses: set[str], codebook: bool) -> None:
    method = build_method(config_of(variant, "SHA").method)
    assert method.weights.keys() - {"occupancy"} == losses
    assert method.network_options["codebook"] is codebook


def test_each_source_comes_with_the_papers_k_and_limit_of_size() -> None:
    assert [config_of("+SCR+SBR", source).discovery.n_domains for source in ("SHA", "SHB", "QNRF")] == [4, 3, 6]
    assert [config_of("+SCR+SBR", source).data.max_side for source in ("SHA", "QNRF")] == [None, 1920]


def test_a_users_setting_stands_over_the_protocol_but_not_over_what_a_row_is_about() -> None:
    assert config_of("+SCR+SBR", "SHA", "components", "discovery.n_domains=9").discovery.n_domains == 9
    assert config_of("K=5", "SHA", "k", "discovery.n_domains=9").discovery.n_domains == 5
