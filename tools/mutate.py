"""Mutate the formulas that a claim's check uses, one constant or operator at a time; list the unseen mutants.

    mutate.py [CLAIM …] [--most MUTANTS] [--seconds SECONDS]

The checks are those of tests/planted, with their small tables. A check's formulas are the functions of its
own room that it calls, and those of ebr/theory that they call. Each mutant has a process of its own. It is
seen if the verdict changes, if anything raises, or if it takes far too long. The others are written as a
table: claim, function, the expression before and after, and whether any number of the evidence changed.
tests/survivors.csv says why such mutants are right, or which tests see them.
"""

import argparse
import ast
import copy
import csv
import inspect
import multiprocessing
import os
import pickle
import pkgutil
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
THEORY, ROOMS = ROOT / "ebr/theory", ROOT / "notebooks/compendium"
WORDS = ("Evidence", "measured", "counted", "Finding")  # calls that label a number
PATIENCE = 5.0  # a mutant may take this many times as long as the check, and this many seconds more
OPERATORS: dict[type, type] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OPERATORS |= {ast.Pow: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "ceil": "floor"}
FORK = multiprocessing.get_context("fork")  # so that nothing is imported or computed twice
Check = Callable[[], Any]
Place = tuple[str, int, str]  # the file and line of a function, and the file that called it


class Mutant(NamedTuple):
    """A changed function, the smallest expression around the change before and after, and its syntax."""

    function: str
    before: str
    after: str
    node: ast.FunctionDef


def planted() -> dict[str, Check]:
    """The check of each claim, as it is without an error."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "notebooks"), str(ROOT)]
    os.environ.pop("EBR_CACHE", None)  # or a sweep would remember what it did without the mutant
    modules = pkgutil.iter_modules([str(ROOT / "tests/planted")])
    tables = [vars(import_module(f"planted.{module.name}")).get("PLANTED", {}) for module in modules]
    return {claim: checks[0] for table in tables for claim, checks in table.items()}


def rooms() -> dict[str, str]:
    """The room of each claim's check, by claims.yaml."""
    return {one.id: one.check.split(".")[0] for one in import_module("compendium.shared.ledger").claims()}


def outcome(check: Check, patience: float, mutant: Mutant | None = None, trace: bool = False) -> Any:
    """Verdict, evidence and the functions called, by a process of its own; None if none comes."""
    receive, send = FORK.Pipe(duplex=False)

    def run() -> None:
        called: set[Place] = set()
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        warnings.simplefilter("ignore")
        if mutant is not None:
            plant(mutant)
        sys.setprofile((lambda frame, *_: called.add(_place(frame))) if trace else None)
        finding = check()
        sys.setprofile(None)
        send.send((finding.verdict, repr(finding.evidence), called))

    process = FORK.Process(target=run)
    process.start()
    send.close()
    try:
        return receive.recv() if receive.poll(patience) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def _place(frame: Any) -> Place:
    caller = frame.f_back
    while caller and caller.f_code.co_filename.endswith("validation.py"):  # which wraps others
        caller = caller.f_back
    return frame.f_code.co_filename, frame.f_code.co_firstlineno, caller.f_code.co_filename if caller else ""


def plant(mutant: Mutant) -> None:
    """Give a function its mutant's code and defaults, also where it has been imported."""
    function, node = find(mutant.function), copy.deepcopy(mutant.node)
    *outer, _ = mutant.function.split(".")[3:]
    node.decorator_list, node.returns = [], None
    body: list[Any] = [ast.ClassDef(outer[0], [], [], [node], [])] if outer else [node]
    code = compile(ast.fix_missing_locations(ast.Module(body, [])), "mutant", "exec")
    space: dict[str, Any] = {}
    exec(code, function.__globals__, space)
    found = vars(space[outer[0]])[node.name] if outer else space[node.name]
    function.__code__, function.__defaults__ = found.__code__, found.__defaults__
    function.__kwdefaults__ = found.__kwdefaults__


def find(name: str) -> FunctionType:
    """The function of a full name, under its decorators."""
    parts = name.split(".")
    found: Any = import_module(".".join(parts[:3]))  # ebr.theory.… or compendium.ROOM.…
    for part in parts[3:]:
        found = inspect.getattr_static(found, part)
    for wrapper, inside in ((property, "fget"), (cached_property, "func"), (classmethod, "__func__")):
        found = getattr(found, inside) if isinstance(found, wrapper) else found
    return inspect.unwrap(found)


def formulas(called: set[Place], room: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a room of the compendium that were called, and the theory it called."""
    inside = str(ROOMS / room)
    for file in sorted({file for file, *_ in called}):
        theory = file.startswith(str(THEORY))
        if theory or file.startswith(inside):
            lines = {
                line for name, line, by in called if name == file and (not theory or by.startswith(inside))
            }
            for name, node in functions(Path(file)):
                first = min(part.lineno for part in (node, *node.decorator_list))
                if any(first <= line <= (node.end_lineno or 0) for line in lines):
                    yield name, node


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module, and the methods of its classes, by their full names."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("notebooks.")
    for node in ast.parse(path.read_text("utf-8")).body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef):
                outer = f"{module}.{node.name}" if isinstance(node, ast.ClassDef) else module
                yield f"{outer}.{inner.name}", inner


def mutants(name: str, function: ast.FunctionDef) -> Iterator[Mutant]:
    """All mutants of a function."""
    nodes = list(ast.walk(function))
    parents = {id(inner): place for place, node in enumerate(nodes) for inner in ast.iter_child_nodes(node)}
    silent = {id(inner) for node in nodes if _no_formula(node) for inner in ast.walk(node)}
    packed = pickle.dumps(function)  # to unpack it takes a fifth of the time of a deep copy
    for place, node in enumerate(nodes):
        for change in [] if id(node) in silent else _changes(node):
            mutated = pickle.loads(packed)
            inside = list(ast.walk(mutated))
            change(inside[place])
            small = isinstance(node, ast.Constant | ast.Name | ast.Attribute)
            around = parents[id(node)] if small else place
            yield Mutant(name, ast.unparse(nodes[around]), ast.unparse(inside[around]), mutated)


def _no_formula(node: ast.AST) -> bool:
    """Whether a node is no formula: words, messages, types, tolerances, numbers of axes or places."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") in WORDS
    if isinstance(node, ast.keyword):
        return node.arg in ("axis", "allowed", "options", "xtol", "rtol", "tol")
    return isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.arg | ast.Slice)


def _changes(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    """Functions that plant an error at a node, one for each possible error."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        others = (2 * node.value, node.value + 1, *([node.value / 2] if type(node.value) is float else []))
        for value in {other for other in others if other != node.value}:
            yield lambda inner, value=value: setattr(inner, "value", value)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield lambda inner: setattr(inner, "op", OPERATORS[type(inner.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        yield lambda inner: inner.ops.__setitem__(0, OPERATORS[type(inner.ops[0])]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield lambda inner: setattr(inner, "op", ast.UAdd())
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield lambda inner: setattr(inner, "id", NAMES[inner.id])
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield lambda inner: setattr(inner, "attr", NAMES[inner.attr])


def survivors(claim: str, check: Check, room: str, most: int, seconds: float) -> Iterator[tuple[str, ...]]:
    """The mutants that a claim's check does not see, of at most `most` per formula, within the time."""
    called = outcome(check, 600, trace=True)[2]
    start = time.monotonic()
    right, chosen = outcome(check, 600), []
    took = time.monotonic() - start
    for name, node in formulas(called, room):
        every = sorted(mutants(name, node), key=lambda mutant: mutant[:3])
        random.Random(f"{claim} {name}").shuffle(every)
        chosen += enumerate(every[:most])
    tried = 0
    for _, mutant in sorted(chosen, key=lambda pair: pair[0]):
        if time.monotonic() - start > seconds:
            break
        tried += 1
        found = outcome(check, PATIENCE * took + PATIENCE, mutant)
        if found is not None and found[0] == right[0]:
            yield claim, *mutant[:3], "same" if found[1] == right[1] else "changed"
    print(f"{claim}: {tried} of {len(chosen)} mutants, {took:.1f} s each", file=sys.stderr, flush=True)


def main() -> None:
    """Read the command line, write the table."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("claims", nargs="*")
    parser.add_argument("--most", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    checks, table = planted(), csv.writer(sys.stdout)
    for claim in asked.claims or sorted(checks):
        for row in survivors(claim, checks[claim], rooms()[claim], asked.most, asked.seconds):
            table.writerow(row)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
