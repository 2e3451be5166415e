"""Makes the pictures of docs/index.md: curve, report, attention and the server's page.

  python run_classifier.py --task_name=MRPC --eval_every_steps=100 --save_summary_steps=10
  python docs/pictures/make.py --run=output/mrpc --sample_run=output/mrpc_sample

--run is one of MRPC with released weights, whose attention is worth a look; texts that are shown
are our own. Pages are drawn by Chromium, which tests/kit/browser.py says more of. Pictures have a
palette of 64 colours, which keeps each below 80 KB. It takes a minute.
"""

import pathlib
import subprocess
import sys
import tempfile

from absl import app, flags
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
MOST_BYTES = 80_000
_COLOURS = 64

# A pair of the dev set's kind, with an answer that is not obvious.
TEXT_A = "The company said profits rose by a third last year."
TEXT_B = "Last year the firm's earnings grew by about 33 percent."

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  flags.DEFINE_string("run", None, "Folder of a run of MRPC.", required=True)
  flags.DEFINE_string("sample_run", None, "Folder of a run of the sample.", required=True)


def main(argv: list[str]) -> None:
  """Makes all pictures."""
  del argv
  sys.path.insert(0, str(ROOT))
  from tests.kit.browser import chromium

  with tempfile.TemporaryDirectory() as folder:
    aside = pathlib.Path(folder)
    draw_curve(aside)
    draw_attention(aside)
    make_report(aside)
    with chromium() as browser:
      photograph_report(browser, aside)
      photograph_server(browser, aside)


def draw_curve(aside: pathlib.Path) -> None:
  """Draws loss and accuracy, step by step."""
  picture = aside / "curve.png"
  _script(
    "plots",
    f"--model_dir={FLAGS.sample_run}",
    "--tags=loss,eval_accuracy",
    f"--output_file={picture}",
  )
  keep(picture, "learning_curve.png")


def draw_attention(aside: pathlib.Path) -> None:
  """Draws where the heads of a layer look in a pair."""
  picture = aside / "attention.png"
  _script(
    "attention_maps",
    f"--init_checkpoint={FLAGS.run}",
    f"--text={TEXT_A}",
    f"--text_pair={TEXT_B}",
    "--layer=2",
    "--head=1",
    "--hide_special_tokens",
    f"--output_file={picture}",
  )
  keep(picture, "attention.png")


def make_report(aside: pathlib.Path) -> None:
  """Writes the report of the run."""
  _script("report", f"--run={FLAGS.sample_run}", f"--output_file={aside / 'report.html'}")


def photograph_report(browser, aside: pathlib.Path) -> None:
  """Takes the report's confusions and what follows: above them are paths of this machine."""
  page = browser.new_page(viewport={"width": 1000, "height": 840})
  page.goto((aside / "report.html").as_uri())
  page.evaluate("document.querySelector('.contribution').open = true")
  page.evaluate("document.getElementById('matrix').closest('section').scrollIntoView()")
  picture = aside / "report.png"
  page.screenshot(path=picture)
  page.close()
  keep(picture, "report.png")


def photograph_server(browser, aside: pathlib.Path) -> None:
  """Takes the server's page with the answer to a pair."""
  from tests.kit.server_program import Program

  server = Program(aside, f"--model=mrpc={pathlib.Path(FLAGS.run).resolve()}")
  try:
    page = browser.new_page(viewport={"width": 1000, "height": 640}, reduced_motion="reduce")
    page.goto(f"{server.address}/#mrpc/answer")
    page.locator("#bench").wait_for()
    for label, text in (("Text A", TEXT_A), ("Text B", TEXT_B)):
      page.get_by_label(label).fill(text)
    page.locator("#send").click()
    page.locator("#latency").wait_for()
    page.evaluate("scrollTo(0, 0)")
    picture = aside / "server.png"
    page.screenshot(path=picture)
    page.close()
  finally:
    server.stop()
  keep(picture, "server.png")


def keep(picture: pathlib.Path, name: str) -> None:
  """Writes a picture into docs/pictures with a palette.

  Raises:
    ValueError: it is still too large.
  """
  path = FOLDER / name
  colours = Image.open(picture).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
  colours.save(path, optimize=True)
  size = path.stat().st_size
  if size > MOST_BYTES:
    raise ValueError(f"{path} has {size:,} bytes, more than {MOST_BYTES:,}: make it smaller.")
  print(f"{path.relative_to(ROOT)}: {size:,} bytes")


def _script(name: str, *arguments: str) -> None:
  subprocess.run([sys.executable, "-m", "bert", name, *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
  define_flags()
  app.run(main)
