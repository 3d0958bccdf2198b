"""The open choices: each alternative replaces its own curve only, and the verdicts that depend on one."""

import pytest
from compendium.choices import alternatives
from compendium.shared import lineup

import ebr


def test_an_alternative_takes_the_place_of_its_own_curve_alone(fulfilled):
    own = (fulfilled["algorithm"] == "EBR") & (fulfilled["sweep"] == "T")
    mixed = alternatives.replaced(fulfilled, fulfilled[own].assign(pulls=7.0, choice="A2"))
    assert (mixed.loc[mixed["algorithm"] == "EBR", "pulls"] == 7.0).all()
    assert set(mixed["sweep"]) == {"T"}
    assert len(mixed) == 2 * 3 * 5
    unchanged = dict.fromkeys(["Setup 1 min", "Setup 1 max", "Setup 2 min", "Setup 2 max"], 1.0)
    assert alternatives.factor(fulfilled, mixed, "AE") == unchanged


def test_every_alternative_differs_from_the_default_that_it_replaces():
    default = {tuple(p.labels.values()): p.algorithm for p in lineup.points([2], [0.1])}
    points = alternatives.points([2], [0.1])
    for point in points:
        labels = {key: value for key, value in point.labels.items() if key != "choice"}
        assert point.algorithm != default[tuple(labels.values())], point.labels
    assert {p.labels["choice"] for p in points} == {*alternatives.ALTERNATIVES, "A6b"}
    # AE that knows the gap is told the gap of each setup.
    told = {p.labels["setup"]: p.algorithm for p in points if p.labels["choice"] == "A6b"}
    epsilons = {setup: algorithm.epsilon for setup, algorithm in told.items()}
    assert epsilons == pytest.approx({"Setup 1": 0.8 / 99, "Setup 2": 0.25 / 99})
    assert {type(algorithm) for algorithm in told.values()} == {ebr.AggressiveElimination}


def test_thinning_keeps_every_second_value(fulfilled):
    thinned = alternatives.thinned(fulfilled)
    assert set(thinned.query("sweep == 'T'")["deadline"]) == {1, 50}
    assert set(thinned.query("sweep == 'ε'")["epsilon"]) == {0.1}


def test_a_verdict_hangs_on_a_choice_that_changes_it(fulfilled):
    costly = fulfilled[fulfilled["algorithm"] == "kδER"].assign(pulls=lambda t: t["pulls"] * t["deadline"])
    tables = {"A2": fulfilled, "A5": alternatives.replaced(fulfilled, costly)}
    (row,) = alternatives.hanging(fulfilled, tables).itertuples(index=False)
    assert row[:4] == ("A5", "C27", "holds", "fails as stated")
    assert row.value == 50
