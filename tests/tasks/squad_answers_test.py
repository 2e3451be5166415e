"""Answers from the model's outputs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.tasks import answer_texts, kinds, span_decoder, squad, squad_answers
from bert.tasks.squad import SquadExample
from bert.tasks.squad_features import InputFeatures
from bert.tokenization import BasicTokenizer, FullTokenizer
from tests.kit.squad_samples import VERSIONS, Result, features_of, tokenizer_of
from tests.kit.tokenizer_definition import write_vocab


def write_golden(golden_squad, folder):
  logits = np.load(golden_squad.folder / f"logits-v{golden_squad.version}.npz")
  rows = zip(golden_squad.features, logits["start"], logits["end"], strict=True)
  results = [Result(feature.unique_id, start, end) for feature, start, end in rows]
  names = ("predictions.json", "nbest.json", "null_odds.json")
  return squad_answers.write_predictions(
    golden_squad.examples,
    golden_squad.features,
    results,
    20,
    30,
    True,
    *(folder / name for name in names),
    version_2_with_negative=VERSIONS[golden_squad.version],
    null_score_diff_threshold=-1.0 if golden_squad.version == "2.0" else 0.0,
    output_detailed_file=folder / "detailed.jsonl",
  )


def test_predictions_equal_the_originals(golden_squad, tmp_path):
  write_golden(golden_squad, tmp_path)
  for name in ("predictions", "null_odds"):
    path = golden_squad.folder / f"{name}-v{golden_squad.version}.json"
    assert (tmp_path / f"{name}.json").exists() == path.exists()
    if path.exists():
      assert (tmp_path / f"{name}.json").read_bytes() == path.read_bytes(), name


def test_nbest_equals_the_originals(golden_squad, tmp_path):
  write_golden(golden_squad, tmp_path)
  found = json.loads((tmp_path / "nbest.json").read_text())
  expected = json.loads((golden_squad.folder / f"nbest-v{golden_squad.version}.json").read_text())
  assert list(found) == list(expected)
  for qid, answers in expected.items():
    assert [a["text"] for a in found[qid]] == [a["text"] for a in answers]
    for key in ("probability", "start_logit", "end_logit"):
      values, golden_values = ([a[key] for a in each] for each in (found[qid], answers))
      np.testing.assert_allclose(values, golden_values, rtol=0, atol=1e-6, err_msg=key)


def test_characters_of_the_details_are_the_answer(golden_squad, tmp_path):
  write_golden(golden_squad, tmp_path)
  document = json.loads((golden_squad.folder / f"input-v{golden_squad.version}.json").read_text())
  contexts = {
    qa["id"]: paragraph["context"]
    for entry in document["data"]
    for paragraph in entry["paragraphs"]
    for qa in paragraph["qas"]
  }
  lines = (tmp_path / "detailed.jsonl").read_text(encoding="utf-8").splitlines()
  details = [json.loads(line) for line in lines]
  assert [detail["id"] for detail in details] == list(contexts)
  predictions = json.loads((tmp_path / "predictions.json").read_text())
  for detail in details:
    assert detail["text"] == predictions[detail["id"]]
    text = detail["text"] and contexts[detail["id"]][detail["start"] : detail["end"]]
    assert " ".join(text.split()) == " ".join(detail["text"].split())
    assert 0 < detail["probability"] < 1


def window(words, unique_id=1, first=2, example_index=0, max_context=None) -> InputFeatures:
  """A window over words of one piece each: [CLS] [SEP] words [SEP]."""
  tokens = ["[CLS]", "[SEP]", *(word.lower() for word in words), "[SEP]"]
  positions = range(first, first + len(words))
  return InputFeatures(
    unique_id=unique_id,
    example_index=example_index,
    doc_span_index=0,
    tokens=tokens,
    token_to_orig_map={p: p - first for p in positions},
    token_is_max_context=max_context or dict.fromkeys(positions, True),
    input_ids=None,
    input_mask=None,
    segment_ids=None,
  )


def logits(size, values) -> list[float]:
  """Logits of -10 but where `values` tells."""
  return [values.get(i, -10.0) for i in range(size)]


WORDS = ["Ann", "met", "Bob", "in", "Rome"]


def answer_of(start, end, n_best_size=20, length=30, max_context=None, **more):
  example = SquadExample("q", "Who?", WORDS)
  feature = window(WORDS, max_context=max_context)
  result = Result(1, logits(10, start), logits(10, end))
  return squad_answers.find_answers(
    example, [feature], {1: result}, n_best_size, length, True, **more
  )


def test_no_answer_where_its_odds_exceed_the_threshold():
  start, end = {0: 1.0, 2: 1.0}, {0: 2.0, 2: 1.5}
  for threshold, text in ((0.0, ""), (0.4, ""), (0.5, "Ann"), (1.0, "Ann")):
    found = answer_of(start, end, version_2_with_negative=True, null_score_diff_threshold=threshold)
    assert found.null_odds == 0.5
    assert found.prediction.text == text
    assert found.best_answer.text == "Ann"
    assert found.nbest[0].text == "", "the list does not depend on the threshold"
    assert found.probability == found.probabilities[0 if text == "" else 1]


def test_the_null_answer_is_listed_though_it_is_not_among_the_best():
  found = answer_of(
    {0: -9.0, 2: 1.0}, {2: 1.0, 3: 0.5}, n_best_size=2, version_2_with_negative=True
  )
  assert [answer.text for answer in found.nbest] == ["Ann", "Ann met", ""]


def test_the_null_score_is_the_least_of_all_windows():
  features = [window(WORDS, 1), window(WORDS, 2)]
  results = {
    1: Result(1, logits(8, {0: 5.0, 2: 1.0}), logits(8, {0: 5.0, 2: 1.0})),
    2: Result(2, logits(8, {0: -1.0}), logits(8, {0: -2.0})),
  }
  found = squad_answers.find_answers(
    SquadExample("q", "Who?", WORDS), features, results, 20, 30, True, version_2_with_negative=True
  )
  assert found.null_odds == -3.0 - 2.0
  assert found.prediction.text == "Ann"


@pytest.mark.parametrize("features", [[window(WORDS)], []])
def test_without_any_span_there_is_no_answer_and_no_crash(features, tmp_path):
  """In the original the first ended in an AttributeError, the second in an IndexError."""
  results = [Result(1, logits(10, {9: 9.0, 0: 1.0}), logits(10, {0: 1.0}))]
  paths = [tmp_path / name for name in ("p.json", "n.json", "o.json")]
  for threshold in (0.0, 100.0):
    [found] = squad_answers.write_predictions(
      [SquadExample("q", "Who?", WORDS)],
      features,
      results,
      1,
      30,
      True,
      *paths,
      version_2_with_negative=True,
      null_score_diff_threshold=threshold,
      output_detailed_file=tmp_path / "d.jsonl",
    )
    assert found.best_answer is None
    predictions, nbest, odds = (json.loads(path.read_text()) for path in paths)
    assert predictions == {"q": ""}
    assert [entry["text"] for entry in nbest["q"]] == [""]
    assert math.isfinite(odds["q"])
    assert odds["q"] > 1e5
    detail = json.loads((tmp_path / "d.jsonl").read_text())
    assert (detail["start"], detail["end"], detail["probability"]) == (None, None, 1.0)


def test_a_window_without_result_is_told():
  with pytest.raises(ValueError, match="window with unique_id 1 has no result"):
    squad_answers.find_answers(SquadExample("q", "?", WORDS), [window(WORDS)], {}, 20, 30, True)


@pytest.mark.parametrize(
  ("pred_text", "orig_text", "expected"),
  [
    ("steve smith", "Steve Smith's", "Steve Smith"),
    ("steve smith", "(Steve  Smith),", "Steve  Smith"),
    ("steve  smith", "(Steve Smith),", "(Steve Smith),"),  # nowhere with two spaces
    ("1895 - 1943", "(1895-1943).", "1895-1943"),
    ("resume", "Résumé,", "Résumé"),
    ("nothing", "Steve Smith's", "Steve Smith's"),
    ("", "Steve", "Steve"),
    ("i", "İstanbul", "İ"),
    ("a", "a\u0001b c", "a\u0001b c"),  # a dropped character: lengths differ
    ("smith", "Smith\ufffds Smith", "Smith\ufffds Smith"),
  ],
)
def test_final_text(pred_text, orig_text, expected):
  assert answer_texts.get_final_text(pred_text, orig_text, do_lower_case=True) == expected


def test_final_text_is_split_as_the_tokenizer_splits(tmp_path):
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "möchte"]
  made = write_vocab(tmp_path, "\n".join(tokens) + "\n")
  keeping = FullTokenizer(made, strip_accents=False)
  cased = FullTokenizer(made, do_lower_case=False)
  for tokenizer, word in ((keeping, "möchte"), (cased, "Möchte")):
    splitting = answer_texts.splitting_of(tokenizer)
    assert answer_texts.align(word, "(Möchte)", splitting, False)[0] == (1, 7)
    decoder = span_decoder.SpanDecoder(kinds.find("squad"), tokenizer, 32, 8, 8, "bert")
    assert decoder._sizes[-1] == splitting


def test_a_failure_to_align_is_logged_on_request(caplog):
  with caplog.at_level("INFO", logger="absl"):
    answer_texts.get_final_text("x", "y", True)
    assert caplog.messages == []
    answer_texts.get_final_text("x", "y", True, verbose_logging=True)
    answer_texts.get_final_text("a", "a\u0001", True, verbose_logging=True)
  assert caplog.messages[0] == "Unable to find text: 'x' in 'y'"
  assert caplog.messages[1].startswith("Length not equal after stripping spaces")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), st.booleans())
def test_words_are_tokenized_as_the_whole_text(text, do_lower_case):
  """What a cache of words rests on."""
  whole = BasicTokenizer(do_lower_case).tokenize(text)
  by_word = [
    token for word in text.split(" ") for token in answer_texts._tokenize_word(word, do_lower_case)
  ]
  assert by_word == whole


def test_characters_in_the_context():
  context = "  Ann  (met\nBob's) dog"
  words, starts = squad.split_words(context)
  example = SquadExample("q", "?", words, word_starts=starts)
  joined = " ".join(words)
  for text in ("Ann (met Bob", "met Bob's", "Bob", "dog", "Ann"):
    answer = squad_answers.Answer(text, 0.0, 0.0, 0, joined.index(text), 0)
    start, end = answer_texts.context_span(example, answer)
    assert context[start:end].split() == text.split()
  assert answer_texts.context_span(example, squad_answers.Answer("", 0.0, 0.0)) is None


def test_one_object_a_line_whatever_the_text(tmp_path):
  words = ["a\u2028b", "c\x85d\u2029"]
  example = SquadExample("q", "?", words, word_starts=[0, 4])
  result = Result(1, logits(6, {2: 1.0}), logits(6, {3: 1.0}))
  names = ("p.json", "n.json", "o.json")
  squad_answers.write_predictions(
    *([example], [window(words)], [result], 20, 30, False),
    *(tmp_path / name for name in names),
    output_detailed_file=tmp_path / "d.jsonl",
  )
  [line] = (tmp_path / "d.jsonl").read_text(encoding="utf-8").splitlines()
  assert json.loads(line)["text"] == " ".join(words)
  assert not (tmp_path / "o.json").exists()


def chosen(context, tokenizer, first, count, lengths, folder) -> dict:
  """What is reported where the model chooses `count` tokens from token `first` on."""
  words, starts = squad.split_words(context)
  example = SquadExample("q", "", words, word_starts=starts, context=context)
  features = features_of([example], tokenizer, lengths)
  size, stride = lengths[0], lengths[1]
  results = []
  for index, feature in enumerate(features):
    place = 2 + first - stride * index
    results.append(
      Result(feature.unique_id, logits(size, {place: 9.0}), logits(size, {place + count - 1: 9.0}))
    )
  names = (folder / name for name in ("p.json", "n.json", "o.json"))
  squad_answers.write_predictions(
    *([example], features, results, 20, 30, tokenizer.basic_tokenizer.do_lower_case),
    *names,
    output_detailed_file=folder / "d.jsonl",
  )
  found = json.loads((folder / "d.jsonl").read_text(encoding="utf-8"))
  return found | {"prediction": json.loads((folder / "p.json").read_text())["q"]}


@pytest.mark.parametrize("lengths", [(99, 50, 4), (12, 3, 4)])
def test_the_reported_place_is_the_chosen_one(tmp_path, lengths):
  """Also where a word without spaces begins before the window."""
  context = "北京大学是中国的大学。中国人民日报在北京。北京市长是北京，中国的经理。"
  tokenizer = tokenizer_of(context, tmp_path)
  for first in range(len(context) - 1):
    found = chosen(context, tokenizer, first, 2, lengths, tmp_path)
    assert (found["start"], found["end"]) == (first, first + 2)
    assert found["text"] == found["prediction"] == context[first : first + 2]


@pytest.mark.parametrize(
  ("context", "tokens", "first", "start", "text"),
  [
    ("beginning-in", "begin ##ning - in", 3, 10, "in"),  # not within `beginning`
    ("龘北京龘京北京", "龘 北 京 龘 京 北 京", 5, 5, "北京"),  # unknown words before it
    ("Ann (3-3),3-3", "Ann ( 3 - 3 ) , 3 - 3", 7, 10, "3-3"),
  ],
)
def test_the_chosen_place_after_longer_pieces(tmp_path, context, tokens, first, start, text):
  path = tmp_path / "vocab.txt"
  pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *tokens.replace("龘", "").split()]
  path.write_text("\n".join(dict.fromkeys(pieces)), encoding="utf-8")
  tokenizer = FullTokenizer(str(path), do_lower_case=False)
  count = len(tokenizer.tokenize(text))
  found = chosen(context, tokenizer, first, count, (99, 50, 4), tmp_path)
  assert (found["start"], found["text"]) == (start, text)


def test_the_files_of_2018_keep_the_first_occurrence(tmp_path):
  """The place is the chosen one, with its own text."""
  path = tmp_path / "vocab.txt"
  path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "us", "-"]))
  found = chosen("US-us", FullTokenizer(str(path)), 2, 1, (99, 50, 4), tmp_path)
  assert (found["text"], found["start"], found["end"]) == ("us", 3, 5)
  assert found["prediction"] == "US"
