"""Fine-tunes BERT to choose what comes next: SWAG, or your own multiple choice of 2 to N texts.

  python run_swag.py --do_train --do_eval --do_predict --data_dir=$SWAG_DIR \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --max_seq_length=80 --train_batch_size=16 \\
    --learning_rate=2e-5 --num_train_epochs=3 --output_dir=/tmp/swag_output/

SWAG_DIR holds train.csv, val.csv and test.csv with SWAG's columns: sent1, sent2, ending0, ending1,
..., label; test.csv has no label. JSON Lines with these keys will do as well. The accuracy is in
eval_results.txt, the choices and all probabilities in predictions.tsv.

Letters in shapes: N = choices, S = sequence length.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

from bert.fine_tuning import engine
from bert.fine_tuning.task import LENGTH, SEQUENCES, Task
from bert.model.task_heads import ChoiceHead
from bert.scripts import result_files
from bert.tasks import constant_answers, multiple_choice


class MultipleChoice(Task):
  """Questions with several choices, of which one is right."""

  name = "swag"
  problem_type = "choices"
  file_endings = ("csv", "tsv", "jsonl")

  def read(self, split):
    """Reads questions."""
    return multiple_choice.read_swag_examples(
      self.file(split), split, split != "test", self.settings.skip_bad_rows
    )

  def view(self, example):
    """Returns the context and its choices, and the number of the right one."""
    return {"context": example.context, "choices": list(example.choices)}, example.label

  def record_spec(self, data):
    """Has room for as many choices as the question with most of them has."""
    num_choices = multiple_choice.num_choices_of(data.examples)
    sequence = ([num_choices, LENGTH], "int64")
    choices = {**dict.fromkeys(SEQUENCES, sequence), "choice_mask": ([num_choices], "int64")}
    return {**super().record_spec(data), **choices}

  def records(self, data, num_shown):
    """Converts questions."""
    num_choices = multiple_choice.num_choices_of(data.examples)
    return multiple_choice.convert_examples_to_features(
      data.examples, num_choices, self.length, self.tokenizer
    )

  def head(self):
    """Scores each choice."""
    return ChoiceHead()

  def distillation_loss(self, comparison):
    """Compares the softmax over the choices."""
    return comparison.mean()

  def metrics(self, outputs, labels):
    """Computes the accuracy of probabilities `[N, choices]`."""
    from bert.tasks import metrics

    results = metrics.compute_metrics(["accuracy"], labels, outputs, prefix="")
    choices = [f"choice {number}" for number in range(outputs.shape[1])]
    return constant_answers.with_failure(results, labels, outputs, choices)

  def score(self, data, answers):
    """Computes the accuracy; questions may have different numbers of choices."""
    outputs = [{self.answer: each} for each in multiple_choice.padded(answers)]
    return super().score(data, outputs)

  def label_ids(self, data):
    """Returns the numbers of the right choices."""
    return [each.label for each in data.examples]

  def write_predictions(self, data, predictions):
    """Writes predictions.tsv, with the contexts and the choices."""
    examples, outputs = data.examples, [each["probabilities"] for each in predictions][: len(data)]
    chosen = [each.choices[p.argmax()] for each, p in zip(examples, outputs, strict=True)]
    result_files.write_predictions(
      self.settings.output_dir,
      data.suffix,
      [each.guid for each in examples],
      outputs,
      [str(number) for number in range(multiple_choice.num_choices_of(examples))],
      "classification",
      texts={"context": [each.context for each in examples], "choice": chosen},
    )


define_flags, main = engine.flags_of(MultipleChoice), engine.main_of(MultipleChoice)

if __name__ == "__main__":
  engine.main(MultipleChoice)
