"""Features of all tasks with RoBERTa's tokenizer, as transformers' recipes make them."""

import types

import pytest

from bert.tasks import classification, conll_files, similarity, squad_features, tagging, windows
from bert.tasks.multiple_choice import ChoiceExample as Question
from bert.tasks.multiple_choice import convert_examples_to_features as choice_features
from bert.text.byte_pairs import BytePairTokenizer
from tests.kit import byte_pairs


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  return BytePairTokenizer(byte_pairs.write(tmp_path_factory.mktemp("pairs")))


def tokens_of(tokenizer, ids):
  return tokenizer.convert_ids_to_tokens(ids)


def features_of(tokenizer, *texts, length=12):
  example = classification.InputExample("x", *texts, label="0")
  return classification.convert_single_example(9, example, ["0"], length, tokenizer)


def test_a_pair_has_two_separators_and_no_segments(tokenizer):
  features = features_of(tokenizer, "the and", "Hello", length=9)
  assert tokens_of(tokenizer, features.input_ids) == [
    *["<s>", "t", "he", "Ġand", "</s>", "</s>", "Hello", "</s>", "<pad>"]
  ]
  assert features.input_mask == [1] * 8 + [0]
  assert features.segment_ids == [0] * 9
  assert features_of(tokenizer, "and", " ", length=4).input_ids[-1] == 2  # "Ġ" is a token


@pytest.mark.parametrize(
  ("texts", "kept"),
  # As the library's `longest_first`: 5 tokens remain of both.
  [(("..(((", ")))))"), (2, 3)), (("(((((((", ")))))"), (3, 2)), (("(", ")))))"), (1, 4))],
)
def test_what_is_cut_of_a_long_pair(tokenizer, texts, kept):
  tokens = tokens_of(tokenizer, features_of(tokenizer, *texts, length=9).input_ids)
  end = tokens.index("</s>")
  assert (end - 1, len(tokens) - end - 3) == kept
  ids = tokenizer.encode_batch([texts[0]], [texts[1]], max_seq_length=9)["input_ids"]
  assert tokens_of(tokenizer, ids[0].tolist()) == tokens


def test_windows_of_a_long_document(tokenizer):
  reader = windows.WindowReader(tokenizer, windows.WindowOptions(2, 4))
  for texts, begin in [(["()" * 4, "!"], 1), (["!", "()" * 4], 4)]:
    example = classification.InputExample("x", *texts, label="0")
    first = classification.convert_single_example(9, example, ["0"], 9, reader)
    found = reader.windows_of(example, first)
    long = "".join(max(texts, key=len))
    rows = [
      tokens_of(tokenizer, row) for row in found["input_ids"][: found["num_windows"]].tolist()
    ]
    assert ["".join(row[begin : begin + 4]) for row in rows] == [long[i : i + 4] for i in (0, 2, 4)]
    assert all(row[:1] + row[begin + 4 :][:1] == ["<s>", "</s>"] for row in rows)


def test_words_of_tags_have_a_space_before_them(tokenizer):
  example = conll_files.TaggedSentence("x", ["the", "Hello", "and"], ["O", "B-A", "O"])
  (features,) = tagging.convert_examples_to_features([example], ["O", "B-A"], "bio", 9, tokenizer)
  assert tokens_of(tokenizer, features.input_ids) == [
    *["<s>", "Ġthe", "Ġ", "Hello", "Ġand", "</s>", "<pad>", "<pad>", "<pad>"]
  ]
  assert features.label_ids == [-1, 0, 1, -1, 0, -1, -1, -1, -1]


def question(context, answer, text="  Hello?"):
  return types.SimpleNamespace(
    qas_id="1",
    question_text=text,
    context=context,
    orig_answer_text=answer,
    answer_start=context.index(answer),
    is_impossible=False,
  )


def test_answers_lie_where_their_characters_do(tokenizer):
  """Also in the middle of a word, and in every window that has them whole."""
  context = "the (and) é, then Hello and the end... in all"
  for answer in ("and", "Hello and", "é, then", "in all", "the", "..."):
    found = 0
    example = question(context, answer)
    for window in squad_features.generate_features([example], tokenizer, 24, 6, 8, True, shown=0):
      assert window.tokens[:4] == ["<s>", "Hello", "?", "</s>"]
      assert window.input_ids[len(window.tokens) :] == [1] * (24 - len(window.tokens))
      assert window.segment_ids == [0] * 24
      if window.start_position:
        first = window.char_spans[window.start_position][0]
        last = window.char_spans[window.end_position][1]
        assert context[first : last + 1].strip() == answer
        found += 1
    assert found


def test_too_short_windows_are_refused(tokenizer):
  example = question("the end", "end")
  with pytest.raises(ValueError, match=r"\(12\) .* max_query_length \(8\) \+ 4"):
    list(squad_features.generate_features([example], tokenizer, 12, 6, 8, False))


def test_choices_and_pairs(tokenizer):
  (choices,) = choice_features([Question("1", "Hello", ["the", "and"], 1)], 3, 8, tokenizer)
  assert tokens_of(tokenizer, choices["input_ids"][1]) == [
    *["<s>", "Hello", "</s>", "</s>", "a", "nd", "</s>", "<pad>"]
  ]
  example = similarity.PairExample("1", ["Hello", "the"], 0.5)
  (pair,) = similarity.convert_examples_to_features([example], 5, tokenizer)
  assert pair.input_ids[0] == [0, tokenizer.vocab["Hello"], 2, 1, 1]
  assert pair.input_mask[0] == [1, 1, 1, 0, 0]
