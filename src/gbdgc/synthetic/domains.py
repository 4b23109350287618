"""SceneDomain: a latent domain, that is, a named combination of place, people, camera, light and lens."""

from dataclasses import dataclass

from gbdgc.errors import InputError

Range = tuple[float, float]
Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class SceneDomain:
    """The common properties of one latent domain's pictures; each picture draws its values from the ranges.

    Colours are RGB from 0 to 1. ``counts`` are the 5 %, 50 % and 95 % points of the number of people, ``density`` is
    people per square metre, ``pitch`` and ``view`` (the horizontal angle of view) are degrees, ``fog`` is per metre;
    ``umbrellas`` and ``bare`` are the shares of people who carry one and who wear little.
    """

    name: str
    ground: str
    backdrop: str
    wardrobe: str
    clutter: tuple[str, ...]
    counts: tuple[float, float, float]
    density: Range
    altitude: Range
    pitch: Range
    view: Range
    slope: float = 0.0
    facing: str = "any"
    clutter_count: tuple[int, int] = (3, 10)
    umbrellas: float = 0.0
    bare: float = 0.0
    ambient: Colour = (0.8, 0.8, 0.85)
    sun: float = 0.0
    sun_height: Range = (30.0, 60.0)
    sky: tuple[Colour, Colour] = ((0.35, 0.55, 0.9), (0.8, 0.88, 0.95))
    lamps: int = 0
    lamp_colour: Colour = (1.0, 0.75, 0.4)
    lit_windows: float = 0.0
    fog: Range = (0.0, 0.0)
    rain: float = 0.0
    snow: float = 0.0
    wetness: float = 0.0
    tint: Colour = (1.0, 1.0, 1.0)
    saturation: float = 1.0
    contrast: float = 1.0
    exposure: Range = (0.9, 1.1)
    blur: Range = (0.3, 0.6)
    noise: Range = (1.5, 3.0)
    quality: tuple[int, int] = (82, 94)


_STREET = ("car", "car", "van", "pole", "bin", "barrier", "tree")

DOMAINS: dict[str, SceneDomain] = {
    domain.name: domain
    for domain in (
        SceneDomain(
            "plaza-day", "tiles", "city", "summer", ("tree", "lamp", "bench", "bin", "parasol", "pole", "bush"),
            counts=(12, 90, 380), density=(0.12, 0.5), altitude=(4, 12), pitch=(14, 34), view=(48, 66),
            ambient=(0.72, 0.76, 0.84), sun=0.85, quality=(88, 95),
        ),
        SceneDomain(
            "street-night", "asphalt", "city", "summer", _STREET,
            counts=(4, 45, 220), density=(0.06, 0.35), altitude=(4, 9), pitch=(10, 26), view=(50, 70),
            ambient=(0.17, 0.18, 0.25), lamps=6, lit_windows=0.35, sky=((0.01, 0.012, 0.03), (0.06, 0.045, 0.05)),
            tint=(1.1, 0.98, 0.82), exposure=(1.0, 1.4), noise=(6, 11), blur=(0.5, 1.0), quality=(55, 75),
        ),
        SceneDomain(
            "stadium-dense", "stands", "stand", "fans", ("barrier", "pole"), clutter_count=(0, 3),
            counts=(350, 1100, 2800), density=(1.1, 1.7), altitude=(8, 60), pitch=(8, 20), view=(30, 46), slope=0.5,
            facing="front", ambient=(0.95, 0.95, 1.0), sun=0.6, sun_height=(45, 70), contrast=1.15, saturation=1.1,
            noise=(2, 4), quality=(70, 88),
        ),
        SceneDomain(
            "park-fog", "grass", "trees", "winter", ("tree", "tree", "bush", "bench", "lamp"),
            counts=(0.15, 25, 140), density=(0.03, 0.2), altitude=(3, 8), pitch=(8, 22), view=(44, 60),
            ambient=(0.98, 1.03, 1.05), sky=((0.62, 0.66, 0.68), (0.72, 0.75, 0.76)), fog=(0.012, 0.03),
            tint=(0.96, 1.0, 1.03), saturation=0.65, contrast=0.85, blur=(0.6, 1.1), quality=(75, 90),
        ),
        SceneDomain(
            "beach-glare", "sand", "sea", "summer", ("parasol", "parasol", "parasol", "bench", "stall"),
            clutter_count=(5, 16), bare=0.6,
            counts=(40, 260, 900), density=(0.15, 0.7), altitude=(6, 16), pitch=(18, 42), view=(44, 62),
            ambient=(0.78, 0.78, 0.78), sun=0.95, sun_height=(40, 65), tint=(1.06, 1.0, 0.9), contrast=0.95,
            exposure=(1.0, 1.2), noise=(1, 2), quality=(80, 92),
        ),
        SceneDomain(
            "rain-dusk", "asphalt", "city", "winter", ("car", "lamp", "pole", "bin"), umbrellas=0.25,
            counts=(15, 110, 420), density=(0.15, 0.6), altitude=(4, 11), pitch=(14, 30), view=(48, 66),
            ambient=(0.48, 0.53, 0.68), lamps=5, lit_windows=0.3, sky=((0.1, 0.13, 0.22), (0.3, 0.28, 0.32)),
            fog=(0.004, 0.008), rain=1.0, wetness=0.8, tint=(0.92, 0.98, 1.12), saturation=0.8, blur=(0.6, 1.1),
            noise=(4, 7), quality=(65, 82),
        ),
        SceneDomain(
            "snow-market", "snow", "city", "winter", ("stall", "stall", "tree", "lamp", "bin"),
            counts=(20, 150, 600), density=(0.25, 0.9), altitude=(4, 12), pitch=(16, 34), view=(46, 62),
            ambient=(1.18, 1.22, 1.3), sky=((0.66, 0.69, 0.74), (0.78, 0.8, 0.83)), fog=(0.004, 0.01), snow=1.0,
            tint=(0.97, 1.0, 1.05), saturation=0.85, exposure=(0.9, 1.05), quality=(78, 92),
        ),
        SceneDomain(
            "indoor-hall", "marble", "hall", "summer", ("pole", "bench", "barrier", "bin", "stall"),
            counts=(25, 160, 650), density=(0.25, 1.0), altitude=(4, 10), pitch=(16, 36), view=(54, 74),
            ambient=(1.12, 1.03, 0.86), wetness=0.2, tint=(1.06, 1.0, 0.88), blur=(0.4, 0.8), noise=(3, 6),
            quality=(70, 86),
        ),
        SceneDomain(
            "concert-night", "asphalt", "stage", "fans", ("barrier", "pole"), clutter_count=(0, 3),
            counts=(250, 800, 2400), density=(1.8, 3.0), altitude=(4, 18), pitch=(8, 22), view=(36, 52), facing="back",
            ambient=(0.26, 0.2, 0.34), lamps=7, lamp_colour=(1.0, 0.55, 1.1),
            sky=((0.0, 0.0, 0.01), (0.05, 0.02, 0.07)),
            tint=(1.05, 0.92, 1.1), saturation=1.25, contrast=1.2, exposure=(1.0, 1.5), noise=(6, 10),
            blur=(0.6, 1.1), quality=(60, 80),
        ),
    )
}  # fmt: skip
"""All latent domains by name."""

SOURCE_DOMAINS = ("plaza-day", "street-night", "stadium-dense", "park-fog", "beach-glare")
"""The domains that the drawn source data set mixes."""
TARGET_DOMAINS = ("rain-dusk", "snow-market", "indoor-hall", "concert-night")
"""Domains that the source does not have."""


def find_domain(domain: SceneDomain | str) -> SceneDomain:
    """Return the domain of that name."""
    if isinstance(domain, SceneDomain):
        return domain
    if domain not in DOMAINS:
        raise InputError(f"no drawn domain is called {domain!r}", next_step=f"there are: {', '.join(DOMAINS)}")
    return DOMAINS[domain]
