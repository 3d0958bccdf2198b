"""What a race reports: intervals that hold together, and a page with the race's own numbers and names."""

import math
import re
from html.parser import HTMLParser

import mistune
import numpy as np
import pytest
from live.races import Coin, lines_of
from scipy.stats import beta

import ebr
from ebr.live.journal import Journal
from ebr.live.race import Race
from ebr.live.report import intervals_of
from ebr.live.terms import Scale, Terms

SHARP = ebr.SharpElasticBatchRacing(6, 0.05, 0.05)
AB = ("A", "B")
PAUSING = ebr.PausingElasticBatchRacing(5, 0.1, 0.2, rewards="Bernoulli")
ODD = ["A|B", "<b>bold</b>", "_C_ & *D*", "Ä `x` \\"]
MEANS = [0.9, 0.55, 0.5, 0.2]


def told(race, means=MEANS):
    """Ones and zeros in the proportion of the means, as near as can be."""
    by_arm = dict(zip(race.arms, means, strict=False))
    return {arm: (pulls, round(by_arm[arm] * pulls)) for arm, pulls in race.ask().items()}


def raced(algorithm, arms, path, rounds=math.inf, means=MEANS, **options):
    """A race that is played for so many rounds, or to its end, and closed."""
    with Race(algorithm, arms, path, **options) as race:
        while not race.finished and race.round <= rounds:
            race.tell(told(race, means))
    return Race.open(path, readonly=True)


class Page(HTMLParser):
    """What a reader sees: the cells, and the tags that there are."""

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
        (SHARP, "Gaussian", (0.2, 0.7), "KL", 6),  # nothing that lies in [0, 1] is normal
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


def test_in_units_of_ones_own_sigma_is_scaled():
    grams = intervals_of(Terms(SHARP, AB, (20, 70), Scale(20, 70), "bounded"))
    assert (grams.method, grams.sigma, grams.support) == ("KL", 25, (20, 70))
    unbounded = Terms(SHARP, AB, None, Scale(20, 70), "sub-Gaussian")
    assert intervals_of(unbounded).method == "Hoeffding"


def test_where_pausing_arms_lose_rewards_counts_are_not_fixed():
    pausing = ebr.PausingElasticBatchRacing(4, 0.05, 0.05)
    assert intervals_of(Terms(pausing, AB, rewards="bounded"), losses=True).looks is None
    assert intervals_of(Terms(SHARP, AB, rewards="bounded"), losses=True).looks == 6


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
    race = raced(SHARP, ["A", "B", "C"], path, rewards="Bernoulli")
    report = race.report()
    text = str(report)
    digest = Journal(path, readonly=True).lines[-1]["checksum"]
    pulls = race.history["pulls"].sum()
    assert race.recommendation == "A"
    for said in (
        "sharp elastic batch racing",
        repr(SHARP),
        "each is 0 or 1",
        "the recommended arm is within 0.05 of the best with probability at least 0.95",
        f"{race.round} of at most 6",
        "They and the guarantee hold together with probability at least 0.9.",
        "recommended: A",
        f"ebr {report.facts['Software'].split()[1]}",
        f"trial.jsonl, {len(path.read_text().splitlines())} lines",
        digest,
        "exact (Clopper–Pearson) intervals",
        "all arms and all rounds at once with probability at least 0.95",
        "3 arms × 6 rounds, each at level 1 − 0.0028",
        f"The race ended after round {race.round} and {pulls:,} pulls; it recommends A (mean",
    ):
        assert said in " ".join(text.split())
    assert "so far" not in text.lower()
    assert max(map(len, text.splitlines())) <= 100
    for row in race.intervals.itertuples():
        assert f"{row.mean:.4f} {row.lower:.4f} {row.upper:.4f}" in text
    standing = re.findall(r" (recommended|not recommended)\n", text)
    assert standing == ["recommended", "not recommended", "not recommended"]


def test_a_running_race_is_reported_so_far(path, unflushed):
    race = raced(SHARP, ["A", "B", "C"], path, rounds=0)
    assert "0 of at most 6 so far" in str(race.report())
    assert race.report().arms["mean"].isna().all()
    path.unlink()
    race = raced(SHARP, ["A", "B", "C"], path, rounds=1, means=[0.5, 0.5, 0.02])
    text = str(race.report())
    assert not race.finished
    assert "1 of at most 6 so far" in text
    assert "after 1 round and 234 pulls, nothing is recommended" in " ".join(text.split())
    assert text.count("in the race") == 2
    assert text.count(" out\n") == 1


def test_names_are_names_in_every_format(path, unflushed):
    report = raced(SHARP, ODD, path).report()
    page = Page(report.html())
    assert set(ODD) <= {cell.strip() for cell in page.cells}
    assert "b" not in page.tags
    assert report.html().startswith("<!DOCTYPE html>")
    assert report._repr_html_() in report.html()
    drawn = Page(mistune.create_markdown(plugins=["table"])(report.markdown()))
    assert set(ODD) <= {cell.strip() for cell in drawn.cells}
    assert len(drawn.cells) == 2 + 2 * len(report.facts) + 6 * (1 + len(ODD))
    assert drawn.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p", "strong"}
    assert all(name in str(report) for name in ODD)


@pytest.mark.parametrize(
    ("algorithm", "options", "says"),
    [
        (ebr.ElasticBatchRacing(2, 0.4, 0.4), {}, "within 0.4 of the best with probability at least 0.6"),
        (ebr.AggressiveElimination(2, 0.3, 0.1), {}, "if all others are worse by 0.3 or more"),
        (ebr.DeltaElimination(2, 0.5, 0.2), {}, "within 0.5 of the best with probability at least 0.8"),
        (ebr.Passive(0.3, 0.1), {}, "1 of at most 1"),
        (ebr.SequentialRacing(0.5, 0.5), {}, "union over all counts"),
        (
            ebr.SharpElasticBatchRacing(3, 0.1, 0.1, k=2),
            {},
            "the 2 recommended arms are within 0.1 of the k-",
        ),
        (ebr.SharpElasticBatchRacing(2, 0.2, 0.1, 0.2), {}, "is 0.2-sub-Gaussian and lies between 0 and 1"),
        (ebr.SharpElasticBatchRacing(2, 0.2, 0.1, 5), {"support": (-4, 6)}, "lies between -4 and 6"),
    ],
)
@pytest.mark.filterwarnings("ignore:the algorithm's sigma")
def test_every_race_that_a_journal_holds_can_be_reported(algorithm, options, says, path, unflushed):
    race = raced(algorithm, ["A", "B", "C"], path, **options)
    report = race.report()
    assert says in " ".join(str(report).split())
    assert race.finished
    assert report.arms["lower"].notna().all()
    assert (report.arms["lower"] <= report.arms["mean"]).all()
    assert (report.arms["mean"] <= report.arms["upper"]).all()
    assert set(np.atleast_1d(race.recommendation)) == set(
        report.arms.loc[report.arms["standing"] == "recommended", "arm"]
    )


@pytest.mark.filterwarnings("ignore:the rewards are not Gaussian")
def test_a_guarantee_that_is_void_is_said_to_be(path, unflushed):
    race = raced(
        ebr.SharpElasticBatchRacing(2, 0.2, 0.1, rewards="Gaussian"), ["A", "B"], path, support=(0, 1)
    )
    assert "none: the algorithm is made for normal rewards" in str(race.report())


def test_a_report_says_what_is_missing_and_what_is_guaranteed(path):
    with Race(ebr.SharpElasticBatchRacing(2, 0.1, 0.05), ["A", "B"], path, scale=(0, 50)) as race:
        while not race.finished:
            half = {arm: (count // 2, 25 * (count // 2)) for arm, count in race.ask().items()}
            race.tell(half, missing="at random")
        report = race.report()
        asked = sum(sum(line["pulls"].values()) for line in lines_of(path) if line["event"] == "ask")
        lost = asked - race.intervals["pulls"].sum()
        assert report.facts["Missing"] == f"{lost:,} rewards in 2 rounds, at random"
        assert "better than the recommended one by" in report.facts["Guarantee"]
        assert race.verdict in report.sentences
        assert race.within > 5


def test_a_report_of_a_control_and_of_blocks(path):
    facts = Race(SHARP, ["A", "B", "C"], path, control="B", margin=0.3).report().facts
    assert "no arm is better than B, the control, by 0.3 if it is recommended" in facts["Guarantee"]
    assert "Missing" not in facts
    wide = ebr.SharpElasticBatchRacing(3, 0.2, 0.1, sigma=1.0)
    report = Race(wide, ["A", "B", "C"], path.with_name("2.jsonl"), blocks=True).report()
    says = "in independent blocks; differences of arms within a block are 1.41421-sub-Gaussian"
    assert report.facts["Rewards"] == says
    assert "no intervals of single arms" in report.reading


def test_an_algorithm_of_ones_own_is_reported_without_what_is_not_known(path, unflushed):
    with Race(Coin(), ["A", "B"], path) as race:
        race.ask()
        race.tell({"A": [1], "B": [0]})
        report = race.report()
    assert "lower" not in report.arms
    assert "no intervals of single arms: the algorithm has no δ" in str(report)
    assert "recommended: no arm" in str(report)
    assert "not one of ebr's own" in str(report)
    assert "it recommends no arm" in str(report)


@pytest.mark.parametrize("finished", [True, False])
def test_a_terminal_prints_the_report_in_every_format_while_another_process_writes(
    finished, path, unflushed, run
):
    report = raced(SHARP, ["A", "B"], path, rounds=9 if finished else 0).report()
    with Race.open(path):
        before = path.read_bytes()
        assert run("report", path) == (0, f"{report}\n")
        for form, wanted in (("text", report), ("markdown", report.markdown()), ("html", report.html())):
            assert run("report", path, "--format", form) == (0, f"{wanted}\n")
        assert path.read_bytes() == before
