"""attention_maps.py: its pictures and its messages."""

import numpy as np
import pytest

from bert import attention_maps
from bert.figures import drawing
from tests.kit import exports
from tests.kit.script_runs import Script

script = Script(attention_maps)


@pytest.fixture
def flags(tmp_path_factory, tmp_path):
  """What every run needs."""
  trained = exports.classifier(tmp_path_factory).trained
  return {
    "init_checkpoint": trained,
    "text": "the film",
    "max_seq_length": 8,
    "output_file": tmp_path / "maps.png",
  }


@pytest.mark.ci
def test_the_script_draws_a_layer_or_all(flags, monkeypatch):
  drawn, draw = [], drawing.plot_attention

  def keep(*args):
    drawn.append(args)
    draw(*args)

  monkeypatch.setattr(drawing, "plot_attention", keep)
  done = script.run_well(**flags, layer=-1)
  assert f"Wrote {flags['output_file']}: 4 word pieces." in done.err
  assert flags["output_file"].read_bytes().startswith(b"\x89PNG")
  script.run_well(**flags)
  script.run_well(**flags, layer=1, head=-1, hide_special_tokens=True)
  (heads, tokens, _, titles, title, hidden), all_layers, single = drawn
  means, *_, titles_of_all, _, _ = all_layers
  assert (heads.shape, means.shape) == ((2, 4, 4), (2, 4, 4))
  assert tokens == ["[CLS]", "the", "film", "[SEP]"]
  assert title == "Attention in layer 1 (of 0 to 1)"
  assert (titles, titles_of_all[-1]) == (["head 0", "head 1"], "layer 1")
  np.testing.assert_allclose(means[-1], heads.mean(axis=0), atol=1e-6)
  np.testing.assert_array_equal(single[0], heads[1:])
  assert single[3] == ["head 1"]
  assert (hidden, single[-1]) == ((), ("[CLS]", "[SEP]", "<s>", "</s>"))


@pytest.mark.parametrize(
  ("values", "expected"),
  [
    ({"layer": 3}, "there is no layer 3"),
    ({"layer": 0, "head": 2}, "there is no head 2: a layer of this model has heads 0 to 1"),
    ({"head": 0}, "--head=N is a head of a layer: give --layer=N, too."),
    ({"text": " "}, "--text is empty."),
    ({"output_file": "maps.docx"}, "maps.docx: a picture cannot be written as .docx. Use .png"),
  ],
)
def test_one_message_says_what_is_wrong(flags, values, expected):
  assert expected in script.error_of(**{**flags, **values})
  assert not flags["output_file"].exists()


def test_a_text_that_is_cut_is_counted(flags):
  done = script.run_well(**{**flags, "text": "the film " * 30})
  assert "The text has 62 word pieces; the first max_seq_length = 8 are read." in done.err


def test_without_a_length_the_model_reads_what_it_can(flags):
  flags |= {"max_seq_length": None, "text": "the film " * 30}
  done = script.run_well(**{name: value for name, value in flags.items() if value is not None})
  assert "The text has 62 word pieces; the first max_seq_length = 32 are read." in done.err
