"""Plans against plain arithmetic, an adversary and simulated runs; and whether people can read them."""

import math
import re
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from compendium.shared import figures
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from oracles import play, sharp_schedule
from scipy.stats import binomtest

import ebr
from ebr.algorithms.game import drive
from ebr.live.cli import main
from ebr.models import IN_UNIT, REWARDS

EXAMPLE = (3, 6, 0.05)  # the README's
CASES = [EXAMPLE, (2, 1, 0.3), (40, 3, 0.02, 0.2), (12, 5, 0.04, 0.05, 1.5)]
PROBLEMS = ["hard", "spread", "easy"]
every_model = pytest.mark.parametrize("model", REWARDS)
ALIKE = {"Bernoulli": "bounded"}  # of which sharp EBR makes no more
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def schedule(case, model):
    """A survivor's pulls and the widths, by an oracle; Gaussian looks have theirs in tests/theory."""
    if model != "Gaussian":
        return sharp_schedule(*case, model=ALIKE.get(model, model))
    n_arms, deadline, epsilon, delta, sigma = (*case, *(0.05, 0.5)[len(case) - 3 :])
    race = ebr.SharpElasticBatchRacing(deadline, epsilon, delta, sigma, rewards=model)
    return race.pulls_by_round(n_arms).tolist(), race.deciding_widths(n_arms).tolist()


@pytest.fixture(scope="module")
def example():
    return ebr.plan(*EXAMPLE)


@pytest.mark.usefixtures("few_experiments")
@every_model
@every_case
def test_the_rounds_are_plain_arithmetic(case, model):
    n_arms, deadline, *_ = case
    pulls, widths = schedule(case, model)
    plan = ebr.plan(*case, rewards=model)
    assert plan.rounds.index.tolist() == list(range(1, deadline + 1))
    assert plan.rounds["pulls"].tolist() == [
        now - before for before, now in zip([0, *pulls[:-1]], pulls, strict=True)
    ]
    assert plan.rounds["so_far"].tolist() == pulls
    assert plan.rounds["worst_case"].tolist() == [n_arms * b for b in pulls]
    assert plan.rounds["gone"].tolist() == pytest.approx([2 * width for width in widths], rel=1e-9)
    assert plan.totals["at_most"].iloc[0] == plan.totals["typical"].iloc[0] == n_arms * pulls[-1]


class Adversary:
    """Two equally good arms, and one that is worse by the gap but, in every round, lucky by a whole width.

    At the gap that is just gone, the means seen lie evenly around ½, where coins are hardest to tell apart.
    """

    def __init__(self, gap, pulls, widths):
        self.shape, self.gap = (1, 3), gap
        self.widths, self.played = dict(zip(pulls, widths, strict=True)), 0
        self.sums = np.zeros(self.shape)

    def pay(self, pulls):
        self.played += pulls.max()
        width = self.widths[self.played]
        best = 0.5 + width / 2
        means = np.array([[best, best, best - self.gap + width]])
        new = np.where(pulls > 0, self.played * means - self.sums, 0)
        self.sums += new
        return new


@pytest.mark.usefixtures("few_experiments")
@every_model
def test_an_arm_beyond_the_gap_is_gone_after_its_round_however_lucky_and_just_below_it_need_not_be(model):
    case = (3, 4, 0.05)
    plan = ebr.plan(*case, rewards=model)
    pulls, widths = schedule(case, model)
    assert len(set(pulls[:3])) == 3
    below = 0.995 if model in IN_UNIT else 1 - 1e-9  # the reach of a likelihood ratio is a little narrower
    for gone, b in zip(plan.rounds["gone"][:3], pulls[:3], strict=True):
        for gap, is_gone in ((gone + 1e-9, True), (gone * below, False)):
            asked, _ = play(plan.algorithm, Adversary(gap, pulls, widths))
            assert (sum(ask[0, 2] for ask in asked) <= b) == is_gone


def problem(name, n_arms, epsilon, sigma, model):
    gaps = {"hard": [2 * epsilon] * (n_arms - 1), "easy": [0.5] * (n_arms - 1)}
    gaps["spread"] = np.linspace(2 * epsilon, 0.5, n_arms - 1)
    means = [0.75, *(0.75 - np.array(gaps[name]))]
    return ebr.Bernoulli(means) if model in IN_UNIT else ebr.Gaussian(means, sigma)


@every_model
def test_simulated_runs_stay_below_at_most_and_near_typical(model):
    n_arms, deadline, epsilon, delta, sigma = 5, 4, 0.1, 0.2, 0.5
    plan = ebr.plan(n_arms, deadline, epsilon, delta, sigma, model)
    assert plan.totals.index.tolist() == ["worst case", *PROBLEMS]
    for name in PROBLEMS:
        at_most, typical = plan.totals.loc[name]
        arms = problem(name, n_arms, epsilon, sigma, model)
        pulls = ebr.simulate(plan.algorithm, arms, 3000, seed=5).pulls

        def refuted(bound, pulls=pulls):
            return binomtest((pulls > bound).sum(), len(pulls), delta, alternative="greater").pvalue < 1e-6

        assert not refuted(at_most)
        assert refuted(typical / 2)  # planted: so many runs could have refuted a bound
        assert abs(pulls.mean() - typical) < 5 * pulls.std() / math.sqrt(200)


def test_at_most_adds_up_the_pulls_of_the_rounds_after_which_arms_are_gone():
    example = ebr.plan(6, 6, 0.05)
    # Gaps of 0.677, 0.463, 0.316, 0.215, 0.147 and 0.1 are gone after rounds 1 … 6, and with a runner-up
    # worse by 0.1 the race is over after round 5, as 0.147 ≤ 0.1 + ε. On "spread" the arms are worse by 0.1,
    # 0.2, 0.3, 0.4 and 0.5: the last three are gone after rounds 4, 3 and 2, the others and the best stay.
    so_far = example.rounds["so_far"]
    assert example.totals.loc["spread", "at_most"] == 3 * so_far[5] + so_far[4] + so_far[3] + so_far[2]
    assert example.totals.loc["hard", "at_most"] == 6 * so_far[5]
    assert example.totals.loc["easy", "at_most"] == 6 * so_far[2]


@pytest.mark.parametrize("model", [None, "bounded"])
def test_the_deadlines_go_three_rounds_further_and_each_is_a_plan_of_its_own(model):
    longer = ebr.plan(4, 2, 0.1, rewards=model).deadlines
    assert longer.index.tolist() == [1, 2, 3, 4, 5]
    assert longer.columns.tolist() == ["worst case", *PROBLEMS]
    for deadline, row in longer.iterrows():
        pulls, _ = sharp_schedule(4, deadline, 0.1, model=model or "bounded")
        assert row["worst case"] == 4 * pulls[-1]
        assert ebr.plan(4, deadline, 0.1, rewards=model).totals["typical"].tolist() == row.tolist()


def test_the_standard_errors_are_those_of_200_experiments(example):
    assert example.errors.index.tolist() == example.deadlines.index.tolist()
    assert example.errors.columns.tolist() == example.deadlines.columns.tolist()
    assert (example.errors["worst case"] == 0).all()
    for name in PROBLEMS:
        pulls = ebr.simulate(
            ebr.SharpElasticBatchRacing(4, 0.05, 0.05, rewards="bounded"),
            problem(name, 3, 0.05, 0.5, "bounded"),
            200,
        ).pulls.tolist()
        mean = sum(pulls) / 200
        assert example.deadlines.loc[4, name] == pytest.approx(mean)
        spread = sum((x - mean) ** 2 for x in pulls) / 199
        assert example.errors.loc[4, name] == pytest.approx(math.sqrt(spread / 200))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"n_arms": 1}, "n_arms must be an integer of at least 2, got 1"),
        ({"n_arms": 2.5}, "n_arms must be an integer of at least 2, got 2.5"),
        ({"deadline": 0}, "deadline must be an integer of at least 1, got 0"),
        ({"epsilon": 1}, "epsilon must lie in (0, 1), got 1"),
        ({"epsilon": 1e-9}, "epsilon (or delta) must be large enough for at most 2^53 pulls"),
        ({"delta": 0}, "delta must lie in (0, 1), got 0"),
        ({"delta": "small"}, "delta must lie in (0, 1), got 'small'"),
        ({"sigma": -1}, "sigma must be a finite number above 0, got -1"),
        ({"sigma": 0.1, "rewards": "bounded"}, "sigma must be at least 0.5 for bounded rewards, got 0.1"),
        ({"rewards": "good"}, "rewards must be one of 'Bernoulli', 'bounded', 'Gaussian', 'sub-Gaussian'"),
        ({"algorithm": "ebr"}, "algorithm must be one of 'sharp', 'pausing', got 'ebr'"),
    ],
)
def test_bad_arguments_are_named_with_value_and_range(changed, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ebr.plan(**{"n_arms": 6, "deadline": 6, "epsilon": 0.05} | changed)


class Spendthrift:
    """Rewards that keep every arm in the race as long as can be: all are alike to the last bit."""

    def __init__(self, n_arms):
        self.counts, self.after = np.zeros(n_arms, dtype=int), []

    def pay(self, pulls):
        self.counts += pulls[0]
        self.after.append(self.counts.copy())
        return np.floor(pulls * 0.5)


@pytest.mark.usefixtures("few_experiments")
@every_model
@pytest.mark.parametrize("case", [(3, 6, 0.05), (5, 4, 0.2), (4, 1, 0.3), (2, 2, 0.1), (3, 30, 0.2)], ids=str)
def test_no_arm_of_a_pausing_race_is_pulled_more_often_than_its_plan_says_and_the_leader_as_often(
    case, model
):
    n_arms, deadline, *_ = case
    plan = ebr.plan(*case, rewards=model, algorithm="pausing")
    assert isinstance(plan.algorithm, ebr.PausingElasticBatchRacing)
    assert list(plan.rounds) == ["pulls", "so_far", "worst_case"]  # no gap is proved to be gone
    so_far = plan.rounds["so_far"]
    assert plan.rounds["pulls"].tolist() == np.diff(so_far, prepend=0).tolist()
    assert plan.rounds["worst_case"].tolist() == (n_arms * so_far).tolist()
    assert (plan.totals["at_most"] == n_arms * so_far.iloc[-1]).all()
    payer = Spendthrift(n_arms)
    drive(plan.algorithm.play(n_arms, rewards=model), payer.pay)
    for number, counts in enumerate(payer.after, start=1):
        assert counts.max() == so_far[number]
    assert len(payer.after) >= min(deadline, 2)
    for seed in range(30):
        arms = problem("hard", n_arms, case[2] / 2, 0.5, model)
        most = ebr.trace(plan.algorithm, arms, seed).groupby("round")["pulls"].max().cummax()
        assert (most == so_far[most.index]).all()


@every_model
def test_typical_totals_of_a_pausing_race_are_means_of_200_experiments(model):
    plan = ebr.plan(4, 3, 0.1, 0.2, 0.5, model, "pausing")
    assert plan.deadlines.index.tolist() == [1, 2, 3, 4, 5, 6]
    for name in PROBLEMS:
        pulls = ebr.simulate(plan.algorithm, problem(name, 4, 0.1, 0.5, model), 200).pulls
        assert plan.totals.loc[name, "typical"] == plan.deadlines.loc[3, name] == pytest.approx(pulls.mean())
        assert plan.errors.loc[3, name] == pytest.approx(pulls.std(ddof=1) / math.sqrt(200))
        assert (pulls <= plan.totals.loc[name, "at_most"]).all()


def test_a_printed_plan_of_a_pausing_race_says_no_more_than_is_proved():
    said = str(ebr.plan(*EXAMPLE, rewards="Bernoulli", algorithm="pausing"))
    assert max(map(len, said.splitlines())) <= 100
    assert "surely" not in said
    assert "dropped" not in said
    for words in ("pulls of the leader", "leader so far", "all arms so far, at most", "typical"):
        assert words in said


def numbers(table):
    """Every number that a reader must find: counts with thousands, gaps with three digits."""
    return [f"{x:,.0f}" if x >= 10 else f"{x:.3g}" for x in table.to_numpy().ravel()]


@pytest.mark.parametrize("case", [*CASES, (1000, 4, 0.001, 1e-9)], ids=str)
def test_a_printed_plan_fits_a_terminal_and_has_every_number(case):
    plan = ebr.plan(*case)
    lines = str(plan).splitlines()
    assert max(map(len, lines)) <= 100
    confidence = 1 - (case[3] if len(case) > 3 else 0.05)
    assert lines[0].startswith(
        f"{case[0]} arms, at most {case[1]} rounds, an arm within {case[2]:g} of the best"
    )
    assert lines[0].endswith(f" {confidence:g}")
    words = str(plan).split()
    for table in (plan.rounds, plan.totals, plan.deadlines):
        assert set(numbers(table)) <= set(words)
    for column in ("pulls of each survivor", "gap surely gone", "at most", "typical", "worst case"):
        assert column in str(plan)
    assert "np." not in repr(plan)
    assert len(repr(plan)) < 250  # the tables are for print


def test_a_plan_tells_worst_case_typical_and_hardest_apart(example):
    for shown in (str(example), example._repr_html_()):
        said = " ".join(re.sub("<[^>]+>", " ", shown).split())
        assert "Worst case: the most pulls that there can be, proved, not simulated." in said
        assert "mean of 200 simulated experiments; the others are 0.1 worse (hard), 0.5 (easy)" in said
        assert "The hardest of a grid of truths: operating characteristics." in said
    assert "the others are 0.5 worse (hard)" in str(ebr.plan(2, 1, 0.3))
    assert "the others are 20 worse (hard), 25 (easy)" in str(ebr.plan(2, 1, 10, support=(20, 70)))


def test_in_a_notebook_a_plan_is_three_tables(example):
    page = example._repr_html_()
    assert page.count("<table") == page.count("</table>") == 3
    cells = re.findall(r"<t[dh]>([^<]*)</t[dh]>", page)
    assert {*numbers(example.rounds), *numbers(example.totals), *numbers(example.deadlines)} <= set(cells)
    assert {"gap surely gone", "at most", "typical", "worst case", "hard"} <= set(cells)


def boxes(figure):
    """Where each text of the drawn figure lies."""
    figure.draw_without_rendering()
    axis = figure.axes[0]
    texts = [*axis.texts, axis.xaxis.label, axis.yaxis.label]
    for side in (axis.xaxis, axis.yaxis):
        low, high = side.get_view_interval()
        ticks = [*side.get_major_ticks(), *side.get_minor_ticks()]
        texts += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
    return {text.get_text(): text.get_window_extent() for text in texts if text.get_text()}


@pytest.mark.parametrize("use", [lambda: None, figures.style], ids=["matplotlib", "ebr"])
def test_the_plot_is_labelled_and_its_labels_are_seen_whole(example, use):
    with plt.style.context("default", after_reset=True):
        use()
        figure = example.plot()
        found = boxes(figure)
        plt.close(figure)
    axis = figure.axes[0]
    assert isinstance(figure, Figure)
    assert axis.get_xlabel() == "rounds until the deadline"
    assert axis.get_ylabel() == "pulls of all arms"
    assert axis.get_yscale() == "log"
    assert {*example.deadlines, "planned", axis.get_xlabel(), axis.get_ylabel()} <= set(found)
    for name, box in found.items():
        seen = Bbox.intersection(figure.bbox, box)
        assert seen is not None, name
        assert seen.bounds == pytest.approx(box.bounds), name
    for one, other in combinations(found, 2):
        assert not found[one].overlaps(found[other]), (one, other)


def test_the_plot_shows_the_totals_on_an_axis_of_ones_own_too(example):
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


WORDS = ["plan", "--arms", "3", "--deadline", "6", "--epsilon", "0.05"]


def test_a_terminal_prints_the_same(example, capsys):
    assert main(WORDS) == 0
    assert capsys.readouterr().out == f"{example}\n"
    assert main([*WORDS, "--delta", "0.2", "--rewards", "bounded"]) == 0
    assert capsys.readouterr().out == f"{ebr.plan(*EXAMPLE, delta=0.2, rewards='bounded')}\n"
    assert main([*WORDS, "--algorithm", "pausing", "--rewards", "Bernoulli"]) == 0
    pausing = ebr.plan(*EXAMPLE, rewards="Bernoulli", algorithm="pausing")
    assert capsys.readouterr().out == f"{pausing}\n"


def test_a_terminal_draws_the_same(tmp_path, capsys):
    assert main([*WORDS, "--picture", str(tmp_path / "plan.svg")]) == 0
    drawn = (tmp_path / "plan.svg").read_text()
    assert drawn.rstrip().endswith("</svg>")
    for label in ("worst case", "spread", "planned", "rounds until the deadline", "pulls of all arms"):
        assert label in drawn  # matplotlib names in a comment what it draws as outlines


def test_the_readme_shows_this_plan():
    page = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert str(ebr.plan(*EXAMPLE)) in page
    first = ebr.SharpElasticBatchRacing(6, 0.05, 0.05, rewards="bounded").pulls_by_round(3)[0]
    assert f"race.ask()  # {dict.fromkeys('ABC', int(first))}" in page


def test_a_total_beyond_all_integers_is_refused():
    with pytest.raises(
        ValueError, match=r"^epsilon .* at most 2\^63 - 1 pulls of n_arms = 2000 together, got \d"
    ):
        ebr.plan(2000, 1, 4e-8)
    assert (ebr.plan(2000, 1, 5e-6).rounds["worst_case"] > 0).all()


@pytest.fixture
def simulations(monkeypatch):
    """The simulations that a plan asks for, counted and not made."""
    asked = []

    def simulate(algorithm, problem, runs):
        asked.append((algorithm.deadline, problem.n_arms, runs))
        return SimpleNamespace(pulls=np.arange(runs))

    monkeypatch.setattr("ebr.live.typical.simulate", simulate)
    return asked


@pytest.mark.parametrize("algorithm", ["sharp", "pausing"])
def test_a_plan_looks_at_every_deadline_near_and_at_few_far_away(algorithm, simulations):
    for deadline in (1, 6, 17, 20, 21):
        table = ebr.plan(3, deadline, 0.05, algorithm=algorithm).deadlines
        assert table.index.tolist() == list(range(1, deadline + 4))
    simulations.clear()
    longest = 1000  # which the pausing race cannot exceed
    index = ebr.plan(3, longest, 0.05, algorithm=algorithm).deadlines.index.tolist()
    assert index[:22] == [*range(1, 21), 28, 40]
    assert index[-4:] == ([1000, 1001, 1002, 1003] if algorithm == "sharp" else [453, 640, 905, 1000])
    assert max(b / a for a, b in pairwise(index[20:])) < 1.5
    assert [t for t, _, _ in simulations] == [t for t in index for _ in PROBLEMS]
    assert len(index) < 40


def test_on_many_arms_fewer_experiments_are_simulated_and_the_plan_says_how_many(simulations):
    for n_arms, runs in ((10_000, 200), (20_000, 100), (10**6, 2)):
        simulations.clear()
        plan = ebr.plan(n_arms, 2, 0.05)
        assert plan.runs == runs
        assert {asked[1:] for asked in simulations} == {(n_arms, runs)}
        assert f"Typical: the mean of {runs} simulated experiments" in str(plan)
        assert f"Typical: the mean of {runs} simulated experiments" in plan._repr_html_()
        assert plan.deadlines.loc[1, "hard"] == (runs - 1) / 2  # the mean of 0 … runs − 1
        spread = math.sqrt(sum((x - (runs - 1) / 2) ** 2 for x in range(runs)) / (runs - 1))
        assert plan.errors.loc[1, "hard"] == pytest.approx(spread / math.sqrt(runs))
