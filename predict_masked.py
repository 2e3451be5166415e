"""What BERT would put in place of [MASK], and whether one text could follow another.

  python predict_masked.py --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --text="The capital of France is [MASK]." --text="It rains. ||| The street is [MASK]."

A text is one, or two with ||| between them. For each [MASK] come the likeliest word pieces with
their probabilities; for two texts the probability that the second follows the first, if the
checkpoint has the head that tells. Many texts stand in a file, one on each line, and leave as JSON:

  python predict_masked.py --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --input_file=texts.txt --output_file=answers.jsonl

--saved_model reads an exported encoder with .mlm instead of a checkpoint, and needs nothing else.
From Python:

  fill = predict_masked.from_checkpoint("uncased_L-12_H-768_A-12")
  fill(["The capital of France is [MASK]."])[0]["masks"][0][0]["token"]

Letters in shapes: B = batch size, S = sequence length, P = masks, K = pieces for each mask, V =
vocabulary size.
"""

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from absl import flags

from bert.io import text_lines
from bert.predicting import load_model, predictor, sentence_vectors
from bert.scripts import command_line, flag_groups, runner

FLAGS = flags.FLAGS

MASK = "[MASK]"
# They stay whole in a text, as they are written; any other bracket is punctuation.
SPECIAL_TOKENS = (MASK, "[CLS]", "[SEP]", "[UNK]")

_INPUTS = (*sentence_vectors.INPUTS, "masked_lm_positions")
# What the graph does not compute: the pooler, where nothing is said about next sentences.
_WITHOUT_NEXT_SENTENCE = ("bert/pooler/",)


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Texts and answers"):
    flags.DEFINE_multi_string("text", [], "A text with [MASK]. May be given several times.")
    flags.DEFINE_string(
      "input_file", "-", "Without --text: texts, one on each line; - is standard input."
    )
    flags.DEFINE_string(
      "output_file", None, "JSON objects, one for each text. By default a table is printed."
    )
    flags.DEFINE_integer("top_k", 5, "How many pieces for each mask.")
    flags.DEFINE_integer("batch_size", 32, "Texts computed at a time.")
    flags.DEFINE_enum(
      "dtype",
      "float32",
      ["float32", "bfloat16", "float16"],
      "Type of the encoder's matrix products, of a checkpoint.",
    )
    flags.DEFINE_string(
      "saved_model", None, "An exported encoder with .mlm, in place of --init_checkpoint."
    )
  runner.define_model_flags(runs_model=False)


# ---------------------------------------------------------------------------------------------
# Models.


def from_checkpoint(
  init_checkpoint: str,
  *,
  top_k: int = 5,
  bert_config_file: str | None = None,
  vocab_file: str | None = None,
  do_lower_case: bool | None = None,
  max_seq_length: int = 128,
  batch_size: int = 32,
  chunk_size: int = 1024,
  dtype: str = "float32",
) -> predictor.Predictor:
  """Guesses masked words with a pre-trained checkpoint.

  Args:
    init_checkpoint: see `load_model.load_model`.
    top_k: pieces for each mask.
    bert_config_file: see `load_model.load_model`.
    vocab_file: see `load_model.load_model`.
    do_lower_case: see `load_model.load_model`.
    max_seq_length: longer texts are cut; a mask may not be among what is cut.
    batch_size: texts computed at a time.
    chunk_size: see `predictor.Predictor`.
    dtype: of the encoder's matrix products.

  Returns:
    A predictor. Its items are texts or pairs of texts, its results `{"text", "masks"}`: for each
    mask a list of `{"token", "probability"}`, the likeliest first. Pairs have `text_b` too, and
    `next_sentence`, the probability that it follows, if the checkpoint has that head.

  Raises:
    CheckpointError: the checkpoint lacks the masked language model.
    ValueError: a file is missing or bad.
  """
  from bert.checkpoints import checkpoint

  config, tokenizer, prefix = load_model.load_model(
    init_checkpoint, bert_config_file, vocab_file, do_lower_case, max_seq_length, SPECIAL_TOKENS
  )
  names = checkpoint.names_and_shapes(prefix)
  if not any(name.startswith("cls/predictions/") for name in names):
    raise checkpoint.CheckpointError(
      f"{prefix} has no head for masked words (no variable cls/predictions/...): it is a "
      "fine-tuned model, or one of sentence embeddings. A checkpoint of pre-training has it, "
      "such as the released models."
    )
  has_next_sentence = "cls/seq_relationship/output_weights" in names
  function = load_model.load_graph(
    _graph(config, min(top_k, config.vocab_size), has_next_sentence, dtype),
    _INPUTS,
    prefix,
    () if has_next_sentence else _WITHOUT_NEXT_SENTENCE,
  )
  return _predictor(function, tokenizer, max_seq_length, has_next_sentence, batch_size, chunk_size)


def from_saved_model(
  saved_model: str,
  *,
  top_k: int = 5,
  max_seq_length: int = 128,
  batch_size: int = 32,
  chunk_size: int = 1024,
) -> predictor.Predictor:
  """Guesses masked words with an exported encoder that has `.mlm`.

  Args:
    saved_model: the encoder's folder. It brings its vocabulary.
    top_k: see `from_checkpoint`, also for the rest and for what comes back.
    max_seq_length: longer texts are cut.
    batch_size: texts computed at a time.
    chunk_size: see `predictor.Predictor`.

  Raises:
    ValueError: it is no encoder, or has no `.mlm`.
    OSError: there is no SavedModel.
  """
  import tensorflow as tf

  from bert import tokenization

  if not tf.saved_model.contains_saved_model(saved_model):
    raise FileNotFoundError(f"--saved_model={saved_model} holds no SavedModel.")
  encoder = load_model.load_saved_model(saved_model)
  if not hasattr(encoder, "mlm"):
    raise ValueError(
      f"--saved_model={saved_model} has no .mlm: an encoder that export_hub.py made of a "
      "checkpoint of pre-training has one."
    )
  tokenizer = tokenization.FullTokenizer(
    encoder.vocab_file.asset_path.numpy().decode(),
    bool(encoder.do_lower_case.numpy()),
    SPECIAL_TOKENS,
  )
  positions = next(v for v in encoder.variables if "position_embeddings" in v.name)
  load_model.check_length(max_seq_length, positions.shape[0])

  @tf.function(autograph=False)
  def run(input_ids, input_mask, segment_ids, masked_lm_positions):
    outputs = encoder.mlm(
      {
        "input_word_ids": input_ids,
        "input_mask": input_mask,
        "input_type_ids": segment_ids,
        "masked_lm_positions": masked_lm_positions,
      }
    )
    return _likeliest(outputs["mlm_logits"], min(top_k, max(tokenizer.inv_vocab) + 1))

  specs = [tf.TensorSpec([None, None], tf.int32, name) for name in _INPUTS]
  function = load_model.LoadedFunction(run.get_concrete_function(*specs), _INPUTS, owner=encoder)
  return _predictor(function, tokenizer, max_seq_length, False, batch_size, chunk_size)


def _graph(config, top_k, has_next_sentence, dtype="float32"):
  """A graph function for `load_model.load_graph`."""

  def build(features):
    import tensorflow as tf

    from bert.model import heads
    from bert.modeling import BertModel

    inputs = (features[name] for name in sentence_vectors.INPUTS)
    model = BertModel(config, False, *inputs, dtype=tf.as_dtype(dtype), skip_padding=True)
    positions = features["masked_lm_positions"]  # [B, P]
    vectors = heads.gather_indexes(model.get_sequence_output(), positions)  # [B*P, W]
    logits = heads.masked_lm_logits(config, vectors, model.get_embedding_table())  # [B*P, V]
    outputs = _likeliest(tf.reshape(logits, [*tf.unstack(tf.shape(positions)), -1]), top_k)
    if has_next_sentence:
      nobody_knows = tf.zeros_like(positions[:, 0])
      pooled = model.get_pooled_output()
      _, _, log_probs = heads.get_next_sentence_output(config, pooled, nobody_knows)
      outputs["next_sentence"] = tf.exp(log_probs[:, 0])
    return outputs

  return build


def _likeliest(logits, top_k):
  """float32 `[B, P, V]` to `probabilities` and `ids`, `[B, P, K]`, the likeliest first."""
  import tensorflow as tf

  best, ids = tf.math.top_k(logits, top_k)
  total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
  return {"probabilities": tf.exp(best - total), "ids": ids}


# ---------------------------------------------------------------------------------------------
# Texts in, answers out.


class Question(NamedTuple):
  """A text or two, and where they come from, for messages."""

  text_a: str
  text_b: str | None = None
  source: str | None = None


def _predictor(function, tokenizer, max_seq_length, has_next_sentence, batch_size, chunk_size):
  def featurize(item):
    question = Question(*item) if isinstance(item, (tuple, list)) else Question(item)
    features = sentence_vectors.text_features(tokenizer, question[:2], max_seq_length)
    places = [i for i, token in enumerate(features["tokens"]) if token == MASK]
    _check_question(question, len(places), has_next_sentence, max_seq_length)
    # A text without a mask has one place like the padding of others, which nobody reads.
    return {
      **features,
      "question": question,
      "places": places,
      "masked_lm_positions": places or [0],
    }

  def finish(features, outputs):
    question = features["question"]
    result = {"text": question.text_a}
    if question.text_b is not None:
      result["text_b"] = question.text_b
    result["masks"] = [
      _pieces(tokenizer, outputs["ids"][i], outputs["probabilities"][i])
      for i in range(len(features["places"]))
    ]
    if has_next_sentence and question.text_b is not None:
      result["next_sentence"] = float(outputs["next_sentence"])
    return result

  return predictor.Predictor(featurize, function, _INPUTS, finish, batch_size, chunk_size)


def _pieces(tokenizer, ids, probabilities) -> list[dict]:
  # A model may have more ids than its vocabulary has lines, for the sake of a rounder number.
  tokens = [tokenizer.inv_vocab.get(i, f"[id {i}]") for i in ids.tolist()]
  return [
    {"token": token, "probability": probability}
    for token, probability in zip(tokens, probabilities.tolist(), strict=True)
  ]


def _check_question(question: Question, num_places: int, has_next_sentence, max_seq_length) -> None:
  """Raises a ValueError for what has no answer, or not the one that is asked for."""
  texts = " ||| ".join(filter(None, question[:2]))
  where = f"{question.source}: " if question.source else ""
  asked = texts.count(MASK)
  if num_places < asked:
    raise ValueError(
      f"{where}of {asked} [MASK] in {texts!r:.60}, {asked - num_places} lie beyond max_seq_length "
      f"{max_seq_length}. Raise --max_seq_length, or shorten the text."
    )
  if not asked and question.text_b is None:
    raise ValueError(f"{where}there is no [MASK] in {texts!r:.60}.")
  if not asked and not has_next_sentence:
    raise ValueError(
      f"{where}there is no [MASK] in {texts!r:.60}, and whether its second text follows the first "
      "is told by a checkpoint with the variables cls/seq_relationship/..., which this is not."
    )


def to_table(result: dict) -> str:
  """An answer to read.

  Example:
    >>> print(to_table({"text": "It is [MASK].", "text_b": "Oh.", "next_sentence": 0.25,
    ...   "masks": [[{"token": "wet", "probability": 0.9}, {"token": "so", "probability": 0.05}]]}))
    It is [MASK]. ||| Oh.
      [MASK] 1       wet 0.9000  so 0.0500
      next sentence  0.2500
  """
  lines = [" ||| ".join(result[name] for name in ("text", "text_b") if name in result)]
  for number, pieces in enumerate(result["masks"], start=1):
    guesses = "  ".join(f"{piece['token']} {piece['probability']:.4f}" for piece in pieces)
    lines.append(f"  {f'[MASK] {number}':<13}  {guesses}")
  if "next_sentence" in result:
    lines.append(f"  next sentence  {result['next_sentence']:.4f}")
  return "\n".join(lines)


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Answers what the flags say."""
  check_flags()
  # Whoever types wants the answer before the next line.
  waits = not FLAGS.text and FLAGS.input_file == "-" and sys.stdin.isatty()
  results = _load(chunk_size=1 if waits else 1024).stream(read_questions())
  if FLAGS.output_file:
    with text_lines.written_whole(FLAGS.output_file) as writer:
      for result in results:
        writer.write(text_lines.to_json(result))
  else:
    for result in results:
      print(to_table(result), flush=True)


def check_flags() -> None:
  """Checks what flags alone tell.

  Raises:
    UsageError: a flag is missing or has a value that it cannot have.
    OSError: `--output_file` cannot be written.
  """
  if not FLAGS.init_checkpoint and not FLAGS.saved_model:
    raise command_line.UsageError("--init_checkpoint or --saved_model must say which model to ask.")
  if FLAGS.init_checkpoint and FLAGS.saved_model:
    raise command_line.UsageError("--init_checkpoint and --saved_model are two models: give one.")
  if FLAGS.text and command_line.flag_was_given("input_file"):
    raise command_line.UsageError("--text and --input_file exclude each other.")
  for name in ("top_k", "batch_size"):
    runner.check_flag(name, lambda value: value >= 1, "at least 1")
  if FLAGS.output_file:
    text_lines.check_output_file(FLAGS.output_file)
  if FLAGS.saved_model:
    brings = "an exported encoder brings its own"
    names = ("bert_config_file", "vocab_file", "do_lower_case", "dtype")
    command_line.explain_ignored_flags(dict.fromkeys(names, brings))


def _load(chunk_size: int) -> predictor.Predictor:
  options = {
    "top_k": FLAGS.top_k,
    "max_seq_length": FLAGS.max_seq_length,
    "batch_size": FLAGS.batch_size,
    "chunk_size": chunk_size,
  }
  if FLAGS.saved_model:
    return from_saved_model(FLAGS.saved_model, **options)
  given = command_line.flag_was_given("do_lower_case")
  return from_checkpoint(
    FLAGS.init_checkpoint,
    bert_config_file=FLAGS.bert_config_file,
    vocab_file=FLAGS.vocab_file,
    do_lower_case=FLAGS.do_lower_case if given else None,
    dtype=FLAGS.dtype,
    **options,
  )


def read_questions() -> Iterator[Question]:
  """The texts of `--text`, or of the lines of `--input_file`; empty ones ask nothing."""
  lines: Iterable[str] = FLAGS.text or text_lines.read_lines(FLAGS.input_file)
  name = "--text" if FLAGS.text else FLAGS.input_file
  for number, line in enumerate(lines, start=1):
    if line.strip():
      yield Question(*text_lines.split_pair(line), source=f"{name}, line {number}")


if __name__ == "__main__":
  command_line.run(main, define_flags)
