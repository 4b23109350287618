"""Methods: which losses they make, and what they ask of the network."""

import pytest
import torch

from gbdgc import losses
from gbdgc.errors import InputError
from gbdgc.methods import METHODS, build_method
from gbdgc.models import DENSITY_SCALE, Output


def make_output(style: bool = True) -> Output:
    random = torch.Generator().manual_seed(0)
    maps = [torch.rand(4, 8, 5, 5, generator=random) for _ in range(3)]
    density = torch.rand(4, 1, 20, 20, generator=random)
    return Output(density, maps[0], maps[1], maps[2] if style else None, ())


def test_the_density_term_is_the_papers_for_each_pixel() -> None:
    output, truth = make_output(), torch.rand(4, 20, 20) / 1000
    term = build_method("erm").look(output, truth, torch.ones(8)).losses["density"]
    by_hand = sum(((output.density[i, 0] - DENSITY_SCALE * truth[i]) ** 2).sum() for i in range(4)) / 4
    assert float(term) == pytest.approx(float(by_hand) / 400, rel=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_the_count_can_be_asked_for_beside_the_density(name: str) -> None:
    output, truth = make_output(), torch.rand(4, 20, 20) / 1000
    method = build_method(name, count=2.0)
    assert method.weights["count"] == 2.0
    assert "count" not in build_method(name).weights
    term = method.look(output, truth, torch.ones(8)).losses["count"]
    by_hand = sum(abs(output.density[i].sum() - DENSITY_SCALE * truth[i].sum()) for i in range(4)) / 4
    assert float(term) == pytest.approx(float(by_hand) / 400, rel=1e-5)


@pytest.mark.parametrize("name", ["semantic", "style", "orthogonality"])
def test_a_weight_of_zero_takes_a_term_out(name: str) -> None:
    method = build_method("gbdgc", **{name: 0.0})
    piece = method.look(make_output(), torch.zeros(4, 20, 20), torch.ones(8))
    made = piece.losses | method.compare(piece.descriptors, torch.tensor([0, 0, 1, 1]))
    assert made.keys() == {"density", "semantic", "style", "orthogonality"} - {name}
    assert made.keys() == method.weights.keys()


def test_the_style_branch_is_there_only_where_a_loss_needs_it() -> None:
    assert build_method("gbdgc").network_options == {"codebook": True, "style": True}
    assert build_method("gbdgc", style=0, orthogonality=0).network_options == {"codebook": True, "style": False}
    assert build_method("gbdgc", codebook=False).network_options["codebook"] is False
    assert build_method("erm").network_options == {"codebook": False, "style": False}


def test_domains_are_looked_for_only_where_a_loss_speaks_of_them() -> None:
    assert build_method("gbdgc").needs_domains
    assert not build_method("gbdgc", semantic=0, style=0).needs_domains
    assert not build_method("erm").needs_domains


def test_count_free_alignment_cannot_see_what_the_head_reads() -> None:
    output, head = make_output(), torch.rand(8)
    method = build_method("gbdgc", alignment="count_free")
    rows = method.look(output, torch.zeros(4, 20, 20), head).descriptors["semantic"]
    assert torch.allclose(rows @ head, torch.zeros(4), atol=1e-6)
    plain = build_method("gbdgc").look(output, torch.zeros(4, 20, 20), head).descriptors["semantic"]
    assert torch.equal(plain, losses.pooled(output.recoded))


def test_separated_style_is_another_loss_on_the_same_rows() -> None:
    piece = build_method("gbdgc").look(make_output(), torch.zeros(4, 20, 20), torch.ones(8))
    domain = torch.tensor([0, 1, 0, 1])
    paper, separated = (
        build_method("gbdgc", style_form=form).compare(piece.descriptors, domain)["style"]
        for form in ("paper", "separated")
    )
    assert torch.equal(paper, losses.style_loss(piece.descriptors["style"], domain))
    assert torch.equal(separated, losses.separated_style_loss(piece.descriptors["style"], domain))


def test_an_unknown_method_is_met_with_those_there_are() -> None:
    with pytest.raises(InputError, match=f"no method 'gbdg'; there are: {', '.join(METHODS)}"):
        build_method("gbdg")
