"""Networks: backbones, the codebook, the two branches on top, and where ImageNet weights come from."""

from gbdgc.models.backbone import Backbone, Features
from gbdgc.models.network import BACKBONES, Network, Output, build_network

__all__ = ["BACKBONES", "Backbone", "Features", "Network", "Output", "build_network"]
