"""Numbers do not change when modules are moved: seeds depend on recorded class and field names.

golden/identities.json.gz has the identity (its first 16 digits) of every algorithm × problem that notebooks
simulate, recorded before modules were moved: {"problems": [class, σ, means], "algorithms": [class, fields,
{problem's number: identity}]}.
"""

import gzip
import json
import pkgutil
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import compendium
import pytest
from compendium.budget_and_deadline.budgets import Plan
from compendium.shared.joint_race import SharpElasticBatchRacing

import ebr
from ebr.simulation.simulate import identity

FILE = Path(__file__).parent / "golden" / "identities.json.gz"
GOLDEN = json.loads(gzip.decompress(FILE.read_bytes()))


# Every algorithm of the project by its name. Sharp EBR is in two modules; the compendium's has more fields.
CLASSES = {
    name: value
    for package in (ebr, compendium)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
    for name, value in vars(import_module(module.name)).items()
    if isinstance(value, type) and hasattr(value, "play") and is_dataclass(value)
} | {"SharpElasticBatchRacing": SharpElasticBatchRacing}
PROBLEMS = [
    ebr.Gaussian(means, sigma) if kind == "Gaussian" else ebr.Bernoulli(means)
    for kind, sigma, means in GOLDEN["problems"]
]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in GOLDEN["algorithms"]}))
def test_what_notebooks_simulate_is_seeded_as_before(name):
    for fields, known in ((fields, known) for kind, fields, known in GOLDEN["algorithms"] if kind == name):
        read = {
            key: eval(value, {"Plan": Plan}) if key == "fixed" else value for key, value in fields.items()
        }
        algorithm = CLASSES[name](**read)
        for number, golden in known.items():
            assert identity(algorithm, PROBLEMS[int(number)]).hex()[:16] == golden, (name, fields)
        if name == "SharpElasticBatchRacing" and read["looks"] == "joint":  # not a field of ebr's class
            del read["looks"]
            assert repr(ebr.SharpElasticBatchRacing(**read)) == repr(algorithm)


def test_the_golden_file_has_the_subclasses_of_the_compendium_and_another_field_is_seen():
    assert {"WithoutSlack", "StagedIntervals", "ElasticPair"} <= {name for name, *_ in GOLDEN["algorithms"]}
    race, problem = ebr.ElasticBatchRacing(3, 0.2, 0.1), ebr.Bernoulli([0.5, 0.4])
    assert identity(race, problem) != identity(ebr.ElasticBatchRacing(3, 0.2, 0.11), problem)
