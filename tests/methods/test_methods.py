"""Methods: which losses they make, and what they ask of the network."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from gbdgc.errors import InputError
from gbdgc.methods import MethodOptions, losses
from gbdgc.methods.build import METHODS, build_method
from gbdgc.methods.contract import Method
from gbdgc.models import Output

Loss = Callable[[Tensor, Tensor], Tensor]


def method_of(name: str, **options: Any) -> Method:
    return build_method(MethodOptions(name=name, **options))


def make_output(style: bool = True) -> Output:
    random = torch.Generator().manual_seed(0)
    maps = [torch.rand(4, 8, 5, 5, generator=random) for _ in range(3)]
    density = torch.rand(4, 1, 20, 20, generator=random) / 1000
    return Output(density, None, maps[0], maps[1], maps[2] if style else None, (), cell=1)


def test_the_density_term_is_the_papers_for_each_pixel() -> None:
    output, truth = make_output(), torch.rand(4, 20, 20) / 1000
    term = method_of("erm").image_losses(output, truth, torch.ones(8)).losses["density"]
    by_hand = sum(((1000 * output.density[i, 0] - 1000 * truth[i]) ** 2).sum() for i in range(4)) / 4
    assert float(term) == pytest.approx(float(by_hand) / 400, rel=1e-6)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(("density", "loss"), [("poisson", losses.poisson_loss), ("absolute", losses.absolute_loss)])
def test_count_losses_see_people_in_cells_of_eight_pixels(name: str, density: str, loss: Loss) -> None:
    fine, truth = torch.rand(2, 1, 32, 32), torch.rand(2, 32, 32)
    coarse, coarse_truth = losses.square_sums(fine[:, 0], 8)[:, None], losses.square_sums(truth, 8)
    maps = torch.rand(2, 8, 5, 5)
    in_pixels = Output(fine, None, maps, maps, maps, (), cell=1)
    in_cells = in_pixels._replace(density=coarse, cell=8)
    method = method_of(name, density=density)
    expected = loss(coarse[:, 0], coarse_truth)
    for output, people in ((in_pixels, truth), (in_cells, coarse_truth)):
        term = method.image_losses(output, people, torch.ones(8)).losses["density"]
        torch.testing.assert_close(term, expected)


def test_a_network_with_an_occupancy_learns_where_anybody_is() -> None:
    people = torch.zeros(1, 4, 4)  # cells of 8 pixels: four patches
    people[0, 0, 1], people[0, 3, 3] = 0.7, 0.05
    logits = torch.tensor([[[[3.0, -1.0], [0.5, 2.0]]]])
    output = make_output()._replace(density=people[:, None], occupancy=logits, cell=8)
    term = method_of("erm").image_losses(output, people, torch.ones(8)).losses["occupancy"]
    occupied = torch.tensor([[1.0, 0.0], [0.0, 0.0]])  # a twentieth of a head is nobody
    likelihood = torch.where(occupied == 1, logits[0, 0].sigmoid(), 1 - logits[0, 0].sigmoid())
    torch.testing.assert_close(term, -likelihood.log().mean())


@pytest.mark.parametrize("name", ["semantic", "style", "orthogonality"])
def test_a_weight_of_zero_takes_a_term_out(name: str) -> None:
    method = method_of("gbdgc", **{name: 0.0})
    partial = method.image_losses(make_output(), torch.zeros(4, 20, 20), torch.ones(8))
    made = partial.losses | method.batch_losses(partial.descriptors, torch.tensor([0, 0, 1, 1]))
    assert made.keys() == {"density", "semantic", "style", "orthogonality"} - {name}
    assert made.keys() == method.weights.keys() - {"occupancy"}  # this network has none


def test_the_style_branch_is_there_only_where_a_loss_needs_it() -> None:
    assert method_of("gbdgc").network_options == {"codebook": True, "style": True}
    assert method_of("gbdgc", style=0, orthogonality=0).network_options == {"codebook": True, "style": False}
    assert method_of("gbdgc", codebook=False).network_options["codebook"] is False
    assert method_of("erm").network_options == {"codebook": False, "style": False}


def test_domains_are_looked_for_only_where_a_loss_speaks_of_them() -> None:
    assert method_of("gbdgc").needs_domains
    assert method_of("mixing").needs_domains
    assert not method_of("gbdgc", semantic=0, style=0).needs_domains
    assert not method_of("erm").needs_domains


def test_count_free_alignment_cannot_see_what_the_head_reads() -> None:
    output, head = make_output(), torch.rand(8)
    method = method_of("gbdgc", alignment="count_free")
    rows = method.image_losses(output, torch.zeros(4, 20, 20), head).descriptors["semantic"]
    assert torch.allclose(rows @ head, torch.zeros(4), atol=1e-6)
    plain = method_of("gbdgc").image_losses(output, torch.zeros(4, 20, 20), head).descriptors["semantic"]
    assert torch.equal(plain, losses.pooled(output.recoded))


def test_separated_style_is_another_loss_on_the_same_rows() -> None:
    partial = method_of("gbdgc").image_losses(make_output(), torch.zeros(4, 20, 20), torch.ones(8))
    domain = torch.tensor([0, 1, 0, 1])
    paper, separated = (
        method_of("gbdgc", style_form=form).batch_losses(partial.descriptors, domain)["style"]
        for form in ("paper", "separated")
    )
    assert torch.equal(paper, losses.style_loss(partial.descriptors["style"], domain))
    assert torch.equal(separated, losses.separated_style_loss(partial.descriptors["style"], domain))


def test_an_unknown_method_is_met_with_those_there_are() -> None:
    with pytest.raises(InputError, match=f"method 'gbdg': there is no such method; choose one of {', '.join(METHODS)}"):
        method_of("gbdg")
