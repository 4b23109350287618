"""Drawn crowds from known latent domains: small solid figures on textured ground, seen through a camera."""

from gbdgc.synthetic.dataset import draw_dataset, draw_demo
from gbdgc.synthetic.domains import DOMAINS, SOURCE_DOMAINS, TARGET_DOMAINS
from gbdgc.synthetic.painting import draw_scene

__all__ = ["DOMAINS", "SOURCE_DOMAINS", "TARGET_DOMAINS", "draw_dataset", "draw_demo", "draw_scene"]
