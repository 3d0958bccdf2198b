"""Join claims.yaml with what the notebooks found, and write the README's part of the ledger.

ledger.py            write it, and print the counts
ledger.py --check    say whether it is current
"""

import sys

from compendium.shared import ledger

README = ledger.ROOT / "README.md"
MARKS = ("<!-- ledger, written by `make ledger` -->", "<!-- end of ledger -->")


def page(text: str, entered: list[ledger.Claim]) -> str:
    """The README with the part between the marks renewed: the counts, and what fails as stated."""
    before, opening, rest = text.partition(MARKS[0])
    _, closing, after = rest.partition(MARKS[1])
    if not opening or not closing:
        raise ValueError(f"README.md must have the marks {MARKS[0]} and {MARKS[1]}")
    failed = [claim for claim in entered if claim.verdict == "fails as stated"]
    rows = [f"| {claim.id} | {claim.statement} | {claim.correction} |" for claim in failed]
    table = "\n".join(["| | what is said and fails as stated | what is so |", "|---|---|---|", *rows])
    return f"{before}{MARKS[0]}\n{ledger.summary(entered)}.\n\n{table}\n{MARKS[1]}{after}"


def main() -> None:
    """Write the README's part, or check it."""
    try:
        entered = ledger.claims()
        ledger.join(entered, ledger.found())
        old = README.read_text(encoding="utf-8")
        new = page(old, entered)
    except ValueError as error:
        sys.exit(str(error))
    if sys.argv[1:] != ["--check"]:
        README.write_text(new, encoding="utf-8")
    elif new != old:
        sys.exit("README.md has another ledger than claims.yaml: run `make ledger`")
    print(ledger.summary(entered))


if __name__ == "__main__":
    main()
