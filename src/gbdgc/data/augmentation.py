"""Random augmentation of training pictures: the settings, and the order of the steps."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from gbdgc.data import transforms
from gbdgc.data.images import RGB
from gbdgc.errors import InputError

_BLUR_SIGMA = (0.3, 2.0)
_NOISE_SIGMA = (2.0, 15.0)
_GAMMA = (0.5, 1.8)
_SHADE = (0.2, 1.6)
_JPEG_QUALITY = (15, 60)
_NATIVE_SCALE = (0.8, 1.25)
_JITTER = ("brightness", "contrast", "saturation", "hue")
_DISTORTIONS = ("grey", "gamma", "shade", "blur", "noise", "jpeg")
_PROBABILITIES = ("focus", "mosaic", "flip", *_DISTORTIONS)


@dataclass(frozen=True)
class Augmentation:
    """How training pictures are augmented.

    ``scale`` is the range of the scale factor, sampled log-uniformly. These are probabilities: ``focus`` (the crop is
    placed around one of the heads, not anywhere), ``mosaic`` (it consists of four pieces at half the scale),
    ``flip``, ``grey``, ``gamma``, ``shade`` (light that changes across the crop, as by night or against the sun),
    ``blur``, ``noise`` and ``jpeg``. The others are the strengths of `transforms.colour_jitter`.
    """

    crop: int = 320
    scale: list[float] = field(default_factory=lambda: [1.0, 1.0])
    focus: float = 0.0
    mosaic: float = 0.0
    flip: float = 0.5
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    hue: float = 0.0
    grey: float = 0.0
    gamma: float = 0.0
    shade: float = 0.0
    blur: float = 0.0
    noise: float = 0.0
    jpeg: float = 0.0

    def __post_init__(self) -> None:
        if self.crop < 1:
            raise InputError(f"augmentation.crop={self.crop}", "a crop has at least one pixel")
        if self.mosaic and self.crop % 2:
            raise InputError(f"augmentation.crop={self.crop}", "four pieces cannot share it", "take an even number")
        if len(self.scale) != 2 or not 0 < self.scale[0] <= self.scale[1]:
            reason = "the smallest and the largest factor, both above 0"
            raise InputError(f"augmentation.scale={self.scale}", reason, "such as [0.7,1.6]")
        for name in _PROBABILITIES:
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"augmentation.{name}={getattr(self, name)}", "a probability lies between 0 and 1")
        for name in _JITTER:
            if getattr(self, name) < 0:
                raise InputError(f"augmentation.{name}={getattr(self, name)}", "a strength is not below 0")

    @property
    def scale_range(self) -> tuple[float, float]:
        """The smallest and the largest factor."""
        return self.scale[0], self.scale[1]

    def native(self, scale: float = 1.0) -> Self:
        """Return a mild form: factors near ``scale``, and a third of the changes of colour and sharpness."""
        low, high = self.scale_range
        near = [min(max(scale * factor, low), high) for factor in _NATIVE_SCALE]
        mild = {name: getattr(self, name) / 3 for name in (*_JITTER, *_DISTORTIONS)}
        return replace(self, scale=near, mosaic=0.0, **mild)

    def recolour(self, image: RGB, random: np.random.Generator) -> RGB:
        """Apply everything that does not move points."""
        jitter = {name: getattr(self, name) for name in _JITTER}
        if any(jitter.values()):
            image = transforms.colour_jitter(image, random, **jitter)
        if random.random() < self.grey:
            image = transforms.grey(image)
        if self.gamma and random.random() < self.gamma:
            image = transforms.gamma(image, math.exp(random.uniform(math.log(_GAMMA[0]), math.log(_GAMMA[1]))))
        if self.shade and random.random() < self.shade:
            near, far = (math.exp(random.uniform(math.log(_SHADE[0]), math.log(_SHADE[1]))) for _ in range(2))
            image = transforms.shade(image, random.uniform(0, math.pi), near, far)
        if random.random() < self.blur:
            image = transforms.blur(image, random.uniform(*_BLUR_SIGMA))
        if random.random() < self.noise:
            image = transforms.noise(image, random.uniform(*_NOISE_SIGMA), random)
        if self.jpeg and random.random() < self.jpeg:
            image = transforms.jpeg(image, int(random.integers(*_JPEG_QUALITY)))
        return image
