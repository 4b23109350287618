"""The three estimators: scikit-learn's manners, defined results in every corner, the same bits always."""

import pickle
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from descriptors import draw_descriptors
from gbdgc import GranularBallDomains, KMeansDomains, RandomDomains
from gbdgc.domains import SourceDomains
from gbdgc.errors import GbdgcWarning, InputError

ESTIMATORS = [
    GranularBallDomains(),
    GranularBallDomains(mode="stable"),
    KMeansDomains(),
    KMeansDomains(mode="stable"),
    RandomDomains(),
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
DRAWN = draw_descriptors(300, n_domains=4, seed=0)
Z, TRUTH = DRAWN.epochs[0], DRAWN.truth


@every_estimator
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks_pass(estimator):
    check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=str)
def test_drawn_domains_are_found(estimator):
    assert adjusted_rand_score(TRUTH, clone(estimator).fit(Z).labels_) > 0.85


def test_random_domains_are_equal_in_size_and_know_nothing():
    labels = RandomDomains(4).fit(Z).labels_
    assert np.bincount(labels).tolist() == [75, 75, 75, 75]
    assert abs(adjusted_rand_score(TRUTH, labels)) < 0.05


@every_estimator
def test_every_way_to_hold_the_same_table_gives_the_same_domains(estimator):
    table = Z.astype(np.float32)
    expected = clone(estimator).fit(table.astype(np.float64))
    read_only = table.copy()
    read_only.flags.writeable = False
    for same in (table, np.asfortranarray(table), read_only, pd.DataFrame(table), table.tolist(), table[::1]):
        fitted = clone(estimator).fit(same)
        assert (fitted.labels_ == expected.labels_).all()
        assert (fitted.predict(same) == expected.predict(table)).all()


@every_estimator
def test_the_input_is_never_changed(estimator):
    table = Z.copy()
    clone(estimator).fit(table).predict(table)
    assert (table == Z).all()


def test_many_rows_are_labelled_in_chunks_in_a_fraction_of_their_memory():
    fitted = GranularBallDomains().fit(Z)
    many = np.tile(Z.astype(np.float32), (1000, 1))
    tracemalloc.start()
    try:
        labels = np.concatenate([fitted.predict(many[start : start + 5000]) for start in range(0, len(many), 5000)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (labels == np.tile(fitted.predict(Z.astype(np.float32)), 1000)).all()
    assert peak < 0.25 * many.nbytes


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("n_components", [256, 5, None])
def test_without_a_copy_the_table_becomes_the_embedding_and_the_domains_are_the_same(precision, n_components):
    table = draw_descriptors(9000, n_domains=4, n_features=64, seed=0).epochs[0].astype(precision)  # two chunks
    expected = GranularBallDomains(n_components=n_components).fit(table)
    given = table.copy()
    fitted = GranularBallDomains(n_components=n_components, copy=False).fit(given)
    assert np.shares_memory(fitted.embedding_, given)
    assert fitted.embedding_.dtype == precision
    signs = np.sign((expected.embedding_ * fitted.embedding_).sum(axis=0))  # an axis of PCA may point either way
    extent = np.abs(expected.embedding_).max()
    assert np.abs(fitted.embedding_ - signs * expected.embedding_).max() < 1e-6 * extent
    assert (fitted.labels_ == expected.labels_).all()
    assert (fitted.predict(table) == expected.predict(table)).all()
    for ball, same in zip(fitted.balls_, expected.balls_, strict=True):
        assert (ball.members == same.members).all()
        assert (ball.domain, ball.size, ball.depth) == (same.domain, same.size, same.depth)


def test_without_a_copy_what_cannot_be_overwritten_is_copied():
    read_only, columns_first = Z.astype(np.float32), np.asfortranarray(Z)
    read_only.flags.writeable = False
    expected = GranularBallDomains().fit(Z).labels_
    for given in (read_only, columns_first, Z.tolist()):
        assert (GranularBallDomains(copy=False).fit(given).labels_ == expected).all()
    assert (columns_first == Z).all()
    table = Z.copy()
    table[5] = np.nan
    with pytest.raises(ValueError, match="row 5, column 0 is NaN"):
        GranularBallDomains(copy=False).fit(table)
    assert (table[:5] == Z[:5]).all()
    stable = GranularBallDomains(mode="stable", copy=False).fit(Z.copy())
    assert (stable.labels_ == GranularBallDomains(mode="stable").fit(Z).labels_).all()


def test_without_a_copy_a_fit_takes_a_fifth_of_the_table_besides():
    table = draw_descriptors(400_000, n_domains=6, n_features=32, seed=0).epochs[0].astype(np.float32)
    GranularBallDomains(copy=False).fit(table[:100].copy())
    tracemalloc.start()
    try:
        GranularBallDomains(copy=False).fit(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    chunks = 16_000_000  # a few of 4 MB, however large the table is
    assert peak < 0.2 * table.nbytes + chunks


@every_estimator
def test_pickle_clone_and_pipeline_work(estimator):
    fitted = clone(estimator).fit(Z)
    assert (pickle.loads(pickle.dumps(fitted)).predict(Z) == fitted.predict(Z)).all()
    assert clone(fitted).get_params() == estimator.get_params()
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(Z)
    assert pipeline.predict(Z[:7]).shape == (7,)
    assert clone(estimator).fit_predict(Z).tolist() == fitted.labels_.tolist()


@every_estimator
def test_a_bad_value_is_named_with_its_row(estimator):
    table = Z.copy()
    table[17, 3] = np.nan
    table[40, 0] = np.inf
    with pytest.raises(ValueError, match=r"row 17, column 3 is NaN \(2 of 300 rows"):
        clone(estimator).fit(table)


@every_estimator
@pytest.mark.parametrize("scale", [1e-200, 1e200, 1e308])
def test_numbers_whose_squares_are_none_are_refused(estimator, scale):
    with pytest.raises(ValueError, match="scale them first"):
        clone(estimator).fit(np.clip(Z, -1, 1) * scale)
    assert clone(estimator).fit(Z * 1e-90).n_domains_ == clone(estimator).fit(Z * 1e90).n_domains_ == 4


@every_estimator
def test_more_domains_than_samples_is_an_error(estimator):
    with pytest.raises(ValueError, match="n_domains=9 is more than there are samples"):
        clone(estimator).set_params(n_domains=9).fit(Z[:8])


@every_estimator
def test_labels_of_another_length_are_an_error(estimator):
    with pytest.raises(ValueError, match="previous_labels has 299 labels for 300 rows"):
        clone(estimator).fit(Z, previous_labels=TRUTH[:-1])


@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=str)
@pytest.mark.parametrize(
    ("table", "domains"),
    [
        (np.ones((1, 5)), 1),
        (np.ones((10, 5)), 1),
        (np.repeat([[0.0, 1.0], [5.0, 2.0]], 5, axis=0), 2),
        (np.array([[0.0], [1.0], [1.0], [0.0]]), 2),
    ],
    ids=["one sample", "all rows equal", "two groups of duplicates", "one column"],
)
def test_corners_are_defined_and_say_so(estimator, table, domains):
    asked = 2 if len(table) == 1 else 3
    estimator = clone(estimator).set_params(n_domains="auto" if len(table) == 1 else 3)
    with pytest.warns(GbdgcWarning, match=f"only {domains} of {asked} domains"):
        estimator.fit(table)
    assert estimator.n_domains_ == domains == len(np.unique(estimator.labels_))
    assert np.isfinite(estimator.domain_centers_).all()
    assert (estimator.predict(table) == estimator.labels_).all()
    groups = np.unique(table, axis=0, return_inverse=True)[1]
    assert adjusted_rand_score(groups, estimator.labels_) == 1


@every_estimator
def test_a_constant_column_changes_nothing(estimator):
    padded = np.hstack([Z, np.full((len(Z), 1), 3.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert adjusted_rand_score(clone(estimator).fit(Z).labels_, clone(estimator).fit(padded).labels_) == 1


@pytest.mark.parametrize(("samples", "domains"), [(300, 4), (400, 4), (1201, 6), (2, 2)])
def test_auto_is_the_fourth_root(samples, domains):
    table = np.random.default_rng(0).normal(size=(samples, 3))
    assert RandomDomains().fit(table).n_domains_ == domains


@every_estimator
def test_names_are_kept_from_the_epoch_before(estimator):
    first = clone(estimator).fit(Z).labels_
    renamed = (first + 1) % 4 + 10
    again = clone(estimator).fit(Z, previous_labels=renamed)
    assert (again.labels_ == renamed).all()
    assert again.domains_.tolist() == [10, 11, 12, 13]
    assert set(again.predict(Z)) <= {10, 11, 12, 13}


def test_balls_tell_what_they_are():
    d = GranularBallDomains(n_domains=4).fit(Z)
    assert sum(ball.size for ball in d.balls_) == len(Z)
    assert not d.fallback_
    for index, ball in enumerate(d.balls_):
        assert (d.labels_[ball.members] == ball.domain).all()
        assert (d.ball_labels_[ball.members] == index).all()
        spread = np.linalg.norm(d.embedding_[ball.members] - ball.center, axis=1)
        assert ball.radius == pytest.approx(spread.max(), abs=1e-8 * np.ptp(Z))  # the grid's resolution
        assert ball.weights.sum() == pytest.approx(1)
    assert len(pd.DataFrame(d.balls_)) == len(d.balls_)
    assert repr(d.balls_[0]).startswith("Ball(domain=")
    sizes = ", ".join(map(str, np.bincount(d.labels_)))
    assert repr(d) == f"GranularBallDomains(n_domains=4): 4 domains of {sizes} samples in {len(d.balls_)} balls"
    assert repr(GranularBallDomains(n_domains=4)) == "GranularBallDomains(n_domains=4)"


def test_a_new_sample_gets_the_domain_of_the_nearest_ball():
    d = GranularBallDomains(n_domains=4).fit(Z)
    new = draw_descriptors(300, n_domains=4, n_epochs=2, seed=0).epochs[1][:50]
    expected = [min(d.balls_, key=lambda ball: np.linalg.norm(row - ball.center)).domain for row in d.reduce(new)]
    assert d.predict(new).tolist() == expected


def test_too_few_balls_fall_back_to_kmeans_and_say_so():
    d = GranularBallDomains(n_domains=4, max_depth=1)
    with pytest.warns(GbdgcWarning, match="only 2 balls for 4 domains"):
        d.fit(Z)
    assert d.fallback_
    assert (d.labels_ == KMeansDomains(n_domains=4).fit(Z).labels_).all()


def test_the_partition_of_samples_does_not_depend_on_row_order_sign_or_scale():
    rng = np.random.default_rng(0)
    order = rng.permutation(len(Z))
    plain = GranularBallDomains(n_domains=4).fit(Z)
    other = GranularBallDomains(n_domains=4).fit(Z[order] * rng.choice([-1, 1], size=Z.shape[1]) * 7.3)
    assert adjusted_rand_score(plain.ball_labels_[order], other.ball_labels_) == 1
    assert adjusted_rand_score(plain.labels_[order], other.labels_) == 1


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_bits_are_the_same_whatever_the_number_of_threads(estimator):
    # Large enough that NumPy's linear algebra would share the work out between threads.
    epochs = draw_descriptors(600, n_epochs=2, n_features=300, seed=5).epochs

    def bits(threads):
        with threadpool_limits(threads):
            d = clone(estimator).fit(epochs[0])
            d.fit(epochs[1], previous_labels=d.labels_)
            return [getattr(d, name).tobytes() for name in ("labels_", "domain_centers_", "embedding_")]

    assert bits(1) == bits(4)


_WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoTorch())
import numpy as np
from gbdgc import GranularBallDomains, KMeansDomains, RandomDomains, align_labels, count_separation, stability
print(GranularBallDomains(n_domains=2).fit(np.arange(20.0).reshape(10, 2)).n_domains_)
"""


def test_discovery_works_where_torch_is_not_installed():
    run = subprocess.run([sys.executable, "-c", _WITHOUT_TORCH], capture_output=True, text=True, check=True)
    assert run.stdout == "2\n"


@pytest.mark.parametrize(
    "wrong", [{"n_domains": 0}, {"n_domains": "many"}, {"n_domains": 2.5}, {"n_components": 0}, {"mode": "fast"}]
)
def test_settings_that_make_no_sense_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        GranularBallDomains(**wrong).fit(Z)


def test_sources_are_domains_and_keep_their_names():
    Z = np.random.default_rng(0).normal(size=(60, 8))
    sources = np.array(["street", "square", "station"] * 20)
    labels = SourceDomains().fit(Z, sources).labels_
    assert adjusted_rand_score(labels, sources) == 1
    renamed = (labels + 1) % 3
    np.testing.assert_array_equal(SourceDomains().fit(Z, sources, previous_labels=renamed).labels_, renamed)
    assert SourceDomains().fit(Z).n_domains_ == 1


def test_balls_divide_each_source_and_never_mix_two():
    random = np.random.default_rng(0)
    sources = np.repeat([0, 1], 60)
    Z = random.normal(size=(120, 8)) + 9 * (np.arange(120) % 2)[:, None]  # two clusters in each source
    labels = SourceDomains(n_domains=4, balls=True).fit(Z, sources).labels_
    assert adjusted_rand_score(labels, 2 * sources + np.arange(120) % 2) == 1


def test_sources_of_other_samples_are_refused():
    with pytest.raises(InputError, match="y has shape"):
        SourceDomains().fit(np.zeros((5, 2)), ["a", "b"])
