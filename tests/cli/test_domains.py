"""`gbdgc domains`: any table in; a table, labels and a map out."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from descriptors import draw_descriptors
from gbdgc.cli.domains import domains
from gbdgc.cli.feature_table import read_feature_table
from gbdgc.errors import InputError, UsageError
from in_process import run_gbdgc

Z = draw_descriptors(80, n_domains=3, n_features=6, seed=0).epochs[0]
IDS = [f"IMG_{i}.jpg" for i in range(len(Z))]


def write(path: Path) -> Path:
    frame = pd.DataFrame(Z, columns=[f"f{j}" for j in range(6)])
    named = frame.assign(id=IDS)[["id", *frame.columns]]
    if path.suffix == ".npy":
        np.save(path, Z)
    elif path.suffix == ".npz":
        np.savez(path, features=Z, ids=np.array(IDS))
    elif path.suffix == ".csv":
        named.to_csv(path, index=False)
    else:
        named.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", ["npy", "npz", "csv", "parquet"])
def test_every_kind_of_table_is_read_alike(tmp_path, ending):
    table = read_feature_table(write(tmp_path / f"z.{ending}"))
    np.testing.assert_allclose(table.features, Z)
    assert table.ids == ([str(i) for i in range(len(Z))] if ending == "npy" else IDS)


def test_the_command_prints_a_table_and_says_where_the_rest_is(tmp_path):
    write(tmp_path / "z.csv")
    run = subprocess.run(
        [sys.executable, "-m", "gbdgc", "domains", "z.csv", "--k", "3"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    folder = tmp_path / "runs" / "domains" / "z-1"
    assert run.stdout.splitlines()[-1] == "labels and map: runs/domains/z-1"
    assert "spread" in run.stdout
    rows = list(csv.DictReader((folder / "labels.csv").open()))
    assert [row["id"] for row in rows] == IDS
    assert {row["domain"] for row in rows} == {"0", "1", "2"}
    assert all(float(row["distance"]) > 0 and int(row["ball"]) >= 0 for row in rows)
    assert Image.open(folder / "domains.png").size[0] > 1000
    assert (folder / "environment.json").is_file()


def test_a_name_is_neither_markup_nor_mathematics(tmp_path):
    write(tmp_path / "[red] $\\q$.npy")
    run = run_gbdgc("domains", "[red] $\\q$.npy", "--out", "[bold]out", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "labels and map: [bold]out"


@pytest.mark.parametrize("wrong", [("--k", "0"), ("--seed", "-1"), ("--seed", str(2**32))])
def test_numbers_out_of_range_are_wrong_usage(tmp_path, wrong):
    run = run_gbdgc("domains", write(tmp_path / "z.npy"), *wrong, folder=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    assert wrong[0] in run.stderr


@pytest.mark.parametrize(
    ("method", "mode"),
    [("balls", "paper"), ("balls", "stable"), ("kmeans", "paper"), ("kmeans", "stable"), ("random", None)],
)
def test_every_method_and_mode_runs(tmp_path, capsys, method, mode):
    domains(write(tmp_path / "z.npy"), k=3, method=method, mode=mode, out=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "domains.png",
        "environment.json",
        "labels.csv",
    ]
    assert ("balls" in capsys.readouterr().out) == (method == "balls")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "random", "mode": "stable"}, "--mode stable: random has no modes; leave it out"),
        ({"weights": Path("nope.safetensors")}, "--weights nope.safetensors: a table of features needs no model"),
    ],
)
def test_an_option_that_would_do_nothing_is_wrong_usage(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        domains(write(tmp_path / "z.npy"), out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_earlier_labels_are_not_written_over(tmp_path):
    domains(write(tmp_path / "z.npy"), k=3, out=tmp_path / "out")
    before = (tmp_path / "out/labels.csv").read_bytes()
    with pytest.raises(InputError, match=r"--out .*out: holds labels\.csv already; choose another folder"):
        domains(tmp_path / "z.npy", k=2, out=tmp_path / "out")
    assert (tmp_path / "out/labels.csv").read_bytes() == before


def test_one_column_and_equal_rows_are_drawn_too(tmp_path, capsys):
    np.save(tmp_path / "same.npy", np.ones((5, 1)))
    domains(tmp_path / "same.npy", out=tmp_path / "out")
    assert "only 1 of 2 domains" in capsys.readouterr().err
    assert (tmp_path / "out" / "domains.png").is_file()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("z.txt", b"1 2", "ends in .npy, .npz, .csv, .parquet"),
        ("z.npy", b"nonsense", "plain NumPy arrays"),
        ("z.parquet", b"nonsense", "not a parquet file"),
        ("z.csv", b"a,b\n", "no rows"),
        ("z.csv", b"1,2\n3,4\n", "add a header"),
        ("z.csv", b"a,b\n1,2\n3\n", "row 1 has 1 cells under 2 columns"),
        ("z.csv", b"a,b\n1,2\n3,x\n", "row 1, column 'b' is 'x'"),
        ("z.csv", b"a,b\n1,2\n3,\n5,6\n", "row 1, column 1 is NaN"),
        ("z.csv", b"id,b\nx,2\ny,nan\nz,6\n", "row 1, column 0 is NaN"),
        ("z.csv", b"a,b\n,2\n3,4\n5,6\n", "row 0, column 0 is NaN"),
        ("z.csv", b"na\xefve,b\n1,2\n", "not a table in UTF-8"),
        ("z.csv", b"a,b\n" + b"1" * 200_000 + b",2\n", "field larger than field limit"),
    ],
)
def test_a_bad_table_is_named_with_the_reason(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        domains(tmp_path / name, out=tmp_path / "out")
    assert name in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [complex, str])
def test_values_that_are_no_real_numbers_are_refused(tmp_path, kind):
    np.save(tmp_path / "z.npy", Z.astype(kind))
    with pytest.raises(InputError, match=r"z.npy: its values are no real numbers"):
        domains(tmp_path / "z.npy", out=tmp_path / "out")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_the_row_numbers_of_a_data_frame_are_no_feature(tmp_path, ending, named):
    frame = pd.DataFrame(Z, columns=[f"f{j}" for j in range(6)], index=range(100, 100 + len(Z)))
    if named:
        frame["Id"] = IDS
    frame.to_csv(tmp_path / "z.csv")
    frame.to_parquet(tmp_path / "z.parquet", index=True)
    table = read_feature_table(tmp_path / f"z.{ending}")
    np.testing.assert_allclose(table.features, Z)
    assert table.ids == (IDS if named else [str(100 + i) for i in range(len(Z))])


def test_a_csv_may_have_semicolons_and_blank_lines(tmp_path):
    (tmp_path / "z.csv").write_text("\na;b\n1;2\n\n3;4\n\n")
    table = read_feature_table(tmp_path / "z.csv")
    assert (table.ids, table.features.tolist()) == (["0", "1"], [[1, 2], [3, 4]])


def test_an_archive_is_read_by_its_content_and_a_damaged_one_named(tmp_path):
    write(tmp_path / "z.npz").rename(tmp_path / "z.npy")
    assert read_feature_table(tmp_path / "z.npy").ids == IDS
    content = (tmp_path / "z.npy").read_bytes()
    flipped = bytearray(content)
    flipped[1000] ^= 255
    for bad in (content[:-300], bytes(flipped)):
        (tmp_path / "bad.npz").write_bytes(bad)
        with pytest.raises(InputError, match=r"bad.npz: not a file of plain NumPy arrays"):
            read_feature_table(tmp_path / "bad.npz")
    np.savez(tmp_path / "bad.npz", z=Z, ids=np.array(3))
    with pytest.raises(InputError, match=r"ids of shape \(\) for 80 rows"):
        read_feature_table(tmp_path / "bad.npz")


def test_arrays_of_another_shape_are_refused(tmp_path):
    np.save(tmp_path / "flat.npy", np.ones(5))
    with pytest.raises(InputError, match=r"its shape is \(5,\)"):
        read_feature_table(tmp_path / "flat.npy")
    np.savez(tmp_path / "two.npz", a=np.ones((2, 2)), b=np.ones((2, 2)))
    with pytest.raises(InputError, match="expected one array"):
        read_feature_table(tmp_path / "two.npz")


def test_pictures_are_described_by_a_model_and_fall_into_domains_by_their_looks(tmp_path, pictures, model):
    """Bright ones and dark ones; the labels are keyed by the pictures' names."""
    for number, picture in enumerate(pictures[:12]):
        Image.fromarray(picture // 4 if number % 2 else picture).save(tmp_path / f"{number:02d}.png")
    domains(tmp_path, weights=model, k=2, out=tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "labels.csv").open()))
    assert [row["id"] for row in rows] == [f"{number:02d}.png" for number in range(12)]
    dark = {row["domain"] for row in rows[1::2]}
    assert len(dark) == 1
    assert dark.isdisjoint({row["domain"] for row in rows[0::2]})


def test_a_missing_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "z.parquet").touch()
    with pytest.raises(InputError, match=r'z\.parquet: reading parquet needs pyarrow; pip install "gbdgc\[parquet\]"'):
        read_feature_table(tmp_path / "z.parquet")
