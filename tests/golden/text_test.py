"""Tokens, features, windows, answers and records are the original's. See README.md."""

import gzip
import json
import pathlib
from typing import NamedTuple

import pytest

from bert import run_classifier, run_squad, tokenization
from tests.golden.record import PRETRAINING_RECORDS, WINDOWS
from tests.kit import pretraining_records
from tests.kit.script_runs import values_in

FOLDER = pathlib.Path(__file__).parent
INPUTS = FOLDER / "inputs"
VOCAB = INPUTS / "vocab.txt"
VERSIONS = ("v1.1", "v2.0")


class Result(NamedTuple):
  unique_id: int
  start_logits: list[float]
  end_logits: list[float]


def recorded(name) -> list[dict]:
  with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="ascii") as lines:
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def tokenizer():
  return tokenization.FullTokenizer(VOCAB, do_lower_case=True)


def test_tokens():
  tokenizers = {"wordpiece": tokenization.WordpieceTokenizer(tokenization.load_vocab(VOCAB))}
  for case in ("uncased", "cased"):
    lower = case == "uncased"
    tokenizers[f"basic_{case}"] = tokenization.BasicTokenizer(do_lower_case=lower)
    tokenizers[f"full_{case}"] = tokenization.FullTokenizer(VOCAB, do_lower_case=lower)
  texts = json.loads((INPUTS / "texts.json").read_text(encoding="ascii"))
  for text, expected in zip(texts, recorded("tokens"), strict=True):
    for name, tokens in expected.items():
      assert tokenizers[name].tokenize(text) == tokens, (name, text)
    for case in ("uncased", "cased"):
      spans = tokenizers[f"full_{case}"].tokenize_with_offsets(text)
      assert [span.token for span in spans] == expected[f"full_{case}"], (case, text)


def test_classifier_features(tokenizer):
  processors = {"MRPC": run_classifier.MrpcProcessor, "CoLA": run_classifier.ColaProcessor}
  records = recorded("classifier_features")
  for record in records:
    processor = processors[record["task"]]()
    examples = getattr(processor, record["method"])(INPUTS / record["task"])
    example = [*examples, run_classifier.PaddingInputExample()][record["number"]]
    for name, value in record["example"].items():
      assert getattr(example, name) == value, name
    features = run_classifier.convert_single_example(
      record["number"], example, processor.get_labels(), record["max_seq_length"], tokenizer
    )
    assert vars(features) == record["features"]


def windows_of(version, is_training, lengths, tokenizer) -> tuple[list, list]:
  path = INPUTS / f"questions-{version}.json"
  examples = run_squad.read_squad_examples(path, is_training, version == "v2.0")
  features = []
  run_squad.convert_examples_to_features(
    examples, tokenizer, *lengths, is_training, features.append
  )
  return examples, features


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("lengths", WINDOWS)
def test_squad_windows(version, is_training, lengths, tokenizer):
  _, features = windows_of(version, is_training, lengths, tokenizer)
  chosen = {"version": version, "is_training": is_training, "lengths": list(lengths)}
  expected = [r for r in recorded("squad_windows") if chosen.items() <= r.items()]
  for feature, record in zip(features, expected, strict=True):
    for name, value in record.items():
      if name in ("token_to_orig_map", "token_is_max_context"):
        assert {str(key): v for key, v in getattr(feature, name).items()} == value, name
      elif name not in chosen:
        assert getattr(feature, name) == value, name


@pytest.mark.parametrize("version", VERSIONS)
def test_squad_answers(version, tokenizer, tmp_path):
  [record] = [r for r in recorded("squad_answers") if r["version"] == version]
  examples, features = windows_of(version, False, WINDOWS[0], tokenizer)
  results = [
    Result(feature.unique_id, *scores)
    for feature, scores in zip(features, record["scores"], strict=True)
  ]
  names = ("predictions", "nbest", "null_odds")
  run_squad.write_predictions(
    examples,
    features,
    results,
    10,
    12,
    True,
    *(str(tmp_path / name) for name in names),
    version_2_with_negative=version == "v2.0",
  )
  for name in names:
    assert (tmp_path / name).exists() == (name in record)
    if name in record:
      assert json.loads((tmp_path / name).read_text()) == record[name]


@pytest.mark.parametrize("name", PRETRAINING_RECORDS)
def test_pretraining_records(name, tmp_path):
  options = dict(option.lstrip("-").split("=") for option in PRETRAINING_RECORDS[name])
  output = tmp_path / "records"
  pretraining_records.create(output, INPUTS / "corpus.txt", vocab_file=VOCAB, **options)
  expected = [r for r in recorded("pretraining_records") if r.pop("set") == name]
  found = values_in(output)
  assert len(found) == len(expected)
  for ours, original in zip(found, expected, strict=True):
    assert ours == original
