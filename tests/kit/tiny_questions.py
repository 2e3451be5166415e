"""Questions about years, small enough to learn in sixty steps, and runs of run_squad.py on them."""

import json
import pathlib
import random

from bert import run_squad, tokenization
from bert.tasks.squad import read_squad_examples
from bert.tasks.squad_features import generate_features
from tests.kit import tiny_bert
from tests.kit.script_runs import Script, Trained, json_lines

WORDS = ["when", "was", "it", "in", "built", "house", "tower", "river", "gate", "?", "."]

YEARS = ["1895", "1902", "1943", "1997"]

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *YEARS]

CONFIG = tiny_bert.config(len(VOCAB))


def write_squad(path, contexts, with_answers=True, version_2=False) -> None:
  """A file of one question for each context: its year, if it has one, is the answer."""
  paragraphs = []
  for i, context in enumerate(contexts):
    years = [word for word in context.split() if word in YEARS]
    qa = {"id": f"q{i}", "question": "when was it ?"}
    if with_answers:
      qa["answers"] = [{"text": year, "answer_start": context.index(year)} for year in years]
    if version_2:
      qa["is_impossible"] = not years
    paragraphs.append({"context": context, "qas": [qa]})
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps({"version": "x", "data": [{"paragraphs": paragraphs}]}))


def contexts(count, seed, impossible=False) -> list[str]:
  """From 5 to 29 words, so that some need several windows; the year stands anywhere."""
  rng = random.Random(seed)
  found = []
  for i in range(count):
    words = rng.choices(WORDS[3:9], k=5 + i % 25)
    if not (impossible and i % 2):
      words[rng.randrange(len(words))] = rng.choice(YEARS)
    found.append(" ".join(words))
  return found


NUM_TRAIN, NUM_DEV = 48, 25


def train_and_predict(model, folder, version_2, **more) -> Trained:
  files = {"train_file": folder / "train.json", "predict_file": folder / "dev.json"}
  write_squad(files["train_file"], contexts(NUM_TRAIN, 1, version_2), version_2=version_2)
  write_squad(files["predict_file"], contexts(NUM_DEV, 2, version_2), version_2=version_2)
  values = {**model, **files, "output_dir": folder / "out", "num_train_epochs": 10.0, **more}
  values |= {"keep_checkpoint_max": 0}  # tests need the untrained weights
  if version_2:
    values["version_2_with_negative"] = True
  return Trained(
    values, folder / "out", Script(run_squad).run_well(**values, do_train=True, do_predict=True)
  )


def windows_of(trained: Trained, key: str, is_training: bool) -> list:
  flags = trained.flags
  version_2 = flags.get("version_2_with_negative", False)
  examples = read_squad_examples(flags[key], is_training, version_2)
  if is_training:
    random.Random(12345).shuffle(examples)
  tokenizer = tokenization.FullTokenizer(flags["vocab_file"])
  return list(generate_features(examples, tokenizer, 24, 8, 4, is_training))


def details_in(folder: pathlib.Path) -> list[dict]:
  """The objects of `predictions_detailed.jsonl`, one for each question."""
  return json_lines(folder / "predictions_detailed.jsonl")
