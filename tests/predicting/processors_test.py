"""Items to rows and back, without a model.

Alone: python -m pytest tests/predicting/processors_test.py (a second)
"""

import numpy as np
import pytest

from bert import tokenization
from bert.predicting.attention import MapProcessor, OneMap
from bert.predicting.processors import TextProcessor, VectorProcessor

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "rain", "##s", "."]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
  path.write_text("\n".join(VOCAB) + "\n")
  return tokenization.load_tokenizer(path)


@pytest.fixture
def vectors(tokenizer):
  return VectorProcessor(tokenizer, max_seq_length=6)


def ids(processor, item):
  (row,) = processor.featurize(item)
  assert row["input_mask"] == [1] * len(row["input_ids"])
  assert len(row["segment_ids"]) == len(row["input_ids"])
  return row["input_ids"]


@pytest.mark.parametrize(
  "item",
  [
    "it rains .",
    {"text": "it rains ."},
    [5, 6, 7, 8],
    [2, 5, 6, 7, 8, 3],
    [2, 5, 6, 7, 8],
    [5, 6, 7, 8, 3],
    [2, 5, 6, 7, 8, 3, 0, 0],
    {"token_ids": [5, 6, 7, 8]},
    {"token_ids": [2, 5, 6, 7, 8, 3], "truncate": False},
    {"words": ["[CLS]", "it", "rains", ".", "[SEP]"]},
    {"words": ["It", "rains", "."]},
    {"words": ["it", "rain", "##s", "."]},
    {"words": ["it", "rains", "."], "truncate": False},
    {"text": "it rains .", "truncate": False},
  ],
)
def test_the_same_text_in_all_forms(vectors, item):
  assert ids(vectors, item) == [2, 5, 6, 7, 8, 3]


def test_what_is_too_long_is_cut_or_refused(vectors):
  for item in (
    "it . it . it",
    [5, 8, 5, 8, 5],
    [2, 5, 8, 5, 8, 5, 3],
    {"words": ["it", ".", "it", ".", "it"]},
  ):
    assert ids(vectors, item) == [2, 5, 8, 5, 8, 3]
  for item in ({"text": "it . it . it"}, {"token_ids": [5, 8, 5, 8, 5]}):
    with pytest.raises(ValueError, match=r"has 7 tokens, .* the model reads 6"):
      vectors.featurize({**item, "truncate": False})


@pytest.mark.parametrize("item", [("it", "rain"), [2, 5, 3, 6, 3], [5, 3, 6, 3]])
def test_a_pair_has_two_segments(vectors, item):
  (row,) = vectors.featurize(item)
  assert row["input_ids"] == [2, 5, 3, 6, 3]
  assert row["segment_ids"] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
  ("item", "message"),
  [
    ([9], "9 is not a token id of this model, whose vocabulary has 9 tokens"),
    ([-1], "-1 is not a token id"),
    ([True], "True is not a token id"),
    ([5, 1.5], "1.5 is not a token id"),
    ([10**30], "is not a token id"),
    ([7, 5], "are '##s it' in this model's voc"),  # no word begins with ##s
    ([5, 2, 8], "are 'it \\[CLS\\] .' in this model"),
    ([0], "are '\\[PAD\\]'"),
    ([], "or a list of token ids, not \\[\\]"),
    ({"token_ids": "it"}, "list of token ids, not 'it'"),
    ({"words": []}, "words is \\[\\], but must be a list of texts"),
    ({"words": ["it", 5]}, "must be a list of texts"),
    ({"words": ["it"], "text": "it"}, "words stand alone, without text"),
    (5, "Expected a text or a pair of texts, not 5"),
    (None, "Expected a text or a pair of texts, not None"),
    ({"text": 5}, "Expected a text or a pair of texts"),
    (["it", 5], "Expected a text or a pair of texts"),
  ],
)
def test_other_items_are_refused(vectors, item, message):
  with pytest.raises(ValueError, match=message):
    vectors.featurize(item)


@pytest.mark.parametrize("ids", [[15339, 1917], [279, 1984], [13]])
def test_ids_of_openai_are_refused_with_the_remedy(ids, tmp_path):
  """The first are "hello world" of cl100k_base; tokens as at these ids of BERT-Base, Uncased."""
  tokens = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]", 1917: "皇"}
  tokens |= {15339: "denise", 13: "[unused12]", 279: "[unused274]", 1984: "ﬁ"}
  path = tmp_path / "vocab.txt"
  path.write_text("".join(f"{tokens.get(index, f'w{index:x}')}\n" for index in range(15340)))
  processor = VectorProcessor(tokenization.load_tokenizer(path), 6)
  with pytest.raises(ValueError, match="check_embedding_ctx_length=False"):
    processor.featurize(ids)
  assert processor.featurize([101, *ids, 102])[0]["input_ids"] == [101, *ids, 102]
  assert processor.featurize([15339, 15338])[0]["input_ids"] == [101, 15339, 15338, 102]
  for own in ([1917], [1917, 1917], [15339], [15339, 15338, 15337, 15336]):  # of one script
    assert processor.featurize(own)[0]["input_ids"] == [101, *own, 102]
  assert processor.featurize([15339, 1917, 100])  # a text of both scripts, as far as one can tell


def test_vectors_are_copies_of_what_the_engine_gives(vectors, tokenizer):
  rows = vectors.featurize("it")
  batch = np.ones([2, 1, 4], np.float32)
  assert vectors.finish(rows, [{"vectors": batch[0, 0]}]).tolist() == [1] * 4
  layers = VectorProcessor(tokenizer, 6, is_of_layers=True)
  found = layers.finish(rows, [{"vectors": batch[0]}])
  assert found.shape == (4,)
  assert not np.shares_memory(found, batch)


def test_first_trials_are_short_and_as_long_as_can_be(vectors):
  lengths = [len(ids(vectors, item["text"])) for item in vectors.trial_items()]
  assert lengths == [3, 6]


def test_tokens_of_texts_are_guessed():
  processor = TextProcessor(["text_a", "text_b"])
  (row,) = processor.featurize(("x" * 40, "y" * 40))
  assert processor.num_tokens(row) == 2 + 20
  assert processor.finish([row], [{"label": np.array(b"y")}]) == {"label": "y"}


def test_a_model_of_pairs_takes_no_single_text():
  with pytest.raises(ValueError, match="is one text, but this model compares two"):
    TextProcessor(["text_a", "text_b"], needs_pairs=True).featurize("it")


def test_a_map_is_that_of_its_layer_and_head(tokenizer):
  processor = MapProcessor(tokenizer, 8, num_layers=2, num_heads=3)
  short = processor.featurize({"text": "it", "layer": 1, "head": 2})
  long = processor.featurize(("it", "rains"))
  batch = {"place": np.array([short[0]["place"], long[0]["place"]])}
  maps = np.arange(2 * 2 * 3 * 7 * 7, dtype=np.float32).reshape([2, 2, 3, 7, 7])

  def engine(given):
    return {"maps": maps}

  engine.name = "made up"
  found = OneMap(engine)(batch)["map"]
  result = processor.finish(short, [{"map": found[0]}])
  assert result["tokens"] == ["[CLS]", "it", "[SEP]"]
  np.testing.assert_array_equal(result["map"], maps[0, 1, 2, :3, :3])
  np.testing.assert_array_equal(found[1], maps[1, 0, 0])


@pytest.mark.parametrize("place", [{"layer": 2}, {"head": -1}, {"head": "0"}, {"layer": True}])
def test_other_layers_and_heads_are_refused(tokenizer, place):
  processor = MapProcessor(tokenizer, 8, num_layers=2, num_heads=3)
  with pytest.raises(ValueError, match=r"but must be from 0 to [12]"):
    processor.featurize({"text": "it", **place})
