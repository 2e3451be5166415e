"""The command `bert`: `python -m bert_alive run_classifier --task_name=MRPC`."""

import sys

from bert.__main__ import main

if __name__ == "__main__":
  sys.exit(main())
