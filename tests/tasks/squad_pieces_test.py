"""Windows of a sentencepiece model against ALBERT's, and ELECTRA's windows."""

import gzip
import json

import pytest

from bert import tokenization
from bert.tasks import squad_pieces
from bert.tasks.squad import SquadExample, read_squad_examples
from tests.kit.squad_samples import features_of


def lines_of(path):
  with gzip.open(path, "rt", encoding="utf-8") as lines:
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def albert(golden_dir):
  """The tokenizer, and a function to the recorded questions."""
  pytest.importorskip("sentencepiece")
  from bert.text.sentence_pieces import SentencePieceTokenizer

  ids = json.loads((golden_dir / "albert" / "squad_questions.json").read_text())

  def examples(is_training):
    read = read_squad_examples(golden_dir / "squad" / "train_input-v2.0.json", is_training, True)
    by_id = {example.qas_id: example for example in read}
    return [by_id[qas_id] for qas_id in ids]

  return SentencePieceTokenizer(golden_dir / "albert" / "tiny_spm.model"), examples


@pytest.mark.parametrize("mode", ["train", "predict"])
def test_windows_equal_alberts(golden_dir, albert, mode):
  tokenizer, examples = albert
  is_training = mode == "train"
  features = features_of(examples(is_training), tokenizer, (64, 24, 16), is_training)
  records = lines_of(golden_dir / "albert" / f"squad_{mode}_features.jsonl.gz")
  for feature, record in zip(features, records, strict=True):
    length = record["paragraph_len"]
    assert len(feature.tokens) == length
    padding = [0] * (64 - length)
    for name in ("input_ids", "segment_ids"):
      assert getattr(feature, name) == record[name] + padding, name
    assert feature.input_mask == [1] * length + padding
    starts, ends = zip(*feature.char_spans.values(), strict=True)
    assert list(starts) == record["tok_start_to_orig_index"]
    assert list(ends) == record["tok_end_to_orig_index"]
    for name in ("unique_id", "doc_span_index", "start_position", "end_position"):
      assert getattr(feature, name) == record[name], name
    assert (
      list(feature.char_spans) == [i for i, hidden in enumerate(record["p_mask"]) if not hidden][1:]
    )
    context = {int(position): value for position, value in record["token_is_max_context"].items()}
    assert dict(feature.token_is_max_context) == context
    if is_training:
      assert feature.is_impossible == record["is_impossible"]


def test_a_paragraph_that_its_pieces_do_not_spell_is_left_out(albert, caplog):
  tokenizer, _ = albert
  lost = SquadExample("q", "What?", ["x"], context="\u0301" * 50 + "x")
  assert features_of([lost], tokenizer, (64, 24, 16)) == []
  assert "do not fit its text" in caplog.text


@pytest.mark.parametrize(
  ("chars", "text"), [("a b", " a b"), ("a  b", " a b"), ("éa", " ea"), ("1,2", " 1 ,2")]
)
def test_alignment_of_what_is_and_is_not_spelled_alike(chars, text):
  """The fast way and the table agree where both apply."""
  distance = abs(len(chars) - len(text)) + 5
  _, moves = squad_pieces._common_subsequence(chars, text, distance)
  pairs = squad_pieces._traced_back(moves, distance, len(text))
  assert all(chars[i] == text[j] for i, j in pairs)
  if list(chars) == list(text[1:]):
    assert pairs == squad_pieces._aligned(chars, text)


def test_windows_equal_electras(golden_dir):
  folder = golden_dir / "electra"
  records = lines_of(folder / "finetune_squad_features.jsonl.gz")
  examples = read_squad_examples(golden_dir / "squad" / "train_input-v2.0.json", True, True)
  tokenizer = tokenization.FullTokenizer(str(folder / "tiny_vocab.txt"))
  features = features_of(examples[:24], tokenizer, (48, 16, 12), is_training=True)
  assert len(records) == 150
  for feature, record in zip(features[:150], records, strict=True):
    for name in ("input_ids", "input_mask", "segment_ids"):
      assert getattr(feature, name) == record[name]
    assert examples[feature.example_index].qas_id == record["qas_id"]
    assert feature.tokens == record["squad_tokens"]
    for name, key in (
      ("doc_span_index", "doc_span_index"),
      ("start_position", "start_positions"),
      ("end_position", "end_positions"),
      ("is_impossible", "is_impossible"),
    ):
      assert getattr(feature, name) == record[f"squad_{key}"], name
    for name in ("token_to_orig_map", "token_is_max_context"):
      expected = {int(position): value for position, value in record[f"squad_{name}"].items()}
      assert dict(getattr(feature, name)) == expected
