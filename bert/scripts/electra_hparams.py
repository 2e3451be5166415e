"""`--hparams` of google-research/electra's scripts, as flags of this project's.

  flags_of('{"learning_rate": 5e-4, "mask_prob": 0.15}')
  # ["--learning_rate=0.0005", "--masked_lm_prob=0.15"]

Its scripts take their settings as one JSON object, or the name of a file with one. Here it stands
for the flags of the same meaning; flags after it on the command line win. Sizes of the model are in
the configuration here, and folders are `--data_dir` and `--output_dir`.
"""

from typing import Any

from bert.io import filesystem, json_files

# Settings whose flag has another name; all others are called alike.
_RENAMED = {
  "lr_decay_power": "poly_power",
  "mask_prob": "masked_lm_prob",
  "num_eval_steps": "max_eval_steps",
  "num_trials": "num_runs",
  "pretrain_tfrecords": "input_file",
  "qa_na_threshold": "null_score_diff_threshold",
  "write_test_outputs": "do_predict",
}
_SAME = (
  *("learning_rate", "num_warmup_steps", "num_train_steps", "train_batch_size", "eval_batch_size"),
  *("max_seq_length", "save_checkpoints_steps", "keep_checkpoint_max", "iterations_per_loop"),
  *("do_train", "do_eval", "do_lower_case", "vocab_file", "init_checkpoint", "use_tpu"),
  *("gen_weight", "disc_weight", "temperature", "disallow_correct", "generator_layers"),
  *("generator_hidden_size", "untied_generator_embeddings", "num_train_epochs"),
  *("warmup_proportion", "layerwise_lr_decay", "double_unordered", "max_query_length"),
  *("doc_stride", "n_best_size", "max_answer_length", "answerable_classifier", "beam_size"),
  *("answerable_uses_start_logits", "answerable_weight", "joint_prediction", "predict_batch_size"),
)
# What is said elsewhere here.
_ELSEWHERE = {
  **dict.fromkeys(
    ("model_size", "embedding_size", "vocab_size", "model_hparam_overrides"),
    "the model's sizes are in --bert_config_file, or in the checkpoint",
  ),
  **dict.fromkeys(("data_dir", "model_name"), "give --data_dir and --output_dir"),
  "weight_decay_rate": "weight decay is 0.01",
}
_AS_IT_IS = {"weight_decay_rate": 0.01}
# Settings that are true or false: the flag that stands for each of both.
_SWITCHES = {
  "uniform_generator": {True: "--generator=uniform"},
  "two_tower_generator": {True: "--generator=two_tower"},
  "untied_generator": {False: "--generator=tied"},
  "electra_objective": {True: "--objective=electra", False: "--objective=mlm"},
  "electric_objective": {True: "--objective=electric"},
}


def flags_of(value: str) -> list[str]:
  """Returns the flags that an `--hparams` stands for.

  It is a JSON object, or the path of a file with one.

  Raises:
    ValueError: not a JSON object, or it has a setting that has no flag here; names it.

  Example:
    >>> flags_of('{"task_names": ["mrpc"], "uniform_generator": true, "do_eval": false}')
    ['--task_name=mrpc', '--generator=uniform', '--do_eval=false']
  """
  content = _read(value)
  words = []
  # The last flag counts, and Electric is trained whatever `electra_objective` says.
  for name in sorted(content, key=lambda name: name == "electric_objective"):
    words += _flags_of(name, content[name])
  return words


def _read(value: str) -> dict[str, Any]:
  is_file = not value.lstrip().startswith("{")
  where = f"--hparams={value}" if is_file else "--hparams"
  try:
    content = filesystem.read_bytes(value) if is_file else value
  except OSError as error:
    raise ValueError(f"{where} is neither a JSON object nor a file: {error}") from None
  return json_files.object_in(content, where)


def _flags_of(name: str, setting: Any) -> list[str]:
  if name == "task_names":
    if not isinstance(setting, list) or len(setting) != 1:
      raise ValueError(f"--hparams: task_names is {setting!r:.60}; one task at a time is trained.")
    return [f"--task_name={setting[0]}"]
  if name in _SWITCHES:
    flag = _SWITCHES[name].get(bool(setting))
    return [flag] if flag else []
  if name in _ELSEWHERE:
    if name in _AS_IT_IS and setting == _AS_IT_IS[name]:
      return []
    raise ValueError(f"--hparams: {name} has no flag: {_ELSEWHERE[name]}. Take it out.")
  if name not in _RENAMED and name not in _SAME:
    raise ValueError(f"--hparams: {name!r:.60} is not a setting of ELECTRA that has a flag here.")
  text = str(setting).lower() if isinstance(setting, bool) else str(setting)
  return [f"--{_RENAMED.get(name, name)}={text}"]
