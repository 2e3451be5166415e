"""predict_masked.py: its table, its files and its messages."""

import json
import os

import pytest

from bert import predict_masked
from bert.predicting.predictor import Predictor
from tests.kit.filters import Terminal, run_filter
from tests.kit.masked_lm import tokens_of
from tests.kit.script_runs import check_help


def error_of(**values) -> str:
  code, out, err = run_filter(predict_masked, **values)
  assert (code, out) == (1, "")
  assert "Traceback" not in err
  return err[err.index("ERROR: ") :]


def test_a_table_of_given_texts(pretrained, fill):
  flags = {"init_checkpoint": pretrained, "max_seq_length": 16, "top_k": 3}
  argv = ["--text=the cat ||| sat on the [MASK]", "--text=the [MASK] sat"]
  code, out, err = run_filter(predict_masked, argv=argv, **flags)
  assert code is None, err
  results = fill([("the cat", "sat on the [MASK]"), "the [MASK] sat"])
  assert out == "".join(predict_masked.to_table(result) + "\n" for result in results)
  lines = out.splitlines()
  assert lines[0] == "the cat ||| sat on the [MASK]"
  assert lines[1].startswith("  mask 1         ")
  assert lines[2].startswith("  next sentence  0.")
  assert lines[3] == "the [MASK] sat"


@pytest.mark.parametrize("source", ["stdin", "file"])
def test_lines_in_json_out(pretrained, fill, tmp_path, source):
  content = b"the [MASK] sat\n\nthe cat ||| on the [MASK]\n"
  flags = {"init_checkpoint": pretrained, "max_seq_length": 16}
  if source == "file":
    (tmp_path / "in.txt").write_bytes(content)
    flags["input_file"] = tmp_path / "in.txt"
  out = tmp_path / "out.jsonl"
  code, printed, err = run_filter(predict_masked, content, **flags, output_file=out, top_k=3)
  assert (code, printed) == (None, ""), err
  results = list(map(json.loads, out.read_text().splitlines()))
  expected = fill(["the [MASK] sat", ("the cat", "on the [MASK]")])
  assert list(map(tokens_of, results)) == list(map(tokens_of, expected))
  assert results[1]["next_sentence"] == pytest.approx(expected[1]["next_sentence"])


@pytest.mark.ci
def test_who_types_is_answered_line_by_line(pretrained, monkeypatch):
  sizes = []
  stream = Predictor.stream
  monkeypatch.setattr(
    Predictor, "stream", lambda self, *args: sizes.append(self.chunk_size) or stream(self, *args)
  )
  flags = {"init_checkpoint": pretrained, "max_seq_length": 16}
  run_filter(predict_masked, b"[MASK]", **flags)
  run_filter(predict_masked, b"[MASK]", stdin_type=Terminal, **flags)
  run_filter(predict_masked, stdin_type=Terminal, text="[MASK]", **flags)
  assert sizes == [1024, 1, 1024]


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    ({"init_checkpoint": None}, "Name a model: --init_checkpoint."),
    ({"text": "[MASK]", "input_file": "x"}, "--text and --input_file exclude each other"),
    ({"top_k": 0}, "--top_k=0: must be at least 1"),
    ({"batch_size": 0}, "--batch_size=0: must be at least 1"),
    ({"output_file": "no/such/out"}, "there is no folder no/such"),
    ({"input_file": "no.txt"}, "no.txt: No such file"),
    ({"text": "no mask"}, "--text, line 1: no [MASK] in 'no mask'"),
    ({"max_seq_length": 2}, "max_seq_length is 2"),
  ],
)
def test_what_cannot_be_is_told(pretrained, tmp_path, monkeypatch, flags, message):
  monkeypatch.chdir(tmp_path)
  flags = {"init_checkpoint": pretrained, "max_seq_length": 16, **flags}
  assert message in error_of(**{name: value for name, value in flags.items() if value is not None})
  assert os.listdir(tmp_path) == []


def test_a_bad_line_is_named_and_leaves_no_file(pretrained, tmp_path):
  (tmp_path / "in.txt").write_text("the [MASK]\n\nnothing to guess\n")
  flags = {"init_checkpoint": pretrained, "max_seq_length": 16, "input_file": tmp_path / "in.txt"}
  message = error_of(**flags, output_file=tmp_path / "out")
  assert "in.txt, line 3: no [MASK] in 'nothing to guess'" in message
  assert os.listdir(tmp_path) == ["in.txt"]


def test_case_of_an_export_is_known(pretrained_encoder, tmp_path):
  flags = {"init_checkpoint": pretrained_encoder, "max_seq_length": 16, "text": "[MASK]"}
  assert run_filter(predict_masked, **flags)[0] is None
  assert "was exported with do_lower_case True" in error_of(**flags, do_lower_case=False)


def test_help_is_quick_and_complete(tmp_path):
  check_help(predict_masked, tmp_path, {"Texts and answers", "Model"})


def test_without_a_length_the_model_reads_what_it_can(pretrained):
  code, out, err = run_filter(
    predict_masked, argv=["--text=the [MASK] sat"], init_checkpoint=pretrained
  )
  assert (code, out.splitlines()[0]) == (None, "the [MASK] sat"), err
