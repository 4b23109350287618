"""Each loss is what its equation says, computed here by plain loops over numpy numbers."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from gbdgc.methods.losses import (
    absolute_loss,
    density_loss,
    equal_density_loss,
    orthogonality_loss,
    poisson_loss,
    pooled,
    remove_direction,
    semantic_loss,
    separated_style_loss,
    square_sums,
    style_loss,
    sums_by_density,
)

DOMAINS = torch.tensor([5, 0, 5, 2, 0, 5, 9])  # names with gaps; 2 and 9 have one image each


def draw(*shape: int, seed: int = 0, requires_grad: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_(requires_grad)


def members(domains: Tensor) -> dict[int, list[int]]:
    return {int(k): [i for i, d in enumerate(domains) if d == k] for k in set(domains.tolist())}


def test_density_loss_sums_over_pixels_and_averages_over_images() -> None:
    predicted, target = draw(3, 4, 5), draw(3, 4, 5, seed=1)
    written_out = 0.0
    for i in range(3):
        for y in range(4):
            for x in range(5):
                written_out += float(predicted[i, y, x] - target[i, y, x]) ** 2
    assert density_loss(predicted, target).item() == pytest.approx(written_out / 3)


def in_squares(cells: np.ndarray, side: int) -> list[float]:
    """Sums over squares; the last ones are cut by the picture's edge."""
    height, width = cells.shape
    return [
        sum(
            float(cells[y, x])
            for y in range(top, min(top + side, height))
            for x in range(left, min(left + side, width))
        )
        for top in range(0, height, side)
        for left in range(0, width, side)
    ]


def test_square_sums_lose_nobody_at_the_edge() -> None:
    cells = draw(2, 5, 7)
    for side in (1, 2, 4, 8):
        written_out = [in_squares(picture, side) for picture in cells.numpy()]
        torch.testing.assert_close(square_sums(cells, side).flatten(1), torch.tensor(written_out, dtype=torch.float64))


def test_poisson_loss_is_the_squared_error_over_the_expected_variance() -> None:
    predicted, target = draw(3, 4, 5).abs(), draw(3, 4, 5, seed=1).abs()
    written_out = 0.0
    for picture, truth in zip(predicted.numpy(), target.numpy(), strict=True):
        for k in (1, 2, 4, 8, 32):
            for n, wanted in zip(in_squares(picture, k), in_squares(truth, k), strict=True):
                written_out += k * (n - wanted) ** 2 / (n + 0.1 * k)
    assert poisson_loss(predicted, target).item() == pytest.approx(written_out / 3 / 32)


def test_absolute_loss_adds_the_errors_of_counts_to_the_squared_error_of_cells() -> None:
    predicted, target = draw(3, 4, 5), draw(3, 4, 5, seed=1)
    written_out = 2 * float((predicted - target).square().sum())
    for error in (predicted - target).numpy():
        for k, weight in ((2, 0.25), (4, 0.25), (8, 0.5), (16, 0.5), (32, 0.5)):
            written_out += weight * sum(abs(value) for value in in_squares(error, k))
    assert absolute_loss(predicted, target).item() == pytest.approx(written_out / 3 / 8)


def test_a_poisson_loss_seeks_the_mean_where_an_absolute_one_seeks_the_median() -> None:
    """One cell that holds a person in two pictures of five: a network that cannot tell them apart."""
    target = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0], dtype=torch.float64)[:, None, None]
    level = {}
    for loss in (poisson_loss, absolute_loss):
        guess = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([guess], 0.02)
        for _ in range(3000):
            optimizer.zero_grad()
            loss(guess.expand(5, 1, 1), target).backward()
            optimizer.step()
        level[loss] = guess.item()
    assert level[poisson_loss] == pytest.approx(0.4, abs=0.01)
    assert level[absolute_loss] == pytest.approx(0.3, abs=0.01)


def test_semantic_loss_is_the_spread_of_domain_centres_about_the_batch_centre() -> None:
    p = draw(7, 3).numpy()
    centre = sum(p[i] for i in range(7)) / 7
    written_out = 0.0
    for indices in members(DOMAINS).values():
        domain_centre = sum(p[i] for i in indices) / len(indices)
        written_out += sum((domain_centre[j] - centre[j]) ** 2 for j in range(3))
    assert semantic_loss(torch.from_numpy(p), DOMAINS).item() == pytest.approx(written_out / 4)


def test_style_loss_is_the_mean_spread_within_domains() -> None:
    t = draw(7, 3).numpy()
    written_out = 0.0
    for indices in members(DOMAINS).values():
        centre = sum(t[i] for i in indices) / len(indices)
        written_out += sum(float(((t[i] - centre) ** 2).sum()) for i in indices) / len(indices)
    assert style_loss(torch.from_numpy(t), DOMAINS).item() == pytest.approx(written_out / 4)


def test_orthogonality_loss_is_the_mean_squared_cosine_over_positions() -> None:
    s, t = draw(2, 3, 4, 5).numpy(), draw(2, 3, 4, 5, seed=1).numpy()
    written_out = 0.0
    for i in range(2):
        for y in range(4):
            for x in range(5):
                a, b = s[i, :, y, x], t[i, :, y, x]
                written_out += float((a @ b) / (np.sqrt(a @ a) * np.sqrt(b @ b))) ** 2
    loss = orthogonality_loss(torch.from_numpy(s), torch.from_numpy(t))
    assert loss.item() == pytest.approx(written_out / (2 * 4 * 5), rel=1e-5)


def test_a_lone_image_adds_nothing_to_the_style_loss_but_its_domain_counts() -> None:
    pair = draw(2, 3)
    alone = torch.cat([pair, draw(1, 3, seed=1)])
    with_lone_domain = style_loss(alone, torch.tensor([0, 0, 1]))
    assert with_lone_domain.item() == pytest.approx(style_loss(pair, torch.tensor([0, 0])).item() / 2)


def test_equal_density_compares_domains_only_where_they_are_equally_dense() -> None:
    features, people = torch.zeros(2, 1, 1, 4, dtype=torch.float64), torch.tensor([[[0.0, 0.0, 0.5, 0.5]]] * 2)
    features[:, 0, 0] = torch.tensor([[0.0, 2.0, 10.0, 12.0], [4.0, 6.0, 10.0, 12.0]])
    domains = torch.tensor([0, 1])
    # On empty ground the means are 1 and 5 about 3, and all values 0 2 4 6: 4 * 4 / 20. In the crowd they agree.
    loss = equal_density_loss(sums_by_density(features, people), domains)
    assert loss.item() == pytest.approx((16 / 20 + 0) / 4, rel=1e-6)
    shrunk = equal_density_loss(sums_by_density(0.01 * features, people), domains)
    assert shrunk.item() == pytest.approx(loss.item(), rel=1e-2)
    assert equal_density_loss(sums_by_density(features, people), torch.tensor([3, 3])).item() == 0


@pytest.mark.parametrize("loss", [semantic_loss, style_loss, separated_style_loss])
def test_the_names_of_domains_and_absent_domains_do_not_matter(loss) -> None:  # type: ignore[no-untyped-def]
    descriptor = draw(7, 3)
    names = torch.tensor([2, 0, 2, 1, 0, 2, 3])
    assert loss(descriptor, DOMAINS).item() == pytest.approx(loss(descriptor, names).item())


def test_pooling_is_the_mean_over_positions() -> None:
    features = draw(2, 3, 4, 5)
    assert torch.equal(pooled(features), features.mean(dim=3).mean(dim=2)) or torch.allclose(
        pooled(features), features.flatten(2).sum(2) / 20
    )


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: density_loss(x[:, :, None], draw(7, 3, 1, seed=3)),
        lambda x: absolute_loss(x[:, :, None], draw(7, 3, 1, seed=3)),
        lambda x: semantic_loss(x, DOMAINS),
        lambda x: style_loss(x, DOMAINS),
        lambda x: separated_style_loss(x, DOMAINS),
        lambda x: remove_direction(x, draw(3, seed=3)),
        lambda x: orthogonality_loss(draw(7, 3, 2, 1, seed=3), x[:, :, None, None].expand(-1, -1, 2, 1)),
    ],
    ids=["density", "absolute", "semantic", "style", "separated", "remove_direction", "orthogonality"],
)
def test_gradients_are_right(loss) -> None:  # type: ignore[no-untyped-def]
    assert gradcheck(loss, draw(7, 3, requires_grad=True))


def test_orthogonality_moves_the_style_branch_only() -> None:
    semantic, style = draw(2, 3, 4, 5, requires_grad=True), draw(2, 3, 4, 5, seed=1, requires_grad=True)
    orthogonality_loss(semantic, style).backward()
    assert semantic.grad is None
    assert style.grad is not None
    assert style.grad.abs().sum() > 0


def test_orthogonality_of_vanishing_features_has_a_finite_gradient() -> None:
    style = torch.zeros(1, 3, 2, 2, requires_grad=True)
    orthogonality_loss(torch.zeros(1, 3, 2, 2), style).backward()
    assert style.grad is not None
    assert style.grad.isfinite().all()


def test_removing_a_direction_leaves_what_the_head_does_not_read() -> None:
    descriptor, head = draw(7, 3), draw(3, seed=1, requires_grad=True)
    rest = remove_direction(descriptor, head)
    assert (rest @ head).abs().max() < 1e-12
    assert torch.allclose(remove_direction(rest, head), rest)
    assert not rest.requires_grad


def test_aligning_what_is_left_leaves_different_counts_alone() -> None:
    head = torch.tensor([0.0, 0.0, 2.0], dtype=torch.float64)
    sparse_and_dense = torch.tensor([[1.0, 2.0, 0.1], [1.0, 2.0, 9.0]], dtype=torch.float64)
    domains = torch.tensor([0, 1])
    assert semantic_loss(sparse_and_dense, domains) > 1
    assert semantic_loss(remove_direction(sparse_and_dense, head), domains) == 0


def test_a_vanishing_style_is_the_optimum_of_the_printed_loss_but_not_of_the_separated_one() -> None:
    style = draw(7, 3)
    nearly_nothing = 1e-4 * style
    assert style_loss(nearly_nothing, DOMAINS) < 1e-6
    assert separated_style_loss(nearly_nothing, DOMAINS).item() == pytest.approx(
        separated_style_loss(style, DOMAINS).item()
    )
    assert separated_style_loss(torch.zeros_like(style), DOMAINS) >= 1
    one_style_for_all = torch.ones_like(style)
    assert separated_style_loss(one_style_for_all, DOMAINS) >= 1


def test_descending_the_separated_loss_parts_the_domains() -> None:
    domains = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
    style = (1 + 0.01 * draw(8, 4)).requires_grad_()
    optimiser = torch.optim.Adam([style], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        loss = separated_style_loss(style, domains)
        loss.backward()
        optimiser.step()
    assert loss < 0.01
    unit = torch.nn.functional.normalize(style.detach(), dim=1)
    centres = torch.stack([unit[domains == k].mean(dim=0) for k in range(3)])
    assert torch.pdist(centres).min() > 0.9


def test_one_domain_alone_has_nobody_to_keep_apart_from() -> None:
    unit = torch.nn.functional.normalize(draw(4, 3), dim=1)
    domains = torch.zeros(4, dtype=torch.long)
    assert separated_style_loss(draw(4, 3), domains).item() == pytest.approx(style_loss(unit, domains).item())
