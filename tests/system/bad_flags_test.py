"""Flags that are wrong or contradict each other, and files that do not belong together.

Each row is refused before anything takes long: code 1, one message, nothing written, nothing
changed (tests/kit/bad_inputs.py). Bad files by themselves are in bad_inputs_test.py and
bad_weights_test.py.
"""

import json

import pytest

from bert import (
  convert_checkpoint,
  create_pretraining_data,
  create_vocab,
  extract_features,
  predict,
  predict_masked,
  run_classifier,
  run_glue,
  run_ner,
  run_pretraining,
  run_similarity,
  run_squad,
  run_swag,
)
from tests.kit import tiny_bert
from tests.kit.bad_inputs import Family, case, check, rows_of, starting

TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "two", ".", ",", "##s"]
VOCAB = "".join(token + "\n" for token in TOKENS).encode()
MODEL = {
  "vocab.txt": VOCAB,
  "bert_config.json": json.dumps(tiny_bert.config(len(TOKENS))).encode(),
  "latin1.txt": b"--do_train\n# caf\xe9\n",
}
_MODEL_FLAGS = ("--bert_config_file={}/bert_config.json", "--vocab_file={}/vocab.txt")
_OUT = "--output_dir={}/out"

# ---------------------------------------------------------------------------------------------
# Flags alone.

_SCRIPTS = {
  run_classifier: ("--task_name=cola", "--data_dir={}", "--do_eval", *_MODEL_FLAGS, _OUT),
  run_squad: ("--predict_file={}/dev.json", "--do_predict", *_MODEL_FLAGS, _OUT),
  run_ner: ("--data_dir={}", "--do_eval", "--labels=O,B-PER", *_MODEL_FLAGS, _OUT),
  run_swag: ("--data_dir={}", "--do_eval", *_MODEL_FLAGS, _OUT),
  run_similarity: ("--data_dir={}", "--do_eval", *_MODEL_FLAGS, _OUT),
  run_pretraining: ("--input_file={}/vocab.txt", "--do_eval", _MODEL_FLAGS[0], _OUT),
  create_pretraining_data: (
    *("--input_file={}/vocab.txt", "--output_file={}/out/a.tfrecord", "--vocab_file={}/vocab.txt"),
  ),
  create_vocab: ("--input_file={}/vocab.txt", "--output_file={}/out/vocab.txt"),
  predict: ("--init_checkpoint={}/out",),
  predict_masked: ("--init_checkpoint={}/out",),
  extract_features: (
    *("--input_file={}/vocab.txt", "--output_file={}/out/a.jsonl", "--init_checkpoint={}/out"),
    *_MODEL_FLAGS,
  ),
  convert_checkpoint: ("--init_checkpoint={}/out", "--output_dir={}/out/new"),
  run_glue: ("--glue_dir={}", _OUT, "--init_checkpoint={}/out", *_MODEL_FLAGS),
}

# Script, flags (later ones win over those above), words of the message.
_FLAGS = [
  (run_classifier, "--train_batch_size=0", "--train_batch_size=0: must be at least 1"),
  (run_classifier, "--train_batch_size=8 --gradient_accumulation_steps=3", "equal parts"),
  (run_classifier, "--do_train --train_batch_size=1000000000", "a batch must have fewer than"),
  (run_classifier, "--learning_rate=-1", "--learning_rate=-1.0: must be a number of at least 0"),
  (run_classifier, "--learning_rate=nan", "--learning_rate=nan"),
  (run_classifier, "--learning_rate=fast", '--learning_rate takes a number, not "fast"'),
  (run_classifier, "--num_train_epochs=inf", "--num_train_epochs=inf"),
  (run_classifier, "--warmup_proportion=1.5", "--warmup_proportion=1.5: must be between 0 and 1"),
  (run_classifier, "--layerwise_lr_decay=0", "--layerwise_lr_decay=0.0"),
  (run_classifier, "--eval_every_steps=-1", "--eval_every_steps=-1"),
  (run_classifier, "--dtype=float8", "--dtype takes one of float32, bfloat16, float16, auto, not"),
  (run_classifier, "--do_train=maybe", '--do_train takes true or false, not "maybe"'),
  (run_classifier, "--max_seq_length=", "--max_seq_length takes an integer"),
  (run_classifier, "--nodo_train=true", "--nodo_train takes no value"),
  (run_classifier, "--nodo_eval", "At least one of `do_train`, `do_eval` or `do_predict'"),
  (run_classifier, "--task_name=colla", "Task not found: colla. Did you mean cola?"),
  (run_classifier, "--task_name=cola --text_a_column=x", "cola has no option text_a_column"),
  (run_classifier, "--task_name=csv --problem_type=ranking", "--problem_type takes one of"),
  (run_classifier, "--max_seq_length=64", "Cannot use sequence length 64", "32"),
  (run_classifier, "--max_seq_length=0", "--max_seq_length=0: must be at least 3"),
  (
    run_classifier,
    "--long_text=windows --max_seq_length=3",
    "--max_seq_length=3: must be at least",
  ),
  (
    *(run_classifier, "--use_tpu --distribution_strategy=mirrored"),
    "--use_tpu and --distribution_strategy=mirrored exclude each other",
  ),
  (run_classifier, "--flagfile={}/missing.txt", "missing.txt", "No such file"),
  (run_classifier, "--flagfile={}/latin1.txt", "latin1.txt: a flag file is not UTF-8", "0xe9"),
  (
    run_classifier,
    "--output_dir={}/vocab.txt --max_seq_length=16",
    "vocab.txt cannot be written to",
  ),
  (run_classifier, "--bert_config_file={}/vocab.txt", "vocab.txt is not valid JSON"),
  (run_classifier, "--init_checkpoint={}/nowhere/bert_model.ckpt", "nowhere does not exist"),
  (run_classifier, "--init_checkpoint={}/out", "out has no checkpoint"),
  (run_classifier, f"--seed={'9' * 20}", "must be below 2^63"),
  (run_squad, f"--seed=-{'9' * 20}", "must be below 2^63"),
  (run_classifier, "--task_name=csv --label_separator=", "what stands between two labels"),
  (run_classifier, "--learning_rate=0,00002", "Write a decimal point: 0.00002"),
  (run_classifier, "--learning_rate=2e-5,3e-5", 'takes a number, not "2e-5,3e-5"'),
  (run_classifier, "--train_batch_size=32.0", 'takes an integer, not "32.0"'),
  (run_classifier, "--train_batch_size=1e3", 'takes an integer, not "1e3"'),
  (run_classifier, "--task_name=", "Task not found", "Known tasks: cola"),
  (run_classifier, "--data_dir=", "--data_dir= is empty"),
  (run_classifier, "--output_dir=", "--output_dir= is empty"),
  (run_classifier, "--dtype=fp16", "float16, auto", "Did you mean float16?"),
  (run_pretraining, "--optimizer=adam", "Did you mean adamw?"),
  (run_classifier, "--flagfile={}", "Cannot read the flag file", "Is a directory"),
  (convert_checkpoint, "--command=to_transformer", "Did you mean to_transformers?"),
  (run_classifier, "--data_dir={}/vocab.txt", "vocab.txt is a file. Give the folder"),
  (run_ner, "--data_dir={}/vocab.txt", "vocab.txt is a file. Give the folder"),
  (run_swag, "--data_dir={}/vocab.txt", "vocab.txt is a file. Give the folder"),
  (run_classifier, "--freeze=nosuch --max_seq_length=16", "selects no variable", "embeddings"),
  (run_classifier, "--freeze=embeddings,layers:99 --max_seq_length=16", "the model has 1 layer"),
  (run_classifier, "--freeze=layer_[0 --max_seq_length=16", "a regular expression"),
  (run_ner, "--freeze=bert/encoder/layer_7/ --max_seq_length=16", "selects no variable"),
  (
    run_squad,
    "--freeze=layers --max_seq_length=32 --max_query_length=8",
    "layers:N with N up to 1",
  ),
  (run_classifier, "--task_name=csv --labels=a,b,a", "--labels=a,b,a has a twice"),
  (run_classifier, "--task_name=csv --labels=a,,b", "has an empty label"),
  (run_ner, "--labels=O,B-PER,O", "--labels=O,B-PER,O has O twice"),
  (run_squad, "--nodo_predict", "At least one of `do_train` or `do_predict` must be True"),
  (run_squad, "--do_train", "If `do_train` is True, then `train_file` must be specified"),
  (run_squad, "--max_seq_length=32 --max_query_length=30", "max_query_length (30) + 3"),
  (run_squad, "--max_seq_length=32 --max_query_length=8 --doc_stride=0", "--doc_stride=0"),
  (run_ner, "--separator=", "--separator is empty"),
  (run_ner, "--label_scheme=plain --model_scheme=bio", "--label_scheme=plain --model_scheme=bio"),
  (run_ner, "--label_scheme=BIO", "--label_scheme takes one of bio"),
  (run_ner, "--max_seq_length=2", "--max_seq_length=2: must be at least 3"),
  (run_ner, "--max_seq_length=16", "has none of", "--dev_file"),
  (run_swag, "--max_seq_length=2", "--max_seq_length=2: must be at least 3"),
  (run_swag, "--max_seq_length=16", "has none of", "--dev_file"),
  (run_similarity, "--max_seq_length=16", "has none of", "--dev_file"),
  (run_similarity, "--pooling=none", "--pooling takes one of cls, mean, max"),
  (run_similarity, "--min_score=1 --max_score=1", "--min_score=1 --max_score=1: the scale needs"),
  (run_pretraining, "--input_file={}/*.tfrecord", "tfrecord matches no file"),
  (run_pretraining, "--input_file=,", "--input_file=, names no file"),
  (run_pretraining, "--masked_lm_prob=0", "--masked_lm_prob=0.0: must be above 0"),
  (run_pretraining, "--do_whole_word_mask --max_seq_length=16", "Give --dynamic_masking, too"),
  (
    run_pretraining,
    "--dynamic_masking --max_seq_length=16",
    "--dynamic_masking needs --vocab_file",
  ),
  (run_pretraining, "--do_export", "--do_export needs --vocab_file"),
  (create_pretraining_data, "--max_seq_length=2", "--max_seq_length=2: "),
  (
    create_pretraining_data,
    "--masked_lm_prob=1.5",
    "--masked_lm_prob=1.5: must be between 0 and 1",
  ),
  (create_pretraining_data, "--dynamic_masking --ngram_max=3", "use only one"),
  (
    create_pretraining_data,
    "--beam_args=--direct_num_workers=2",
    "--beam_args requires --runner=beam",
  ),
  (create_pretraining_data, "--input_file={}/none*", "none* matches no file"),
  (
    create_pretraining_data,
    "--format=electra --masked_lm_prob=0.2",
    "--masked_lm_prob means nothing with --format=electra, only with bert, albert and roberta",
  ),
  (
    create_pretraining_data,
    "--format=bert --spm_model_file={}/vocab.txt",
    "--spm_model_file means nothing with --format=bert, only with albert",
  ),
  (create_pretraining_data, "--format=albert --ngram=0", "--ngram_max=0: must be at least 1"),
  (create_pretraining_data, "--format=albert --dynamic_masking", "only with bert"),
  (
    create_pretraining_data,
    "--format=albert --spm_model_file={}/vocab.txt",
    "vocab.txt is not a sentencepiece model",
  ),
  (create_vocab, "--vocab_size=0", "--vocab_size=0"),
  (create_vocab, "--extend={}/vocab.txt", "has no [unusedN] line to replace"),
  (create_vocab, "--extend={}/vocab.txt --extend_by=append", "needs --num_new"),
  (predict, "--saved_model={}/out", "this flag was removed"),
  (predict, "--batch_size=0", "--batch_size=0: must be at least 1"),
  (predict, "--output_file={}/nowhere/a.jsonl", "nowhere", "there is no folder"),
  (predict, "--task=vectors --output_file={}/out", "out is a folder; name a file"),
  (predict_masked, "--text=a --input_file={}/vocab.txt", "--text and --input_file exclude"),
  (predict_masked, "--top_k=0", "--top_k=0: must be at least 1"),
  (extract_features, "--layers=-1,last", "--layers=-1,last: whole numbers"),
  (extract_features, "--use_tpu", "Omit it"),
  (extract_features, "--output_format=npz --output_file=-", "needs an --output_file"),
  (convert_checkpoint, "", "Give a command as the first word"),
  (convert_checkpoint, "--command=resize_vocab", "resize_vocab needs --"),
  (run_glue, "--tasks=cola,colla", "--tasks: colla is not one of"),
  (run_glue, "--learning_rates=0,fast", "--learning_rates"),
  (run_glue, "--tasks=cola", "contains no task of GLUE"),
]


def _family(script, flags: str, *message: str) -> Family:
  run = starting(script, *_SCRIPTS[script], *flags.split())
  row = case(f"{script.__name__} {flags}", VOCAB, *message)
  return Family("flags", "vocab.txt", run, [row], MODEL, named="")


ALONE = [_family(*row) for row in _FLAGS]

# ---------------------------------------------------------------------------------------------
# Files that are good by themselves.

_LONG_VOCAB = VOCAB + b"too\nmany\n"
_EXAMPLES = {
  "dev.tsv": b"g\t1\t\tone two.\n",
  "dev.json": b'{"data": [{"paragraphs": [{"context": "one.", "qas": '
  b'[{"id": "1", "question": "?"}]}]}]}',
  "dev.conll": b"one O\ntwo B-PER\n",
  "dev.csv": b"sent1,ending0,ending1,label\none,two,.,0\n",
}


def _together(script, file, *cases):
  flags = (
    ("--max_seq_length=16", "--max_query_length=4")
    if script is run_squad
    else ("--max_seq_length=16",)
  )
  run = starting(script, *_SCRIPTS[script], *flags)
  # A classifier reads dev.csv and dev.json in place of dev.tsv.
  examples = {"dev.tsv": _EXAMPLES["dev.tsv"]} if script is run_classifier else _EXAMPLES
  return Family(script.__name__, file, run, cases, {**MODEL, **examples})


_WRONG_VOCABULARY = case("of another model", _LONG_VOCAB, "up to 11", "vocab_size 10")
TOGETHER = [
  _together(run_classifier, "vocab.txt", _WRONG_VOCABULARY),
  _together(run_squad, "vocab.txt", _WRONG_VOCABULARY),
  _together(run_ner, "vocab.txt", _WRONG_VOCABULARY),
  _together(run_swag, "vocab.txt", _WRONG_VOCABULARY),
  _together(run_similarity, "vocab.txt", _WRONG_VOCABULARY),
  _together(
    run_classifier,
    "dev.tsv",
    case("an unknown label", "g\t7\t\tone.\n", "line 1", "'7' is unknown"),
    case("cut short", "g\t1\t\tone.\ng\t1\n", "line 2", "column 3 "),
    case("missing", None, "there is no such file", "bert_config.json"),
  ),
  _together(
    run_squad,
    "dev.json",
    case("cut short", _EXAMPLES["dev.json"][:-9], "line 1", "not JSON"),
    case("missing", None, "No such file"),
  ),
  _together(
    run_ner,
    "dev.conll",
    case("another scheme", "one U-PER\n", "line 1", "'U-PER' is not in the scheme bio"),
    case("empty", b"", "contains no word"),
  ),
  _together(
    run_swag,
    "dev.csv",
    case("a label too high", "sent1,ending0,ending1,label\none,two,.,2\n", "line 2", "'2'"),
    case("empty", b"", "the file is empty"),
  ),
]


# ---------------------------------------------------------------------------------------------
# The metric that selects the best checkpoint is checked once the data are read.

_TRAINING = {
  **_EXAMPLES,
  "train.tsv": _EXAMPLES["dev.tsv"],
  "train.conll": _EXAMPLES["dev.conll"],
  "train.csv": _EXAMPLES["dev.csv"],
  "train.json": b'{"data": [{"paragraphs": [{"context": "one.", "qas": [{"id": "1", '
  b'"question": "?", '
  b'"answers": [{"text": "one", "answer_start": 0}]}]}]}]}',
}


def _best_metric(script, metric, *words):
  flags = ["--do_train", "--max_seq_length=16", "--eval_every_steps=1", f"--best_metric={metric}"]
  if script is run_squad:
    flags += ["--max_query_length=4", "--train_file={}/train.json", "--predict_file={}/train.json"]
  run = starting(script, *_SCRIPTS[script], *flags)
  row = case(f"{script.__name__} {metric}", VOCAB, f"--best_metric={metric} is no result", *words)
  return Family("best_metric", "vocab.txt", run, [row], {**MODEL, **_TRAINING}, named="")


BEST_METRIC = [
  _best_metric(run_classifier, "acuracy", "Did you mean eval_accuracy?", "eval_matthews_corrcoef"),
  _best_metric(run_classifier, "eval_f1_macro", "Results: eval_matthews_corrcoef, "),
  _best_metric(run_squad, "best_f1", "Results: exact_match, f1, total, loss"),
  _best_metric(run_ner, "f1_PER", "Did you mean eval_f1_PER?"),
  _best_metric(run_swag, "nosuch", "Results: eval_accuracy, eval_loss, loss"),
]


@pytest.mark.parametrize(("family", "row"), rows_of(ALONE + TOGETHER + BEST_METRIC))
def test_it_is_refused(family, row, tmp_path):
  check(family, row, tmp_path)
