"""The terms of a race: refusals before there is a file, other races, controls, blocks and scales."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from live.races import ARMS, Coin, forge

import ebr
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

ALGORITHM = ebr.ElasticBatchRacing(deadline=3, epsilon=0.4, delta=0.4)
BOUNDED = ebr.SharpElasticBatchRacing(2, 0.1, 0.1, rewards="bounded")
SHARP = ebr.SharpElasticBatchRacing
BERNOULLI = {"algorithm": ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="Bernoulli")}
BLOCKS = {"algorithm": SHARP(3, 0.1, 0.05), "blocks": True}
CONTROL = {"algorithm": SHARP(6, 0.05, 0.05), "arms": ["A", "B", "C"]}
NAMES = "arms must be a list of two or more distinct, printable names, got "
PAIR = "support must be a pair of two finite numbers, got "
NUMBERS = (
    "algorithm must be a dataclass of numbers and words, with all of ebr.algorithms.game.Algorithm, got "
)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arms": "ABC"}, NAMES + "'ABC'"),
        ({"arms": {"A", "B"}}, NAMES + "{"),  # a set has no order
        ({"arms": ["A"]}, NAMES + "('A',)"),
        ({"arms": ["A", ""]}, NAMES + "['']"),
        ({"arms": ["A", ["B"]]}, NAMES + "[['B']]"),
        ({"arms": ["A", "B", "A"]}, NAMES + "['A']"),
        ({"support": (1, 0)}, "support must be (low, high) with low < high, or None, got (1, 0)"),
        ({"support": (1, 1)}, PAIR + "(1, 1)"),
        ({"support": (0, 0.5, 1)}, PAIR),
        ({"support": (0, 10**400)}, PAIR),
        ({"algorithm": "EBR"}, NUMBERS + "'EBR'"),
        ({"algorithm": ebr.SequentialRacing}, NUMBERS + "<class 'ebr"),
        ({"algorithm": Coin(math.nan)}, NUMBERS + "Coin"),
        ({"algorithm": BOUNDED, "support": (-0.5, 0.5)}, "must not be 'bounded' for sub-Gaussian rewards"),
        ({"rewards": "bounded", "support": (-0.5, 0.5)}, "must lie in [0, 1] for bounded rewards, got (-0"),
        ({"rewards": "good"}, "rewards must be one of 'Bernoulli', 'bounded', 'Gaussian', 'sub-Gaussian'"),
        (BERNOULLI | {"support": None}, "support must lie in [0, 1] for Bernoulli rewards, got None"),
        (BERNOULLI | {"rewards": "bounded"}, "rewards must not be 'Bernoulli' for bounded rewards"),
        ({"algorithm": SHARP(3, 0.3, 0.1, k=3)}, "k must lie in 1 … 2, below the number of arms, got 3"),
        (CONTROL | {"control": "D"}, "control must be one of the arms, A, B, C, got 'D'"),
        (CONTROL | {"control": "A", "margin": 0.01}, "margin must lie in [0.05, 1), from epsilon to"),
        (CONTROL | {"control": "A", "margin": -1}, "margin must be a finite number above 0, got -1"),
        (CONTROL | {"margin": 0.1}, "margin must be left out where there is no control"),
        ({"control": "good"}, "algorithm must permit a control"),
        (BLOCKS | {"blocks": 1}, "blocks must be True or False, got 1"),
        (BLOCKS | {"rewards": "bounded"}, "needs independent arms, got 'bounded'"),
        ({"blocks": True}, "algorithm must permit rewards in blocks"),
    ],
)
def test_what_cannot_be_raced_is_named_and_leaves_no_file(arguments, says, path):
    with pytest.raises(ValueError, match=re.escape(says)):
        Race(**{"algorithm": ALGORITHM, "arms": ARMS} | arguments, journal=path)
    assert not path.exists()


def test_messages_are_short_however_many_arms_there_are(path, unflushed):
    many = [f"arm {number}" for number in range(10_001)]

    def refusal(use):
        with pytest.raises(ValueError, match="arm") as error:
            use()
        assert len(str(error.value)) < 500
        return str(error.value)

    assert refusal(lambda: Race(ALGORITHM, [*many, "arm 77"], path)).endswith("got ['arm 77']")
    assert refusal(lambda: Race(ALGORITHM, many * 2, path)).endswith("…")
    with Race(ebr.Passive(0.5, 0.3), many, path) as race:
        asked = race.ask()
        assert "'other' is unknown" in refusal(lambda: race.tell(dict.fromkeys(["other"], (1, 1))))
        assert "rewards of arm 1, arm 2" in refusal(lambda: race.tell({"arm 0": (asked["arm 0"], 1)}))
    assert "arms is ['arm 0'" in refusal(lambda: Race(ebr.Passive(0.5, 0.3), [*many[:-1], "last"], path))


WIDE, WIDER = ebr.ElasticBatchRacing(3, 0.4, 0.4, sigma=1), SHARP(3, 0.1, 0.05, sigma=0.7072)
GAUSSIAN = SHARP(3, 0.2, 0.1, rewards="Gaussian")
SMALL = r"between -1 and 1 unless sigma, 0\.5, is known to be enough: they may need 1$"
SMALLER = r"between 0 and 1 unless sigma, 0\.5, is known to be enough: they may need 0\.7071$"
BOUNDS = "is void for rewards between 0 and 1: the algorithm is made for normal"


@pytest.mark.parametrize(
    ("algorithm", "terms", "says", "fine"),
    [
        (ALGORITHM, {"support": (-1, 1)}, SMALL, {"algorithm": WIDE}),
        (SHARP(3, 0.1, 0.05), {"blocks": True}, SMALLER, {"algorithm": WIDER}),
        (SHARP(3, 0.2, 0.1), {"rewards": "Gaussian", "support": (0, 1)}, BOUNDS, {"support": "usual"}),
        (GAUSSIAN, {"rewards": "Gaussian", "support": (0, 1)}, BOUNDS, {"support": None}),
    ],
)
def test_a_guarantee_that_is_void_is_warned_of(algorithm, terms, says, fine, path):
    with pytest.warns(UserWarning, match=says) as warned:
        Race(algorithm, ARMS, path, **terms).close()
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Race.open(path).close()  # warned of only at the start
        given = {"algorithm": algorithm, "arms": ARMS, "journal": path.with_name("fine.jsonl")}
        Race(**given | terms | fine).close()


def test_an_algorithm_for_gaussian_rewards_warns_of_others_itself(path):
    with pytest.warns(UserWarning, match="not Gaussian: the algorithm's guarantee is void") as told:
        Race(GAUSSIAN, ARMS, path, (0, 1)).close()
    assert len(told) == 1
    assert Race(GAUSSIAN, ARMS, path.with_name("usual.jsonl")).terms.support is None


# The journal of another race.


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"algorithm": ebr.ElasticBatchRacing(3, 0.5, 0.4)}, [r"epsilon is 0\.4 there and 0\.5 here"]),
        (
            {"algorithm": ebr.ElasticBatchRacing(4, 0.4, 0.4, lone_survivor="pulled again")},
            ["deadline is 3 there and 4 here", "lone_survivor is 'stops' there and 'pulled again' here"],
        ),
        ({"algorithm": ebr.ElasticBatchRacing(3, 0.4, 0.4, k=2)}, ["k is 1 there and 2 here"]),
        (
            {"algorithm": ebr.Passive(0.4, 0.4)},
            ["is 'ElasticBatchRacing' there and 'Passive' here", "its deadline is 3 there and None here"],
        ),
        ({"arms": [*ARMS, "D"]}, [r"arms is \['good', 'fair', 'poor'\] there and .*'D'\] here"]),
        ({"arms": ARMS[::-1]}, [r"arms is \['good', .* there and \['poor', 'fair', 'good'\] here"]),
        ({"support": None}, [r"support is \[0\.0, 1\.0\] there and None here"]),
        ({"rewards": "sub-Gaussian"}, ["; rewards is 'bounded' there and 'sub-Gaussian' here"]),
    ],
)
def test_a_journal_of_another_race_is_refused_naming_what_differs(path, given, says):
    Race(ALGORITHM, ARMS, path).close()
    content = path.read_bytes()
    with pytest.raises(JournalError, match="give this race a journal of its own, or continue that") as error:
        Race(**{"algorithm": ALGORITHM, "arms": ARMS} | given, journal=path)
    assert all(re.search(expected, str(error.value)) for expected in says)
    assert path.read_bytes() == content
    Race(ALGORITHM, ARMS, path, [0, 1], "bounded").close()  # the same race, which is no longer locked


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ({"event": "ask", "round": 1, "pulls": {}}, "format must lie in 1 … 5, got None"),
        ({"format": 6, "algorithm": "Passive"}, "another version of ebr .*format must lie in 1 … 5, got 6"),
        ({"format": 1, "algorithm": "os.system"}, "algorithm os.system is unknown"),
        ({"format": 1, "algorithm": "Passive", "parameters": {"luck": 1}}, "another version"),
        (
            {"format": 1, "algorithm": "Passive", "parameters": {"epsilon": 2, "delta": 0.1}},
            r"another version of ebr \(epsilon must lie in \(0, 1\), got 2\)",
        ),
    ],
)
def test_a_first_line_that_says_something_else_is_refused(first, says, path):
    book = Journal(path)
    book.append({"event": "start"} | first)
    book.close()
    for use in (Race.open, lambda path: Race(ALGORITHM, ARMS, path)):
        with pytest.raises(JournalError, match=says):
            use(path)


@pytest.mark.parametrize(
    "changes",
    [
        *({"scale": [0, 1, 2]}, {"scale": [0.0, 40.0]}, {"scale": [5, 5]}, {"scale": 50}, {"scale": ...}),
        *({"blocks": "yes"}, {"blocks": True}, {"more": 1}, {"arms": "gfp"}, {"rounding": True}),
        *({"seed": ...}, {"rewards": None}, {"rewards": "Bernoulli"}, {"support": [0.0, 40.0]}),
    ],
    ids=str,
)
def test_forged_terms_are_refused(changes, path):
    with ebr.plan(3, 5, 2.5, support=(0, 50), algorithm="sharp").start(path, ARMS) as race:
        race.tell({arm: (count, count) for arm, count in race.ask().items()})
    forge(path, 1, **changes)
    with pytest.raises(JournalError, match="line 1 "):
        Race.open(path)


@pytest.mark.parametrize("width", [1e-50, 1e51])
def test_units_whose_squares_are_no_numbers_are_refused(width):
    with pytest.raises(
        ValueError, match=r"sigma, in the rewards' units, must lie in \[1e-50, 1e\+50\], got 5e"
    ):
        ebr.plan(3, 5, width / 10, support=(0, width), algorithm="sharp")


def test_a_plan_that_is_started_twice_draws_other_lots(path):
    plan = ebr.plan(3, 2, 0.3, algorithm="sharp")
    assert plan.start(path).terms.seed != plan.start(path.with_name("other.jsonl")).terms.seed


# A control.


def test_a_race_in_which_no_arm_can_be_better_ends_with_the_control(path):
    arms, algorithm = ["new", "placebo", "other"], SHARP(6, 0.05, 0.05)
    with Race(algorithm, arms, path, control="placebo", margin=0.2) as race:
        while not race.finished:
            race.tell({arm: (count, count // 2) for arm, count in race.ask().items()})
        assert (race.recommendation, race.within) == ("placebo", 0.2)
        assert race.verdict == "It recommends placebo, the control: no arm beats it by 0.2 or more."
        assert race.round < 6
    with Race(algorithm, arms, path, control="placebo", margin=0.2) as again:
        assert again.terms.control == "placebo"
    with pytest.raises(JournalError, match=r"margin is 0.2 there and 0.3 here"):
        Race(algorithm, arms, path, control="placebo", margin=0.3)
    with pytest.raises(JournalError, match="control is 1 there and None here"):
        Race(algorithm, arms, path)


# Blocks.


@pytest.mark.parametrize(
    "as_told",
    [
        lambda table, _: table,
        lambda table, asked: pd.DataFrame(table, columns=asked)[asked[::-1]],
        lambda table, asked: dict(zip(asked, table.T.tolist(), strict=True)),
    ],
    ids=["array", "frame", "dict"],
)
def test_blocks_are_told_as_a_table(as_told, path):
    generator = np.random.default_rng(3)
    with Race(SHARP(3, 0.1, 0.05, sigma=0.1), ARMS, path, support=None, blocks=True) as race:
        while not race.finished:
            asked = race.ask()
            day = generator.normal(0, 50, (asked["poor"], 1))  # hides differences between single rewards
            means = np.array([ARMS.index(arm) for arm in asked]) / 10
            table = day + means + generator.normal(0, 0.1, (len(day), len(asked)))
            race.tell(as_told(table, list(asked)))
        assert race.recommendation == "poor"
        assert race.intervals[["lower", "upper"]].isna().all(axis=None)
    with Race.open(path) as again:
        assert again.recommendation == "poor"


def test_whole_blocks_may_be_missing(path):
    with Race(SHARP(3, 0.1, 0.05, sigma=0.1), ["A", "B"], path, support=None, blocks=True) as race:
        count = race.ask()["A"]
        wrong = [
            ({"A": [1.0] * count, "B": [1.0] * (count - 1)}, "only whole blocks may be missing"),
            (np.full((count, 2), np.nan), r"must lie in \[-1e\+100, 1e\+100\], got nan"),
            ({"A": (count, 1.7e308), "B": (count, 0)}, r"1e\+100\], got \d+ with the sum 1.7e\+308"),
            (np.ma.masked_array(np.ones((count, 2)), [[False, True]] * count), "'B' must be a list of num"),
            *((table, "a table of blocks × 2 arms") for table in (np.ones(3), np.ones((4, 3)), 7)),
        ]
        for told, says in wrong:
            with pytest.raises(ValueError, match=says):
                race.tell(told, missing="at random")
        race.tell(np.ones((count - 2, 2)), missing="at random")
        assert race.asked is None


# A user's own units.


@pytest.mark.parametrize("rewards", ["Bernoulli", "bounded", "sub-Gaussian"])
def test_where_lower_is_better_a_race_is_that_of_the_mirrored_rewards(rewards, path):
    generator, mirrored = np.random.default_rng(5), path.with_name("mirrored.jsonl")
    algorithm, known = SHARP(5, 0.05, 0.05), {"support": (0, 1), "rewards": rewards}
    with (
        Race(algorithm, ARMS, path, **known, lower_is_better=True) as race,
        Race(algorithm, ARMS, mirrored, **known) as other,
    ):
        while not race.finished:
            asked = race.ask()
            assert asked == other.ask()
            told = {arm: generator.binomial(1, 0.3 + 0.1 * ARMS.index(arm), n) for arm, n in asked.items()}
            race.tell(told)
            other.tell({arm: 1 - each for arm, each in told.items()})
        assert race.recommendation == other.recommendation == "good"
        assert race.intervals["mean"].to_numpy() == pytest.approx(1 - other.intervals["mean"].to_numpy())
    with Race.open(path) as again:
        assert again.recommendation == "good"
    with pytest.raises(JournalError, match=r"scale is \[1.0, 0.0\] there and None here"):
        Race(algorithm, ARMS, path, **known)


def test_lower_is_better_within_any_support_or_none(path):
    for number, support in enumerate(((-300.0, 300.0), None)):
        rules = SHARP(3, 0.5, 0.1, sigma=300.0 if support else 2.0)
        with Race(rules, ARMS, path.with_name(f"{number}.jsonl"), support, lower_is_better=True) as race:
            race.tell({arm: (count, -250.0 * count * (arm == "fair")) for arm, count in race.ask().items()})
            assert race.recommendation == "fair"
            assert race.within == 0.5
            assert race.intervals["mean"].tolist() == [0, -250, 0]


@pytest.mark.parametrize(("worst", "best"), [(0, 50), (300.0, 20.0)])
def test_a_race_in_units_is_the_race_between_0_and_1(worst, best, path):
    generator, units = np.random.default_rng(2), path.with_name("units.jsonl")
    low, high = sorted((worst, best))
    known = {"support": (low, high), "lower_is_better": best < worst, "algorithm": "sharp"}
    race = ebr.plan(3, 5, 0.05 * (high - low), **known).start(units, ARMS)
    with Race(race.algorithm, ARMS, path) as unit, race:
        beyond = {arm: [low - 1.0] * count for arm, count in race.ask().items()}
        with pytest.raises(ValueError, match=rf"must lie in \[{low:.1f}, {high:.1f}\], got {low - 1}"):
            race.tell(beyond)
        while not unit.finished:
            asked = unit.ask()
            assert race.ask() == asked
            rewards = {arm: generator.beta(2, 2 - 0.3 * ARMS.index(arm), n) for arm, n in asked.items()}
            unit.tell(rewards)
            race.tell({arm: worst + (best - worst) * each for arm, each in rewards.items()})
        assert race.recommendation == unit.recommendation == "poor"
        assert race.within == pytest.approx(0.05 * (high - low))
        ours, theirs = race.intervals, unit.intervals
        ends = sorted(("lower", "upper"), reverse=worst > best)
        for shown, inside in zip(("mean", "lower", "upper"), ("mean", *ends), strict=True):
            assert ours[shown].to_numpy() == pytest.approx(worst + (best - worst) * theirs[inside].to_numpy())
        history = race.history
    with Race.open(units) as again:
        assert again.history.equals(history)
        assert again.recommendation == "poor"
