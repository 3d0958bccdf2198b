"""What a race reports: intervals that hold together, and a page with the race's own numbers and names."""

import base64
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import mistune
import numpy as np
import pytest
from live.races import Coin, lines_of
from scipy.stats import beta, binom, norm

import ebr
from ebr.live.journal import Journal
from ebr.live.race import Race
from ebr.live.report import intervals_of, rounded_up
from ebr.live.terms import Scale, Terms

SHARP = ebr.SharpElasticBatchRacing(6, 0.05, 0.05)
AB = ("A", "B")
PAUSING = ebr.PausingElasticBatchRacing(5, 0.1, 0.2, rewards="Bernoulli")
ODD = ["A|B", "<b>bold</b>", "_C_ & *D*", "Ä `x` \\ " + "long " * 20 + "."]
MEANS = [0.9, 0.55, 0.5, 0.2]


def told(race, means=MEANS):
    """Ones and zeros in proportions as near to the means as possible."""
    by_arm = dict(zip(race.arms, means, strict=False))
    return {arm: (pulls, round(by_arm[arm] * pulls)) for arm, pulls in race.ask().items()}


def raced(algorithm, arms, path, rounds=math.inf, means=MEANS, **options):
    """A race that is played for some rounds, or to its end, and closed."""
    with Race(algorithm, arms, path, **options) as race:
        while not race.finished and race.round <= rounds:
            race.tell(told(race, means))
    return Race.open(path, readonly=True)


class Page(HTMLParser):
    """A page's table cells and its tags."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.tags = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


@pytest.mark.parametrize(
    ("algorithm", "told", "support", "method", "looks"),
    [
        (SHARP, "Bernoulli", (0, 1), "exact", 6),
        (SHARP, "bounded", (0, 1), "KL", 6),
        (SHARP, None, (0, 1), "KL", 6),
        (ebr.SharpElasticBatchRacing(6, 0.05, 0.05, rewards="sub-Gaussian"), "bounded", (0, 1), "KL", 6),
        (ebr.SharpElasticBatchRacing(6, 0.05, 0.05, 0.1), "bounded", (0, 1), "Hoeffding", 6),
        (ebr.SharpElasticBatchRacing(6, 0.05, 0.05, 5), "sub-Gaussian", (-5, 5), "KL", 6),
        (ebr.SharpElasticBatchRacing(6, 0.05, 0.05, 4), "sub-Gaussian", (-5, 5), "Hoeffding", 6),
        (ebr.SharpElasticBatchRacing(6, 0.05, 0.05, rewards="Gaussian"), "sub-Gaussian", None, "normal", 6),
        (ebr.SharpElasticBatchRacing(6, 0.05, 0.05, rewards="Gaussian"), "bounded", (0, 1), "KL", 6),
        (SHARP, "Gaussian", (0.2, 0.7), "KL", 6),  # bounded rewards are not normal
        (ebr.PausingElasticBatchRacing(4, 0.05, 0.05), "Bernoulli", (0, 1), "exact", 4),
        (ebr.ElasticBatchRacing(3, 0.1, 0.1), "sub-Gaussian", None, "Hoeffding", 3),
        (ebr.Passive(0.1, 0.1), "bounded", (0, 1), "KL", 1),
        (ebr.SequentialRacing(0.1, 0.1), "bounded", (0, 1), "KL", None),
        (ebr.DeltaElimination(3, 0.1, 0.1), "bounded", (0, 1), "KL", None),
    ],
)
def test_the_intervals_are_those_that_what_is_known_allows(algorithm, told, support, method, looks):
    chosen = intervals_of(Terms(algorithm, AB, support, rewards=told))
    assert (chosen.method, chosen.looks) == (method, looks)
    assert (chosen.delta, chosen.sigma, chosen.n_arms) == (algorithm.delta, algorithm.sigma, 2)


def test_in_units_of_ones_own_sigma_is_scaled_and_with_losses_counts_may_not_be_fixed():
    grams = intervals_of(Terms(SHARP, AB, (20, 70), Scale(20, 70), "bounded"))
    assert (grams.method, grams.sigma, grams.support) == ("KL", 25, (20, 70))
    # A certified race looks when all survivors have enough, so with losses its counts depend on survivors.
    certified = ebr.CertifiedElasticBatchRacing(2, (2, 4), (3.0,), 0.4, 0.1)
    for algorithm, looks in ((SHARP, 6), (PAUSING, None), (certified, None)):
        terms = Terms(algorithm, AB, rewards="Bernoulli")
        assert intervals_of(terms).looks == algorithm.deadline
        assert intervals_of(terms, losses=True).looks == looks


def test_zeros_and_ones_have_exact_intervals_in_every_round(path, unflushed):
    with raced(PAUSING, ["A", "B", "C"], path, means=[0.8, 0.75, 0.1]) as race:
        history, intervals = race.history, race.intervals
    assert history["round"].max() > 1
    for row in history.itertuples():
        ones = round(row.mean * row.total)
        miss = 0.2 / (3 * 5)
        assert row.lower == pytest.approx(beta.ppf(miss / 2, ones, row.total - ones + 1))
        assert row.upper == pytest.approx(beta.ppf(1 - miss / 2, ones + 1, row.total - ones))
    last = history.groupby("arm").last()
    for name in ("mean", "lower", "upper"):
        assert intervals[name].to_dict() == last[name].to_dict()


def test_an_ended_race_is_reported_whole(path, unflushed):
    race = raced(SHARP, ["A", "B", "C"], path, means=[0.9, 0.75, 0.1], rewards="Bernoulli")
    report = race.report()
    text = str(report)
    for said in (
        "sharp elastic batch racing on 3 arms in at most 6 rounds",
        "the arm with the largest mean; differences below ε = 0.05 do not matter",
        "each is 0 or 1",
        "The recommended arm is within 0.05 of the best with probability at least 0.95.",
        f"Rounds {race.round} of at most 6 Pulls {race.history['pulls'].sum():,} Result recommended: A",
        f"ebr {report.facts['Software'].split()[1]}",
        f"trial.jsonl, {len(path.read_text().splitlines())} lines",
        Journal(path, readonly=True).lines[-1]["checksum"],
        "exact (Clopper–Pearson) intervals of the mean so far",
        "for all arms and rounds with probability at least 0.95 (union over 3 arms × 6 rounds)",
        "The mean of a selected arm tends to be too high",
    ):
        assert said in " ".join(text.split())
    assert not {"late", "missing", "Differences", "ElasticBatchRacing("} & set(text.split())
    assert max(map(len, text.splitlines())) <= 100
    for row in race.intervals.itertuples():
        assert f"{row.mean:.4f} {row.lower:.4f} {row.upper:.4f}" in text
    standing = report.tables["Arms"]["standing"].tolist()
    last = race.history.groupby("arm")["round"].max()
    for arm, said in zip("ABC", standing, strict=True):
        dropped = f"dropped after round {last[arm]}" if last[arm] < race.round else "not recommended"
        assert said == ("recommended" if arm == race.recommendation else dropped)
    assert standing[2] == "dropped after round 1"


def test_a_running_race_is_reported_so_far(path, unflushed):
    begun = raced(SHARP, ["A", "B", "C"], path, rounds=0).report()
    assert "0 of at most 6 so far" in str(begun)
    assert begun.tables["Arms"]["mean"].isna().all()
    race = raced(SHARP, ["A", "B", "C"], path, rounds=1, means=[0.5, 0.5, 0.02])  # the same race, continued
    assert not race.finished
    text = str(race.report())
    assert re.search(
        r"Rounds +1 of at most 6 so far\nPulls +234 so far\nResult +recommended: nothing yet\n", text
    )
    assert (text.count("in the race\n"), text.count(" dropped after round 1\n")) == (2, 1)


def test_names_are_names_in_every_format(path, unflushed):
    report = raced(SHARP, ODD, path).report()
    page = Page(report.html())
    assert set(ODD) <= {cell.strip() for cell in page.cells}
    assert "b" not in page.tags
    assert report.html().startswith("<!DOCTYPE html>")
    assert report._repr_html_() in report.html()
    drawn = Page(mistune.create_markdown(plugins=["table"])(report.markdown()))
    assert set(ODD) <= {cell.strip() for cell in drawn.cells}
    told = len(report.tables["Round by round"])
    assert len(drawn.cells) == 2 + 2 * len(report.facts) + 7 * (1 + len(ODD)) + 8 * (1 + told)
    assert drawn.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p", "strong"}
    assert all(name in str(report) for name in ODD)


@pytest.mark.parametrize(
    ("algorithm", "options", "says"),
    [
        (ebr.ElasticBatchRacing(2, 0.4, 0.4), {}, "within 0.4 of the best with probability at least 0.6"),
        (ebr.AggressiveElimination(2, 0.3, 0.1), {}, "If all others are worse by 0.3 or more"),
        (ebr.DeltaElimination(2, 0.5, 0.2), {}, "within 0.5 of the best with probability at least 0.8"),
        (ebr.Passive(0.3, 0.1), {}, "1 of at most 1"),
        (ebr.SequentialRacing(0.5, 0.5), {}, "union over all counts"),
        (ebr.SharpElasticBatchRacing(3, 0.1, 0.1, k=2), {}, "The 2 recommended arms are within 0.1 of"),
        (ebr.SharpElasticBatchRacing(3, 0.1, 0.1, k=2), {}, "the 2 arms with the largest means; differences"),
        (ebr.StakedElasticBatchRacing(3, 0.1, 0.1), {}, "; uses how much rewards vary (sums of squares) Aim"),
        (ebr.SharpElasticBatchRacing(2, 0.2, 0.1, 0.2), {}, "is 0.2-sub-Gaussian and between 0 and 1"),
        (ebr.SharpElasticBatchRacing(2, 0.2, 0.1, 5), {"support": (-4, 6)}, "each is between -4 and 6"),
    ],
)
@pytest.mark.filterwarnings("ignore:the guarantee is void")
def test_every_race_that_a_journal_holds_can_be_reported(algorithm, options, says, path, unflushed):
    race = raced(algorithm, ["A", "B", "C"], path, **options)
    report = race.report()
    assert says in " ".join(str(report).split())
    arms = report.tables["Arms"]
    assert race.finished
    assert ((arms["lower"] <= arms["mean"]) & (arms["mean"] <= arms["upper"])).all()
    assert set(np.atleast_1d(race.recommendation)) == set(arms["arm"][arms["standing"] == "recommended"])


def test_a_report_says_what_is_missing_and_what_is_guaranteed(path):
    with ebr.plan(2, 2, 5, support=(0, 50), algorithm="sharp").start(path, ["A", "B"]) as race:
        while not race.finished:
            half = {arm: (count // 2, 25 * (count // 2)) for arm, count in race.ask().items()}
            race.tell(half, missing="at random")
        report = race.report()
        asked = sum(sum(line["pulls"].values()) for line in lines_of(path) if line["event"] == "ask")
        assert report.tables["Round by round"]["missing"].sum() == asked - race.intervals["pulls"].sum()
        within = f"{rounded_up(race.within)} (the aim was 5) with probability at least 0.95"
        assert report.facts["Guarantee"] == f"No arm is better than the recommended one by {within}."
        assert "missing or late for reasons that have nothing to do with any" in report.facts["Rewards"]
        assert ", at most, if no reward is missing: " in report.facts["Design"]
        assert race.within > 5


def test_a_report_of_a_control_and_of_blocks(path):
    facts = Race(SHARP, ["A", "B", "C"], path, control="B", margin=0.3).report().facts
    assert facts["Guarantee"] == (
        "If B, the control, is recommended, no arm beats it by 0.3 or more. If another arm is, it is within"
        " 0.05 of the best. Either holds with probability at least 0.95."
    )
    assert facts["Aim"].endswith("; control: B, to be beaten by a margin of 0.3")
    wide = ebr.SharpElasticBatchRacing(3, 0.2, 0.1, sigma=1.0)
    report = Race(wide, ["A", "B", "C"], path.with_name("2.jsonl"), blocks=True).report()
    says = "taken to be in independent blocks; differences of arms within a block are 1.41421-sub-Gaussian"
    assert report.facts["Rewards"] == says
    assert "no intervals of single arms" in report.reading


def test_an_algorithm_of_ones_own_is_reported_without_what_is_not_known(path, unflushed):
    with Race(Coin(), ["A", "B"], path) as race:
        race.ask()
        race.tell({"A": [1], "B": [0]})
        report = race.report()
    said = " ".join(str(report).split())
    assert "no intervals of single arms: the algorithm has no δ" in said
    assert "which is not one of ebr's own. Rounds 1 Pulls 2 Result recommended: no arm" in said
    assert "lower" not in said


def test_a_terminal_prints_the_report_in_every_format_while_another_process_writes(path, unflushed, run):
    report = raced(SHARP, ["A", "B"], path, rounds=1).report()
    with Race.open(path):
        before = path.read_bytes()
        for form, wanted in (("text", report), ("markdown", report.markdown()), ("html", report.html())):
            assert run("report", path, "--format", form) == (0, f"{wanted}\n")
        assert run("report", path) == (0, f"{report}\n")
        assert path.read_bytes() == before


# What a trial needs: round by round, differences from the control, own words and units.


@pytest.fixture
def trial(path, unflushed):
    """Two drugs and a placebo; pain from 0 to 50. Three rewards of drug A come late, one never comes."""
    plan = ebr.plan(3, 4, 5, support=(0, 50), lower_is_better=True, control=True, margin=6, algorithm="sharp")
    with plan.start(path, ["drug A", "drug B", "placebo"]) as race:
        n = race.ask()["drug A"]
        told = {"drug A": (n - 4, 20 * (n - 4)), "drug B": (n, 30 * n), "placebo": (n, 44 * n)}
        race.tell(told, missing="at random")
        asked = race.ask()
        own = {arm: (count, 25 * count) for arm, count in asked.items()}
        own["drug A"] = (asked["drug A"] - 3, 25 * (asked["drug A"] - 3))
        race.tell(own, late={"drug A": [19, 20, 21]})
    return Race.open(path, readonly=True)


def test_every_round_is_reported_with_what_was_asked_came_late_and_is_missing(trial):
    report, lines = trial.report("subjects"), lines_of(trial._journal.path)
    told = [line for line in lines if line["event"] == "tell"]
    asked = [line["pulls"] for line in lines if line["event"] == "ask"]
    rows = report.tables["Round by round"].to_dict("records")
    assert len(rows) == sum(len(line["rewards"]) for line in told)
    count, total = dict.fromkeys(trial.arms, 0), dict.fromkeys(trial.arms, 0.0)
    for row in rows:  # against the journal's lines
        line, arm = told[row["round"] - 1], row["arm"]
        late, late_sum = line.get("late", {}).get(arm, (0, 0))
        own, own_sum = line["rewards"][arm]
        assert (row["asked"], row["pulls"]) == (asked[row["round"] - 1][arm], own + late)
        assert (row["late"], row["missing"]) == (late, row["asked"] - own - late)
        count[arm], total[arm] = count[arm] + own + late, total[arm] + own_sum + late_sum
        assert row["mean"] == pytest.approx((own_sum + late_sum) / (own + late))
        assert row["mean so far"] == pytest.approx(total[arm] / count[arm])
    arms = report.tables["Arms"].set_index("arm")
    assert arms["missing"].to_dict() == {"drug A": 1, "drug B": 0, "placebo": 0}
    assert arms["pulls"].to_dict() == count


def test_a_report_speaks_the_trials_words_units_and_direction(trial):
    for text in (str(report := trial.report("subjects")), report.markdown(), report.html()):
        said = " ".join(text.split())
        for words in (
            "subjects",
            "with the smallest mean",
            "ε = 5",
            "control: placebo, to be beaten by a margin of 6",
            "tends to be too low",
            "below 0 is better",
            "dropped after round 1",
            trial._journal.lines[-1]["checksum"],
        ):
            assert words in said
        assert "pulls" not in said
        assert "Racing(" not in said
    with pytest.raises(
        ValueError, match="word must be what pulls are called, for instance 'subjects', got 3"
    ):
        trial.report(3)


def test_the_report_of_a_race_that_ended_with_the_control_says_only_that(path, unflushed):
    race = raced(SHARP, ["A", "B"], path, means=[0.2, 0.9], control="B", margin=0.3)
    says = "No arm beats B, the control, by 0.3 or more, with probability at least 0.95."
    assert race.report().facts["Guarantee"] == says
    assert race.verdict == "It recommends B, the control: no arm beats it by 0.3 or more."
    path.unlink()
    other = raced(SHARP, ["A", "B"], path, means=[0.9, 0.2], control="B", margin=0.3)
    says = "The recommended arm is within 0.05 of the best with probability at least 0.95."
    assert other.report().facts["Guarantee"] == says


def test_a_page_has_a_picture_of_its_own_and_is_the_same_each_time(trial):
    page = trial.report().html()
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    drawn = ElementTree.fromstring(base64.b64decode(data))
    assert drawn.tag.endswith("svg")
    assert len(drawn.findall(".//{*}use")) > 10  # marks and letters
    assert "http" not in re.sub(r'src="data:[^"]+"', "", page)
    assert page == trial.report().html()


@pytest.mark.parametrize(
    ("support", "mean", "shown"),
    [((0, 2e-5), 1.2345e-5, "0.000012345"), ((0, 1), 0.25, " 0.2500 "), ((-1e6, 1e6), 1234.0, " 1234 ")],
)
def test_digits_go_by_the_width_of_the_scale(support, mean, shown, path, run):
    plan = ebr.plan(2, 2, 0.2 * (support[1] - support[0]), support=support, algorithm="sharp")
    with plan.start(path, ["A", "B"]) as race:
        race.tell({arm: (n, mean * n) for arm, n in race.ask().items()})
        assert f"{shown.strip()} " in str(race.report())
    assert shown.strip() in run("status", path)[1]


def test_differences_from_the_control_are_as_wide_as_the_formula_says_by_hand(trial):
    report = trial.report()
    rounds, differences = report.tables["Round by round"], report.tables["Differences from the control"]
    first = {row["arm"]: row for row in rounds.to_dict("records") if row["round"] == 1}
    assert differences["after round"].tolist() == [1, 1]  # then the placebo is out
    for row in differences.to_dict("records"):
        one, other = first[row["arm"]], first["placebo"]
        assert row["difference"] == pytest.approx(one["mean"] - other["mean"])
        half = 25 * math.sqrt(2 * math.log(2 * 2 * 4 / 0.05) * (1 / one["pulls"] + 1 / other["pulls"]))
        assert row["upper"] - row["difference"] == pytest.approx(half)
        assert row["difference"] - row["lower"] == pytest.approx(half)


def test_a_difference_misses_no_more_often_than_its_share_of_delta_by_enumeration(path, unflushed):
    race = raced(SHARP, ["A", "B", "C"], path, rounds=1, means=[0.5] * 3, rewards="Bernoulli", control="C")
    row = race.report().tables["Differences from the control"].loc[0]
    n = int(race.history["total"].iloc[0])
    half, share = (row["upper"] - row["lower"]) / 2, 0.05 / (2 * 6)
    ones = np.arange(n + 1)
    apart = np.abs(ones[:, None] - ones) / n

    def misses(p, q, half):
        joint = np.outer(binom.pmf(ones, n, p), binom.pmf(ones, n, q))
        gap = (ones[:, None] - ones) / n - (p - q)
        return joint[np.abs(gap) > half].sum()

    assert apart.max() > half
    worst = max(misses(p, q, half) for p in (0.1, 0.5, 0.9) for q in (0.1, 0.5, 0.9))
    assert worst <= share
    assert misses(0.5, 0.5, half * 0.7) > share  # planted: a third narrower


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("rewards", ["Gaussian", "sub-Gaussian"])
def test_differences_of_unbounded_rewards_and_in_blocks_are_as_wide_as_sigma_says(rewards, blocks, path):
    algorithm = ebr.SharpElasticBatchRacing(4, 0.1, 0.05, 2.0, rewards=rewards)
    race = raced(algorithm, ["A", "B", "C"], path, 1, support=None, blocks=blocks, control="C")
    n, share = int(race.history["total"].iloc[0]), 0.05 / (2 * 4)
    by_rewards = {"Gaussian": norm.isf(share / 2), "sub-Gaussian": math.sqrt(2 * math.log(2 / share))}
    for row in race.report().tables["Differences from the control"].to_dict("records"):
        half = 2 * by_rewards[rewards] * math.sqrt(2 / n)
        assert (row["upper"] - row["lower"]) / 2 == pytest.approx(half)


def test_in_blocks_differences_hold_for_all_counts_where_these_depend_on_rewards(path):
    staked = ebr.StakedElasticBatchRacing(4, 0.1, 0.05, 2.0)
    race = raced(staked, ["A", "B", "C"], path, 1, support=None, blocks=True, control="C")
    n = int(race.history["total"].iloc[0])
    report, share = race.report(), 0.05 / (2 * n * (n + 1))
    for row in report.tables["Differences from the control"].to_dict("records"):
        half = 2 * math.sqrt(2 * math.log(2 / share)) * math.sqrt(2 / n)
        assert (row["upper"] - row["lower"]) / 2 == pytest.approx(half)
    assert "(2 arms × all counts)" in report.reading


def test_where_counts_depend_on_rewards_differences_follow_from_single_intervals(path, unflushed):
    staked = ebr.StakedElasticBatchRacing(4, 0.1, 0.1)
    race = raced(staked, ["A", "B", "C"], path, rounds=1, means=[0.5] * 3, control="C")
    report, ends = race.report(), race.intervals
    for row in report.tables["Differences from the control"].to_dict("records"):
        assert row["lower"] == pytest.approx(ends.loc[row["arm"], "lower"] - ends.loc["C", "upper"])
        assert row["upper"] == pytest.approx(ends.loc[row["arm"], "upper"] - ends.loc["C", "lower"])
    assert "Their intervals follow from those of single arms" in report.reading
