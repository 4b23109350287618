"""Networks: backbones, the codebook, the two branches on top, and where ImageNet weights come from."""

from gbdgc.models.backbone import Backbone, Features
from gbdgc.models.network import BACKBONES, DENSITY_SCALE, Network, Output, build_network

__all__ = ["BACKBONES", "DENSITY_SCALE", "Backbone", "Features", "Network", "Output", "build_network"]
