"""Pictures of a race and of a plan: they show their tables and can be read."""

import re
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from compendium.shared import figures
from live.races import ARMS, play, rewards
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

import ebr
from ebr.live.race import Race

ALGORITHM = ebr.ElasticBatchRacing(deadline=3, epsilon=0.4, delta=0.4)


def legible(figure, texts):
    """The drawn texts; each must lie within the figure and overlap no other."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
    for name, box in boxes:
        seen = Bbox.intersection(figure.bbox, box)
        assert seen is not None, name
        assert seen.bounds == pytest.approx(box.bounds, abs=0.5), name
    for (one, box), (other, beside) in combinations(boxes, 2):
        assert not box.overlaps(beside), (one, other)
    return {name for name, _ in boxes}


def labels(axis):
    """The drawn texts of an axis."""
    texts = [*axis.texts, axis.xaxis.label, axis.yaxis.label]
    for side in (axis.xaxis, axis.yaxis):
        low, high = side.get_view_interval()
        ticks = [*side.get_major_ticks(), *side.get_minor_ticks()]
        texts += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    return texts


@pytest.fixture(scope="module")
def example():
    return ebr.plan(3, 6, 0.05)


def test_the_figure_of_a_race_shows_every_round_and_who_is_out(path, unflushed):
    settings, figures = dict(plt.rcParams), plt.get_fignums()
    with Race(ALGORITHM, ARMS, path) as race:
        race.plot()  # also before any reward is known
        race.tell(rewards(race))
        race.tell(rewards(race))
        figure = race.plot()
        drawn = figure.axes[0].containers
        for bars, arms, marker in zip(drawn, (ARMS[:2], ARMS[2:]), "os", strict=True):
            rows = race.history[race.history["arm"].isin(arms)]
            assert bars.lines[0].get_xdata().tolist() == rows["mean"].tolist()
            ends = np.array([bar[:, 0] for bar in bars.lines[2][0].get_segments()])
            np.testing.assert_allclose(ends, rows[["lower", "upper"]])
            assert bars.lines[0].get_marker() == marker
        assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["in the race", "out"]
        assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ARMS
        assert figure.get_size_inches()[0] == 3.4
        own, axis = plt.subplots()
        assert race.plot(axis) is own
        plt.close(own)
        play(race)
        axis = race.plot().axes[0]
        assert [text.get_text() for text in axis.get_legend().get_texts()] == ["recommended", "others"]
        assert [len(bars.lines[0].get_xdata()) for bars in axis.containers] == [
            (race.history["arm"] == race.recommendation).sum(),
            (race.history["arm"] != race.recommendation).sum(),
        ]
    assert plt.get_fignums() == figures
    assert dict(plt.rcParams) == settings


@pytest.mark.parametrize("use", [lambda: None, figures.style], ids=["matplotlib", "ebr"])
def test_the_plot_of_a_plan_is_labelled_and_its_labels_are_seen_whole(example, use):
    with plt.style.context("default", after_reset=True):
        use()
        figure = example.plot()
        figure.draw_without_rendering()
        found = legible(figure, labels(figure.axes[0]))
        plt.close(figure)
    axis = figure.axes[0]
    assert isinstance(figure, Figure)
    assert axis.get_xlabel() == "rounds until the deadline"
    assert axis.get_ylabel() == "pulls of all arms"
    assert axis.get_yscale() == "log"
    assert {*example.deadlines, "planned", axis.get_xlabel(), axis.get_ylabel()} <= found


def test_the_plot_of_a_plan_shows_the_totals_on_an_axis_of_ones_own_too(example):
    figure, axis = plt.subplots()
    assert example.plot(axis) is figure
    curves = {tuple(drawn.lines[0].get_ydata()) for drawn in axis.containers}
    assert curves == {tuple(example.deadlines[name]) for name in example.deadlines}
    for drawn, name in zip(axis.containers, example.deadlines, strict=True):
        (bars,) = drawn.lines[2]
        lengths = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
        assert lengths == pytest.approx((2 * example.errors[name]).tolist())
    assert [line.get_xdata() for line in axis.lines if len(line.get_xdata()) == 2] == [[6, 6]]
    plt.close(figure)


def test_in_a_picture_of_a_race_every_number_can_be_read(path, unflushed):
    arms = ["a treatment with a rather long name, twice daily", "B", "C"]
    plan = ebr.plan(3, 6, 2e-6, support=(0, 2e-5), algorithm="sharp", rewards=None)
    with plan.start(path, arms) as race:
        while not race.finished:
            race.tell({arm: (n, 1e-5 * n) for arm, n in race.ask().items()})
        figure = race.plot()
    figure.draw_without_rendering()
    axis = figure.axes[0]
    assert len(axis.texts) == len(race.history) > 9
    assert all(text.get_fontsize() >= 7 for text in labels(axis))
    legible(figure, axis.texts)
    assert figure.get_size_inches()[0] == 7  # a long name needs room
    assert axis.xaxis.get_offset_text().get_text() == ""
    shown = [float(tick.get_text().replace("−", "-")) for tick in axis.get_xticklabels()]
    assert shown == pytest.approx(axis.get_xticks().tolist(), abs=1e-9)


def test_in_a_picture_of_a_plan_ticks_are_plain_and_long_truths_are_on_one_line():
    truths = [[0.75, 0.74, 0.73, 0.72, 0.71, 0.7], [0.6, 0.5, 0.5, 0.45, 0.4, 0.35]]
    figure = ebr.plan(6, 30, 0.05, truths=truths, runs=2, algorithm="sharp").plot()
    figure.draw_without_rendering()
    axis = figure.axes[0]
    names = {text.get_text() for text in axis.texts}
    assert {"0.75, 0.74, 0.73, 0.72, 0.71, 0.7", "0.6, 0.5, 0.5, 0.45, 0.4, 0.35"} <= names
    legible(figure, labels(axis))
    low, high = axis.get_ylim()
    inside = [
        tick.label1.get_text() for tick in axis.yaxis.get_major_ticks() if low <= tick.get_loc() <= high
    ]
    assert len(inside) > 1
    assert all(re.fullmatch(r"[\d,]+", words) for words in inside)
    assert len(axis.get_xticks()) <= 13


def test_a_terminal_draws_the_race_as_it_stands(path, run, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        race.tell(rewards(race))
        before = path.read_bytes()
        drawn = path.with_name("own.svg")
        assert run("plot", path, "--to", drawn) == (0, f"drawn in {drawn}\n")
        assert "<svg" in drawn.read_text()
        usual = path.with_suffix(".png")
        assert run("plot", path) == (0, f"drawn in {usual}\n")
        assert usual.read_bytes().startswith(b"\x89PNG")
        assert path.read_bytes() == before
