"""Windows of SQuAD's questions."""

import gzip
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.tasks import squad_features
from bert.tasks.squad import SquadExample, read_squad_examples
from bert.tasks.squad_features import WindowMap
from tests.kit.squad_samples import VERSIONS, features_of, tokenizer_of


def assert_features_equal(features, path):
  with gzip.open(path, "rt", encoding="utf-8") as lines:
    expected = [json.loads(line) for line in lines]
  assert len(features) == len(expected) > 100
  for feature, golden_feature in zip(features, expected, strict=True):
    assert vars(feature).keys() == golden_feature.keys()
    for name, value in golden_feature.items():
      found = getattr(feature, name)
      if isinstance(found, WindowMap):
        value = {int(position): v for position, v in value.items()}
        found = dict(found)
      assert found == value, name


def test_predict_features_equal_the_originals(golden_squad):
  path = golden_squad.folder / f"predict_features-v{golden_squad.version}.jsonl.gz"
  assert_features_equal(golden_squad.features, path)


@pytest.mark.parametrize("version", VERSIONS)
def test_train_features_equal_the_originals(golden_dir, golden_tokenizer, version):
  folder = golden_dir / "squad"
  examples = read_squad_examples(folder / f"train_input-v{version}.json", True, VERSIONS[version])
  features = features_of(examples, golden_tokenizer, is_training=True)
  assert_features_equal(features, folder / f"train_features-v{version}.jsonl.gz")
  assert any(feature.start_position for feature in features)


def test_answers_are_narrowed_to_their_pieces(squad_tokenizer):
  words = ["the", "japanese", "man", "(1895-1943)."]
  for answer, start, end, tokens in (
    ("1895", 3, 3, ["1", "##8", "##9", "##5"]),
    ("1895-1943", 3, 3, ["1", "##8", "##9", "##5", "-", "1", "##9", "##4", "##3"]),
    ("Japan", 1, 1, ["japanese"]),
    ("the Japanese", 0, 1, ["the", "japanese"]),
  ):
    example = SquadExample("q", "to", words, answer, start, end)
    [feature] = features_of([example], squad_tokenizer, (32, 16, 4), is_training=True)
    assert feature.tokens[feature.start_position : feature.end_position + 1] == tokens


@given(st.data())
def test_the_narrowed_span_is_the_first_whose_text_is_the_answers(data):
  pieces = data.draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=8))
  start = data.draw(st.integers(0, len(pieces) - 1))
  end = data.draw(st.integers(start, len(pieces) - 1))
  answer = "".join(data.draw(st.lists(st.sampled_from("ab"), max_size=4)))

  class Letters:
    def tokenize(self, text):
      return list(text)

  spans = [(i, j) for i in range(start, end + 1) for j in range(end, i - 1, -1)]
  matching = (s for s in spans if "".join(pieces[s[0] : s[1] + 1]) == answer)
  expected = next(matching, (start, end))
  assert squad_features._improve_answer_span(pieces, start, end, Letters(), answer) == expected


def shows_most_context(spans, index, position) -> bool:
  """The original's `_check_is_max_context`: token by token, window by window."""

  def score(span):
    left, right = position - span.start, span.start + span.length - 1 - position
    return min(left, right) + 0.01 * span.length if min(left, right) >= 0 else -1.0

  return index == max(range(len(spans)), key=lambda i: score(spans[i]))


@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 25))
def test_context_of_all_pieces_at_once(num_pieces, max_length, doc_stride):
  spans = squad_features._doc_spans(num_pieces, max_length, doc_stride)
  flags = squad_features._max_context_flags(spans, num_pieces)
  owners = np.zeros(num_pieces, int)
  for index, span in enumerate(spans):
    for offset in range(span.length):
      position = span.start + offset
      expected = shows_most_context(spans, index, position)
      assert bool(flags[index][offset]) == expected
      owners[position] += expected
  covered = sorted({span.start + i for span in spans for i in range(span.length)})
  if doc_stride <= max_length:
    assert covered == list(range(num_pieces)), "a stride within the window leaves no gap"
  assert (owners[covered] == 1).all(), "each piece belongs to one window"


def test_lengths_without_room(squad_tokenizer):
  examples = [SquadExample("q", "to", ["store"])]
  with pytest.raises(ValueError, match=r"max_seq_length \(67\).* \(64\) \+ 3"):
    features_of(examples, squad_tokenizer, (67, 16, 64))
  with pytest.raises(ValueError, match="doc_stride is 0"):
    features_of(examples, squad_tokenizer, (68, 0, 64))
  assert len(features_of(examples, squad_tokenizer, (68, 1, 64))) == 1


def test_the_first_20_examples_are_logged(squad_tokenizer, caplog):
  examples = [SquadExample(str(i), "to", ["store"], "store", 0, 0) for i in range(22)]
  with caplog.at_level("INFO", logger="absl"):
    features_of(examples, squad_tokenizer, (8, 4, 2), is_training=True)
  assert caplog.messages.count("*** Example ***") == 20
  assert "token_is_max_context: 3:True" in caplog.messages
  assert "answer: store" in caplog.messages


def trained_on(folder, context, text, answer_start) -> tuple[int, list[str]]:
  """Where the answer to train on begins, in tokens of the paragraph, and its tokens."""
  answers = [{"text": text, "answer_start": answer_start}]
  paragraph = {"context": context, "qas": [{"id": "q", "question": "", "answers": answers}]}
  path = folder / "train.json"
  path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
  tokenizer = tokenizer_of(context, folder)
  [feature] = features_of(read_squad_examples(path, True), tokenizer, (99, 50, 4), is_training=True)
  start = feature.start_position
  return start - 2, feature.tokens[start : feature.end_position + 1]


@pytest.mark.parametrize(
  ("context", "answer"),
  [
    ("北京大学是中国的大学。中国人民日报在北京。北京市长是高勇，中国的经理。", "北京"),
    ("北京大学是中国的大学。中国人民日报在北京。北京市长是高勇，中国的经理。", "中国的"),
    ("それはイラクのことで、イラクにはイラク人がいる。", "イラク"),
    ("それはイラクのことです。", "イラク"),
    ("1945年は1945年のまえ、1945です。", "1945"),
    ("ไทยคือประเทศไทย", "ไทย"),
    ("A draw:3-3-3.", "3"),
  ],
)
def test_the_answer_is_the_occurrence_at_answer_start(tmp_path, context, answer):
  for place in (match.start() for match in re.finditer(answer, context)):
    start, tokens = trained_on(tmp_path, context, answer, place)
    assert start == place - context.count(" ", 0, place)
    assert [token.removeprefix("##") for token in tokens] == list(answer)


@pytest.mark.parametrize("answer_start", [3, 4])
def test_an_answer_beside_its_place_is_the_closest_occurrence(tmp_path, answer_start):
  assert trained_on(tmp_path, "北京大学在北京", "北京", answer_start) == (5, ["北", "京"])


def test_in_a_script_with_spaces_a_part_of_a_token_is_not_the_answer(squad_tokenizer):
  words = ["(Japanese-Japan)"]
  example = SquadExample("q", "to", words, "Japan", 0, 0, word_starts=[0], answer_start=1)
  example.context = words[0]
  [feature] = features_of([example], squad_tokenizer, (32, 16, 4), is_training=True)
  assert feature.tokens[feature.start_position : feature.end_position + 1] == ["japan"]


def test_an_answer_that_is_an_unknown_word_is_the_one_at_its_place(tmp_path):
  context = "龘在龘，龘"
  answers = [{"text": "龘", "answer_start": 2}]
  path = tmp_path / "train.json"
  qas = [{"id": "q", "question": "", "answers": answers}]
  path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}]}]}))
  tokenizer = tokenizer_of("在，", tmp_path)
  [feature] = features_of(read_squad_examples(path, True), tokenizer, (99, 50, 4), is_training=True)
  assert (feature.start_position, feature.end_position) == (4, 4)
  assert feature.tokens[4] == "[UNK]"
