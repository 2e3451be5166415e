"""Kinds of runs that a change must leave equal to the bit: tiny data, tiny models, few steps.

data = result_runs.write_data(folder)
for script, flags in result_runs.RUNS["classifier"]: ...  # `{}` stands for the folder of the data
"""

import json
import pathlib
from typing import Any

from tests.kit import (
  byte_pairs,
  healthy_run,
  long_texts,
  piece_model,
  teachers,
  tiny_bert,
  tiny_choices,
  tiny_entities,
  tiny_pairs,
  tiny_questions,
  tiny_sentences,
)

Command = tuple[str, dict[str, Any]]  # a script and its flags


def _model(name: str, vocabulary: str = "vocab.txt") -> dict[str, str]:
  return {
    "bert_config_file": f"{{}}/{name}/bert_config.json",
    "vocab_file": f"{{}}/{name}/{vocabulary}",
  }


_TRAINED = {
  **{"output_dir": "out", "max_seq_length": 16, "train_batch_size": 8, "num_train_epochs": 1.0},
  **{"learning_rate": 0.01, "save_summary_steps": 1, "do_train": True},
}
_USED = {"do_eval": True, "do_predict": True}
_MRPC = {**_model("sentences"), **{"task_name": "MRPC", "data_dir": "{}/mrpc", **_TRAINED, **_USED}}
_NER = {**_model("entities"), **_TRAINED, **_USED, "data_dir": "{}/entities"}
_SWAG = {**_model("choices"), **_TRAINED, **_USED, "data_dir": "{}/choices", "max_seq_length": 24}
_SIMILARITY = {**_model("pairs"), **_TRAINED, **_USED, "data_dir": "{}/scores"}
_SQUAD = {
  **_model("questions"),
  **_TRAINED,
  **{"max_seq_length": 24, "doc_stride": 8, "max_query_length": 4, "do_predict": True},
}
_SQUAD_1 = {**_SQUAD, "train_file": "{}/squad_1/train.json", "predict_file": "{}/squad_1/dev.json"}
_SQUAD_2 = {
  **_SQUAD,
  **{"train_file": "{}/squad_2/train.json", "predict_file": "{}/squad_2/dev.json"},
  "version_2_with_negative": True,
}
_STUDENT = {
  **{"teacher": "{}/teachers/mrpc", "data_dir": "{}/mrpc", "num_hidden_layers": 1},
  **{"output_dir": "out", "train_batch_size": 8, "num_train_epochs": 1.0, "learning_rate": 0.01},
  **{"save_summary_steps": 1, "do_train": True, **_USED},
}
_RECORDS = {
  **{"input_file": "{}/corpus.txt", "vocab_file": "{}/letters/vocab.txt", "dupe_factor": 2},
  **{"output_file": "a.tfrecord", "max_seq_length": 16, "max_predictions_per_seq": 3},
}
_PRETRAINING = {
  **{"input_file": "a.tfrecord", "eval_input_file": "a.tfrecord", "output_dir": "out"},
  **{"max_seq_length": 16, "train_batch_size": 8, "learning_rate": 0.01, "num_train_steps": 3},
  **{"num_warmup_steps": 1, "max_eval_steps": 2, "save_summary_steps": 1},
  **{"do_train": True, "do_eval": True},
}


def _own_table(problem: str, **flags: Any) -> dict[str, Any]:
  return {**_MRPC, "task_name": "csv", "data_dir": f"{{}}/{problem}", **flags}


def _pretraining(
  family: str, model: str, vocabulary: str = "vocab.txt", dynamic_masking: bool | None = None
) -> list[Command]:
  """Records of a family, and a run on them."""
  files = _model(model, vocabulary)
  records = {**_RECORDS, "vocab_file": files["vocab_file"], "format": family}
  run = {**_PRETRAINING, **files}
  if dynamic_masking is not None:
    records |= {"dynamic_masking": dynamic_masking, "num_workers": 1}
    run["dynamic_masking"] = dynamic_masking
  if family in ("bert", "albert"):
    run["max_predictions_per_seq"] = records["max_predictions_per_seq"]
  else:
    del records["max_predictions_per_seq"], records["dupe_factor"]
  return [("create_pretraining_data", records), ("run_pretraining", run)]


_OF_FAMILIES = {
  "electra": {"embedding_size": 8},
  "albert": {"embedding_size": 8},
  "roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1},
  "distilbert": {},
}
_VOCABULARIES = {"albert": "spiece.model", "roberta": "vocab.json"}

RUNS: dict[str, list[Command]] = {
  "classifier": [("run_classifier", _MRPC)],
  "classifier_resumed": [
    ("run_classifier", {**_MRPC, "num_train_epochs": epochs}) for epochs in (1.0, 2.0)
  ],
  "classifier_windows": [
    (
      "run_classifier",
      _own_table("documents", **_model("documents"), long_text="windows", max_seq_length=8),
    )
  ],
  "classifier_regression": [("run_classifier", _own_table("numbers", problem_type="regression"))],
  "classifier_multi_label": [
    ("run_classifier", _own_table("topics", problem_type="multi_label", label_separator=";"))
  ],
  "classifier_best": [
    ("run_classifier", {**_MRPC, "eval_every_steps": 1, "keep_best": True, "num_train_epochs": 2})
  ],
  "classifier_many": [("run_classifier", {**_MRPC, "num_runs": 2})],
  "classifier_accumulation": [("run_classifier", {**_MRPC, "gradient_accumulation_steps": 2})],
  "classifier_grouping": [("run_classifier", {**_MRPC, "group_by_length": True})],
  "classifier_options": [
    (
      "run_classifier",
      {
        **_MRPC,
        **{"lr_schedule": "continuous", "layerwise_lr_decay": 0.8},
        **{"init_checkpoint": "{}/teachers/mrpc", "fast": True},
        **_model("teachers/mrpc"),
      },
    )
  ],
  **{
    f"classifier_{family}": [
      (
        "run_classifier",
        {**_MRPC, **_model(family, _VOCABULARIES.get(family, "vocab.txt")), "max_seq_length": 32},
      )
    ]
    for family in _OF_FAMILIES
  },
  "ner": [("run_ner", _NER)],
  "ner_windows": [
    ("run_ner", {**_NER, "doc_stride": 4, "model_scheme": "bioes", "eval_every_steps": 4})
  ],
  "swag": [("run_swag", _SWAG)],
  "swag_accumulation": [
    ("run_swag", {**_SWAG, "gradient_accumulation_steps": 2, "eval_every_steps": 3})
  ],
  "similarity_cosine": [("run_similarity", {**_SIMILARITY, "max_score": 5})],
  "similarity_negatives": [
    (
      "run_similarity",
      {**_SIMILARITY, "data_dir": "{}/similar", "loss": "in_batch_negatives", "pooling": "mean"},
    )
  ],
  "squad_1": [("run_squad", _SQUAD_1)],
  "squad_2": [("run_squad", {**_SQUAD_2, "group_by_length": True})],
  "squad_electra": [("run_squad", {**_SQUAD_2, **_model("squad_electra")})],
  "distillation": [("distill", {**_STUDENT, "unlabelled_file": "{}/unlabelled.txt"})],
  "distillation_tinybert": [("distill", {**_STUDENT, "method": "tinybert", "stage": "task"})],
  "distillation_ner": [
    ("distill", {**_STUDENT, "teacher": "{}/teachers/ner", "data_dir": "{}/entities"})
  ],
  "distillation_swag": [
    ("distill", {**_STUDENT, "teacher": "{}/teachers/swag", "data_dir": "{}/choices"})
  ],
  "distillation_records": [
    *_pretraining("bert", "letters"),
    *(
      (
        "distill",
        {
          **_PRETRAINING,
          **{"teacher": "out", "output_dir": method, "method": method, "num_hidden_layers": 1},
          **{"max_predictions_per_seq": 3, **flags},
        },
      )
      for method, flags in {"distilbert": {}, "tinybert": {"stage": "general"}}.items()
    ),
  ],
  "pretraining": _pretraining("bert", "letters"),
  "pretraining_dynamic": _pretraining("bert", "letters", dynamic_masking=True),
  "pretraining_electra": _pretraining("electra", "letters_electra"),
  "pretraining_albert": _pretraining("albert", "letters_albert"),
  "pretraining_roberta": _pretraining("roberta", "roberta", "vocab.json"),
  "records": [
    ("create_pretraining_data", {**_RECORDS, **flags, "output_file": f"{name}.tfrecord"})
    for name, flags in {
      "whole_words": {"do_whole_word_mask": True},
      "workers": {"num_workers": 1, "do_whole_word_mask": True, "ngram_max": 2},
      "workers_albert": {"num_workers": 1, "format": "albert"},
      "unmasked": {"num_workers": 1, "dynamic_masking": True},
    }.items()
  ],
  "predictions": [
    (
      "predict",
      {
        **{"init_checkpoint": "{}/teachers/mrpc", "input_file": "{}/unlabelled.txt"},
        "output_file": "answers.jsonl",
      },
    ),
    (
      "extract_features",
      {
        **{"init_checkpoint": "{}/teachers/mrpc", **_model("teachers/mrpc"), "layers": "-1,-2"},
        **{"input_file": "{}/corpus.txt", "output_file": "vectors.jsonl", "max_seq_length": 16},
      },
    ),
  ],
}


def write_data(folder: pathlib.Path) -> None:
  """Writes the data and the models of all runs."""
  _write_models(folder)
  _write_sentences(folder)
  _write_teachers(folder / "teachers")
  for split, size, seed in (("train", 24, 1), ("dev", 10, 2), ("test", 6, 3)):
    sentences = tiny_entities.sentences(size, seed)
    tiny_entities.write_conll(folder / f"entities/{split}.conll", sentences)
    name = "val" if split == "dev" else split
    tiny_choices.write_csv(folder / f"choices/{name}.csv", tiny_choices.questions(size, seed))
    tiny_pairs.write(folder / f"scores/{split}.csv", tiny_pairs.pairs(size, seed, top=5))
    rows = tiny_pairs.pairs(size, seed) if split != "train" else tiny_pairs.similar(size, seed)
    tiny_pairs.write(folder / f"similar/{split}.csv", rows)
    if split != "test":
      for version in (1, 2):
        contexts = tiny_questions.contexts(size, seed, version == 2)
        path = folder / f"squad_{version}/{split}.json"
        tiny_questions.write_squad(path, contexts, version_2=version == 2)


def _write_models(folder: pathlib.Path) -> None:
  for name, tiny in {
    "entities": tiny_entities,
    "choices": tiny_choices,
    "pairs": tiny_pairs,
    "questions": tiny_questions,
    "sentences": tiny_sentences,
  }.items():
    tiny_bert.write(folder / name, tiny.VOCAB)
  for family, keys in _OF_FAMILIES.items():
    changes = {"model_type": family, "max_position_embeddings": 40, **keys}
    if family == "roberta":
      _write_config(folder / family, len(byte_pairs.vocabulary()), changes)
      byte_pairs.write(folder / family)
    elif family == "albert":
      _write_config(folder / family, 45, changes)
      piece_model.write(folder / family)
    else:
      tiny_bert.write(folder / family, tiny_sentences.VOCAB, **changes)
  tiny_bert.write(folder / "letters", healthy_run.VOCAB)
  for family in ("electra", "albert"):
    changes = {"model_type": family, **_OF_FAMILIES[family]}
    tiny_bert.write(folder / f"letters_{family}", healthy_run.VOCAB, **changes)
  tiny_bert.write(folder / "squad_electra", tiny_questions.VOCAB, model_type="electra")
  (folder / "documents").mkdir()
  long_texts.write_model_files(folder / "documents")


def _write_config(folder: pathlib.Path, size: int, changes: dict[str, Any]) -> None:
  folder.mkdir()
  tiny_bert.write_config(folder / "bert_config.json", size, **changes)


def _write_sentences(folder: pathlib.Path) -> None:
  tiny_sentences.write_mrpc(folder / "mrpc")
  for split, size in tiny_sentences.SIZES.items():
    rows = [
      {"text_a": text, "text_b": other, "label": label}
      for label, text, other in tiny_sentences.texts(size)
    ]
    labels = {
      "numbers": lambda row: 3.5 * row["label"] + len(row["text_b"]) / 8,
      "topics": lambda row: "short;long" if row["label"] else "short",
    }
    for name, label in labels.items():
      _write_json_lines(
        folder / name / f"{split}.jsonl", [{**row, "label": label(row)} for row in rows]
      )
    documents = [
      {
        "text_a": long_texts.words(6, i % 3) + (" good", " bad")[i % 2] * (6 + i % 5),
        "label": i % 2,
      }
      for i in range(size)
    ]
    _write_json_lines(folder / "documents" / f"{split}.jsonl", documents)
  texts = "the film was good\tthe film\n\nthe film was bad\tgood\n" * 6
  (folder / "unlabelled.txt").write_text(texts)
  lines = [healthy_run.TEXTS[start : start + 8] for start in range(0, 64, 8)]
  healthy_run.write_lines(folder / "corpus.txt", [line for each in lines for line in [*each, ""]])


def _write_json_lines(path: pathlib.Path, rows: list[dict]) -> None:
  path.parent.mkdir(exist_ok=True)
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_teachers(folder: pathlib.Path) -> None:
  labels = {"task_name": "mrpc", "labels": ["0", "1"], "problem_type": "classification"}
  heads = {"output_weights": (2, 16), "output_bias": (2,)}
  settings = {"max_seq_length": 16}
  teachers.write(folder / "mrpc", tiny_sentences.VOCAB, labels, heads, settings)
  tags = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
  facts = {"task_name": "ner", "labels": tags}
  heads = {"output_weights": (len(tags), 16), "output_bias": (len(tags),)}
  teachers.write(folder / "ner", tiny_entities.VOCAB, facts, heads, settings)
  teachers.write(
    *(folder / "swag", tiny_choices.VOCAB, {"task_name": "swag"}, {"output_weights": (1, 16)}),
    {"max_seq_length": 24},
  )
