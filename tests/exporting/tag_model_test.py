"""Words and labels in a graph, against bert/tasks/tagging.py and run_ner's model.

Alone: python -m pytest tests/exporting/tag_model_test.py (about a minute; one test starts a Python)
"""

import json
import random

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import bundle_files, finding, loading, saving
from bert.exporting import graph_tokenizer, tag_model
from bert.model.task_heads import TokenHead
from bert.model.variables import VariableStore, use_store
from bert.tasks import conll_files, kinds, tag_answers, tagging
from bert.tokenization import FullTokenizer
from tests.kit import exports, task_outputs
from tests.kit.script_runs import run_elsewhere

pytestmark = pytest.mark.usefixtures("one_tokenizer")

PIECES = ["a", "b", "c", "new", "york", "##er", "##s", "½", "."]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]
LABELS = ["O", "B-päť", "I-päť"]
SEQ_LENGTH = 9
CONFIG = exports.config(
  len(VOCAB), intermediate_size=16, max_position_embeddings=SEQ_LENGTH, initializer_range=0.5
)


def sentences() -> list[list[str]]:
  """Of all lengths, with words that have no piece, several, or an unknown one."""
  rng = random.Random(1)
  words = ["a", "b", "New", "Yorkers", "news", "½", ".", "😀", "a\u200bb", "\u0301", "é", "—"]
  return [rng.choices(words, k=length) for length in (1, 2, 7, 8, 9, 0, 30, 5, 3)]


def logits_of(*inputs):
  return task_outputs.logits(TokenHead(len(LABELS)), CONFIG, False, *inputs)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """A folder with a vocabulary and a checkpoint of a tagger."""
  folder = tmp_path_factory.mktemp("trained")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  with use_store(VariableStore(seed=5)) as store:
    logits_of(*[tf.ones([1, 2], tf.int32)] * 3)
  store.variables["output_weights"].assign_add(tf.random.stateless_normal([3, 16], [1, 2]))
  saving.save(str(folder), 1, store.variables, {})
  return folder


def probabilities_of_training(trained, stride) -> list[np.ndarray]:
  """What run_ner's model says of each sentence's words, float32 `[words, C]`."""
  found = [
    conll_files.TaggedSentence(str(i), words) for i, words in enumerate(sentences()) if words
  ]
  tokenizer = FullTokenizer(str(trained / "vocab.txt"))
  features = list(
    tagging.convert_examples_to_features(found, LABELS, "bio", SEQ_LENGTH, tokenizer, stride)
  )
  inputs = [
    tf.constant([getattr(f, name) for f in features])
    for name in ("input_ids", "input_mask", "segment_ids")
  ]
  with use_store(VariableStore()) as store:
    logits_of(*inputs)
    loading.restore(finding.find_checkpoint(str(trained)), store.variables)
    logits = logits_of(*inputs)
  is_word = np.array([f.word_mask for f in features]) > 0
  return tagging.by_sentence(tf.nn.softmax(logits).numpy()[is_word], found)


def assert_labels_are_those_of_training(outputs, trained, stride=None):
  rows = [row for row, words in enumerate(sentences()) if words]
  for row, expected in zip(rows, probabilities_of_training(trained, stride), strict=True):
    assert outputs["tags"][row] == [LABELS[i] for i in expected.argmax(axis=1)]
    np.testing.assert_allclose(outputs["probabilities"][row], expected.max(axis=1), atol=1e-5)


def in_python(outputs) -> dict[str, list]:
  """Lists of lists, bytes decoded."""
  return {
    name: [[v.decode() if isinstance(v, bytes) else v for v in row] for row in values.to_list()]
    for name, values in outputs.items()
  }


@pytest.mark.parametrize(
  "stride", [pytest.param(None, marks=pytest.mark.ci), 1, pytest.param(7, marks=pytest.mark.ci)]
)
def test_labels_of_run_ner(trained, stride):
  model = tag_model.TagModel(CONFIG, str(trained / "vocab.txt"), True, SEQ_LENGTH, LABELS, stride)
  prefix = finding.find_checkpoint(str(trained))
  loading.restore(prefix, {v.name.split(":")[0]: v for v in model.variables})
  texts = [" ".join(words) for words in sentences()]
  outputs = in_python(model(tf.constant(texts)))
  assert outputs["words"] == sentences()
  if stride is None:
    assert len({tag for row in outputs["tags"] for tag in row}) > 1
  assert_labels_are_those_of_training(outputs, trained, stride)
  for text, words, starts, ends in zip(
    texts, outputs["words"], outputs["starts"], outputs["ends"], strict=True
  ):
    assert [text[start:end] for start, end in zip(starts, ends, strict=True)] == words
  assert model(tf.constant([], tf.string))["tags"].shape[0] == 0
  assert model(tf.constant(["", " \n"]))["tags"].to_list() == [[], []]


def test_words_are_those_of_answers_in_python(tmp_path):
  vocab_file = tmp_path / "vocab.txt"
  vocab_file.write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  chars = "ab1 .,(\u2014\u3002\u00a0\u200b\0\t\n\u0085\u0301\u20acÉ北京の\U0001f600\ufffd$_"
  rng = random.Random(2)
  texts = ["".join(rng.choices(chars, k=rng.randrange(12))) for _ in range(300)]
  for cuts_chinese in (True, False):
    tokenizer = FullTokenizer(vocab_file, tokenize_chinese_chars=cuts_chinese)
    made = tag_answers.TagAnswers(kinds.find("ner"), tokenizer, SEQ_LENGTH, LABELS)
    words = graph_tokenizer.split_basic_words(tf.constant(texts), cuts_chinese)
    values = (words.char_starts, words.char_starts + words.num_chars, words.strings)
    starts, ends, strings = (words.by_text(each).to_list() for each in values)
    for index, text in enumerate(texts):
      expected = [(word.start, word.end) for word in made._words({"text": text})]
      assert list(zip(starts[index], ends[index], strict=True)) == expected, ascii(text)
      assert [word.decode() for word in strings[index]] == [text[a:b] for a, b in expected]


_ELSEWHERE = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
texts = tf.constant(json.load(sys.stdin))
ragged = {name: values.to_list() for name, values in model(texts).items()}
served = model.signatures["serving_default"](text=texts)
counts = served.pop("num_words").numpy()
for name, values in served.items():
  rows = [list(row[:count]) for row, count in zip(values.numpy(), counts)]
  assert rows == ragged[name], name
ragged["tags"] = [[tag.decode() for tag in row] for row in ragged["tags"]]
del ragged["words"]
print(json.dumps(ragged))
"""


@pytest.mark.slow
def test_an_exported_model_elsewhere(trained, tmp_path):
  model = tag_model.TagModel(CONFIG, str(trained / "vocab.txt"), True, SEQ_LENGTH, LABELS)
  model.export(str(tmp_path / "task"), str(trained))
  texts = json.dumps([" ".join(words) for words in sentences()])
  printed = run_elsewhere(_ELSEWHERE, tmp_path / "task", cwd=tmp_path, stdin=texts)
  assert_labels_are_those_of_training(json.loads(printed), trained)
  label_map = json.loads((tmp_path / "task" / "assets.extra" / "label_map.json").read_text())
  assert list(label_map) == LABELS


@pytest.mark.ci
def test_another_number_of_labels_is_refused(trained, tmp_path):
  model = tag_model.TagModel(CONFIG, str(trained / "vocab.txt"), True, 9, ["O", "X"])
  with pytest.raises(bundle_files.CheckpointError, match="output_weights"):
    model.export(str(tmp_path / "task"), str(trained))
  assert not (tmp_path / "task").exists()
