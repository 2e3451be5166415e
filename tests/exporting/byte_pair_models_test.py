"""What exported models of RoBERTa read, against the features that training makes."""

import pytest
import tensorflow as tf

from bert.exporting import (
  choice_model,
  hub_preprocess,
  saved_models,
  sentence_model,
  tag_model,
  vector_model,
)
from bert.modeling import BertConfig
from bert.tasks import classification, conll_files, tagging, windows
from bert.text.byte_pairs import BytePairTokenizer
from bert.tokenization import BasicTokenizer
from tests.kit import byte_pairs, tiny_bert

LENGTH = 12
TEXTS = ["Hello the <mask>...", "", "(and) é, then", "the Hello and the (and... and"]
OTHERS = ["and (the", "Hello", "", "((((((((((((("]
INPUTS = ("input_word_ids", "input_mask", "input_type_ids")


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
  return byte_pairs.write(tmp_path_factory.mktemp("pairs"))


@pytest.fixture
def read(monkeypatch):
  """What the encoders of all models get, as lists."""
  found = []

  def recorded(self, inputs, **options):
    if tf.executing_eagerly():
      found.append([inputs[name].numpy().tolist() for name in INPUTS])
    return original(self, inputs, **options)

  original = sentence_model.TaskModel._bert
  monkeypatch.setattr(sentence_model.TaskModel, "_bert", recorded)
  return found


def build(kind, vocab_file, *args, **options):
  config = tiny_bert.sizes(
    len(byte_pairs.vocabulary()), 8, 1, 8, LENGTH + 2, model_type="roberta", type_vocab_size=1
  )
  return kind(BertConfig.from_dict(config), vocab_file, False, *args, **options)


def eagerly(function, *args):
  tf.config.run_functions_eagerly(True)
  try:
    return function(*args)
  finally:
    tf.config.run_functions_eagerly(False)


def expected(features):
  """Cut to the longest, as the graph does."""
  length = max(sum(each.input_mask) for each in features)
  names = ("input_ids", "input_mask", "segment_ids")
  return [[getattr(each, name)[:length] for each in features] for name in names]


def features_of(tokenizer, *texts):
  example = classification.InputExample("x", *texts, label="0")
  return classification.convert_single_example(9, example, ["0"], LENGTH, tokenizer)


@pytest.mark.ci
def test_pairs_and_choices(vocab_file, read):
  tokenizer = BytePairTokenizer(vocab_file)
  features = expected([features_of(tokenizer, *pair) for pair in zip(TEXTS, OTHERS, strict=True)])
  model = build(sentence_model.SentenceModel, vocab_file, LENGTH, ["0", "1"])
  eagerly(model, tf.constant(TEXTS), tf.constant(OTHERS))
  assert read.pop() == features
  model = build(choice_model.ChoiceModel, vocab_file, LENGTH)
  eagerly(model, tf.constant(TEXTS), tf.constant([[other] for other in OTHERS]))
  assert read.pop() == features


@pytest.mark.ci
def test_vectors_of_texts(vocab_file, read):
  tokenizer = BytePairTokenizer(vocab_file)
  model = build(vector_model.VectorModel, vocab_file, LENGTH)
  eagerly(model.encode, tf.constant(TEXTS))
  assert read.pop() == expected([features_of(tokenizer, text) for text in TEXTS])


@pytest.mark.ci
def test_windows_of_documents(vocab_file, read):
  tokenizer = BytePairTokenizer(vocab_file)
  options = windows.WindowOptions(3, 4)
  model = build(sentence_model.SentenceModel, vocab_file, LENGTH, ["0", "1"], windows=options)
  eagerly(model, tf.constant(TEXTS), tf.constant(OTHERS))
  reader = windows.WindowReader(tokenizer, options)
  rows = []
  for pair in zip(TEXTS, OTHERS, strict=True):
    example = classification.InputExample("x", *pair, label="0")
    first = classification.convert_single_example(9, example, ["0"], LENGTH, reader)
    found = reader.windows_of(example, first)
    rows += found["input_ids"][: found["num_windows"]].tolist()
  assert read.pop()[0] == [row[: max(map(len, rows))] for row in rows]


@pytest.mark.ci
def test_words_of_tags(vocab_file, read):
  tokenizer = BytePairTokenizer(vocab_file)
  labels = ["O", "B-A"]
  model = build(tag_model.TagModel, vocab_file, LENGTH, labels)
  texts = ["the Hello (and) 'tis", "<mask> é then and the Hello and Hello the (and)"]
  eagerly(model, tf.constant(texts))
  split = BasicTokenizer(do_lower_case=False).tokenize
  examples = [conll_files.TaggedSentence("x", split(text)) for text in texts]
  features = tagging.convert_examples_to_features(examples, labels, "bio", LENGTH, tokenizer)
  assert read.pop() == expected(list(features))


@pytest.mark.ci
def test_saving_traces_nothing_again(vocab_file, tmp_path):
  """These graphs take seconds to trace; traced twice, an export took twice as long."""
  preprocessor = hub_preprocess.Preprocessor(vocab_file)
  traced, function = [], preprocessor.tokenize._function

  def counted(text):
    traced.append(text)
    return function(text)

  preprocessor.tokenize._function = counted
  signatures = preprocessor.trace()
  assert len(traced) == 1
  saved_models.save(preprocessor, str(tmp_path / "saved"), signatures, {})
  assert len(traced) == 1
