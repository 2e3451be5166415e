"""Masked words: the model's own probabilities, from checkpoints and exports, and messages."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert import predict
from bert.checkpoints import bundle_files, finding
from bert.model.configuration import BertConfig
from bert.model.variables import use_store
from bert.predicting import masked_words
from bert.predicting.engines import tensorflow
from bert.predicting.predictor import Predictor
from tests.kit import exports
from tests.kit.filters import run_filter
from tests.kit.masked_lm import CONFIG, TEXTS, VOCAB, pretraining_graph, variables


@pytest.fixture(scope="module")
def store():
  return variables()


def save(folder, variables) -> str:
  return exports.write_model(folder, CONFIG, VOCAB, variables)


def expected_of(store, item):
  """float32 [P, V] and a probability, from tokens put together by hand."""
  texts = [item] if isinstance(item, str) else item
  tokens, segments = ["[CLS]"], [0]
  for segment, text in enumerate(texts):
    words = text.lower().replace("[mask]", " [MASK] ").replace(".", " .").split()
    tokens += [*words, "[SEP]"]
    segments += [segment] * (len(words) + 1)
  places = [i for i, token in enumerate(tokens) if token == "[MASK]"] or [0]
  ids = [VOCAB.index(token) for token in tokens]
  with use_store(store):
    return pretraining_graph(tf.constant([ids]), tf.constant([segments]), tf.constant([places]))


def check(result, item, store, top_k):
  words, follows = expected_of(store, item)
  texts = [item] if isinstance(item, str) else item
  masks = " ".join(texts).count("[MASK]")
  assert (result["text"], len(result["masks"])) == (texts[0], masks)
  for pieces, probabilities in zip(result["masks"], words, strict=False):
    best = np.argsort(-probabilities)[:top_k]
    assert [piece["token"] for piece in pieces] == [[*VOCAB, "[id 15]"][i] for i in best]
    found = [piece["probability"] for piece in pieces]
    np.testing.assert_allclose(found, probabilities[best], atol=1e-5)
  return follows


# ---------------------------------------------------------------------------------------------
# Values.


def test_probabilities_are_those_of_the_heads(fill, store):
  for result, item in zip(fill(TEXTS), TEXTS, strict=True):
    follows = check(result, item, store, top_k=3)
    if isinstance(item, str):
      assert list(result) == ["text", "masks"]
    else:
      assert list(result) == ["text", "text_b", "masks", "next_sentence"]
      assert result["text_b"] == item[1]
      assert result["next_sentence"] == pytest.approx(follows, abs=1e-5)


@pytest.mark.ci
def test_an_answer_has_the_same_bits_whatever_texts_are_around_it(pretrained, pretrained_encoder):
  options = {"top_k": 3, "max_seq_length": 16, "batch_size": 4, "batch_invariant": True}
  for model, texts in ((pretrained, TEXTS), (pretrained_encoder, TEXTS[:3])):
    fill = Predictor.load(model, task="masked_words", **options)
    assert fill(texts) == [fill([text])[0] for text in texts]


def test_questions_may_be_dictionaries(fill):
  pair = next(item for item in TEXTS if not isinstance(item, str))
  items = [{"text": TEXTS[0]}, {"text_a": pair[0], "text_b": pair[1]}]
  assert fill(items) == fill([TEXTS[0], pair])
  assert fill(items[0]) == fill([TEXTS[0]])


def test_an_exported_encoder_says_the_same(pretrained_encoder, pretrained, store):
  """It does not know of next sentences."""
  fill = Predictor.load(pretrained_encoder, task="masked_words", top_k=3, max_seq_length=16)
  for result, item in zip(fill(TEXTS[:3]), TEXTS[:3], strict=True):
    check(result, item, store, top_k=3)
    assert "next_sentence" not in result
  with pytest.raises(ValueError, match="cls/seq_relationship"):
    fill(TEXTS[3:])


@pytest.mark.parametrize("written", ["[mask]", "[Mask]", "<mask>", "[ MASK ]", "____"])
def test_other_ways_to_write_the_mask_are_named(pretrained_encoder, written):
  fill = Predictor.load(pretrained_encoder, task="masked_words", max_seq_length=16)
  with pytest.raises(ValueError, match=r"no .MASK.*Write .MASK., in capitals, for ") as caught:
    fill([f"the {written} sat"])
  assert str(caught.value).endswith(f"for {written}.")


def test_all_pieces_add_up_to_one(pretrained):
  fill = Predictor.load(pretrained, task="masked_words", top_k=1000, max_seq_length=16)
  [pieces] = fill(["the [MASK] sat"])[0]["masks"]
  probabilities = [piece["probability"] for piece in pieces]
  assert probabilities == sorted(probabilities, reverse=True)
  assert sum(piece["probability"] for piece in pieces) == pytest.approx(1, abs=1e-5)
  assert sorted(piece["token"] for piece in pieces) == sorted([*VOCAB, "[id 15]"])


def test_the_heads_equal_the_originals(golden_dir):
  with np.load(golden_dir / "tiny_forward.npz") as recorded:
    recorded = dict(recorded)
  config = BertConfig.from_json_file(str(golden_dir / "tiny" / "bert_config.json"))
  function = tensorflow.load_graph(
    masked_words.graph(config, masked_words.Heads(True, next_sentence=True), config.vocab_size),
    masked_words.INPUTS,
    finding.find_checkpoint(golden_dir / "tiny"),
  )
  outputs = function({name: recorded[f"in_{name}"] for name in masked_words.INPUTS})
  by_id = np.argsort(outputs["ids"], axis=-1)
  probabilities = np.take_along_axis(np.asarray(outputs["probabilities"]), by_id, axis=-1)
  np.testing.assert_allclose(
    np.log(probabilities.reshape([-1, config.vocab_size])[:, :8]),
    recorded["masked_lm_log_probs_first8"],
    atol=1e-5,
  )
  np.testing.assert_allclose(
    np.log(outputs["next_sentence"]), recorded["next_sentence_log_probs"][:, 0], atol=1e-5
  )


# ---------------------------------------------------------------------------------------------
# Texts that have no answer.


def test_a_mask_that_is_cut_off_is_told(fill):
  assert len(fill(["the " * 13 + "[MASK]"])[0]["masks"]) == 1
  with pytest.raises(ValueError, match=r"1 of 2 \[MASK\] in .* are beyond max_seq_length 16"):
    fill(["[MASK]" + "the " * 14 + "[MASK]"])


def test_a_checkpoint_without_the_head_is_told(store, tmp_path):
  encoder_alone = {n: v for n, v in store.variables.items() if n.startswith("bert/")}
  folder = save(tmp_path, encoder_alone)
  with pytest.raises(bundle_files.CheckpointError, match="has no head for masked words"):
    Predictor.load(folder, task="masked_words", max_seq_length=16)


def test_half_a_head_is_told(store, tmp_path):
  half = {n: v for n, v in store.variables.items() if n != "cls/predictions/output_bias"}
  folder = save(tmp_path, half)
  with pytest.raises(
    bundle_files.CheckpointError, match=r"lacks 1 of .* cls/predictions/output_bias"
  ):
    Predictor.load(folder, task="masked_words", max_seq_length=16)


def test_predict_py_fills_masks_too(pretrained, store):
  lines = [
    "The [MASK] sat .",
    '{"text": "The [MASK] sat ."}',
    '{"text_b": "on the [MASK] .", "text_a": "the cat"}',
  ]
  flags = {"task": "masked_words", "init_checkpoint": pretrained, "max_seq_length": 16}
  code, printed, err = run_filter(predict, "\n".join(lines).encode(), **flags)
  assert code is None, err
  results = list(map(json.loads, printed.splitlines()))
  items = ["The [MASK] sat .", "The [MASK] sat .", ("the cat", "on the [MASK] .")]
  for result, item in zip(results, items, strict=True):
    check(result, item, store, top_k=5)
  for bad in ("no mask", '{"context": "a", "choices": ["[MASK]"]}'):
    code, _, err = run_filter(predict, f"The [MASK] .\n{bad}".encode(), **flags)
    assert (code, "standard input, line 2: " in err) == (1, True)
