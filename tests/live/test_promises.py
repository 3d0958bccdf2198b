"""A report never says more than is proved of its race: every combination, against a table by hand."""

import math
from itertools import product

import pytest
from live.races import Coin

import ebr
from ebr.live.race import Race
from ebr.live.report import guarantee
from ebr.live.terms import UNIT, Scale, Terms

RULES = (2, 0.2, 0.1)
MODELS = ("Bernoulli", "bounded", "Gaussian", "sub-Gaussian")
# For each race, the beginning of its report's guarantee if its assumptions hold.
WITHIN = "The recommended arm is within"
NONE = "None: "
PLAIN = {
    "Algorithm 1": (ebr.ElasticBatchRacing(*RULES), WITHIN),
    "its k best": (ebr.ElasticBatchRacing(*RULES, k=2), "The 2 recommended arms are within"),
    "as printed": (ebr.ElasticBatchRacing(*RULES, schedule="printed"), WITHIN),
    "as printed, σ = 2": (ebr.ElasticBatchRacing(*RULES, 2.0, schedule="printed"), NONE),
    "from S_{T+1}": (ebr.ElasticBatchRacing(*RULES, returned_from="after it"), NONE),
    "AE": (ebr.AggressiveElimination(*RULES), "If all others are worse by"),
    "kδER": (ebr.DeltaElimination(*RULES), WITHIN),
    "kδER, released": (ebr.DeltaElimination(*RULES, constants="released"), NONE),
    "passive": (ebr.Passive(*RULES[1:]), WITHIN),
    "sequential": (ebr.SequentialRacing(*RULES[1:]), WITHIN),
    "one's own": (Coin(), "Whatever is proved of this algorithm"),
}
KINDS = {
    "sharp": ebr.SharpElasticBatchRacing,
    "pausing": ebr.PausingElasticBatchRacing,
    "staked": ebr.StakedElasticBatchRacing,
}
COMPARING = {
    (kind, assumed, *options.values()): (race(*RULES, rewards=assumed, **options), assumed)
    for kind, race in KINDS.items()
    for assumed in (None, *MODELS)
    for options in ([{}, {"k": 2}] if kind == "sharp" else [{}])
}
SUPPORTS = {  # by support and scale: where rewards lie for the algorithm
    ((0, 1), None): "unit",
    ((0, 1), (1, 0)): "unit",
    ((-0.5, 0.5), (1, 0)): "bounded",
    ((-0.5, 0.5), None): "bounded",
    (None, None): "any",
    ((0, 1), (0, 50)): "refused",
    ((0, 50), (50, 0)): "scaled",
    (None, (0, 50)): "any",
    ((-4, 6), (0, 50)): "refused",
}


def by_hand(name, told, support, blocks, control):
    """The beginning of the report's guarantee; None if there is no such race."""
    place = SUPPORTS[support]
    if place == "refused" or (told == "Bernoulli" and place != "unit"):
        return None
    if told == "bounded" and place not in ("unit", "scaled"):
        return None
    if name in PLAIN:
        return None if blocks or control else PLAIN[name][1]
    assumed, best = name[1], 2 if 2 in name else 1
    known = told or ("bounded" if place in ("unit", "scaled") and not blocks else "sub-Gaussian")
    if told is None and assumed == "Bernoulli":
        known = "Bernoulli" if place == "unit" else "refused"
    if known == "refused" or (assumed == "Bernoulli" and known != "Bernoulli"):
        return None
    if assumed == "bounded" and known not in ("Bernoulli", "bounded"):
        return None
    model = assumed or known
    if control and not (name[0] in ("sharp", "staked") and best == 1):
        return None
    if blocks and not (name[0] in ("sharp", "staked") and model in ("sub-Gaussian", "Gaussian")):
        return None
    if model == "Gaussian" and blocks and place != "any":
        return None
    if model == "Gaussian" and place != "any":
        return NONE
    if control:
        return "If A, the control, is recommended, no arm beats it by 0.3 or more. If another arm is"
    return "The 2 recommended arms are within" if best == 2 else WITHIN


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*PLAIN, *COMPARING], ids=str)
def test_the_guarantee_is_what_the_table_by_hand_says(name):
    algorithm, _ = (PLAIN | COMPARING)[name]
    for told, support, blocks, control in product((None, *MODELS), SUPPORTS, (False, True), (None, "A")):
        margin, (limits, scale) = 0.3 if control else None, support
        units = abs(scale[1] - scale[0]) if scale else 1
        expected = by_hand(name, told, support, blocks, control)
        case = (name, told, support, blocks, control)
        given = limits, told, Scale(*scale) if scale else UNIT, blocks, control, margin and margin * units
        try:
            terms = Terms.agreed(algorithm, ["A", "B", "C"], *given)
        except ValueError:
            assert expected is None, case
            continue
        assert expected is not None, case
        said = guarantee(terms, None, losses=False)
        if control and units > 1:
            expected = expected.replace("0.3", "15")
        assert said.startswith(expected), (case, said)
        assert expected == NONE or name == "one's own" or f"{0.2 * units:g} " in said


def test_the_table_has_races_of_every_kind():
    every = product(PLAIN | COMPARING, (None, *MODELS), SUPPORTS, (False, True), (None, "A"))
    said = [by_hand(*case) for case in every]
    kinds = {"None: ", "The recommen", "The 2 recomm", "If all other", "Whatever is ", "If A, the co"}
    assert {text[:12] for text in said if text} == kinds
    assert said.count(None) < 0.9 * len(said)


SHARP = ebr.SharpElasticBatchRacing(*RULES)
LOSSY = "No arm is better than the recommended one by 0."
NORMAL = ebr.SharpElasticBatchRacing(*RULES, rewards="Gaussian")
CERTIFIED = ebr.CertifiedElasticBatchRacing(3, (50, 100), (2.5,), 0.2, 0.1)


@pytest.mark.filterwarnings("ignore:the guarantee is void")
@pytest.mark.parametrize(
    ("algorithm", "support", "kept", "expected"),
    [
        (SHARP, (0, 1), 1, "The recommended arm is within 0.2 of the best"),
        (SHARP, (0, 1), 0.4, LOSSY),
        (SHARP, (0, 1), 0, "None: too many rewards are missing"),
        (CERTIFIED, (0, 1), 0.05, "None: too many rewards are missing"),  # every arm has some rewards
        (NORMAL, None, 0.4, LOSSY),
        (NORMAL, (-0.5, 0.5), 0.4, "None: the algorithm is made for normal rewards"),
        (NORMAL, (-0.5, 0.5), 1, "None: the algorithm is made for normal rewards"),
    ],
)
def test_with_rewards_missing_the_guarantee_is_that_of_the_end(
    algorithm, support, kept, expected, path, unflushed
):
    lossy, void = expected == LOSSY, expected.startswith(NONE)
    with Race(algorithm, ["A", "B", "C"], path, support) as race:
        while not race.finished:
            given = {arm: (int(kept * pulls), 0.0) for arm, pulls in race.ask().items()}
            race.tell(given, missing="at random" if kept < 1 else None)
            so_far = race.report().facts["Guarantee"]
            doubt = kept < 1 and race.terms.void is None
            assert race.finished or doubt == ("Less is guaranteed if rewards are still missing" in so_far)
        report = race.report()
        assert report.facts["Guarantee"].startswith(expected)
        assert ("nothing to do with any of them" in report.facts["Rewards"]) == (kept < 1)
        assert (race.within == math.inf) == ("guarantees nothing" in race.verdict) == void
        if lossy:
            assert race.within > 0.25
            assert float(report.facts["Guarantee"].split(" by ")[1].split()[0]) >= race.within
