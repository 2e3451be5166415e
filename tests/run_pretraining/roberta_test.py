"""Pre-training of RoBERTa on records of --format=roberta, with masks drawn while reading."""

import json
import random
import shutil

import numpy as np
import pytest

from bert import create_pretraining_data, run_classifier, run_pretraining
from bert.io.record_files import manifest_path, write_records
from tests.kit import byte_pairs, conversions
from tests.kit.event_files import series_in
from tests.kit.script_runs import Script, results_in, tensors, values_in

script = Script(run_pretraining)
run_well, error_of = script.run_well, script.error_of
create = Script(create_pretraining_data).run_well

CONFIG = {
  **dict(model_type="roberta", vocab_size=len(byte_pairs.vocabulary()), hidden_size=16),
  **dict(num_hidden_layers=1, num_attention_heads=2, intermediate_size=24, type_vocab_size=1),
  **dict(max_position_embeddings=34, pad_token_id=1, initializer_range=0.1),
}


@pytest.fixture(scope="module")
def roberta(tmp_path_factory) -> dict:
  """The flags of a run, which say nothing about masks."""
  folder = tmp_path_factory.mktemp("roberta")
  rng = random.Random(0)
  words = ["the", "Hello", "and", "on", "at", "a", "well"]
  lines = [" ".join(rng.choices(words, k=rng.randint(2, 12))) for _ in range(60)]
  (folder / "text").write_text("\n".join([*lines[:30], "", *lines[30:]]))
  vocab_file = byte_pairs.write(folder)
  for name, values in {"train": {}, "masked": {"dynamic_masking": False}}.items():
    out = folder / f"{name}.tfrecord"
    values = {**values, "max_seq_length": 32, "do_whole_word_mask": True}
    create(input_file=folder / "text", output_file=out, vocab_file=vocab_file, **values)
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  return {
    "input_file": folder / "train.tfrecord",
    "bert_config_file": folder / "bert_config.json",
    "vocab_file": vocab_file,
    "max_seq_length": 32,
    "train_batch_size": 4,
    "num_train_steps": 4,
    "num_warmup_steps": 0,
    "learning_rate": 5e-3,
  }


def masked(roberta) -> dict:
  """The same on records that have masks."""
  return {**roberta, "input_file": roberta["input_file"].with_name("masked.tfrecord")}


@pytest.mark.ci
def test_the_configuration_and_the_records_say_it_all(roberta, tmp_path):
  values = {**roberta, "eval_input_file": masked(roberta)["input_file"], "max_eval_steps": 2}
  done = run_well(**values, output_dir=tmp_path, do_train=True, do_eval=True)
  assert "step 4/4, loss" in done.err
  assert "name = masked_lm_ids, shape = (4, 5)" in done.err, "15% of 32"
  assert "next_sentence_loss" not in done.err
  assert 0 < results_in(tmp_path / "eval_results.txt")["masked_lm_loss"] < 8
  learned = tensors(tmp_path / "model.ckpt-4")
  assert {name.split("/")[0] for name in learned} == {"roberta", "lm_head", "global_step"}
  flags = json.loads((tmp_path / "flags.json").read_text())
  assert (flags["objective"], flags["dynamic_masking"]) == ("mlm", True)


@pytest.mark.ci
def test_it_resumes_bit_for_bit(roberta, tmp_path):
  values = {**roberta, "do_train": True, "save_checkpoints_steps": 2, "do_whole_word_mask": True}
  straight = tmp_path / "straight"
  run_well(**values, output_dir=straight)
  script.assert_resumes(straight, 2, **values)


@pytest.mark.ci
def test_masks_of_the_records_and_what_follows(roberta, tmp_path):
  """Trained, written for transformers, trained from there, and fine-tuned."""
  done = run_well(**masked(roberta), output_dir=tmp_path / "run", do_train=True)
  assert "name = masked_lm_ids, shape = (4, 5)" in done.err
  assert not json.loads((tmp_path / "run" / "flags.json").read_text())["dynamic_masking"]
  there = {"init_checkpoint": tmp_path / "run", "output_dir": tmp_path / "hf"}
  conversions.run_well("to_transformers", **there, head="masked_words")
  found = {"bert_config_file", "vocab_file"}  # with the model
  values = {name: value for name, value in roberta.items() if name not in found}
  values |= {"init_checkpoint": tmp_path / "hf", "output_dir": tmp_path / "on", "do_train": True}
  assert "RANDOM" not in run_well(**values).err
  (tmp_path / "train.tsv").write_text("a\t1\t*\tthe well\n" * 4)
  Script(run_classifier).run_well(
    task_name="CoLA",
    **{"data_dir": tmp_path, "init_checkpoint": tmp_path / "on", "output_dir": tmp_path / "cola"},
    **{"do_train": True, "max_seq_length": 16, "num_train_epochs": 1, "train_batch_size": 4},
  )


@pytest.mark.ci
def test_20_steps_from_records_equal_transformers(golden_dir, tmp_path):
  """The recorded batches as records with masks, whose padding has RoBERTa's id."""
  golden = golden_dir / "roberta"
  data = np.load(golden / "mlm_training.npz")
  hyper = json.loads((golden / "training.json").read_text())["mlm"]
  places = [[np.flatnonzero(row >= 0) for row in batch] for batch in data["labels"]]
  room = max(len(row) for batch in places for row in batch)

  def padded(values):
    return np.pad(values, (0, room - len(values)))

  records = [
    {
      "input_ids": data["input_ids"][i, j],
      "input_mask": data["attention_mask"][i, j],
      "segment_ids": np.zeros(32, int),
      "masked_lm_positions": padded(at),
      "masked_lm_ids": padded(data["labels"][i, j][at]),
      "masked_lm_weights": padded(np.ones(len(at))),
      "next_sentence_labels": [0],
    }
    for i, batch in enumerate(places)
    for j, at in enumerate(batch)
  ]
  write_records(tmp_path / "batches.tfrecord", records)
  run_well(
    input_file=tmp_path / "batches.tfrecord",
    init_checkpoint=golden / "tiny",
    output_dir=tmp_path / "out",
    **{"do_train": True, "max_seq_length": 32, "train_batch_size": 4, "shuffle_buffer_size": 1},
    **{"num_train_steps": 20, "num_warmup_steps": hyper["warmup_steps"], "save_summary_steps": 1},
    **{"learning_rate": hyper["lr"], "weight_decay": hyper["weight_decay"]},
    **{"adam_beta_2": hyper["betas"][1], "adam_bias_correction": True, "lr_schedule": "continuous"},
  )
  scalars = series_in(tmp_path / "out")["masked_lm_loss"]
  losses = [scalars[step] for step in range(1, 21)]
  np.testing.assert_allclose(losses, data["losses"], rtol=1e-5)


# ---------------------------------------------------------------------------------------------
# What cannot be.


@pytest.fixture(scope="module")
def places(roberta, model, unmasked, tmp_path_factory) -> dict[str, str]:
  """Files that do not belong to the run, by the names that the tests below give them."""
  folder = tmp_path_factory.mktemp("places")
  (folder / "padded.json").write_text(json.dumps({**CONFIG, "pad_token_id": 0}))
  create(
    **{"input_file": roberta["input_file"].with_name("text"), "output_file": folder / "of_bert"},
    **{"vocab_file": unmasked["vocab_file"], "max_seq_length": 32, "dynamic_masking": True},
  )
  write_records(folder / "plain", values_in(folder / "of_bert"))
  (folder / "alone").mkdir()  # no vocabulary lies beside these two
  alone = [
    shutil.copy(roberta[name], folder / "alone") for name in ("input_file", "bert_config_file")
  ]
  shutil.copy(manifest_path(roberta["input_file"]), folder / "alone")
  paths = {
    **dict(zip(("alone", "config_alone"), alone, strict=True)),
    **{"train": roberta["input_file"], "masked": masked(roberta)["input_file"]},
    **{"bert": model["bert_config_file"], "word_pieces": unmasked["vocab_file"]},
    **{"padded": folder / "padded.json", "of_bert": folder / "of_bert", "plain": folder / "plain"},
    "other": byte_pairs.write(folder, byte_pairs.MERGES[:-1]),
  }
  return {name: str(path) for name, path in paths.items()}


@pytest.mark.usefixtures("fake_estimator")
@pytest.mark.parametrize(
  ("changes", "message"),
  [
    (
      {"input_file": "{alone}", "bert_config_file": "{config_alone}", "vocab_file": ""},
      "a model of RoBERTa needs --vocab_file: masks are drawn with",
    ),
    ({"dynamic_masking": False}, "its sequences have no masks, as for --dynamic_masking"),
    ({"dynamic_masking": True, "input_file": "{masked}"}, "Omit --dynamic_masking"),
    ({"input_file": "{train},{masked}"}, "already, but a model of RoBERTa draws them"),
    ({"objective": "mlm_nsp"}, "its sequences are no pairs, but --objective=mlm_nsp learns"),
    (
      {"input_file": "{alone}", "bert_config_file": "{bert}", "vocab_file": ""},
      "Give the --bert_config_file of the rec",
    ),
    ({"bert_config_file": "{bert}"}, "is a byte-level BPE of 282 tokens, but "),
    ({"bert_config_file": "{padded}"}, "its padding has the id 1, but the model counts positions"),
    ({"vocab_file": "{word_pieces}"}, "is a WordPiece vocabulary of 40 tokens, but "),
    ({"vocab_file": "{other}"}, "the hash of its vocabulary begins with "),
    ({"input_file": "{of_bert}"}, "its padding has the id 0, but the model counts positions by"),
    ({"input_file": "{plain}"}, "/plain, record 2: its padding has the id 0, but the model counts"),
  ],
)
def test_what_cannot_be_is_one_clear_line(roberta, places, tmp_path, changes, message):
  values = {**roberta, **changes, "output_dir": tmp_path / "out", "do_train": True}
  values = {name: str(value).format(**places) for name, value in values.items()}
  error = error_of(**values)
  assert message in error
  assert error.count("\n") <= 3
