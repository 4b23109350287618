"""`GranularBallDomains`: latent domains from granular balls, as a scikit-learn estimator."""

import warnings
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from gbdgc.domains import inputs, stable
from gbdgc.domains.balls import DivisionRules, divide
from gbdgc.domains.clustering import Clusters, cluster_distinct, nearest, one_thread, small_kmeans
from gbdgc.domains.embedded import WarmStartDomains
from gbdgc.domains.tree import Ball, BallTree, Floats, Integers
from gbdgc.errors import GbdgcWarning

_VOTES_AT_ONCE = 100_000


def discover(
    Z: Floats, n_domains: int, rules: DivisionRules, random_state: RandomState, mode: str, overwrite: bool = False
) -> tuple[Clusters, BallTree, bool]:
    """Algorithm 1 after PCA: divide, K-means on the balls' centers g_m; a sample inherits its ball's domain.

    In mode "stable" balls count by their size, and a sample takes the domain of the nearest center. Returns the
    domains, the balls, and whether there were too few of these and K-means on the samples took over.
    """
    tree = divide(Z, rules, overwrite=overwrite)
    g = tree.center[tree.leaves]
    # M_b < K; balls about the same center count once, as K-means cannot tell them apart.
    if len(g) < n_domains or len(np.unique(g, axis=0)) < n_domains:
        return cluster_distinct(Z, n_domains, random_state), tree, True
    if mode == "stable":
        centers = stable.ball_domains(tree, n_domains, random_state)
        return Clusters(nearest(Z, centers), centers), tree, False
    balls = small_kmeans(g, n_domains, random_state)
    return Clusters(tree.spread(balls.labels), balls.centers), tree, False


@dataclass(eq=False, repr=False)
class GranularBallDomains(ClusterMixin, WarmStartDomains):
    """Latent domains by granular balls: divide descriptors into compact balls, then cluster the balls.

    Parameters
    ----------
    n_domains : int or "auto", default="auto"
        How many domains, K; "auto" is max(2, round(N^(1/4))).
    n_components : int or None, default=256
        PCA axes kept at most; None takes descriptors as they are.
    split_margin : float, default=1.05
        tau: a split is accepted if the children's compactness is below tau times the ball's. Above 1 nearly every split
        passes and depth and size are what stops; at 0.95 and below often fewer balls than domains are left.
    sharpness : "sqrt" or float > 1, default="sqrt"
        beta of the feature weights; "sqrt" is the root of the ball's size, at least 2.
    max_depth : int, default=8
        Maximum number of splits above a ball.
    min_ball_size : int, default=1
        Smallest size of a ball.
    max_iter : int, default=10
        Alternations of the weighted 2-means.
    mode : "paper" or "stable", default="paper"
        "stable" is robust to outliers and stable over epochs; see the notes.
    weight_power : "assignment" or "objective", default="assignment"
        Whether samples are assigned by w, the paper's distance, or by w^beta, the paper's objective.
    random_state : int, RandomState or None, default=0
        Seed of K-means.
    copy : bool, default=True
        False lets ``fit`` overwrite X: a contiguous array in float32 or float64 becomes ``embedding_``, in the same
        precision, and little extra memory is needed. Rows on the border of two balls may change sides by rounding.
        mode="stable" makes copies anyway.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Domain of each sample.
    n_domains_ : int
        How many domains were found.
    domains_ : ndarray of shape (n_domains_,)
        Their names, ascending: 0 .. K-1 unless ``previous_labels`` had others.
    domain_centers_ : ndarray of shape (n_domains_, n_axes)
        A center for each of ``domains_``, on the reduced axes (mode="stable": in the frame of ``memory_``).
    balls_ : list of Ball
        The final balls: center, size, radius, depth, weights, compactness, domain, members, reason.
    ball_labels_ : ndarray of shape (n_samples,)
        Index into ``balls_`` for each sample.
    tree_ : BallTree
        Every ball of the division, with its parent, its children and why it was not split.
    n_iter_ : int
        Alternations that the slowest weighted 2-means took.
    fallback_ : bool
        True if there were fewer balls than domains, so that K-means on all descriptors was used instead.
    embedding_ : ndarray of shape (n_samples, n_axes)
        The descriptors on the reduced axes, where balls and centers lie.
    memory_ : dict
        mode="stable" only: plain arrays that carry the past into the next fit; see `restore`.

    Notes
    -----
    Same input and seed give the same bits, whatever the number of threads. The balls do not depend on the order of the
    rows, on the sign of an axis or on a positive scale.

    mode="stable" clips descriptors at twice the median radius, lets balls count by their size, polishes the domains on
    the samples and, when ``fit`` is given ``previous_labels``, averages descriptors with those of the fits before and
    keeps domains and labels unless better ones are clearly better. Rows correspond by position from fit to fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gbdgc import GranularBallDomains
    >>> Z = np.vstack([np.random.default_rng(0).normal(at, 1, (50, 8)) for at in (0, 9)])
    >>> GranularBallDomains(n_domains=2).fit(Z).n_domains_
    2
    """

    n_domains: int | str = "auto"
    n_components: int | None = 256
    split_margin: float = DivisionRules.split_margin
    sharpness: float | str = DivisionRules.sharpness
    max_depth: int = DivisionRules.max_depth
    min_ball_size: int = DivisionRules.min_ball_size
    max_iter: int = DivisionRules.max_iter
    mode: str = "paper"
    weight_power: str = DivisionRules.weight_power
    random_state: int | RandomState | None = 0
    copy: bool = True

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the settings, and what was found with them."""
        settings: str = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "balls_"):
            return settings
        sizes = np.unique(self.labels_, return_counts=True)[1].tolist()
        found = f"{self.n_domains_} domains of {', '.join(map(str, sizes))} samples in {len(self.balls_)} balls"
        return f"{settings}: {found}"

    def fit(self, X: ArrayLike, y: Any = None, *, previous_labels: ArrayLike | None = None) -> Self:
        """Find the domains.

        Parameters
        ----------
        X : descriptors, one row per sample.
        y : ignored.
        previous_labels : the same samples' domains from the epoch before: names are kept. With mode="stable" also what
            the last ``fit`` of this object left in ``memory_`` is used.
        """
        rules = DivisionRules(**{rule.name: getattr(self, rule.name) for rule in fields(DivisionRules)})
        overwrite = not self.copy and self.mode == "paper"

        def find(Z: Floats, n_domains: int, random_state: RandomState) -> Clusters:
            found, self.tree_, self.fallback_ = discover(Z, n_domains, rules, random_state, self.mode, overwrite)
            return found

        asked = self._fit(X, previous_labels, find, overwrite)
        self.n_iter_ = max(1, int(self.tree_.iterations.max()))
        self.balls_ = final_balls(self.tree_, self.labels_, self.domains_)
        if self.fallback_ and self.n_domains_ == asked:
            warnings.warn(
                f"only {len(self.balls_)} balls for {asked} domains: K-means on all descriptors took over. "
                "A larger split_margin or max_depth makes more balls",
                GbdgcWarning,
                stacklevel=2,
            )
        inputs.warn_if_fewer(self.n_domains_, asked)
        return self

    @property
    def ball_labels_(self) -> Integers:
        """Index into ``balls_`` for each sample."""
        return self.tree_.spread(np.arange(len(self.tree_.leaves)))

    def predict(self, X: ArrayLike) -> Integers:
        """Return the domain of the nearest ball; after a fallback and in mode="stable", the nearest domain center's."""
        check_is_fitted(self)
        if self.fallback_ or self._normalization is not None:
            return super().predict(X)
        Z = self.reduce(X)
        with one_thread():
            ball = nearest(Z, self.tree_.center[self.tree_.leaves])
            return np.array([b.domain for b in self.balls_])[ball]


def final_balls(tree: BallTree, labels: Integers, names: Integers) -> list[Ball]:
    """Return the final balls, each with the commonest domain of its members: in mode="paper" they have only one."""
    leaves = tree.leaves
    stops = np.cumsum(tree.size[leaves])
    votes = np.zeros((len(leaves), len(names)), dtype=np.int64)
    for start in range(0, len(labels), _VOTES_AT_ONCE):
        members = tree.order[start : start + _VOTES_AT_ONCE]
        ball = np.searchsorted(stops, np.arange(start, start + len(members)), side="right")
        np.add.at(votes, (ball, np.searchsorted(names, labels[members])), 1)
    columns = (
        tree.center[leaves],
        tree.size[leaves].tolist(),
        tree.radius[leaves].tolist(),
        tree.depth[leaves].tolist(),
        tree.weights[leaves],
        tree.compactness[leaves].tolist(),
        names[votes.argmax(axis=1)].tolist(),
        np.split(tree.order, stops[:-1]),
        tree.reason[leaves].tolist(),
    )
    return [Ball(*row) for row in zip(*columns, strict=True)]
