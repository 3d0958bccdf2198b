"""The reader's own race: the schedule, the fate of each arm, and sliders in a Jupyter server."""

import math

import pytest
from compendium.setting import own_race

START = {"n_arms": 4, "deadline": 3, "epsilon": 0.1, "delta": 0.05, "gap": 0.1, "seed": 1}


def test_an_arm_is_pulled_as_the_schedule_says_by_its_last_round():
    tables = own_race.race(**START)
    schedule = [math.ceil(20 * math.log(12 / 0.05) * 0.1 ** (-2 * t / 3)) for t in (1, 2, 3)]
    assert tables["schedule"]["pulls"].tolist() == schedule
    arms = tables["arms"]
    assert arms["pulls"].tolist() == [schedule[last - 1] for last in arms["round"]]
    assert arms["passive"].tolist() == [4 * math.ceil(20 * math.log(4 / 0.05) / 0.01)] * 4


@pytest.mark.parametrize(
    ("gap", "fates", "raced"),
    [(0.28, ["returned", "dropped", "dropped", "dropped"], 1), (0.0, ["last round"] * 3 + ["returned"], 3)],
)
def test_far_arms_fall_in_round_1_and_equal_ones_stay_to_the_last(gap, fates, raced):
    tables = own_race.race(**START | {"gap": gap})
    assert sorted(tables["arms"]["fate"]) == sorted(fates)
    assert tables["schedule"]["raced"].sum() == tables["arms"]["round"].max() == raced


def test_sliders_redraw_the_picture_and_are_made_for_a_jupyter_server_alone(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert own_race.panel(**START) is None
    monkeypatch.setenv("JPY_SESSION_NAME", "01-setting.ipynb")
    *sliders, picture = own_race.panel(**START).children
    assert [slider.value for slider in sliders] == list(START.values())[:5]
    for slider, value in zip(sliders[::4], (5, 0.2), strict=True):
        before = picture.value
        slider.value = value
        assert bytes(picture.value).startswith(b"\x89PNG")
        assert picture.value != before
