"""Where things are: this distribution, the checkout that it is part of, and what is beside that."""

import pathlib

TF1 = pathlib.Path(__file__).resolve().parents[2]
CHECKOUT = TF1.parent
SHARED = CHECKOUT.parent / "shared"
MINIATURE = TF1 / "tests" / "miniature"
