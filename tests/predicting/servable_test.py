"""What folders can do, without their weights; and that the halves give what `Predictor` gives.

Alone: python -m pytest tests/predicting/servable_test.py (seconds; in the ci tier with TensorFlow)
"""

import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, reading, saving
from bert.exporting import model_folder
from bert.exporting.model_files import FILES
from bert.exporting.model_folder import Described
from bert.io import installation, start_lines
from bert.predicting import saved_texts, servable
from bert.predicting.engines import registry
from bert.predicting.predictor import Predictor
from bert.predicting.row_batches import RowBatches
from tests.kit import exports, masked_lm, tiny_exports

ITEMS = {
  "spans": {"question": "who was it ?", "context": "it was the man from the city . " * 6},
  "tags": "the man was in the city , and he said so . " * 4,
  "choices": {"context": "he said", "choices": ["so .", "it was the city", "no"]},
}
FACTS = {"task_name": "films", "problem_type": "classification", "labels": ["no", "yes"]}


@pytest.fixture
def export(tmp_path):
  """`export(facts, pooling)` writes an export whose models are empty files."""

  def write(facts=(), pooling=None):
    for name in ("onnx", "litert"):
      path = tmp_path / FILES[name]["float32"]
      path.parent.mkdir(exist_ok=True)
      path.write_bytes(b"")
    (tmp_path / "v").mkdir(exist_ok=True)
    vocab_file = tmp_path / "v" / "vocab.txt"
    vocab_file.write_text("\n".join(exports.VOCAB) + "\n")
    described = Described(exports.CONFIG, str(vocab_file), True, 16, dict(facts), {}, pooling)
    model_folder.write_description(str(tmp_path), described)
    return tmp_path

  return write


def computed(ability, items):
  """The results of items, as a server makes them."""
  engine = pickle.loads(pickle.dumps(ability.load_engine))()
  batches = RowBatches(engine, engine.inputs, padding=ability.processor.padding)
  rows = [ability.processor.featurize(item) for item in items]
  return [ability.processor.finish(its_rows, batches(its_rows)) for its_rows in rows]


def assert_close(found, expected):
  """Compares results to six digits."""
  assert type(found) is type(expected)
  if isinstance(found, dict):
    assert list(found) == list(expected)
    found, expected = list(found.values()), list(expected.values())
  if isinstance(found, list):
    for one, other in zip(found, expected, strict=True):
      assert_close(one, other)
  elif isinstance(found, str):
    assert found == expected
  else:
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_exported_task_answers(export):
  folder = export(FACTS)
  found = servable.find(folder)
  assert list(found.abilities) == ["answers"]
  assert (found.engine, found.kind.facts) == ("onnxruntime", {})
  processor = found.abilities["answers"].processor
  assert (processor.inputs, processor.max_seq_length) == (("text_a", "text_b"), 16)
  assert [len(processor.featurize(item)[0]["input_ids"]) for item in processor.trial_items()] == [
    *(5, 16)
  ]
  assert servable.find(folder, max_seq_length=8).abilities["answers"].processor.max_seq_length == 8
  assert servable.find(folder, engine="litert").engine == "litert"


def test_an_exported_encoder_has_vectors(export):
  found = servable.find(export())
  assert (list(found.abilities), found.kind) == (["vectors", "token_vectors"], None)
  assert found.config.hidden_size == exports.CONFIG.hidden_size


def test_an_exported_model_of_sentence_vectors_has_both_from_one_engine(export):
  facts = {"task_name": "similarity", "pooling": "mean"}
  found = servable.find(export(facts, "mean")).abilities
  assert list(found) == ["answers", "vectors", "token_vectors"]
  assert found["answers"].load_engine is found["vectors"].load_engine
  chosen = servable.find(export(facts, "mean"), task="vectors")
  assert list(chosen.abilities) == ["vectors", "token_vectors"]


def test_it_changes_with_its_files(export):
  folder = export(FACTS)
  before = servable.find(folder)
  state = before.signature(), before.contents()
  assert state == (before.signature(), before.contents())
  (folder / "onnx" / "new").write_bytes(b"other")
  (folder / "onnx" / "new").replace(folder / FILES["onnx"]["float32"])
  assert before.signature() != state[0]
  assert before.contents() != state[1]


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"task": "vectors"}, "is the model of a task, without vectors"),
    ({"task": "other"}, "task is 'other', but must be auto or one of"),
    ({"engine": "other"}, "no engine 'other'"),
    ({"engine": "tensorflow"}, "export of other formats"),
    ({"precision": "int8"}, "has no model of onnx in int8"),
    ({"max_seq_length": 99}, "max_seq_length is 99, but must be from 3 to 32"),
  ],
)
def test_what_cannot_be_served_is_said(export, options, message):
  with pytest.raises(ValueError, match=message):
    servable.find(export(FACTS), **options)


def test_an_engine_that_is_not_installed_is_said(export, monkeypatch):
  monkeypatch.setattr(registry, "is_installed", lambda name: False)
  monkeypatch.setitem(sys.modules, "onnxruntime", None)
  monkeypatch.delitem(sys.modules, "bert.predicting.engines.onnxruntime", raising=False)
  with pytest.raises(ImportError, match="onnx"):
    servable.find(export(FACTS))


_WITHOUT_TENSORFLOW = """
import sys
sys.modules["tensorflow"] = None
from bert.predicting import servable
from bert.serving import served_models
assert not servable.needs_tensorflow(sys.argv[1])
(row,) = servable.find(sys.argv[1]).abilities["answers"].processor.featurize("the film")
print(row["input_ids"])
"""


def test_an_export_is_found_without_tensorflow(export):
  command = [sys.executable, "-c", _WITHOUT_TENSORFLOW, export(FACTS)]
  environment = installation.importable_environment()
  assert subprocess.check_output(command, env=environment, text=True) == "[2, 5, 6, 3]\n"


# ---------------------------------------------------------------------------------------------
# Real models.


@pytest.mark.ci
def test_a_saved_model_of_texts(exported, answer):
  assert not servable.needs_tensorflow(exported)
  found = servable.find(exported)
  assert list(found.abilities) == ["answers"]
  assert found.config.vocab_size == exports.CONFIG.vocab_size
  decoder = found.abilities["answers"].processor.decoder
  assert (decoder.display, decoder.label_names) == ("classes", exports.LABELS)
  items = ["the film was good", ("bad film .", "good")]
  assert_close(computed(found.abilities["answers"], items), answer(items))


@pytest.mark.ci
def test_a_checkpoint_of_pre_training(pretrained):
  assert servable.needs_tensorflow(pretrained)
  found = servable.find(pretrained, max_seq_length=16)
  assert list(found.abilities) == ["vectors", "masked_words", "attention", "token_vectors"]
  assert [each.is_lazy for each in found.abilities.values()] == [False, False, True, True]
  texts = ["the cat sat .", ("the cat", "sat on the mat")]
  encode = Predictor.load(pretrained, task="vectors", max_seq_length=16)
  assert_close(computed(found.abilities["vectors"], texts), encode(texts))
  of_tokens = computed(found.abilities["token_vectors"], texts)
  assert [len(each) for each in of_tokens] == [6, 9]
  assert_close([each.mean(axis=0) for each in of_tokens], encode(texts))
  fill = Predictor.load(pretrained, task="masked_words", max_seq_length=16)
  expected = fill(masked_lm.TEXTS)
  assert_close(computed(found.abilities["masked_words"], masked_lm.TEXTS), expected)
  attend = Predictor.load(pretrained, task="attention_maps", max_seq_length=16)
  [(tokens, maps)] = attend("the cat sat .")
  item = {"text": "the cat sat .", "layer": 1, "head": 1}
  (result,) = computed(found.abilities["attention"], [item])
  assert result["tokens"] == tokens
  np.testing.assert_allclose(result["map"], maps[1, 1], atol=1e-6)


class StartedError(Exception):
  """TensorFlow would start now."""


@pytest.mark.ci
def test_each_engine_of_tensorflow_has_gpu_memory_grow_first(
  trained, exported, pretrained, tmp_path, monkeypatch
):
  """It is loaded in a process of its own, and several share a GPU."""
  run = shutil.copytree(trained, tmp_path / "run")
  prefix = finding.find_checkpoint(trained)
  names = [name for name in reading.names_and_shapes(prefix) if name != "global_step"]
  facts = {**FACTS, "labels": exports.LABELS}
  saving.save(str(run), 2, reading.read_tensors(prefix, names), {"fingerprint": facts})
  found = [servable.find(folder, max_seq_length=16) for folder in (run, exported, pretrained)]
  assert [next(iter(each.abilities)) for each in found] == ["answers", "answers", "vectors"]
  abilities = [ability for each in found for ability in each.abilities.values()]
  asked = []

  def start(**options):
    asked.append(options)
    raise StartedError

  monkeypatch.setattr(start_lines, "start_tensorflow", start)
  for ability in abilities:
    with pytest.raises(StartedError):
      ability.load_engine(threads=3)
  assert asked == [{"threads": 3}] * len(abilities)


@pytest.mark.ci
def test_a_signature_is_read_as_tensorflow_reads_it(exported, pretrained_encoder):
  folder = saved_texts.folder_of(exported)
  found, signature = saved_texts.signature(folder), tf.saved_model.load(folder).signatures
  expected = signature["serving_default"]
  assert set(found.inputs) == set(expected.structured_input_signature[1])
  assert set(found.outputs) == set(expected.structured_outputs)
  assert saved_texts.signature(saved_texts.folder_of(pretrained_encoder)) is None


@pytest.mark.ci
@pytest.mark.parametrize("name", ["spans", "tags", "choices"])
def test_an_export_of_token_ids_answers_in_python(name, tmp_path):
  folder = tiny_exports.write_saved_model(tmp_path / "export", name)
  assert not servable.needs_tensorflow(tmp_path / "export")
  found = servable.find(tmp_path / "export")
  assert (found.folder, found.engine) == (str(folder), "tensorflow")
  item = ITEMS[name]
  results = computed(found.abilities["answers"], [item])
  of_export = Predictor.load(tmp_path / "export")([item])
  tiny_exports.write(tmp_path / "onnx", name)
  assert_close(results, of_export)
  assert_close(results, Predictor.load(tmp_path / "onnx", "onnxruntime")([item]))


def test_a_graph_of_strings_of_an_earlier_version_is_refused():
  tags = saved_texts.Signature(("text",), ("ends", "num_words", "starts", "tags", "words"))
  of_pairs = saved_texts.Signature(("context", "question"), ("answer", "end", "start"))
  for signature in (tags, of_pairs, saved_texts.Signature(("choices", "context"), ("choice",))):
    with pytest.raises(ValueError, match=r"out/task is an export of an earlier .*--do_export"):
      saved_texts.check_is_current("out/task", signature)
  saved_texts.check_is_current("out", saved_texts.Signature(("text",), ("num_words", "words")))
