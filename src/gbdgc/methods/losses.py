"""The terms of the training objective, as pure functions: L_den, L_sem, L_sty, L_orth, and those of ours.

Symbols of the paper: y density, p_i semantic descriptor, t_i style descriptor, S and T semantic and style map,
I_k the images of pseudo-domain k in the batch, K_B the pseudo-domains present in it.
Shapes: B batch, D channels, H x W positions, K pseudo-domains in the batch.
"""

import torch
from torch import Tensor
from torch.nn import functional

_EPSILON = 1e-6
_DENSITY_BINS = (0.01, 0.1, 0.4)  # people in 8 x 8 pixels: empty ground, beside a head, a head, a crowd


def pooled(map_BDHW: Tensor) -> Tensor:
    """Global average pooling: one descriptor per image."""
    return map_BDHW.mean(dim=(2, 3))


def density_loss(predicted_BHW: Tensor, target_BHW: Tensor) -> Tensor:
    r"""Squared error summed over pixels, mean over the batch.

    .. math:: L_{den} = \frac{1}{B} \sum_i \lVert \hat y_i - y_i \rVert_2^2
    """
    return (predicted_BHW - target_BHW).square().sum() / len(predicted_BHW)


def poisson_loss(predicted_BHW: Tensor, target_BHW: Tensor) -> Tensor:
    r"""Squared error of counts over the variance of a Poisson count, in squares of several sizes; ours.

    .. math:: L_{cnt} = \frac{1}{32 B} \sum_i \sum_k k \sum_{c \in C_k}
              \frac{(\hat n_{ic} - n_{ic})^2}{\hat n_{ic} + k / 10}

    C_k are the squares of k x k cells, and no gradient reaches the denominator. Its optimum is the mean: an absolute
    error seeks the median, which takes a head the network is unsure of for nobody. Over the variance, so that dense
    places do not drown the others; in squares of several sizes, because a faint density all over a picture is next to
    nothing in one cell and fifty people in the sum.
    """
    loss = predicted_BHW.new_zeros(())
    for k in (1, 2, 4, 8, 32):
        predicted, target = (square_sums(cells_BHW, k) for cells_BHW in (predicted_BHW, target_BHW))
        loss = loss + k * ((predicted - target).square() / (predicted.detach() + 0.1 * k)).sum()
    return loss / (32 * len(predicted_BHW))


def absolute_loss(predicted_BHW: Tensor, target_BHW: Tensor) -> Tensor:
    r"""Squared error in cells and absolute errors of the counts in squares of several sizes; ours.

    .. math:: L_{abs} = \frac{1}{8 B} \sum_i \Bigl( 2 \sum_{c \in C_1} (\hat n_{ic} - n_{ic})^2
              + \sum_{k > 1} w_k \sum_{c \in C_k} |\hat n_{ic} - n_{ic}| \Bigr)
    """
    error_BHW = predicted_BHW - target_BHW
    loss = 2 * error_BHW.square().sum()
    for k, weight in ((2, 0.25), (4, 0.25), (8, 0.5), (16, 0.5), (32, 0.5)):
        loss = loss + weight * square_sums(error_BHW, k).abs().sum()
    return loss / (8 * len(predicted_BHW))


def occupancy_loss(logits_BHW: Tensor, people_BHW: Tensor) -> Tensor:
    r"""Binary cross-entropy of "anybody in this patch", mean over patches; a tenth of a head counts as somebody."""
    occupied_BHW = (people_BHW > 0.1).to(logits_BHW.dtype)
    return functional.binary_cross_entropy_with_logits(logits_BHW, occupied_BHW)


def semantic_loss(descriptor_BD: Tensor, domain_B: Tensor) -> Tensor:
    r"""Mean squared distance of the pseudo-domains' semantic centres to the centre of the batch.

    .. math:: L_{sem} = \frac{1}{|K_B|} \sum_{k \in K_B} \lVert \nu_k - \nu \rVert_2^2, \quad
              \nu_k = \frac{1}{|I_k|} \sum_{i \in I_k} p_i, \quad \nu = \frac{1}{B} \sum_i p_i
    """
    centre_KD, _ = _domain_means(descriptor_BD, domain_B)
    return (centre_KD - descriptor_BD.mean(dim=0)).square().sum(dim=1).mean()


def style_loss(style_BD: Tensor, domain_B: Tensor) -> Tensor:
    r"""Mean squared distance of style descriptors to their pseudo-domain's centre; a lone image contributes 0.

    .. math:: L_{sty} = \frac{1}{|K_B|} \sum_{k \in K_B} \frac{1}{|I_k|} \sum_{i \in I_k}
              \lVert t_i - \bar t_k \rVert_2^2
    """
    centre_KD, index_B = _domain_means(style_BD, domain_B)
    deviation_B = (style_BD - centre_KD[index_B]).square().sum(dim=1)
    spread_K, _ = _domain_means(deviation_B, domain_B)
    return spread_K.mean()


def orthogonality_loss(semantic_BDHW: Tensor, style_BDHW: Tensor) -> Tensor:
    r"""Squared cosine of semantic and style vector, mean over positions and batch.

    .. math:: L_{orth} = \frac{1}{H'W'} \sum_j
              \left( \frac{\tau_j^\top s_j}{\lVert \tau_j \rVert_2 \lVert s_j \rVert_2 + \epsilon} \right)^2

    No gradient reaches the semantic map: it is the style branch that has to give way.
    """
    semantic_BDHW = semantic_BDHW.detach()
    product_BHW = (semantic_BDHW * style_BDHW).sum(dim=1)
    lengths_BHW = torch.linalg.vector_norm(semantic_BDHW, dim=1) * torch.linalg.vector_norm(style_BDHW, dim=1)
    cosine_BHW: Tensor = product_BHW / (lengths_BHW + _EPSILON)
    return cosine_BHW.square().mean()


def sums_by_density(map_BDHW: Tensor, people_BHW: Tensor) -> Tensor:
    """Return for each image and bin of the true local density: the number of positions, their sum, their squared sum.

    ``people_BHW`` is in people per 8 x 8 pixels at each position. Shape (B, bins, D + 2).
    """
    bin_BHW = torch.bucketize(people_BHW, people_BHW.new_tensor(_DENSITY_BINS))
    member_BRN = functional.one_hot(bin_BHW.flatten(1), len(_DENSITY_BINS) + 1).to(map_BDHW.dtype).transpose(1, 2)
    position_BND = map_BDHW.flatten(2).transpose(1, 2)
    squares_BN1 = position_BND.square().sum(dim=2, keepdim=True)
    return member_BRN @ torch.cat([torch.ones_like(squares_BN1), position_BND, squares_BN1], dim=2)


def equal_density_loss(sums_BRE: Tensor, domain_B: Tensor) -> Tensor:
    r"""Variance of the domains' mean features over the variance of all, at equal density; mean over its bins; ours.

    .. math:: L_{equal} = \frac{1}{|R|} \sum_r \frac{\sum_k n_{kr} \lVert \nu_{kr} - \nu_r \rVert_2^2}
              {\sum_{j \in r} \lVert s_j - \nu_r \rVert_2^2}

    n_kr positions of domain k in bin r, with the mean feature ν_kr; ν_r is the mean of all of them. A ratio, so that
    shrinking the features does not lower it, and within a bin of density, so that it cannot pull counts together.
    """
    means_KRE, index_B = _domain_means(sums_BRE, domain_B)
    images_K = torch.bincount(index_B, minlength=len(means_KRE)).to(sums_BRE.dtype)
    sums_KRE = means_KRE * images_K[:, None, None]
    number_KR, vector_KRD = sums_KRE[..., 0], sums_KRE[..., 1:-1]
    total_RE = sums_KRE.sum(dim=0)
    mean_RD = total_RE[:, 1:-1] / total_RE[:, :1].clamp_min(1)
    centre_KRD = vector_KRD / number_KR[..., None].clamp_min(1)
    between_R = (number_KR * (centre_KRD - mean_RD).square().sum(dim=2)).sum(dim=0)
    all_R = total_RE[:, -1] - total_RE[:, 0] * mean_RD.square().sum(dim=1)
    return (between_R / (all_R + _EPSILON)).mean()


def remove_direction(descriptor_BD: Tensor, direction_D: Tensor) -> Tensor:
    r"""Project one direction out of the descriptors: :math:`p - \frac{p^\top w}{w^\top w} w`.

    With the density head's weights as ``direction_D`` what remains is the part of p_i that the count does not read,
    so that aligning it (:func:`semantic_loss`) cannot make the counts of sparse and dense domains equal. No gradient
    reaches the direction: the head is to follow the density, not to turn away from the alignment.
    """
    unit_D = functional.normalize(direction_D.detach(), dim=0)
    return descriptor_BD - (descriptor_BD @ unit_D)[:, None] * unit_D


def separated_style_loss(style_BD: Tensor, domain_B: Tensor, margin: float = 1.0) -> Tensor:
    r"""Compact style within a pseudo-domain, and centres of different pseudo-domains at least ``margin`` apart.

    .. math:: L_{sep} = L_{sty}(u) + \frac{1}{|P|} \sum_{(k, l) \in P}
              \max(0, m - \lVert \bar u_k - \bar u_l \rVert_2), \quad u_i = t_i / \lVert t_i \rVert_2

    over the pairs P of pseudo-domains in the batch. L_sty alone is smallest where the style branch gives 0; unit
    vectors take the length out of the matter, and the second term is largest where all styles are the same.
    Style maps come out of a ReLU, so two unit vectors are at most sqrt(2) apart.
    """
    unit_BD = functional.normalize(style_BD, dim=1)
    centre_KD, _ = _domain_means(unit_BD, domain_B)
    compactness = style_loss(unit_BD, domain_B)
    first, second = torch.triu_indices(len(centre_KD), len(centre_KD), offset=1, device=style_BD.device)
    if len(first) == 0:
        return compactness
    distance_P = torch.linalg.vector_norm(centre_KD[first] - centre_KD[second], dim=1)
    return compactness + functional.relu(margin - distance_P).mean()


def _domain_means(value_B: Tensor, domain_B: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the rows of each pseudo-domain present, and for each row the place of its pseudo-domain among them."""
    _, index_B, count_K = torch.unique(domain_B, return_inverse=True, return_counts=True)
    sums = value_B.new_zeros(len(count_K), *value_B.shape[1:]).index_add(0, index_B, value_B)
    return sums / count_K.reshape(-1, *[1] * (value_B.dim() - 1)), index_B


def square_sums(cells_BHW: Tensor, side: int) -> Tensor:
    """Sums over squares of ``side`` x ``side`` cells; those at the border may be smaller."""
    if side == 1:
        return cells_BHW
    return functional.avg_pool2d(cells_BHW[:, None], side, ceil_mode=True, divisor_override=1)[:, 0]
