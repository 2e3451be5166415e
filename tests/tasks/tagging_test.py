"""Tests of bert/tasks/tagging.py and bert/tasks/conll_files.py: schemes, files, windows, scores. No
TensorFlow.
"""

import csv
import dataclasses
import gzip
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import f1_score, get_entities

from bert import tokenization
from bert.io.tables import DataError
from bert.tasks import conll_files, label_schemes, tagging
from bert.tasks.conll_files import ConllFormat, read_conll
from bert.tasks.label_schemes import Entity, convert_labels, entities_of, labels_of

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "##b", ".", "-", "new", "york"]
SCHEMES = [scheme for scheme in label_schemes.SCHEMES if scheme != "plain"]

TYPES = st.sampled_from(["PER", "LOC", "creative-work", label_schemes.UNTYPED])


# ---------------------------------------------------------------------------------------------
# Schemes.


@st.composite
def entities(draw):
  """Entities of a sentence, and its length."""
  found, end = [], 0
  for _ in range(draw(st.integers(0, 6))):
    start = end + draw(st.integers(0, 2))
    end = start + draw(st.integers(1, 4))
    found.append(Entity(draw(TYPES), start, end))
  return found, end + draw(st.integers(0, 2))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(entities())
def test_entities_are_spelt_and_read(scheme, drawn):
  found, length = drawn
  labels = labels_of(found, length, scheme)
  assert len(labels) == length
  assert entities_of(labels, scheme) == found
  for other in SCHEMES:
    assert convert_labels(convert_labels(labels, scheme, other), other, scheme) == labels


def test_hand_picked_spellings():
  found = [Entity("A", 0, 1), Entity("A", 1, 4), Entity("B", 5, 7)]
  assert {scheme: " ".join(labels_of(found, 8, scheme)) for scheme in SCHEMES} == {
    "bio": "B-A B-A I-A I-A O B-B I-B O",
    "iob1": "I-A B-A I-A I-A O I-B I-B O",
    "bioes": "S-A B-A I-A E-A O B-B E-B O",
    "bilou": "U-A B-A I-A L-A O B-B L-B O",
    "bmes": "S-A B-A M-A E-A O B-B E-B O",
    "bmewo": "W-A B-A M-A E-A O B-B E-B O",
    "bmeo": "B-A B-A M-A E-A O B-B E-B O",
  }


@given(
  st.lists(
    st.one_of(st.sampled_from("OBIES"), st.builds("{}-{}".format, st.sampled_from("BIES"), TYPES))
  )
)
def test_any_sequence_is_read_as_seqeval_does(labels):
  wanted = [Entity(kind, first, last + 1) for kind, first, last in get_entities(labels)]
  assert entities_of(labels, "bioes") == wanted


@given(st.lists(st.one_of(st.just("O"), st.builds("{}-{}".format, st.sampled_from("BI"), TYPES))))
def test_correcting_labels_changes_no_entity_and_ends(labels):
  for scheme in ("bio", "iob1"):
    right = convert_labels(labels, scheme, scheme)
    assert entities_of(right, scheme) == entities_of(labels, scheme)
    assert convert_labels(right, scheme, scheme) == right


@pytest.mark.parametrize(
  ("labels", "scheme", "types"),
  [
    (["B", "I", "O", "B", "B"], "bio", ["O", "B", "I"]),
    (["B", "M", "E", "O", "S"], "bmes", ["O", "B", "M", "E", "S"]),
    (["B", "I", "L", "O", "U"], "bilou", ["O", "B", "I", "L", "U"]),
  ],
)
def test_letters_without_types_are_one_type(tmp_path, labels, scheme, types):
  path = write(tmp_path / "f", "".join(f"a {label}\n" for label in labels))
  conll_file = read_conll(path, ConllFormat(scheme=scheme))
  assert conll_file.examples[0].labels == labels
  assert label_schemes.model_labels(conll_file.types(), scheme) == types
  assert label_schemes.recognise(types) == scheme
  predicted = [*labels[:3], "O", labels[4]]
  scores = tagging.score([labels], [predicted], scheme, scheme)
  bio = {"S": "B", "M": "I", "E": "I", "L": "I", "U": "B"}
  gold, found = ([[bio.get(each, each) for each in ls]] for ls in (labels, predicted))
  assert scores["f1"] == f1_score(gold, found)
  assert scores["support__"] == len(get_entities(gold[0]))
  assert 0 < scores["f1"] < 1 or scheme != "bio"


def test_labels_with_and_without_a_type_are_refused(tmp_path):
  path = write(tmp_path / "f", "a B-PER\nb O\nc B\n")
  with pytest.raises(
    DataError, match="line 3: the label 'B' has no type, but others have one: PER"
  ):
    read_conll(path)


def test_plain_labels_that_spell_entities_are_named(tmp_path, caplog):
  path = write(tmp_path / "f", "a B\nb I\nc O\n")
  with caplog.at_level("WARNING"):
    read_conll(path, ConllFormat(scheme="plain"))
  assert "all labels fit --label_scheme=bio" in caplog.text


def test_plain_labels_are_tags():
  labels = ["DET", "NOUN", "NOUN", "O"]
  assert convert_labels(labels, "plain", "plain") == labels
  assert tagging.score([labels], [["DET", "NOUN", "VERB", "O"]], "plain", "plain")["f1"] == 0.75


@pytest.mark.parametrize("label", ["PER", "E", "B-", "-PER", "S-PER", "o", "", "BI-PER"])
def test_a_label_of_no_scheme(label):
  with pytest.raises(ValueError, match=r"scheme bio, .* O, B-TYPE, I-TYPE"):
    label_schemes.split_label(label, "bio")


# ---------------------------------------------------------------------------------------------
# Files.


def write(path, text, encoding="utf-8"):
  path.write_bytes(text.encode(encoding))
  return path


def test_sentences_documents_and_line_ends(tmp_path):
  text = (
    "\ufeff-DOCSTART- -X- O\r\n\r\nNew NNP B-LOC\r\nYork NNP I-LOC\r\n \t\r\n\r\n. . O\n"
    "-DOCSTART- -X- O\na b O"
  )
  conll_file = read_conll(write(tmp_path / "f", text), set_type="dev")
  assert [(e.guid, e.words, e.labels, e.lines) for e in conll_file.examples] == [
    ("dev-1", ["New", "York"], ["B-LOC", "I-LOC"], [2, 3]),
    ("dev-2", ["."], ["O"], [6]),
    ("dev-3", ["a"], ["O"], [8]),
  ]
  assert conll_file.types() == {"LOC"}
  conll_files.write_conll(tmp_path / "g", conll_file, [["B-X", "I-X"], ["O"], ["B-Y"]])
  assert (tmp_path / "g").read_bytes().decode() == (
    "-DOCSTART- -X- O O\n\nNew NNP B-LOC B-X\nYork NNP I-LOC I-X\n \t\n\n. . O O\n"
    "-DOCSTART- -X- O O\na b O B-Y\n"
  )


def test_comments(tmp_path):
  path = write(tmp_path / "f", "# id O\n# O\n\n# id O\na O\n")
  assert [e.words for e in read_conll(path).examples] == [["#", "#"], ["#", "a"]]
  conll_file = read_conll(path, ConllFormat(comment_prefix="# id"))
  assert [e.words for e in conll_file.examples] == [["#"], ["a"]]
  conll_files.write_conll(tmp_path / "g", conll_file, [["B-X"], ["O"]])
  assert (tmp_path / "g").read_text() == "# id O\n# O B-X\n\n# id O\na O O\n"


def test_words_with_blanks_in_a_file_with_tabs(tmp_path):
  conll_format = ConllFormat("tab", token_column=-2)
  path = write(tmp_path / "f", "1\tNew York \tB-LOC\n2\t.\tO\n")
  conll_file = read_conll(path, conll_format)
  assert conll_file.examples[0].words == ["New York ", "."]
  conll_files.write_conll(tmp_path / "g", conll_file, [["O", "O"]])
  assert (tmp_path / "g").read_text() == "1\tNew York \tB-LOC\tO\n2\t.\tO\tO\n"
  assert read_conll(path, ConllFormat("\\t", token_column=-2)).examples[0].words[1] == "."


CONLLU = (
  "# text = Vámonos al mar.\n1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_\n"
  '1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_\n2\t"\t"\tPUNCT\t_\t_\t1\tpunct\t_\t_\n'
  '2.1\tmira\tmirar\tVERB\t_\t_\t_\t_\t_\t_\n3\t"\t"\tPUNCT\t_\t_\t1\tpunct\t_\t_\n'
)
CONLLU_FORMAT = ConllFormat("tab", 1, 3, "plain", "#")


@pytest.mark.parametrize(
  ("text", "advice"),
  [
    ("a O\nb B-PER\nc E-PER\n", "All labels of the file fit --label_scheme=bioes."),
    ("a B-N\nb M-N\nc E-N\nd S-N\n", "All labels of the file fit --label_scheme=bmes."),
    ("a W-N\nb B-N\nc M-N\nd E-N\n", "All labels of the file fit --label_scheme=bmewo."),
    ("a B-N\nb M-N\nc E-N\nd B-N\n", "All labels of the file fit --label_scheme=bmeo."),
    ("a B\nb M\nc E\n", "All labels of the file fit --label_scheme=bmes."),
    ("  O\na B-N\nb E-N\n", "All labels of the file fit --label_scheme=bioes."),
    ("a B\nb E\nc ADJ\n", "For tags, such as parts of speech, give --label_scheme=plain."),
    ("a DET\nb NOUN\n", "For tags, such as parts of speech, give --label_scheme=plain."),
    ("a O\nb B-PER\nc NN\n", "Check --separator, --token_column and --label_column, or skip"),
    ("# http://a [2009]\n1 a B-PER\n", "If lines that begin with # are comments, give --comm"),
    (CONLLU, "These are columns of CoNLL-U. For parts of speech give --separator=tab --token_col"),
  ],
)
def test_a_file_of_another_format_names_flags_that_read_it(tmp_path, text, advice):
  path, skip = write(tmp_path / "f", text), text.startswith("  ")
  with pytest.raises(DataError) as failure:
    read_conll(path, skip_bad_rows=skip)
  assert failure.value.advice.startswith(advice)
  if not advice.startswith(("--", "If", "Check")):
    flags = re.findall(r"--(?:label_(?=scheme))?(\w+)='?(#|\w+)", failure.value.advice)
    values = {flag: int(value) if value.isdecimal() else value for flag, value in flags}
    assert read_conll(path, ConllFormat(**values), skip_bad_rows=skip).has_labels


def test_ranges_and_empty_nodes_of_conllu_are_not_words(tmp_path):
  conll_file = read_conll(write(tmp_path / "f", CONLLU), CONLLU_FORMAT)
  assert conll_file.examples[0].words == ["Vamos", '"', '"']
  assert conll_file.types() == {"VERB", "PUNCT"}
  conll_files.write_conll(tmp_path / "g", conll_file, [["X", "Y", "Z"]])
  lines = (tmp_path / "g").read_text().splitlines()
  assert [line.split("\t")[10:] for line in lines] == [[], ["_"], ["X"], ["Y"], ["_"], ["Z"]]
  again = read_conll(tmp_path / "g", dataclasses.replace(CONLLU_FORMAT, label_column=-1))
  assert (again.examples[0].words, again.examples[0].labels) == (
    ["Vamos", '"', '"'],
    ["X", "Y", "Z"],
  )


ROWS = [
  ["Sentence: 1", "of", "IN", "O"],
  ["", ",", ",", "O"],
  ["", '"', "``", "O"],
  ["Sentence: 2", "10,000", "CD", "B-x"],
  ["", 'a\tb"c', ";", "O"],
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("separator", ["comma", "tab", ";", "|", "space", "whitespace"])
def test_quotes_of_csv_are_read_as_the_csv_module_reads_them(tmp_path, separator, quoting):
  characters = {"comma": ",", "tab": "\t", "space": " ", "whitespace": "\t"}.get(
    separator, separator
  )
  rows = [row[:] for row in ROWS]
  if separator == "whitespace":
    rows = [[name.replace(" ", "") or "x", *rest] for name, *rest in rows]
  with (tmp_path / "f").open("w", newline="") as file:
    csv.writer(file, delimiter=characters, quoting=quoting, lineterminator="\n").writerows(rows)
  conll_file = read_conll(tmp_path / "f", ConllFormat(separator, 1))
  words, labels = [row[1] for row in rows], [row[3] for row in rows]
  assert [example.words for example in conll_file.examples] == [words[:3], words[3:]]
  assert [example.labels for example in conll_file.examples] == [labels[:3], labels[3:]]
  conll_files.write_conll(tmp_path / "g", conll_file, [["O"] * 3, ["B-y", "O"]])
  again = read_conll(tmp_path / "g", ConllFormat(separator, 1))
  assert [example.words for example in again.examples] == [words[:3], words[3:]]
  assert again.types() == {"y"}


def test_a_quote_that_does_not_close(tmp_path):
  path = write(tmp_path / "f", 'a,O\n",O\nb,O\n')
  with pytest.raises(
    DataError, match=r'line 2: the quoting is broken .* \(""\), or skip such rows'
  ):
    read_conll(path, ConllFormat("comma"))
  conll_file = read_conll(path, ConllFormat("comma"), skip_bad_rows=True)
  assert conll_file.examples[0].words == ["a", "b"]


@pytest.mark.parametrize(
  ("bad", "separator", "reason"),
  [
    ("  O", "whitespace", "the word is empty or a blank: '  O'"),
    ("\tO", "whitespace", "the word is empty or a blank"),
    ("  O", "space", "the word is empty or a blank"),
    (" \tO", "tab", "the word is empty or a blank"),
    (",O", "comma", "the word is empty or a blank"),
    ("b", "whitespace", "the line has a word, but no label"),
    ("b X-", "whitespace", "the label 'X-' is not in the scheme bio"),
    ("b\xff O", "space", "the row is not valid UTF-8"),
  ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_row_is_named_and_skipped(tmp_path, caplog, bad, separator, reason, place):
  mark = {"tab": "\t", "comma": ","}.get(separator, " ")
  lines = [
    f"{word}{mark}{label}" for word, label in (("北", "B-L"), ("京", "I-L"), ("\u3000", "O"))
  ]
  path = write(tmp_path / "f", "\n".join([*lines[:place], bad, *lines[place:]]))
  if "\xff" in bad:
    path.write_bytes(path.read_bytes().replace("\xff".encode(), b"\xff"))
  conll_format = ConllFormat(separator)
  with pytest.raises(DataError, match=rf"line {place + 1}: {re.escape(reason)}.*--skip_bad_rows"):
    read_conll(path, conll_format)
  with caplog.at_level("WARNING"):
    conll_file = read_conll(path, conll_format, skip_bad_rows=True)
  assert conll_file.examples[0].words == ["北", "京", "\u3000"]
  assert [error.line for error in conll_file.bad_rows] == [place + 1]
  assert "Skipped 1 malformed row(s)" in caplog.text
  conll_files.write_conll(tmp_path / "g", conll_file, [["O"] * 3])
  written = (tmp_path / "g").read_text().splitlines()
  assert written[:place] + written[place + 1 :] == [f"{line}{mark}O" for line in lines]


def test_a_blank_word_before_more_columns_is_not_the_next_column(tmp_path):
  path = write(tmp_path / "f", "  NN O\na DT O\nb DT B-L\n")
  with pytest.raises(DataError, match="line 1: the word is empty or a blank"):
    read_conll(path)
  assert read_conll(path, skip_bad_rows=True).examples[0].words == ["a", "b"]
  assert read_conll(write(path, "  a\nb\n"), needs_labels=False).examples[0].words == ["a", "b"]


def test_skipping_rows_keeps_a_test_file_without_labels(tmp_path):
  path = write(tmp_path / "f", "a\nb\nc O\n")
  found = read_conll(path, needs_labels=False, skip_bad_rows=True)
  assert (found.examples[0].words, found.has_labels, found.bad_rows) == (["a", "b", "c"], False, [])


def test_a_file_to_predict_may_lack_labels(tmp_path):
  for text in ("a\nb\n", "a NN\nb NN\n", "a O\nb\n"):
    conll_file = read_conll(write(tmp_path / "f", text), needs_labels=False)
    assert not conll_file.has_labels
    assert conll_file.examples[0].words == ["a", "b"]
  assert read_conll(write(tmp_path / "f", "a O\n"), needs_labels=False).has_labels


WORDS = st.text(
  st.characters(exclude_characters=" \t\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=6
).filter(lambda word: not word.startswith(("\ufeff", "-DOCSTART-")))


@given(st.lists(st.lists(WORDS, min_size=1, max_size=5), min_size=1, max_size=5), st.data())
def test_no_word_is_dropped_on_the_way_through_files(tmp_path_factory, sentences, data):
  folder = tmp_path_factory.getbasetemp()
  end = data.draw(st.sampled_from(["\n", "\r\n"]))
  lines = [line for words in sentences for line in [*(f"{word} O" for word in words), ""]]
  path = write(folder / "hypothesis.conll", end.join(lines))
  conll_file = read_conll(path)
  assert [e.words for e in conll_file.examples] == sentences
  predicted = [data.draw(st.lists(st.sampled_from(["O", "B-X"]), min_size=n, max_size=n))
               for n in map(len, sentences)]  # fmt: skip
  conll_files.write_conll(folder / "predicted.conll", conll_file, predicted)
  again = read_conll(folder / "predicted.conll")
  assert [e.words for e in again.examples] == sentences
  assert [e.labels for e in again.examples] == predicted
  assert [e.lines for e in again.examples] == [e.lines for e in conll_file.examples]


# ---------------------------------------------------------------------------------------------
# Windows.


@given(st.integers(1, 60), st.integers(1, 12), st.data())
def test_every_piece_has_one_owner_that_shows_it_best(num_pieces, capacity, data):
  stride = data.draw(st.integers(1, capacity))
  spans = tagging.windows(num_pieces, capacity, stride)
  owner = tagging.owners(spans, num_pieces)
  assert all(0 < end - start <= capacity for start, end in spans)
  assert len(spans) == 1 or {end - start for start, end in spans} == {capacity}
  # In order: read window by window, the words come as they are in the sentence.
  assert (np.diff(owner) >= 0).all()
  for piece in range(num_pieces):
    context = [min(piece - start, end - 1 - piece) for start, end in spans]
    assert context[owner[piece]] == max(context) >= 0


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(VOCAB) + "\n")
  return tokenization.FullTokenizer(path)


def features_of(words, labels, tokenizer, max_seq_length, stride=None):
  example = conll_files.TaggedSentence("x", words, labels)
  label_list = ["O", "B-X", "I-X"]
  return list(
    tagging.convert_examples_to_features(
      [example], label_list, "bio", max_seq_length, tokenizer, stride
    )
  )


def test_windows_of_a_long_sentence(tokenizer):
  words = ["new", "york", "aa", "a", "b", "a"]  # new york a ##a a b a
  features = features_of(words, ["B-X", "I-X", "O", "O", "O", "B-X"], tokenizer, 6, 2)
  assert [[VOCAB[i] for i in f.input_ids[1:-1]] for f in features] == [
    ["new", "york", "a", "##a"],
    ["a", "##a", "a", "b"],
    ["##a", "a", "b", "a"],
  ]
  assert [f.label_ids for f in features] == [
    [-1, 1, 2, 0, -1, -1],
    [-1, -1, -1, 0, -1, -1],
    [-1, -1, -1, 0, 1, -1],
  ]


@given(st.lists(st.one_of(WORDS, st.sampled_from(["aab", "aabbabab", "\x01", "....."]))), st.data())
def test_each_word_is_predicted_once_and_in_order(tokenizer, words, data):
  words = words or ["a"]
  max_seq_length = data.draw(st.integers(3, 12))
  stride = data.draw(st.one_of(st.none(), st.integers(1, max_seq_length - 2)))
  labels = data.draw(
    st.lists(st.sampled_from(["O", "B-X"]), min_size=len(words), max_size=len(words))
  )
  seen = []
  for feature in features_of(words, labels, tokenizer, max_seq_length, stride):
    assert {len(values) for values in vars(feature).values()} == {max_seq_length}
    for piece, label, is_word in zip(
      feature.input_ids, feature.label_ids, feature.word_mask, strict=True
    ):
      if is_word:
        seen.append((piece, ["O", "B-X"][label]))
      else:
        assert label == tagging.NO_LABEL
  first_pieces = [(tokenizer.tokenize(word) or ["[UNK]"])[0] for word in words]
  wanted = zip(tokenizer.convert_tokens_to_ids(first_pieces), labels, strict=True)
  assert seen == list(wanted)


@pytest.mark.parametrize(("length", "stride"), [(2, None), (0, None), (5, 4), (5, -1)])
def test_windows_that_would_leave_words_out(tokenizer, length, stride):
  with pytest.raises(ValueError, match="must be"):
    features_of(["a"], ["O"], tokenizer, length, stride)


def test_predictions_have_to_be_as_many_as_words():
  examples = [conll_files.TaggedSentence("1", ["a", "b"]), conll_files.TaggedSentence("2", ["c"])]
  assert [part.tolist() for part in tagging.by_sentence(np.arange(3), examples)] == [[0, 1], [2]]
  with pytest.raises(ValueError, match="There are 2 predictions for 3 words"):
    tagging.by_sentence(np.arange(2), examples)


# ---------------------------------------------------------------------------------------------
# Scores.


def test_scores_by_hand():
  gold = [["B-P", "I-P", "O", "B-L"], ["B-L", "O", "B-P", "O"]]
  predicted = [["B-P", "I-P", "I-P", "B-L"], ["I-L", "B-M", "I-P", "O"]]
  scores = tagging.score(gold, predicted)
  # Right: L, and in the second sentence L and P, whose I begins an entity. P misses by a word.
  assert scores["precision"] == pytest.approx(3 / 5)
  assert scores["recall"] == pytest.approx(3 / 4)
  assert scores["f1"] == pytest.approx(2 * 3 / 9)
  assert scores["accuracy"] == 6 / 8
  assert [scores[f"f1_{kind}"] for kind in "LMP"] == [1.0, 0.0, 0.5]
  assert [scores[f"support_{kind}"] for kind in "LMP"] == [2, 0, 2]
  table = tagging.format_scores(scores).splitlines()
  assert table[1].split() == ["L", "1.0000", "1.0000", "1.0000", "2"]
  assert table[-1].split() == ["all", "0.6000", "0.7500", "0.6667", "4"]


@pytest.mark.parametrize(
  ("gold", "predicted"), [("O", "O"), ("O", "B-P"), ("B-P", "O"), ("B-P", "B-L")]
)
@pytest.mark.filterwarnings("error")
def test_nothing_found_or_nothing_there_is_0_without_a_warning(gold, predicted):
  scores = tagging.score([[gold]], [[predicted]])
  assert (scores["precision"], scores["recall"], scores["f1"]) == (0, 0, 0)
  assert tagging.format_scores(scores)


@given(
  entities().filter(lambda drawn: drawn[1]), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES)
)
def test_scores_do_not_depend_on_the_scheme(drawn, one, other):
  found, length = drawn
  gold = [labels_of(found, length, one)]
  predicted = [labels_of(found[::2], length, other)]
  scores = tagging.score(gold, predicted, one, other)
  if found:
    assert scores["precision"] == 1.0
    assert scores["recall"] == pytest.approx(len(found[::2]) / len(found))
    assert sum(v for k, v in scores.items() if k.startswith("support_")) == len(found)


def test_entities_in_text():
  example = conll_files.TaggedSentence("7", ["In", "New", "York", "\U0001f600", "é"])
  found = [Entity("LOC", 1, 3), Entity("X", 4, 5)]
  described = tagging.describe_entities(example, found, np.float32([1, 0.5, 0.25, 1, 1]))
  assert described["text"] == "In New York \U0001f600 é"
  assert described["entities"] == [
    {
      **{"type": "LOC", "text": "New York", "start": 3, "end": 11},
      **{"first_word": 1, "last_word": 2, "probability": 0.125},
    },
    {
      **{"type": "X", "text": "é", "start": 14, "end": 15},
      **{"first_word": 4, "last_word": 4, "probability": 1.0},
    },
  ]


# ---------------------------------------------------------------------------------------------
# ELECTRA.


def test_features_equal_electras(golden_dir, data_dir):
  """Of sentences that it does not cut: it counts words instead of pieces, and stops too early."""
  folder = golden_dir / "electra"
  with gzip.open(folder / "finetune_chunk_features.jsonl.gz", "rt", encoding="utf-8") as lines:
    records = [json.loads(line) for line in lines]
  mapping = json.loads((folder / "finetune_chunk_labels.json").read_text())
  labels = sorted(mapping, key=mapping.__getitem__)
  tokenizer = tokenization.FullTokenizer(str(folder / "tiny_vocab.txt"))
  num_whole = 0
  for index, record in enumerate(records):
    tags = [labels[number] for number in record["labels"]]
    example = conll_files.TaggedSentence(f"{index}", record["words"], tags)
    features = list(tagging.convert_examples_to_features([example], labels, "bioes", 48, tokenizer))
    count = sum(map(bool, record["chunk_labels_mask"]))
    if count < len(record["words"]):
      continue
    num_whole += 1
    [feature] = features
    for name in ("input_ids", "input_mask"):
      assert getattr(feature, name) == record[name], (index, name)
    assert record["segment_ids"] == record["input_mask"]  # its one text is in segment 1
    places = [place for place, is_word in enumerate(feature.word_mask) if is_word]
    assert places == record["chunk_labeled_positions"][:count]
    assert [feature.label_ids[place] for place in places] == record["chunk_labels"][:count]
  assert num_whole > 20
