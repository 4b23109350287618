"""Which of a label file's names are people: an annotation tool marks cars and dogs in the same file."""

from collections.abc import Iterable
from pathlib import Path

from gbdgc.errors import InputError

_HEADS = frozenset({"head", "heads", "face", "faces"})
_PEOPLE = frozenset(
    {"person", "persons", "people", "pedestrian", "pedestrians", "human", "humans", "crowd", "man", "men", "woman"}
    | {"women", "child", "children", "boy", "girl", "adult", "rider"}
)


def people_among(names: Iterable[str], source: Path) -> frozenset[str]:
    """Return the names that stand for one person each.

    The only name of a file, whatever it is. Of several: head or face where there is one, as a person with both a
    head and a body marked counts once; else all that mean people.
    """
    known = frozenset(names)
    for words in (_HEADS, _PEOPLE):
        if found := frozenset(name for name in known if name.strip().lower() in words):
            return found
    if len(known) <= 1:
        return known
    advice = "give people the label 'head' or 'person'"
    raise InputError(source, f"which of its labels are people? It has {', '.join(map(repr, sorted(known)))}", advice)
