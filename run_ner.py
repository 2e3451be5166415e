"""Fine-tunes BERT to find named entities, or to tag words otherwise, on CoNLL files.

  python run_ner.py --do_train --do_eval --do_predict --train_file=train.conll \\
    --dev_file=dev.conll --test_file=test.conll --init_checkpoint=cased_L-12_H-768_A-12 \\
    --do_lower_case=False --max_seq_length=128 --train_batch_size=32 --learning_rate=5e-5 \\
    --num_train_epochs=3 --output_dir=/tmp/ner_output/

A line of a file holds a word and its label, among other columns maybe; a blank line ends a
sentence. Entities and their scores are in:

  eval_results.txt       precision, recall and F1 of the dev file's entities, over all and by type
  predictions.conll      the test file, line by line, with one more column: the predicted label
  predictions.jsonl      its sentences with their entities: text, place in characters, probability
  test_results.txt       the scores of the test file, if it has labels

--do_export leaves a SavedModel that takes texts and gives words, their places and labels.

Letters in shapes: S = sequence length, C = number of labels.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import json

from absl import logging

from bert.fine_tuning import engine
from bert.fine_tuning.task import LENGTH, SEQUENCES, Task
from bert.io import atomic_files
from bert.io.tables import DataError
from bert.model.task_heads import TokenHead
from bert.scripts import model_labels
from bert.scripts.run_settings import SplitSettings
from bert.scripts.settings import Rule, Settings, UsageError, changed, setting
from bert.tasks import conll_files, constant_answers, label_counts, label_schemes
from bert.training import distribution


class WindowSettings(Settings, title="Windows"):
  """How long sentences are read."""

  doc_stride: int | None = setting(
    None, "Word pieces from the start of a window to that of the next. [half a window]"
  )


class FileSettings(Settings, title="CoNLL files"):
  """What a line of a file means."""

  separator: str = setting(
    "whitespace", "Column separator: whitespace, tab, space, comma, or itself."
  )
  token_column: int = setting(0, "Column of the word, from 0; -1 is the last.")
  label_column: int = setting(-1, "Column of the label.")
  label_scheme: str = setting(
    "bio",
    "How labels encode entities. plain: labels are tags.",
    choices=label_schemes.SCHEMES,
  )
  model_scheme: str | None = setting(
    None,
    "How the model encodes them; files are converted. [as --label_scheme; bio for iob1]",
    choices=label_schemes.SCHEMES,
  )
  comment_prefix: str = setting("", "Lines with this prefix are comments.")
  labels: list[str] | None = setting(
    None, "All labels of the model, in order. [of all types in the training file]"
  )

  @property
  def scheme(self) -> str:
    """How the model encodes entities."""
    return self.model_scheme or label_schemes.scheme_to_learn(self.label_scheme)


class NerSettings(FileSettings, WindowSettings, SplitSettings, title="Task and data"):
  """A run of this script."""

  data_dir: str = changed(
    SplitSettings,
    "data_dir",
    help="Folder with train, dev and test, .conll, .txt, .tsv, .bio, .conllu, .bmes or .csv.",
  )

  def check(self):
    """See base class; also checks the windows, the columns and the schemes of labels."""
    super().check()
    fits = Rule(
      lambda value: 1 <= value <= self.max_seq_length - 2,
      "at least 1 and at most --max_seq_length less 2",
    )
    self.check_value("doc_stride", fits)
    if not self.separator:
      raise UsageError("--separator is empty: columns need something between them.")
    if (self.label_scheme == "plain") != (self.scheme == "plain"):
      raise UsageError(
        f"--label_scheme={self.label_scheme} --model_scheme={self.scheme}: plain labels have no "
        "entities, so there is nothing to convert."
      )


class Tagging(Task):
  """Words with labels, in windows of sentences."""

  settings_class = NerSettings
  name = "ner"
  unit = "windows"
  file_endings = ("conll", "txt", "tsv", "bio", "conllu", "bmes", "csv")
  headline = "eval_f1"
  reported = ("eval_precision", "eval_recall", "eval_accuracy")
  informative_flags = ("doc_stride",)
  task_flags = (
    *("separator", "token_column", "label_column", "label_scheme", "model_scheme"),
    *("comment_prefix", "skip_bad_rows", "labels", "doc_stride"),
  )
  problem_type = "tags"
  plans_by_records = True

  def __init__(self, settings, config=None, tokenizer=None):
    super().__init__(settings, config, tokenizer)
    self.scheme = settings.scheme
    self.files: dict[str, conll_files.ConllFile] = {}

  # -------------------------------------------------------------------------------------------
  # Files and labels.

  def read(self, split):
    """Reads sentences."""
    settings = self.settings
    conll_format = conll_files.ConllFormat(
      settings.separator,
      settings.token_column,
      settings.label_column,
      settings.label_scheme,
      settings.comment_prefix,
    )
    path = self.file(split)
    skip = settings.skip_bad_rows
    self.files[split] = conll_files.read_conll(path, conll_format, split, split != "test", skip)
    return self.files[split].examples

  def view(self, example):
    """Returns the words of the sentence, and their labels in the scheme of the model."""
    labels = example.labels
    if labels is not None:
      labels = label_schemes.convert_labels(labels, self.settings.label_scheme, self.scheme)
    return {"words": list(example.words)}, labels

  def prepare(self, train):
    """Takes `--labels`, else those of the training file, else those of the model."""
    labels, model = self.settings.labels, self.labels_of_model()
    source, advice = "--labels", ""
    if not labels and train:
      labels = label_schemes.model_labels(self.files["train"].types(), self.scheme)
    elif not labels and model:
      source = f"the model in {model.folder}"
      advice = " If its outputs mean other labels, name them: --labels=O,B-PER,I-PER."
    labels = model_labels.in_order(labels, model, are_given=bool(self.settings.labels))
    if not labels:
      raise UsageError(
        "The labels of the model are unknown: neither --output_dir nor --init_checkpoint has them. "
        "Train with --do_train, or name them: --labels=O,B-PER,I-PER."
      )
    for label in labels:
      try:
        label_schemes.split_label(label, self.scheme)
      except ValueError as error:
        raise UsageError(f"{source}, --model_scheme={self.scheme}: {error}.{advice}") from None
    self.labels = labels

  def check_data(self, sets):
    """Refuses labels of the training file that the model lacks; warns of those of other files."""
    others: dict[str, set[str]] = {}
    for split, conll_file in self.files.items():
      found = conll_file.labels(self.scheme) if conll_file.has_labels else set()
      missing = found - set(self.labels)
      if missing and split == "train":
        reason = f"--labels lacks {', '.join(sorted(missing))}."
        raise DataError(reason, conll_file.path, advice="Add them.")
      if missing:
        others[conll_file.path] = missing
    if others:
      logging.warning(
        "%s: the model has no label for %s. Its labels are %s.",
        *(", ".join(others), ", ".join(sorted(set().union(*others.values())))),
        ", ".join(self.labels),
      )
    known = [self.files[split].types() for split in ("train", "dev") if split in self.files]
    for warning in label_counts.about_nearly_equal(sorted(set().union(*known)), "types"):
      logging.warning("%s", warning)

  def facts(self):
    """Returns the labels, once they are known."""
    return {**super().facts(), **({"labels": self.labels} if self.labels else {})}

  # -------------------------------------------------------------------------------------------
  # Windows and the model.

  def record_spec(self, data):
    """Describes a window; each value is of a token."""
    return dict.fromkeys((*SEQUENCES, "label_ids", "word_mask"), ([LENGTH], "int64"))

  def records(self, data, num_shown):
    """Converts sentences to windows."""
    from bert.tasks import tagging

    settings = self.settings
    features = tagging.convert_examples_to_features(
      data.examples,
      self.labels,
      self.scheme,
      self.length,
      self.tokenizer,
      settings.doc_stride,
      settings.label_scheme,
      num_shown,
    )
    return map(vars, features)

  def padding_record(self, data):
    """Returns a window without a word."""
    from bert.tasks import tagging

    return vars(tagging.padding_features(self.length))

  def sizes(self, data, num_records):
    """Returns the numbers of sentences and of their windows."""
    return {"Num sentences": len(data), "Num windows": num_records}

  def head(self):
    """Labels each token."""
    return TokenHead(len(self.labels))

  def distillation_loss(self, comparison):
    """Compares the labels of tokens that predict a word."""
    return comparison.mean(weights=comparison.step.features["word_mask"])

  # -------------------------------------------------------------------------------------------
  # Results.

  def metric_names(self):
    """Adds the scores of each type of entity."""
    split = label_schemes.split_label
    types = sorted({split(label, self.scheme)[1] for label in self.labels} - {""})
    scores = [f"eval_{score}_{kind}" for kind in types for score in ("f1", "precision", "recall")]
    return [*super().metric_names(), *scores]

  def evaluate(self, predictions, losses, label_ids, word_mask):
    """Computes the scores of the dev file."""
    from bert.tasks import tagging

    # In order of windows and of places in them, these are the file's words in their order.
    dev = self.files["dev"].examples
    words = tagging.by_sentence(predictions[word_mask > 0], dev)
    scores = self._score(dev, [[self.labels[i] for i in ids] for ids in words])
    has_label = label_ids >= 0
    scores["eval_loss"] = float(losses[has_label].mean()) if has_label.any() else 0.0
    failure = constant_answers.failure_of_tags(scores)
    return {**scores, **({constant_answers.FAILURE: failure} if failure else {})}

  def _score(self, examples, predicted):
    """Computes `eval_` scores of labels in the model's scheme, and a table of them."""
    from bert.tasks import tagging

    gold = [example.labels for example in examples]
    scores = tagging.score(gold, predicted, self.settings.label_scheme, self.scheme)
    table = tagging.format_scores(scores)
    return {**{f"eval_{name}": value for name, value in scores.items()}, "scores": table}

  def _labels_of(self, examples, outputs):
    """Returns the most probable label of each word, and its probability, by sentence."""
    from bert.tasks import tagging

    words = tagging.by_sentence(outputs, examples)
    labels = [[self.labels[i] for i in each.argmax(axis=-1)] for each in words]
    return labels, [each.max(axis=-1) for each in words]

  def score(self, data, answers):
    """Computes the scores of tags."""
    return self._score(data.examples, [each["tags"] for each in answers])

  def write_predictions(self, data, predictions):
    """Writes predictions.conll and predictions.jsonl."""
    import numpy as np

    examples = data.examples
    # float32 [words, C]
    outputs = np.concatenate([p["probabilities"][p["word_mask"] > 0] for p in predictions])
    predicted, certainties = self._labels_of(examples, outputs)
    self._write_predictions(examples, predicted, certainties)
    return self._score(examples, predicted) if self.files["test"].has_labels else None

  def _write_predictions(self, examples, predicted, probabilities):
    from bert.tasks import tagging

    encoded, lines, num_odd = [], [], 0
    for example, labels, certainties in zip(examples, predicted, probabilities, strict=True):
      entities = label_schemes.entities_of(labels, self.scheme)
      num_odd += labels != label_schemes.labels_of(entities, len(labels), self.scheme)
      encoded.append(label_schemes.labels_of(entities, len(labels), self.settings.label_scheme))
      described = tagging.describe_entities(example, entities, certainties)
      lines.append(json.dumps(described, ensure_ascii=False) + "\n")
    path = self.settings.path("predictions.conll")
    distribution.on_chief(conll_files.write_conll, path, self.files["test"], encoded)
    jsonl = self.settings.path("predictions.jsonl")
    distribution.on_chief(atomic_files.write_text, jsonl, "".join(lines))
    logging.info("Wrote %d sentences to %s.", len(lines), path)
    if num_odd:
      logging.info(
        "In %d of them the model's labels did not follow the scheme %s; a label that continues "
        "nothing was taken as the start of an entity.",
        num_odd,
        self.scheme,
      )


define_flags, main = engine.flags_of(Tagging), engine.main_of(Tagging)

if __name__ == "__main__":
  engine.main(Tagging)
