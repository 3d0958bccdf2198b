"""X8's table and picture."""

import matplotlib.pyplot as plt
from compendium.shared import figures
from compendium.two_arms import least_price


def test_the_prices_are_in_their_order_and_the_picture_has_every_rule():
    table = figures.rounded(least_price.certified((1, 2), (0.1, 0.03), (0.01,)))
    curves = figures.rounded(least_price.prices(table, 0.1, 0.01))
    two = curves[curves["deadline"] == 2].set_index("rule")["price"]
    order = [
        "Corollary 1 (i)",
        "bound of notebook 13",
        "best policy found",
        "best fixed schedule",
        "sharp EBR",
        "EBR",
    ]
    assert two[[*order, "Theorem 2"]].is_monotonic_increasing
    figure = least_price.draw(curves, table, 0.1, 0.01)
    assert [len(axis.lines) for axis in figure.axes] == [curves["rule"].nunique(), 2]
    plt.close(figure)
