"""The open choices: each alternative in place of its own curve, and the verdicts that hang on one."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from compendium.choices import alternatives
from compendium.shared import lineup

import ebr


def made_up():
    """Pulls that no algorithm needs, at T = 1, 2, 50 and two ε."""
    pulls = {"EBR": 1.0, "kδER": 600.0, "AE": 300.0, "sequential": 0.5, "passive": 200.0}
    places = [("T", t, 0.01) for t in (1, 2, 50)] + [("ε", 15, e) for e in (0.1, 0.3)]
    return pd.DataFrame(
        {"sweep": sweep, "setup": setup, "algorithm": name, "deadline": deadline, "epsilon": epsilon}
        | {"pulls": number + deadline * (name == "AE"), "error": 0.0, "failures": 0, "runs": 100}
        for setup in lineup.SETUPS
        for sweep, deadline, epsilon in places
        for name, number in pulls.items()
    )


def test_an_alternative_takes_the_place_of_its_own_curve_alone():
    other = made_up()
    other = other[(other["algorithm"] == "EBR") & (other["sweep"] == "T")].assign(pulls=7.0, choice="A2")
    mixed = alternatives.replaced(made_up(), other)
    assert (mixed.loc[mixed["algorithm"] == "EBR", "pulls"] == 7.0).all()
    assert set(mixed["sweep"]) == {"T"}
    assert len(mixed) == 2 * 3 * 5
    assert alternatives.factor(made_up(), mixed, "AE") == dict.fromkeys(
        ["Setup 1 min", "Setup 1 max", "Setup 2 min", "Setup 2 max"], 1.0
    )


def test_every_alternative_differs_from_the_default_that_it_replaces():
    default = {tuple(p.labels.values()): p.algorithm for p in lineup.points([2], [0.1])}
    for point in alternatives.points([2], [0.1]):
        labels = {key: value for key, value in point.labels.items() if key != "choice"}
        assert point.algorithm != default[tuple(labels.values())], point.labels
    assert {p.labels["choice"] for p in alternatives.points([2], [0.1])} == {
        *alternatives.ALTERNATIVES,
        "A6b",
    }


def test_thinning_keeps_every_second_value():
    assert set(alternatives.thinned(made_up()).query("sweep == 'T'")["deadline"]) == {1, 50}
    assert set(alternatives.thinned(made_up()).query("sweep == 'ε'")["epsilon"]) == {0.1}


def test_ae_with_the_gap_is_told_each_setups_own():
    told = {
        p.labels["setup"]: p.algorithm.epsilon
        for p in alternatives.points([2], [0.1])
        if p.labels["choice"] == "A6b"
    }
    assert told == pytest.approx({"Setup 1": 0.8 / 99, "Setup 2": 0.25 / 99})
    assert isinstance(alternatives.points([2], [0.1])[-1].algorithm, ebr.AggressiveElimination)


def test_a_verdict_hangs_on_a_choice_that_changes_it():
    default = made_up()
    costly = default[default["algorithm"] == "kδER"].assign(pulls=lambda t: t["pulls"] * t["deadline"])
    tables = {"A2": default, "A5": alternatives.replaced(default, costly)}
    (row,) = alternatives.hanging(default, tables).itertuples(index=False)
    assert row[:4] == ("A5", "C27", "holds", "fails as stated")
    assert row.value == 50


def test_a_small_multiple_shows_default_alternative_and_what_they_are_compared_with():
    default = made_up()
    doubled = default.assign(pulls=2 * default["pulls"])
    figure = alternatives.draw(default, dict.fromkeys(alternatives.VIEWS, doubled))
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:2] == ["A1a: EBR (grey: sequential)", "A1b: EBR (grey: sequential)"]
    assert len(titles) == len(alternatives.VIEWS)
    for axis, view in zip(figure.axes, alternatives.VIEWS.values(), strict=True):
        for beside, usual, other in (axis.lines[:3], axis.lines[3:]):
            assert (usual.get_ls(), other.get_ls(), beside.get_color()) == ("-", "--", "0.7")
            assert usual.get_color() == other.get_color() == lineup.LOOKS[view.algorithm].color
            assert (other.get_ydata() == 2 * usual.get_ydata()).all()
    plt.close("all")
