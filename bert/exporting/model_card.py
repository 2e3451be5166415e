"""The model card of an export, README.md: what it is, and how other programs load it."""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from bert.exporting.model_files import FILES
from bert.exporting.model_folder import CARD, Described
from bert.io import atomic_files, filesystem
from bert.tasks import usage

_LABELS_SHOWN = 20


def write(
  folder: str, model: Described, source: str, report: Mapping[str, Any] | None = None
) -> None:
  """Writes README.md into a folder that holds the models.

  Args:
    folder: of the export.
    model: what is known of it.
    source: the name of the checkpoint.
    report: see `accuracy_report.measure`; without it the card has no figures.
  """
  parts = [_head(model, source), _files(folder), _loading(folder, model)]
  if report:
    parts.append(_accuracy(report))
  atomic_files.write_text(os.path.join(folder, CARD), "\n\n".join(parts) + "\n")


def _head(model: Described, source: str) -> str:
  """Says what the model is."""
  task = f"fine-tuned for the task `{_task_name(model)}`" if model.kind else "an encoder"
  lines = [
    f"# {source}",
    "",
    f"A {model.config.family.title} model, {task}, exported from the checkpoint `{source}`.",
    "",
    f"- Sequences have at most {model.max_seq_length} tokens, special ones included; the model "
    f"reads up to {model.config.longest_sequence}.",
    f"- The vocabulary is {'uncased' if model.do_lower_case else 'cased'}.",
  ]
  if labels := model.facts.get("labels"):
    shown = ", ".join(f"`{each}`" for each in labels[:_LABELS_SHOWN])
    rest = f" and {len(labels) - _LABELS_SHOWN} more" if len(labels) > _LABELS_SHOWN else ""
    lines.append(f"- Labels: {shown}{rest}.")
  if model.pooling:
    lines.append(f"- The vector of a text is pooled from those of its tokens: {model.pooling}.")
  return "\n".join(lines)


def _task_name(model: Described) -> str:
  return str(model.facts.get("task_name") or (model.kind.name if model.kind else ""))


def _present(folder: str) -> Iterator[tuple[str, str]]:
  """Yields precision and file of each model in the folder."""
  for files in FILES.values():
    for precision, file in files.items():
      if filesystem.is_file(os.path.join(folder, file)):
        yield precision, file


def _files(folder: str) -> str:
  """Lists the models with their sizes."""
  lines = ["## Files", "", "| file | weights | MB |", "|---|---|---|"]
  for precision, file in _present(folder):
    size = os.path.getsize(os.path.join(folder, file)) / 1e6
    lines.append(f"| `{file}` | {precision} | {size:.1f} |")
  return "\n".join(lines)


# ---------------------------------------------------------------------------------------------
# How it is loaded.


def _loading(folder: str, model: Described) -> str:
  """Shows how programs load the folder; `EXPORT` stands for its path."""
  has_onnx = filesystem.is_file(os.path.join(folder, FILES["onnx"]["float32"]))
  code = usage.in_python("EXPORT", _example(model))
  parts = ["## Use", _block("Strings in, answers out", "python", code)]
  if has_onnx:
    code = _ONNXRUNTIME.format(text=_text(model))
    parts.append(_block("onnxruntime alone", "python", code))
    if model.pooling:
      parts.append(_block("sentence-transformers", "python", _SENTENCE_TRANSFORMERS))
    parts.append(_block("transformers.js", "js", _of_javascript(model)))
  return "\n\n".join(parts)


def _block(title: str, language: str, code: str) -> str:
  return f"{title}:\n\n```{language}\n{code}\n```"


def _example(model: Described) -> Mapping[str, Any] | str:
  """Returns an item of the run's data, or a synthetic one."""
  if own := model.settings.get("example"):
    return own
  if model.kind is None:
    return "It rains."
  return model.kind.decoder_class().synthetic_example()


def _text(model: Described) -> str:
  """Returns the first text of the example."""
  example = _example(model)
  return example if isinstance(example, str) else usage.first_text(example)


_ONNXRUNTIME = """\
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

session = onnxruntime.InferenceSession("EXPORT/onnx/model.onnx")
encoding = Tokenizer.from_file("EXPORT/tokenizer.json").encode({text!r})
inputs = {{
  "input_ids": encoding.ids,
  "attention_mask": encoding.attention_mask,
  "token_type_ids": encoding.type_ids,
}}
names = [each.name for each in session.get_inputs()]
session.run(None, {{name: np.array([inputs[name]], np.int64) for name in names}})"""

_SENTENCE_TRANSFORMERS = """\
from sentence_transformers import SentenceTransformer

SentenceTransformer("EXPORT", backend="onnx").encode(["It rains."])"""

_JAVASCRIPT = """\
import {{ env, pipeline }} from "@huggingface/transformers";

env.localModelPath = "FOLDER/AROUND/";
env.allowRemoteModels = false;
const run = await pipeline("{pipeline}", "EXPORT", {{ dtype: "fp32" }});  // q8 for int8
console.log(await run({text}));"""

_PIPELINES = {
  "ForSequenceClassification": "text-classification",
  "ForTokenClassification": "token-classification",
  "ForQuestionAnswering": "question-answering",
}


def _of_javascript(model: Described) -> str:
  head = "" if model.is_encoder or model.kind is None else model.kind.transformers
  text = json.dumps(_text(model), ensure_ascii=False)
  pipeline = _PIPELINES.get(head, "feature-extraction")
  return _JAVASCRIPT.format(pipeline=pipeline, text=text)


# ---------------------------------------------------------------------------------------------
# Figures.


def _accuracy(report: Mapping[str, Any]) -> str:
  """Makes the table of an accuracy report."""
  rows = report["models"]
  metrics = sorted({name for row in rows for name in row["metrics"]})
  lines = [
    "## Accuracy",
    "",
    f"{report['examples']} examples of `{report['eval_file']}`; {report['processor']}, "
    f"{report['cores']} cores. Agreement is with the first row.",
    "",
    "| engine | weights | MB | texts/s | agreement | " + "".join(f"{name} | " for name in metrics),
    "|---|---|---|---|---|" + "---|" * len(metrics),
  ]
  for row in rows:
    agreement = "" if row["agreement"] is None else f"{100 * row['agreement']:.2f} %"
    cells = [row["engine"], row["precision"], f"{row['megabytes']:.1f}"]
    cells += [f"{row['texts_per_second']:.0f}", agreement]
    cells += [f"{row['metrics'][name]:.4f}" if name in row["metrics"] else "" for name in metrics]
    lines.append(f"| {' | '.join(cells)} |")
  return "\n".join(line.rstrip() for line in lines)
