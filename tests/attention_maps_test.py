"""attention_maps.py: its pictures and its messages.

Alone: python -m pytest tests/attention_maps_test.py
"""

import numpy as np

from bert import attention_maps
from bert.figures import drawing
from tests.kit import exports
from tests.kit.script_runs import Script


def test_the_script_draws_a_layer_or_all(tmp_path_factory, tmp_path, monkeypatch):
  trained, drawn = exports.classifier(tmp_path_factory).trained, []
  draw = drawing.plot_attention
  monkeypatch.setattr(drawing, "plot_attention", lambda *args: drawn.append(args) or draw(*args))
  script = Script(attention_maps)
  flags = {"init_checkpoint": trained, "text": "the film", "max_seq_length": 8}
  out = tmp_path / "maps.png"
  done = script.run_well(**flags, layer=-1, output_file=out)
  assert f"Wrote {out}: 4 word pieces." in done.err
  assert out.read_bytes().startswith(b"\x89PNG")
  script.run_well(**flags, output_file=out)
  (heads, tokens, _, titles, title), (means, *_, titles_of_all, _) = drawn
  assert (heads.shape, means.shape) == ((2, 4, 4), (2, 4, 4))
  assert tokens == ["[CLS]", "the", "film", "[SEP]"]
  assert title == "Attention in layer 1 (of 0 to 1)"
  assert (titles, titles_of_all[-1]) == (["head 0", "head 1"], "layer 1")
  np.testing.assert_allclose(means[-1], heads.mean(axis=0), atol=1e-6)
  assert "there is no layer 3" in script.error_of(**flags, layer=3, output_file=out)
