"""Exports: the SavedModels of a checkpoint, and one directory with a model in other formats.

  wanted = Wanted.of_flags(settings)                # checked, before anything is loaded
  check_folder("out/export", wanted)
  export("out/export", wanted, described, checkpoint)

  export_hub_models("out/export", ...)              # encoder/, and preprocess/ of WordPiece
  export_task_model("out/export", ...)              # task/, from strings or from token ids

`exporting/model_folder.py` lists the files of a directory that is not TensorFlow's alone.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.checkpoints import label_map, model_files, sentence_pooling
from bert.exporting import model_card, model_folder
from bert.exporting.model_files import FILES, SAVED_MODEL
from bert.exporting.model_folder import Described
from bert.io import atomic_files, filesystem, installation
from bert.model.configuration import BertConfig
from bert.scripts.run_settings import ModelFiles
from bert.scripts.settings import UsageError
from bert.tasks import kinds, usage
from bert.text import tokenizer_kinds

FORMATS = (SAVED_MODEL, "onnx", "litert")

# What TensorFlow's models of an export are called.
_SAVED_MODELS = ("encoder", "preprocess", "task")
# All that lies in the folder of an export, so that nothing of the user's is replaced with it.
_OWN = {
  *(*_SAVED_MODELS, *FORMATS, "1_Pooling", "modules.json", "sentence_bert_config.json"),
  *(model_folder.RUN, model_folder.CONFIG, label_map.NAME, model_folder.CARD),
  *(model_folder.ACCURACY, "config.json", "tokenizer.json", "tokenizer_config.json"),
  *("special_tokens_map.json", "vocab.txt", "spiece.model", "vocab.json", "merges.txt"),
}


class Wanted(NamedTuple):
  """What is asked for, beside the model."""

  formats: Sequence[str]  # of `FORMATS`
  int8: bool = False
  float16: bool = False
  eval_file: str | None = None  # labelled, for the report

  @classmethod
  def of_flags(cls, settings: Any) -> "Wanted":
    """Reads the flags.

    Raises:
      UsageError: a value is unknown, or values exclude each other.
      MissingExtraError: a format needs a package that is not installed.
    """
    wanted = cls(
      tuple(dict.fromkeys(filter(None, map(str.strip, settings.format)))),
      *(settings.int8, settings.float16, settings.eval_file),
    )
    wanted.check()
    return wanted

  @property
  def others(self) -> list[str]:
    """The formats that are not TensorFlow's."""
    return [name for name in self.formats if name != SAVED_MODEL]

  def precisions(self, format_name: str) -> list[str]:
    """Lists the precisions of a format that are asked for."""
    asked = {"float32": True, "float16": self.float16, "int8": self.int8}
    return [name for name in FILES[format_name] if asked[name]]

  def check(self) -> None:
    """See `of_flags`."""
    names = ",".join(self.formats)
    if unknown := [name for name in self.formats if name not in FORMATS]:
      raise UsageError(f"--format={unknown[0]}: must be one or several of {', '.join(FORMATS)}.")
    if not self.formats:
      raise UsageError(f"--format is empty: give some of {', '.join(FORMATS)}.")
    for flag in ("int8", "float16", "eval_file"):
      if getattr(self, flag) and not self.others:
        raise UsageError(
          f"--{flag} is for other formats than --format={names}, whose models are float32: add "
          "onnx or litert."
        )
    if self.float16 and not any("float16" in FILES[name] for name in self.others):
      raise UsageError(f"--float16 is for litert; --format={names} has no such model.")
    if self.eval_file and not filesystem.is_file(self.eval_file):
      raise UsageError(f"--eval_file={self.eval_file} does not exist.")
    for name in self.others:
      _WRITERS[name][0]()


# ---------------------------------------------------------------------------------------------
# The folder.


def check_folder(export_dir: str, wanted: Wanted) -> None:
  """Refuses a folder with something else, or with models that the export would not renew.

  Raises:
    UsageError: it is one.
  """
  if not export_dir or not os.path.exists(export_dir):
    return
  if not os.path.isdir(export_dir):
    raise UsageError(f"--export_dir={export_dir} is a file: give a folder.")
  names = sorted(os.listdir(export_dir))
  foreign = [name for name in names if name not in _OWN]
  if wanted.others and foreign:
    raise UsageError(
      f"--export_dir={export_dir} holds {foreign[0]}, which is not of an export: the folder is "
      "replaced as a whole. Give another --export_dir."
    )
  renewed = set(wanted.others)
  renewed |= {"encoder", "preprocess"} if SAVED_MODEL in wanted.formats else set()
  for name in (*FORMATS, *(_SAVED_MODELS if wanted.others else ())):
    if name in names and name not in renewed:
      what = f"--format={','.join([*wanted.formats, name])}, " if name in FORMATS else ""
      raise UsageError(
        f"--export_dir={export_dir} holds {name}/, which this export would not renew. Give {what}"
        "another --export_dir, or remove that folder."
      )


def export(
  export_dir: str,
  wanted: Wanted,
  model: Described,
  checkpoint: str,
  write_saved_models: Callable[[str], None],
) -> None:
  """Writes a folder, whole or not at all.

  Args:
    export_dir: the folder; an earlier export in it is replaced.
    wanted: what to write.
    model: what is known of the model.
    checkpoint: prefix of the weights.
    write_saved_models: writes TensorFlow's models into the folder that it gets.

  Raises:
    ValueError: the checkpoint does not fit, an operation has no place in a format, or a text of the
      user's files is bad.
    OSError: a file cannot be read or written.
  """
  if wanted.eval_file and model.kind is None:
    raise UsageError(
      f"--eval_file={wanted.eval_file}: {checkpoint} was not fine-tuned for a task, so there is "
      "nothing to score. Omit it."
    )
  graph = _graph_of(model, checkpoint)
  with atomic_files.folder_written_whole(export_dir) as folder:
    with _naming(export_dir, folder):
      if SAVED_MODEL in wanted.formats:
        write_saved_models(folder)
      _describe(folder, model, checkpoint)
      trained_in = model_files.run_folder_of(checkpoint)
      for name in wanted.others:
        os.makedirs(os.path.join(folder, name))
        _WRITERS[name][1](graph, folder, wanted)
      report = _report(folder, wanted, model, trained_in)
      model_card.write(folder, model, _name_of(checkpoint), report)
  logging.info("Wrote %s: %s.", export_dir, ", ".join(wanted.formats))


def export_hub_models(
  export_dir: str,
  config: BertConfig,
  checkpoint: str,
  vocab_file: str,
  do_lower_case: bool,
  max_seq_length: int,
) -> None:
  """Writes `encoder/` and, of a WordPiece vocabulary, `preprocess/` into `export_dir`.

  Args:
    export_dir: made if it does not exist.
    config: of the model.
    checkpoint: prefix of the weights, of the whole encoder.
    vocab_file: of the model.
    do_lower_case: whether the model is uncased.
    max_seq_length: the default of the preprocessing.
  """
  from bert.exporting import hub_encoder, hub_preprocess

  hub_encoder.export_encoder(
    os.path.join(export_dir, "encoder"), config, checkpoint, vocab_file, do_lower_case
  )
  if tokenizer_kinds.of(vocab_file):
    logging.info(
      "Exported the encoder to %s. There is no preprocess/ for %s: tokenize in Python.",
      export_dir,
      vocab_file,
    )
    return
  hub_preprocess.export_preprocess(
    os.path.join(export_dir, "preprocess"),
    vocab_file,
    do_lower_case,
    max_seq_length,
  )
  logging.info("Exported the encoder and its preprocessing to %s.", export_dir)


def export_task_model(export_dir: str, model: Described, checkpoint: str) -> None:
  """Writes `task/` into `export_dir`: from strings where `reads_strings`, else from token ids.

  Args:
    export_dir: made if it does not exist.
    model: what is known of it.
    checkpoint: prefix of the weights.

  Raises:
    UsageError: the checkpoint was not fine-tuned for a task.
    CheckpointError: the checkpoint lacks a variable, or has it in another shape.
    OSError: the directory cannot be written, or holds something other than a SavedModel.
  """
  from bert.exporting import saved_models

  if model.kind is None:
    raise UsageError(f"--task_model: {checkpoint} was not fine-tuned for a task. Omit the flag.")
  path = os.path.join(export_dir, "task")
  if reads_strings(model):
    model.kind.model_class().from_description(model).export(path, checkpoint)
    return
  graph = _graph_of(model, checkpoint)
  with saved_models.written_aside(path) as folder:
    graph.save(folder)
    _describe(folder, model, checkpoint)
  logging.info("Exported the fine-tuned model of %s to %s, from token ids.", checkpoint, path)


def reads_strings(model: Described) -> bool:
  """Tells whether a task's SavedModel reads strings: in one sequence of a WordPiece vocabulary."""
  is_in_windows = model.facts.get("long_text") == "windows"
  has_graph = bool(model.kind and model.kind.model) and not is_in_windows
  return has_graph and tokenizer_kinds.of(model.vocab_file) is None


def _describe(folder: str, model: Described, checkpoint: str) -> None:
  """Writes the files beside a model."""
  model_folder.write_description(folder, model)
  if labels := model.kind and label_map.labels_of(checkpoint):
    label_map.write(folder, labels)


@contextlib.contextmanager
def _naming(export_dir: str, aside: str) -> Iterator[None]:
  """Names the user's folder in errors, in the place of the one that is written aside."""
  try:
    yield
  except ValueError as error:
    if aside not in str(error):
      raise
    raise ValueError(str(error).replace(aside, export_dir)) from error


def _report(
  folder: str, wanted: Wanted, model: Described, trained_in: str
) -> dict[str, Any] | None:
  """Writes the report of `--eval_file`, if there is one."""
  if not wanted.eval_file:
    return None
  from bert.scripts import accuracy_report

  report = accuracy_report.measure(folder, model, wanted.eval_file, trained_in)
  accuracy_report.write(folder, report)
  return report


def _name_of(checkpoint: str) -> str:
  """Returns the name of a checkpoint, or of its folder: no path of this machine."""
  return os.path.basename(os.path.abspath(model_files.run_folder_of(checkpoint)))


def _graph_of(model: Described, checkpoint: str):
  """Traces the model, with its weights."""
  from bert.checkpoints import reading
  from bert.exporting import token_graph

  if model.is_encoder:
    prefix = f"{model.config.family.scope}/pooler/"
    has_pooler = any(name.startswith(prefix) for name in reading.names_and_shapes(checkpoint))
    if model.config.family.has_pooler and not has_pooler:
      logging.info("%s has no pooler: the export gives last_hidden_state alone.", checkpoint)
    graph = token_graph.of_encoder(model.config, has_pooler)
  else:
    try:
      head = model.kind.head_class().of_run(model.facts, model.settings)
    except (KeyError, TypeError) as error:
      raise ValueError(
        f"{checkpoint}: what its run has noted of the task lacks something ({error}), so the head "
        "cannot be made. Export the encoder: --head=none."
      ) from None
    graph = token_graph.of_task(model.config, head)
  graph.load(checkpoint)
  return graph


def describe(settings: ModelFiles, config: BertConfig, with_head: bool = True) -> Described:
  """Says what is known of the model of a run's settings.

  Args:
    settings: resolved ones, with `--init_checkpoint`, `--vocab_file` and so on.
    config: of the model.
    with_head: whether a fine-tuned model keeps its task; else it is an encoder.

  Raises:
    ValueError: it is a model of a task of one's own that is not loaded.
  """
  from bert.checkpoints import reading

  facts, trained_with = {}, {}
  if with_head:
    facts = reading.read_facts(settings.init_checkpoint)
    trained_with = dict(reading.read_state(settings.init_checkpoint).get("informative", {}))
    if example := usage.read(model_files.folder_of(settings.init_checkpoint)):
      trained_with["example"] = example
  kind = kinds.of_facts(facts)
  length = settings.max_seq_length
  if kind and "max_seq_length" not in {*settings.given, *trained_with}:
    length = min(kind.decoder_class().default_length, config.longest_sequence)
  return Described(
    config,
    settings.vocab_file,
    settings.do_lower_case,
    length,
    facts if kind else {},
    trained_with if kind else {},
    sentence_pooling.pooling_of(settings.init_checkpoint)
    if not kind or "pooling" in facts
    else None,
  )


# ---------------------------------------------------------------------------------------------
# Formats: what each needs, and what writes it.


def _need_litert() -> None:
  """TensorFlow has the converter."""


def _write_litert(graph: Any, folder: str, wanted: Wanted) -> None:
  from bert.exporting import litert

  for precision in wanted.precisions("litert"):
    path = os.path.join(folder, FILES["litert"][precision])
    litert.write(graph, path, precision)


def _need_onnx() -> None:
  with installation.extra("onnx", "--format=onnx"):
    import onnx  # noqa: F401


def _write_onnx(graph: Any, folder: str, wanted: Wanted) -> None:
  from bert.exporting.onnx import writer

  files = {name: os.path.join(folder, file) for name, file in FILES["onnx"].items()}
  writer.write(graph, files["float32"])
  if not wanted.int8:
    return
  with installation.extra("onnx", "--int8"):
    from bert.exporting.onnx import quantization

  quantization.quantize_dynamic(files["float32"], files["int8"])


_WRITERS = {"onnx": (_need_onnx, _write_onnx), "litert": (_need_litert, _write_litert)}
