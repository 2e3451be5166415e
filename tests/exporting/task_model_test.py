"""The fine-tuned model as a SavedModel: from strings to the very answers of its run."""

import contextlib
import io
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from bert import run_classifier, tokenization
from bert.checkpoints import bundle_files, finding, loading, saving
from bert.exporting.sentence_model import SentenceModel
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.scripts import command_line
from bert.tasks.classification import InputExample, convert_single_example
from tests.kit import exports
from tests.kit.script_runs import run_elsewhere

pytestmark = pytest.mark.usefixtures("one_tokenizer")

WORDS = ["the", "film", "was", "good", "bad", "½", "##s", ",", "."]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
CONFIG = exports.config(len(VOCAB), intermediate_size=16)


# ---------------------------------------------------------------------------------------------
# Answers.

TEXTS_A = ["The films, was GOOD.", "bad", "", "the " * 40]
TEXTS_B = ["½ films", "", "good", "film " * 3]
LABELS = ["no", "yes", "päť"]
MAX_SEQ_LENGTH = 12


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """A folder with vocabulary and checkpoints of heads for 1 and 3 labels."""
  folder = tmp_path_factory.mktemp("trained")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  for num_labels in (1, 3):
    with use_store(VariableStore(seed=5)) as store:
      model = BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
      heads.get_classifier_logits(model.get_pooled_output(), num_labels, False)
    store.variables["output_weights"].assign_add(tf.ones([num_labels, 16]) * 0.1)
    store.variables["output_bias"].assign(tf.range(num_labels, dtype=tf.float32) * 0.3 - 0.2)
    saving.save(str(folder / str(num_labels)), 1, store.variables, {})
  return folder


def own_logits(trained, num_labels, texts_b):
  """What training's model says to training's features."""
  tokenizer = tokenization.FullTokenizer(str(trained / "vocab.txt"))
  features = [
    convert_single_example(9, InputExample("x", a, b, LABELS[0]), LABELS, MAX_SEQ_LENGTH, tokenizer)
    for a, b in zip(TEXTS_A, texts_b, strict=True)
  ]
  inputs = [
    tf.constant([getattr(f, n) for f in features])
    for n in ("input_ids", "input_mask", "segment_ids")
  ]
  with use_store(VariableStore()) as store:

    def forward():
      model = BertModel(CONFIG, False, *inputs, only_pooled_output=True)
      return heads.get_classifier_logits(model.get_pooled_output(), num_labels, False)

    forward()
    prefix = finding.find_checkpoint(str(trained / str(num_labels)))
    loading.restore(prefix, store.variables)
    return forward().numpy()


def sentence_model(trained, labels, problem_type, **options):
  model = SentenceModel(
    CONFIG, str(trained / "vocab.txt"), True, MAX_SEQ_LENGTH, labels, problem_type, **options
  )
  model.load(finding.find_checkpoint(str(trained / str(len(labels)))))
  return model


def export(folder, trained, labels):
  model = SentenceModel(CONFIG, str(trained / "vocab.txt"), True, MAX_SEQ_LENGTH, labels)
  model.export(str(folder / "task"), str(trained / str(len(labels))))
  return tf.saved_model.load(str(folder / "task"))


def decoded(tensor):
  return [text.decode() for text in tensor.numpy().reshape(-1)]


@pytest.mark.ci
def test_classification(trained, tmp_path):
  model = export(tmp_path, trained, LABELS)
  logits = own_logits(trained, 3, TEXTS_B)
  outputs = model(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
  assert sorted(outputs) == ["label", "label_names", "probabilities"]
  np.testing.assert_allclose(outputs["probabilities"], tf.nn.softmax(logits), atol=1e-6)
  assert decoded(outputs["label"]) == [LABELS[i] for i in logits.argmax(axis=1)]
  assert decoded(outputs["label_names"]) == decoded(model.label_names) == LABELS
  names = [variable.name.split(":")[0] for variable in model.trainable_variables]
  assert names[-2:] == ["output_weights", "output_bias"]
  assert len(names) == 5 + 16 * 2 + 2 + 2

  served = model.signatures["serving_default"](
    text_a=tf.constant(TEXTS_A), text_b=tf.constant(TEXTS_B)
  )
  np.testing.assert_array_equal(served["probabilities"], outputs["probabilities"])
  assert served["label_names"].shape == [4, 3]
  assert decoded(served["label_names"][2]) == LABELS


@pytest.mark.ci
def test_single_texts(trained):
  model = sentence_model(trained, LABELS, "classification", is_pair=False)
  expected = tf.nn.softmax(own_logits(trained, 3, [None] * 4))
  found = model(tf.constant(TEXTS_A))["probabilities"]
  np.testing.assert_allclose(found, expected, atol=1e-6)
  served = model.signature()(text_a=tf.constant(TEXTS_A))
  np.testing.assert_array_equal(served["probabilities"], found)
  assert model(tf.constant([], tf.string))["probabilities"].shape == [0, 3]


@pytest.mark.ci
def test_regression(trained):
  model = sentence_model(trained, ["score"], "regression")
  outputs = model(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
  assert list(outputs) == ["score"]
  np.testing.assert_allclose(outputs["score"], own_logits(trained, 1, TEXTS_B)[:, 0], atol=1e-6)


@pytest.mark.ci
def test_multi_label(trained):
  model = sentence_model(trained, LABELS, "multi_label")
  probabilities = tf.sigmoid(own_logits(trained, 3, TEXTS_B)).numpy()
  outputs = model(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
  assert sorted(outputs) == ["label", "label_names", "labels", "probabilities"]
  np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-6)
  given = probabilities >= 0.5
  assert given.any()
  assert not given.all()
  np.testing.assert_array_equal(outputs["labels"], given)
  names = [",".join(n for n, g in zip(LABELS, row, strict=True) if g) for row in given]
  assert decoded(outputs["label"]) == names


@pytest.mark.ci
def test_a_checkpoint_without_the_head_is_refused(trained, tmp_path):
  with use_store(VariableStore()) as store:
    BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
  saving.save(str(tmp_path / "3"), 1, store.variables, {})
  (tmp_path / "vocab.txt").write_bytes((trained / "vocab.txt").read_bytes())
  with pytest.raises(bundle_files.CheckpointError, match="output_weights, output_bias"):
    export(tmp_path, tmp_path, LABELS)
  assert not (tmp_path / "task").exists()


@pytest.mark.ci
def test_other_labels_are_refused(trained, tmp_path):
  (tmp_path / "2").symlink_to(trained / "3")
  (tmp_path / "vocab.txt").symlink_to(trained / "vocab.txt")
  with pytest.raises(bundle_files.CheckpointError, match="output_weights"):
    export(tmp_path, tmp_path, ["0", "1"])


# ---------------------------------------------------------------------------------------------
# From a run to its answers, elsewhere.

_ELSEWHERE = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
texts = [tf.constant(column) for column in json.load(sys.stdin)]
outputs = model(*texts)
print(json.dumps({
  "probabilities": outputs["probabilities"].numpy().tolist(),
  "label": [label.decode() for label in outputs["label"].numpy()],
}))
"""


def run(**values):
  argv = ["run_classifier.py", *(f"--{name}={value}" for name, value in values.items())]
  err = io.StringIO()
  with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
    with pytest.raises(SystemExit) as left:
      command_line.run(run_classifier.main, run_classifier.define_flags, argv)
  return left.value.code, err.getvalue()


def write_mrpc(folder):
  """Pairs that are short, long, of one text only, of odd characters."""
  pairs = list(zip(TEXTS_A, TEXTS_B, strict=True)) + [
    ("the film" * i, "GOOD. " * i) for i in range(9)
  ]
  pairs += [("ﬁlm…", "\u200bthe ½s"), ("was\u00a0good", "中文 films")]
  for split in ("train", "dev", "test"):
    rows = [["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"]]
    rows += [[str(i % 2), str(i), str(i), a, b] for i, (a, b) in enumerate(pairs)]
    text = "".join("\t".join(row) + "\n" for row in rows)
    (folder / f"{split}.tsv").write_text(text, encoding="utf-8")
  return pairs


@pytest.mark.slow
def test_raw_pairs_get_the_probabilities_of_the_run(trained, tmp_path):
  pairs = write_mrpc(tmp_path)
  (tmp_path / "bert_config.json").write_text(CONFIG.to_json_string())
  flags = dict(
    task_name="MRPC",
    data_dir=tmp_path,
    vocab_file=trained / "vocab.txt",
    bert_config_file=tmp_path / "bert_config.json",
    output_dir=tmp_path / "out",
    max_seq_length=MAX_SEQ_LENGTH,
    do_export=True,
  )
  code, err = run(**flags)
  assert code == 1
  assert "--do_export: there is no checkpoint in --output_dir" in err

  code, err = run(**flags, do_train=True, do_predict=True, train_batch_size=4, learning_rate=0.01)
  assert code is None, err
  exported = tmp_path / "out" / "export"
  assert sorted(os.listdir(exported)) == ["encoder", "preprocess", "task"]
  texts = json.dumps(list(zip(*pairs, strict=True)))
  printed = run_elsewhere(_ELSEWHERE, exported / "task", cwd=tmp_path, stdin=texts)
  found = json.loads(printed)
  expected = np.loadtxt(tmp_path / "out" / "test_results.tsv")
  assert expected.std(axis=0).min() > 1e-4  # texts differ, and so do answers
  np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-5)
  rows = (tmp_path / "out" / "predictions.tsv").read_text().splitlines()[1:]
  assert found["label"] == [row.split("\t")[1] for row in rows]
  labels = json.loads((exported / "task" / "assets.extra" / "label_map.json").read_text())
  assert labels == {"0": 0, "1": 1}
