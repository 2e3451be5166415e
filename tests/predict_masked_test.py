"""predict_masked.py: probabilities of the model itself, from checkpoints and exports, and messages.

Alone: python -m pytest tests/predict_masked_test.py (about half a minute)
"""

import doctest
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert import predict, predict_masked
from bert.checkpoints import bundle_files, finding, saving
from bert.exporting import hub_encoder
from bert.model import heads
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting import load_model, masked_words
from bert.scripts import command_line
from tests.kit.paths import ROOT

WORDS = ["the", "cat", "sat", "on", "mat", "##s", ".", "[", "]", "mask"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
CONFIG = BertConfig(
  vocab_size=16,  # one more than the vocabulary has, as in models with padded tables
  hidden_size=16,
  num_hidden_layers=2,
  num_attention_heads=2,
  intermediate_size=32,
  max_position_embeddings=32,
  type_vocab_size=2,
  initializer_range=0.3,
)
TEXTS = [
  "The [MASK] sat on the [MASK][MASK].",
  "[MASK]",
  ("the cat sat .", "on the [MASK] ."),
  ("the cat", "sat ."),
]


def pretraining_graph(input_ids, segment_ids, positions):
  """Probabilities of the words `[P, V]`, and that the second text follows, by the heads alone."""
  model = BertModel(CONFIG, False, input_ids, None, segment_ids)
  table, zeros = model.get_embedding_table(), tf.zeros_like(positions)
  _, _, words = heads.get_masked_lm_output(
    CONFIG, model.get_sequence_output(), table, positions, zeros, tf.zeros(positions.shape)
  )
  _, _, sentences = heads.get_next_sentence_output(CONFIG, model.get_pooled_output(), zeros[:, 0])
  return np.exp(words), float(tf.exp(sentences[0, 0]))


@pytest.fixture(scope="module")
def store() -> VariableStore:
  with use_store(VariableStore(seed=9)) as store:
    pretraining_graph(tf.constant([[2, 3]]), tf.zeros([1, 2], tf.int32), tf.constant([[0]]))
  for variable in store.variables.values():
    variable.assign_add(tf.random.stateless_normal(variable.shape, [1, 2], stddev=0.1))
  return store


def save(folder, variables) -> str:
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  (folder / "bert_config.json").write_text(CONFIG.to_json_string())
  saving.save(str(folder), 1, variables, {})
  return str(folder)


@pytest.fixture(scope="module")
def trained(store, tmp_path_factory) -> str:
  """A folder with a checkpoint of pre-training."""
  return save(tmp_path_factory.mktemp("trained"), store.variables)


@pytest.fixture(scope="module")
def encoder(trained, tmp_path_factory) -> str:
  """An exported encoder with .mlm."""
  folder = str(tmp_path_factory.mktemp("export") / "encoder")
  hub_encoder.export_encoder(folder, CONFIG, trained, os.path.join(trained, "vocab.txt"), True)
  return folder


@pytest.fixture(scope="module")
def fill(trained):
  return masked_words.from_checkpoint(trained, top_k=3, max_seq_length=16)


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


def test_the_examples():
  assert doctest.testmod(predict_masked).failed == 0
  assert doctest.testmod(predict_masked).attempted > 0


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


def test_an_exported_encoder_says_the_same(encoder, trained, store):
  """Run as the SavedModel that it is, or read as a checkpoint; neither knows of next sentences."""
  options = {"top_k": 3, "max_seq_length": 16}
  for load in (masked_words.from_saved_model, masked_words.from_checkpoint):
    fill = load(encoder, **options)
    for result, item in zip(fill(TEXTS[:3]), TEXTS[:3], strict=True):
      check(result, item, store, top_k=3)
      assert "next_sentence" not in result
    with pytest.raises(
      ValueError, match=r"no next-sentence head .*cls/seq_relationship.* second text follows"
    ):
      fill(TEXTS[3:])


def test_all_pieces_add_up_to_one(trained, encoder):
  for fill in (
    masked_words.from_checkpoint(trained, top_k=1000, max_seq_length=16),
    masked_words.from_saved_model(encoder, top_k=15, max_seq_length=16),
  ):
    [pieces] = fill(["the [MASK] sat"])[0]["masks"]
    assert len(pieces) >= 15
    probabilities = [piece["probability"] for piece in pieces]
    assert probabilities == sorted(probabilities, reverse=True)
  [pieces] = masked_words.from_checkpoint(trained, top_k=1000, max_seq_length=16)(["[MASK]"])[0][
    "masks"
  ]
  assert sum(piece["probability"] for piece in pieces) == pytest.approx(1, abs=1e-5)
  assert sorted(piece["token"] for piece in pieces) == sorted([*VOCAB, "[id 15]"])


def test_answers_do_not_depend_on_the_other_texts(fill):
  together = fill(TEXTS * 3)
  for result, item in zip(together, TEXTS * 3, strict=True):
    [alone] = fill([item])
    assert tokens_of(result) == tokens_of(alone)
    np.testing.assert_allclose(numbers_of(result), numbers_of(alone), atol=1e-5)


def tokens_of(result):
  return [[piece["token"] for piece in pieces] for pieces in result["masks"]]


def numbers_of(result):
  numbers = [piece["probability"] for pieces in result["masks"] for piece in pieces]
  return [*numbers, result.get("next_sentence", 0)]


def test_the_heads_equal_the_originals(golden_dir):
  with np.load(golden_dir / "tiny_forward.npz") as recorded:
    recorded = dict(recorded)
  config = BertConfig.from_json_file(str(golden_dir / "tiny" / "bert_config.json"))
  function = load_model.load_graph(
    masked_words._graph(config, config.vocab_size, has_next_sentence=True),
    masked_words._INPUTS,
    finding.find_checkpoint(golden_dir / "tiny"),
  )
  outputs = function({name: recorded[f"in_{name}"] for name in masked_words._INPUTS})
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


def test_only_the_mask_as_it_is_written_counts(fill):
  with pytest.raises(ValueError, match=r"no \[MASK\] in 'the \[mask\]'"):
    fill(["the [mask]"])
  assert len(fill(["[mask] [MASK] [ MASK ]"])[0]["masks"]) == 1


def test_a_mask_that_is_cut_off_is_told(fill):
  assert len(fill(["the " * 13 + "[MASK]"])[0]["masks"]) == 1
  with pytest.raises(ValueError, match=r"1 of 2 \[MASK\] in .* lie beyond max_seq_length 16"):
    fill(["[MASK]" + "the " * 14 + "[MASK]"])


def test_a_checkpoint_without_the_head_is_told(store, tmp_path):
  encoder_alone = {n: v for n, v in store.variables.items() if n.startswith("bert/")}
  folder = save(tmp_path, encoder_alone)
  with pytest.raises(bundle_files.CheckpointError, match="has no head for masked words"):
    masked_words.from_checkpoint(folder, max_seq_length=16)


def test_half_a_head_is_told(store, tmp_path):
  half = {n: v for n, v in store.variables.items() if n != "cls/predictions/output_bias"}
  folder = save(tmp_path, half)
  with pytest.raises(
    bundle_files.CheckpointError, match=r"lacks 1 of .* cls/predictions/output_bias"
  ):
    masked_words.from_checkpoint(folder, max_seq_length=16)


def test_real_weights_without_the_head(data_dir):
  [folder] = (data_dir / "weights").iterdir()
  with pytest.raises(bundle_files.CheckpointError, match="has no head for masked words"):
    masked_words.from_checkpoint(str(folder))


def test_an_encoder_without_mlm_is_told(store, tmp_path):
  (tmp_path / "trained").mkdir()
  without = {n: v for n, v in store.variables.items() if n.startswith("bert/")}
  trained = save(tmp_path / "trained", without)
  vocab = os.path.join(trained, "vocab.txt")
  hub_encoder.export_encoder(str(tmp_path / "encoder"), CONFIG, trained, vocab, True)
  with pytest.raises(ValueError, match=r"has no \.mlm"):
    masked_words.from_saved_model(str(tmp_path / "encoder"))
  with pytest.raises(FileNotFoundError, match="holds no SavedModel"):
    masked_words.from_saved_model(trained)


def test_a_length_beyond_the_models(trained, encoder):
  for load, model in (
    (masked_words.from_checkpoint, trained),
    (masked_words.from_saved_model, encoder),
  ):
    with pytest.raises(ValueError, match="max_seq_length is 128, but must be from 3 to 32"):
      load(model)


# ---------------------------------------------------------------------------------------------
# The command.


class Terminal(io.TextIOWrapper):
  """Standard input at which somebody types."""

  def isatty(self):
    return True


def run(stdin=b"", argv=(), stdin_type=io.TextIOWrapper, script=predict_masked, **values):
  """Runs the script in this process: exit code, what it printed, its messages."""
  argv = ["script.py", *argv, *(f"--{name}={value}" for name, value in values.items())]
  out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "stdin", stdin_type(io.BytesIO(stdin), "utf-8"))
    patch.setattr(sys, "stdout", out)
    patch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit) as left:
      command_line.run(script.main, script.define_flags, argv)
  out.flush()
  return left.value.code, out.buffer.getvalue().decode(), err.getvalue()


@pytest.mark.parametrize("kind", ["init_checkpoint", "saved_model"])
def test_predict_py_fills_masks_too(trained, encoder, store, kind):
  lines = [
    "The [MASK] sat .",
    '{"text": "The [MASK] sat ."}',
    '{"text_b": "on the [MASK] .", "text_a": "the cat"}',
  ]
  flags = {"task": "fill_mask", "max_seq_length": 16, "script": predict}
  flags[kind] = {"init_checkpoint": trained, "saved_model": encoder}[kind]
  code, printed, err = run("\n".join(lines).encode(), **flags)
  assert code is None, err
  results = list(map(json.loads, printed.splitlines()))
  items = ["The [MASK] sat .", "The [MASK] sat .", ("the cat", "on the [MASK] .")]
  for result, item in zip(results, items, strict=True):
    check(result, item, store, top_k=5)
  for bad in ("no mask", '{"context": "a", "choices": ["[MASK]"]}'):
    code, _, err = run(f"The [MASK] .\n{bad}".encode(), **flags)
    assert (code, "standard input, line 2: " in err) == (1, True)


def test_bfloat16_is_near(trained, fill):
  near = masked_words.from_checkpoint(trained, top_k=3, max_seq_length=16, dtype="bfloat16")
  exact, near = (
    [piece["probability"] for result in model(TEXTS) for mask in result["masks"] for piece in mask]
    for model in (fill, near)
  )
  np.testing.assert_allclose(near, exact, atol=0.05)
  assert near != exact


def error_of(**values) -> str:
  code, out, err = run(**values)
  assert (code, out) == (1, "")
  assert "Traceback" not in err
  return err[err.index("ERROR: ") :]


def test_a_table_of_given_texts(trained, fill):
  flags = {"init_checkpoint": trained, "max_seq_length": 16, "top_k": 3}
  argv = ["--text=the cat ||| sat on the [MASK]", "--text=the [MASK] sat"]
  code, out, err = run(argv=argv, **flags)
  assert code is None, err
  results = fill([("the cat", "sat on the [MASK]"), "the [MASK] sat"])
  assert out == "".join(predict_masked.to_table(result) + "\n" for result in results)
  lines = out.splitlines()
  assert lines[0] == "the cat ||| sat on the [MASK]"
  assert lines[1].startswith("  [MASK] 1       ")
  assert lines[2].startswith("  next sentence  0.")
  assert lines[3] == "the [MASK] sat"


@pytest.mark.parametrize("source", ["file", "stdin"])
@pytest.mark.parametrize("flag", ["init_checkpoint", "saved_model"])
def test_lines_in_json_out(trained, encoder, fill, tmp_path, source, flag):
  content = b"the [MASK] sat\n\nthe cat ||| on the [MASK]\n"
  flags = {flag: trained if flag == "init_checkpoint" else encoder, "max_seq_length": 16}
  if source == "file":
    (tmp_path / "in.txt").write_bytes(content)
    flags["input_file"] = tmp_path / "in.txt"
  out = tmp_path / "out.jsonl"
  code, printed, err = run(content, **flags, output_file=out, top_k=3)
  assert (code, printed) == (None, ""), err
  results = list(map(json.loads, out.read_text().splitlines()))
  expected = fill(["the [MASK] sat", ("the cat", "on the [MASK]")])
  assert list(map(tokens_of, results)) == list(map(tokens_of, expected))
  assert ("next_sentence" in results[1]) == (flag == "init_checkpoint")


def test_who_types_is_answered_line_by_line(trained, monkeypatch):
  sizes = []
  load = masked_words.from_checkpoint
  monkeypatch.setattr(
    masked_words,
    "from_checkpoint",
    lambda *args, **options: sizes.append(options["chunk_size"]) or load(*args, **options),
  )
  flags = {"init_checkpoint": trained, "max_seq_length": 16}
  run(b"[MASK]", **flags)
  run(b"[MASK]", stdin_type=Terminal, **flags)
  run(stdin_type=Terminal, text="[MASK]", **flags)
  assert sizes == [1024, 1, 1024]


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    ({"init_checkpoint": None}, "Name a model: --init_checkpoint or --saved_model."),
    ({"saved_model": "x"}, "are two models: give one"),
    ({"text": "[MASK]", "input_file": "x"}, "--text and --input_file exclude each other"),
    ({"top_k": 0}, "--top_k=0: at least 1"),
    ({"batch_size": 0}, "--batch_size=0: at least 1"),
    ({"output_file": "no/such/out"}, "there is no folder no/such"),
    ({"input_file": "no.txt"}, "no.txt: No such file"),
    ({"text": "no mask"}, "--text, line 1: no [MASK] in 'no mask'"),
    ({"max_seq_length": 2}, "max_seq_length is 2"),
  ],
)
def test_what_cannot_be_is_told(trained, tmp_path, monkeypatch, flags, message):
  monkeypatch.chdir(tmp_path)
  flags = {"init_checkpoint": trained, "max_seq_length": 16, **flags}
  assert message in error_of(**{name: value for name, value in flags.items() if value is not None})
  assert os.listdir(tmp_path) == []


def test_a_bad_line_is_named_and_leaves_no_file(trained, tmp_path):
  (tmp_path / "in.txt").write_text("the [MASK]\n\nnothing to guess\n")
  flags = {"init_checkpoint": trained, "max_seq_length": 16, "input_file": tmp_path / "in.txt"}
  message = error_of(**flags, output_file=tmp_path / "out")
  assert "in.txt, line 3: no [MASK] in 'nothing to guess'" in message
  assert os.listdir(tmp_path) == ["in.txt"]


def test_case_of_an_export_is_known(encoder, tmp_path):
  flags = {"init_checkpoint": encoder, "max_seq_length": 16, "text": "[MASK]"}
  assert run(**flags)[0] is None
  assert "was exported with do_lower_case True" in error_of(**flags, do_lower_case=False)


def test_help_is_quick_and_needs_no_tensorflow():
  script = (
    "import sys; from bert import predict_masked; from bert.scripts import command_line\n"
    "try: command_line.run(predict_masked.main, predict_masked.define_flags, ['predict_masked.py', '--help'])\n"
    "except SystemExit: sys.exit('tensorflow' in sys.modules)"
  )
  done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert "--top_k" in done.stdout
