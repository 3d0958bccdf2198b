"""What the tests of this folder share: rewards that are always the same, and forged journals."""

import hashlib
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from oracles import Bare

from ebr.live.journal import Journal

ARMS = ["good", "fair", "poor"]
MEANS = {"good": 0.8, "fair": 0.76, "poor": 0.1, "A": 0.7, "B": 0.4}


@dataclass(frozen=True)
class Coin(Bare):
    """A user's algorithm, which pulls each arm once and recommends none."""

    how: object = ()

    def play(self, n_arms, replicates=1, **_):
        yield np.ones((replicates, n_arms), dtype=int)
        return np.full(replicates, -1)


def reward(arm, number):
    """The arm's reward at this pull: always the same fraction, near the arm's mean."""
    return MEANS[arm] + 0.1 * math.sin(7.0 * number + MEANS[arm])


def rewards(race):
    """The rewards of this round, which depend on how often each arm has been pulled before."""
    before = race.intervals["pulls"]
    return {
        arm: [reward(arm, number) for number in range(before[arm], before[arm] + pulls)]
        for arm, pulls in race.ask().items()
    }


def play(race, told=None):
    """Play a race to its end, with given rewards by round or with `rewards`; return what it asked for."""
    asked = []
    while not race.finished:
        asked.append(race.ask())
        race.tell(told[race.round] if told else rewards(race))
    return asked


def refuses(race, says, told, **known):
    """A race refuses what it is told, and writes nothing."""
    path = race._journal.path
    before = path.read_bytes()
    with pytest.raises(ValueError, match=says) as error:
        race.tell(told, **known)
    assert len(str(error.value)) < 300
    assert path.read_bytes() == before


def lines_of(path):
    """The lines of a journal without times, checksums and the seed."""
    lines = Journal(path, readonly=True).lines
    return [{key: line[key] for key in line if key not in ("time", "checksum", "seed")} for line in lines]


def sealed(bodies):
    """The bytes of a journal with these line bodies and right checksums, computed without the journal."""
    content, previous = b"", b""
    for body in bodies:
        previous = hashlib.sha256(previous + body).hexdigest().encode()
        content += body + b', "checksum": "' + previous + b'"}\n'
    return content


def body_of(line):
    """A line without its checksum and its end."""
    return json.dumps({key: line[key] for key in line if key != "checksum"})[:-1].encode()


def forge(path, number, **changes):
    """Change entries of a journal's line (... removes one), and compute all checksums anew."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = lines[number - 1] | changes
    lines[number - 1] = {key: value for key, value in changed.items() if value is not ...}
    path.write_bytes(sealed(map(body_of, lines)))


def rewrite(path, content):
    """Replace a file. Truncating the old one would make some file systems wait for the disk."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
