"""The formats of pre-training records: a table by family. Nothing is imported here.

A format says which features a record has, which flags of `create_pretraining_data.py` mean
something, and the defaults that the family's own script has. BERT's are the script's.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Format:
  """The records of one family; the defaults are BERT's."""

  title: str  # of the family
  unused: frozenset[str]  # flags that mean nothing here
  # Flag -> value, where the family's own script has another default than BERT's.
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  # Kinds of vocabularies (`families.VOCABULARIES`) that its texts may have.
  vocabularies: tuple[str, ...] = ("word_pieces",)
  # Whether records may have masks and labels; without, both are drawn in training.
  has_labels: bool = True
  has_pairs: bool = True  # whether labels of pairs say something: a sequence is no single text
  of_lines: bool = False  # whether each line of the text is a sequence of its own, without masks
  # Whether sequences cross documents, with a separator behind each sentence and each document.
  crosses_documents: bool = False
  has_sentence_order: bool = False  # whether labels say that two segments are in the wrong order
  # Whether 0% of masks are no masks; otherwise a record has at least one.
  may_mask_nothing: bool = False
  marks_boundaries: bool = False  # whether records mark where words begin (`token_boundary`)
  draws_special: bool = True  # whether random words may be special tokens
  # Whether characters that Unicode does not assign are dropped from a text.
  drops_unassigned: bool = False
  seeds_numpy: bool = False  # whether the seed is NumPy's, too, which takes 32 bits
  # Whether records are drawn from streams of their own, in 1 process or more.
  needs_streams: bool = False
  # Whether the room for masks follows from their share, if it is not given.
  room_of_share: bool = False


_MASKS = frozenset(
  {
    *("masked_lm_prob", "max_predictions_per_seq", "do_whole_word_mask", "ngram_max"),
    "dynamic_masking",
  }
)
_OF_ALBERT = frozenset(
  {"spm_model_file", "favor_shorter_ngram", "do_permutation", "random_next_sentence"}
)

FORMATS = {
  "bert": Format("BERT", _OF_ALBERT | {"strip_accents"}),
  # google-research/electra, build_pretraining_dataset.py: one pass, masks are drawn in training.
  "electra": Format(
    "ELECTRA",
    _MASKS | _OF_ALBERT | {"dupe_factor", "short_seq_prob", "no_next_sentence"},
    {"dupe_factor": 1},
    has_labels=False,
    drops_unassigned=True,
  ),
  # google-research/albert, create_pretraining_data.py.
  "albert": Format(
    "ALBERT",
    frozenset({"strip_accents", "dynamic_masking", "no_next_sentence"}),
    {"do_whole_word_mask": True, "max_seq_length": 512, "ngram_max": 3, "dupe_factor": 40},
    vocabularies=("sentence_pieces", "word_pieces"),
    has_sentence_order=True,
    may_mask_nothing=True,
    marks_boundaries=True,
    seeds_numpy=True,
  ),
  # huggingface/transformers-research-projects, distillation/lm_seqs_dataset.py.
  "distilbert": Format(
    "DistilBERT",
    _MASKS - {"dynamic_masking"}
    | _OF_ALBERT
    | {"strip_accents", "dupe_factor", "short_seq_prob", "no_next_sentence"},
    {"dupe_factor": 1, "dynamic_masking": True},
    vocabularies=("word_pieces", "byte_pairs"),
    has_pairs=False,
    of_lines=True,
    needs_streams=True,
  ),
  # facebookresearch/fairseq, fairseq/data/token_block_dataset.py with --sample-break-mode=complete.
  "roberta": Format(
    "RoBERTa",
    _OF_ALBERT | {"strip_accents", "short_seq_prob", "no_next_sentence"},
    {
      **{"max_seq_length": 512, "dupe_factor": 1, "short_seq_prob": 0.0, "dynamic_masking": True},
      "no_next_sentence": True,
    },
    vocabularies=("byte_pairs", "word_pieces"),
    has_pairs=False,
    crosses_documents=True,
    draws_special=False,
    needs_streams=True,
    room_of_share=True,
  ),
}

FORMAT_OF_BYTE_PAIRS = "roberta"
"""The format that a byte-level BPE means if none is given."""


def format_of(manifest: Mapping[str, Any]) -> Format | None:
  """Finds the format that a manifest names; None where it is unknown.

  BERT's manifests name none, and those of other programs lack what ours have (`dupe_factor`).
  """
  name = manifest.get("format", "bert" if "dupe_factor" in manifest else None)
  return FORMATS.get(name) if isinstance(name, str) else None


def format_for(objective: str | None, pad_id: int | None) -> str:
  """Names the format with an objective's labels; `pad_id`: of models that count positions by it."""
  if pad_id is not None:
    return "roberta"
  return "albert" if objective == "mlm_sop" else "bert"
