"""Tests of bert/tasks/similarity.py: files of pairs, features, scores of rankings.

Alone: python -m pytest tests/tasks/similarity_test.py (a second; no TensorFlow)
"""

import numpy as np
import pytest
from absl import logging

from bert.io.tables import DataError
from bert.tasks import similarity
from bert.tokenization import FullTokenizer
from tests.kit import tiny_pairs


def read(path, content, set_type="train", needs_scores=False, **options):
  path.write_text(content, encoding="utf-8")
  reader = similarity.PairReader(**options)
  return reader.read(str(path), set_type, needs_scores=needs_scores)


def plain(examples):
  return [(e.guid, e.texts, e.score) for e in examples]


def test_the_files_of_sts_b(tmp_path):
  text = (
    "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
    '0\tnews\tf\t2012\t1\tn\tn\tHe said "yes.\tHe agreed.\t3.800\n'
  )
  options = similarity.TASKS["sts-b"]
  found = plain(read(tmp_path / "train.tsv", text, **options))
  assert found == [("train-1", ('He said "yes.', "He agreed."), pytest.approx(0.76))]
  unlabelled = "".join(line.rpartition("\t")[0] + "\n" for line in text.splitlines())
  (found,) = read(tmp_path / "test.tsv", unlabelled, "test", **options)
  assert found.score is None


def test_the_same_pairs_in_other_formats(tmp_path):
  rows = [
    {"id": "x", "text_a": 'a "b', "text_b": "c", "score": 0.5},
    {"id": "y", "text_a": "d", "text_b": "e, f", "score": 1},
  ]
  reader = similarity.PairReader()
  expected = [("x", ('a "b', "c"), 0.5), ("y", ("d", "e, f"), 1.0)]
  for ending in ("csv", "jsonl"):
    path = tiny_pairs.write(tmp_path / f"a.{ending}", rows)
    assert plain(reader.read(str(path), "dev")) == expected
  found = read(tmp_path / "a.tsv", 'a "b\tc\t-1\nd\te, f\t1\n', header=False, text_a_column=0,
    text_b_column=1, label_column=2, min_score=-1.0)  # fmt: skip
  assert plain(found) == [("train-0", ('a "b', "c"), 0.0), ("train-1", ("d", "e, f"), 1.0)]


def test_third_texts_are_read_where_they_are_wanted(tmp_path):
  text = "text_a,text_b,negative\na,b,c\nd,e,\n"
  assert [e.texts for e in read(tmp_path / "a.csv", text)] == [("a", "b", "c"), ("d", "e", "")]
  reader = similarity.PairReader()
  pairs = reader.read(str(tmp_path / "a.csv"), "dev", takes_negatives=False)
  assert [e.texts for e in pairs] == [("a", "b"), ("d", "e")]
  found = read(tmp_path / "b.csv", text.replace("negative", "bad"), negative_column="bad")
  assert found[0].texts == ("a", "b", "c")


BAD = {
  "one column": ("text_a\na\n", {}, "column 'text_b' is not in the header, which has text_a."),
  "other names": ("premise,text_b\na,b\n", {}, "column 'text_a' is not in the header"),
  "no negative": ("text_a,text_b\na,b\n", {"negative_column": "bad"}, "--negative_column"),
  "no scores": ("text_a,text_b\na,b\n", {"needs_scores": True}, "no column of scores; the header"),
  "above": (
    "text_a,text_b,score\na,b,3.8\n",
    {},
    "line 2: the score '3.8' is outside the scale fr",
  ),
  "below": ("text_a,text_b,score\na,b,-0.1\n", {}, "'-0.1' is outside the scale from 0 to 1."),
  "a word": ("text_a,text_b,score\na,b,high\n", {}, "line 2: the label 'high' is not a finite num"),
  "nan": ("text_a,text_b,score\na,b,nan\n", {}, "line 2: the label 'nan' is not a finite number"),
  "no score": ("text_a,text_b,score\na,b,\n", {}, "line 2: the label '' is not a finite number"),
  "blank a": ("text_a,text_b\n ,b\n", {}, "line 2: the first text is empty."),
  "blank b": ("text_a,text_b\na,b\na,\n", {}, "line 3: the second text is empty."),
  "only a header": ("text_a,text_b\n", {}, "the file contains no train examples"),
  "empty": ("", {}, "the file is empty"),
  "a long row": ("text_a,text_b\na,b,c\n", {}, "line 2: 3 columns, expected 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named(tmp_path, name):
  content, options, message = BAD[name]
  with pytest.raises(DataError) as error:
    read(tmp_path / "a.csv", content, **options)
  assert str(error.value).startswith(str(tmp_path / "a.csv"))
  assert message in str(error.value)


def test_the_remedy_of_another_scale(tmp_path):
  content = "text_a,text_b,score\na,b,4\nc,d,0.5\n"
  with pytest.raises(DataError, match="--min_score and --max_score"):
    read(tmp_path / "a.csv", content)
  assert [e.score for e in read(tmp_path / "a.csv", content, max_score=4.0)] == [1.0, 0.125]
  assert [e.score for e in read(tmp_path / "a.csv", content, skip_bad_rows=True)] == [0.5]


@pytest.mark.parametrize("value", [7, None, True])
def test_a_negative_that_is_no_text(tmp_path, value):
  rows = [{"text_a": "a", "text_b": "b", "negative": value}]
  path = tiny_pairs.write(tmp_path / "a.jsonl", rows)
  reader = similarity.PairReader()
  if value is None:
    assert reader.read(str(path), "train")[0].texts == ("a", "b", "")
  else:
    with pytest.raises(DataError, match=r"line 1: the negative is .*, not text"):
      reader.read(str(path), "train")


def test_features_of_a_row(tmp_path, monkeypatch):
  (tmp_path / "vocab.txt").write_text("\n".join(tiny_pairs.VOCAB) + "\n")
  tokenizer = FullTokenizer(str(tmp_path / "vocab.txt"))
  example = similarity.PairExample("x", ["the plum", "she takes the pear .", ""], 0.5)
  logged = []
  monkeypatch.setattr(logging, "info", lambda text, *values: logged.append(text % values))
  (found,) = similarity.convert_examples_to_features([example], 5, tokenizer)
  assert logged == [
    *("*** Example ***", "guid: x", "tokens: [CLS] the plum [SEP]"),
    *("tokens: [CLS] she takes the [SEP]", "tokens: ", "score: 0.5"),
  ]
  tokens = [[tiny_pairs.VOCAB[i] for i in ids if i] for ids in found.input_ids]
  assert tokens == [
    ["[CLS]", "the", "plum", "[SEP]"],
    ["[CLS]", "she", "takes", "the", "[SEP]"],
    [],
  ]
  assert found.input_mask == [[1, 1, 1, 1, 0], [1] * 5, [0] * 5]
  assert (found.score, found.is_real_example) == (0.5, True)


def test_ranking_scores_are_those_of_a_loop():
  rng = np.random.default_rng(1)
  vectors = rng.normal(size=[30, 3, 4])
  vectors[:, 1] += 2 * vectors[:, 0]
  is_text = np.ones([30, 3])
  is_text[5, 2] = is_text[29] = 0  # no third text; a row that fills a batch
  places = []
  for i in range(29):
    cosine = [
      (v @ vectors[i, 0] / np.linalg.norm(v), (row, column))
      for row in range(30)
      for column, v in enumerate(vectors[row])
      if column and is_text[row, column]
    ]
    places.append(1 + [place for _, place in sorted(cosine, reverse=True)].index((i, 1)))
  assert 0.2 < np.mean(np.equal(places, 1)) < 0.9
  scores = similarity.ranking_scores(vectors, is_text)
  assert scores["accuracy"] == pytest.approx(np.mean(np.equal(places, 1)))
  assert scores["mrr"] == pytest.approx(np.mean(1 / np.array(places)))


def test_equal_candidates_share_a_place():
  one = np.array([[[1.0, 0.0], [0.5, 0.5]]])
  assert similarity.ranking_scores(np.repeat(one, 3, axis=0), np.ones([3, 2]))["mrr"] == 1.0
