"""Prints exact numbers of parameters, without creating the models.

python -m bert.keras3 --count_params base large uncased_L-2_H-128_A-2
"""

import argparse
from collections.abc import Sequence

from bert.keras3.sizes import NAMED_VARIANTS, count_parameters


def main(argv: Sequence[str] | None = None) -> None:
  """Prints the number of parameters of each named model."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--count_params",
    nargs="+",
    required=True,
    metavar="NAME",
    help=f"{', '.join(NAMED_VARIANTS)}, or a released model such as uncased_L-2_H-128_A-2",
  )
  for name in parser.parse_args(argv).count_params:
    try:
      print(f"{name}: {count_parameters(name):,} parameters")
    except ValueError as error:
      parser.error(str(error))


if __name__ == "__main__":
  main()
