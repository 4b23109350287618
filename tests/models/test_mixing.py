"""Style mixing: whose statistics a picture takes on, and what it keeps."""

import torch

from gbdgc.models.mixing import Mixing, draw_mixing, mix_statistics


def test_partners_are_of_another_domain() -> None:
    torch.manual_seed(0)
    domains = torch.tensor([0, 0, 1, 2, 2, 2, 0, 1])
    for _ in range(20):
        mixing = draw_mixing(domains)
        assert (domains[mixing.partner_B] != domains).all()
        assert ((mixing.own_B >= 0) & (mixing.own_B <= 1)).all()


def test_in_a_batch_of_one_domain_every_picture_keeps_its_style() -> None:
    torch.manual_seed(0)
    signal = torch.randn(3, 4, 8, 8)
    mixing = draw_mixing(torch.tensor([1, 1, 1]))
    assert mixing.partner_B.tolist() == [0, 1, 2]
    torch.testing.assert_close(mix_statistics(signal, mixing), signal)


def test_mean_and_deviation_come_to_lie_between_both_pictures_and_the_pattern_stays() -> None:
    torch.manual_seed(0)
    signal = torch.randn(2, 3, 16, 16) * torch.tensor([1.0, 4.0])[:, None, None, None] + 2
    mixed = mix_statistics(signal, Mixing(torch.tensor([1, 0]), torch.tensor([0.25, 1.0])))
    torch.testing.assert_close(mixed[1], signal[1])
    for of in (torch.mean, torch.std):
        own, partner, got = (of(value, dim=(1, 2)) for value in (signal[0], signal[1], mixed[0]))
        torch.testing.assert_close(got, 0.25 * own + 0.75 * partner, rtol=1e-4, atol=1e-4)
    pattern = torch.corrcoef(torch.stack([signal[0, 0].flatten(), mixed[0, 0].flatten()]))
    assert pattern[0, 1] > 0.9999
