"""The table of looks: with any colour blindness any two algorithms can be told apart."""

import ast
from itertools import combinations

import numpy as np
import pytest
from compendium.shared import ledger
from compendium.shared.lineup import LOOKS, Look
from matplotlib.colors import to_rgb

# Machado, Oliveira and Fernandes (IEEE Trans. Vis. Comput. Graph. 15, 2009, 1291), severity 1, on linear RGB.
SIGHTS = {
    "all colours": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
APART = 15  # ΔE, CIEDE2000
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])  # D65
# Modules that still give algorithms looks of their own; to be removed here when their figures are redrawn.
OWN_LOOKS = {"futile_trials", "search_methods", "trial_figures"}


def lab(color, sight):
    """A colour in CIELAB, as seen with that kind of sight."""
    shown = np.array(to_rgb(color))
    linear = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    ratio = XYZ @ np.clip(np.array(SIGHTS[sight]) @ linear, 0, 1) / WHITE
    f = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def difference(one, other):
    """ΔE by CIEDE2000, from Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean**7 / (mean**7 + 25**7))
    c1, c2 = np.hypot(stretch * a1, b1), np.hypot(stretch * a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, stretch * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    lightness, chroma, hue = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    middle, mean = (l1 + l2) / 2, (c1 + c2) / 2
    between = (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    cosines = [np.cos(np.radians(k * between - by)) for k, by in ((1, 30), (2, 0), (3, -6), (4, 63))]
    t = 1 + np.dot([-0.17, 0.24, 0.32, -0.2], cosines)
    lightness /= 1 + 0.015 * (middle - 50) ** 2 / np.sqrt(20 + (middle - 50) ** 2)
    chroma /= 1 + 0.045 * mean
    hue /= 1 + 0.015 * mean * t
    around = np.exp(-(((between - 275) / 25) ** 2))
    rotation = -2 * np.sqrt(mean**7 / (mean**7 + 25**7)) * np.sin(np.radians(60 * around))
    return np.sqrt(lightness**2 + chroma**2 + hue**2 + rotation * chroma * hue)


def alike(looks):
    """Pairs that look alike, and for which sight: similar colour, and the same marker or dash."""
    return [
        (one, other, sight)
        for one, other in combinations(looks, 2)
        for sight in SIGHTS
        if difference(lab(looks[one].color, sight), lab(looks[other].color, sight)) < APART
        and (looks[one].marker == looks[other].marker or looks[one].dash == looks[other].dash)
    ]


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.5, 0), (61, -5, 29), 22.8977),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_differences_of_colour_are_those_that_sharma_wu_and_dalal_print(one, other, published):
    assert difference(one, other) == pytest.approx(published, abs=1e-4)
    assert difference(other, one) == pytest.approx(published, abs=1e-4)


def test_no_two_algorithms_look_alike_to_anybody():
    assert alike(LOOKS) == []


def test_all_markers_differ():
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)


def test_a_red_and_a_green_are_alike_to_those_who_cannot_tell_them_unless_marker_and_dash_differ():
    red, green = Look("#A05000", "o", "-"), Look("#557000", "s", "-")
    found = alike({"red": red, "green": green})
    assert ("red", "green", "deutan") in found
    assert ("red", "green", "all colours") not in found
    assert alike({"red": red, "green": green._replace(dash="--")}) == []


def test_an_algorithm_has_its_look_from_the_table():
    makers = {
        path.stem
        for path in (ledger.ROOT / "notebooks" / "compendium").glob("*/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Look", "lineup.Look")
    }
    assert makers == OWN_LOOKS | {"lineup"}
