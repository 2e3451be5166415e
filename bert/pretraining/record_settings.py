"""What decides pre-training records, except the text.

settings = RecordSettings(vocab_file="vocab.txt", max_seq_length=64)
settings.facts(vocab)  # for the manifests of the files
"""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert import tokenization
from bert.io import vocabulary_kind
from bert.pretraining.record_formats import FORMATS, Format
from bert.text import corpus, corpus_statistics

_FACTS = (
  *("do_lower_case", "max_seq_length", "max_predictions_per_seq", "dupe_factor", "short_seq_prob"),
  *("masked_lm_prob", "random_seed"),
)
# Options stand in a manifest only if they differ from these.
OPTIONS_OFF = {
  "format": "bert",
  "do_whole_word_mask": False,
  "ngram_max": 1,
  "favor_shorter_ngram": True,
  "do_permutation": False,
  "random_next_sentence": False,
  "no_next_sentence": False,
  "dynamic_masking": False,
  "strip_accents": True,
}


def room_for_masks(masked_lm_prob: float, max_seq_length: int) -> int:
  """Returns the number of tokens to predict in a sequence of full length.

  Example:
    >>> room_for_masks(0.15, 128), room_for_masks(0.15, 512)
    (19, 77)
  """
  return max(1, round(masked_lm_prob * max_seq_length))


class RecordSettings(NamedTuple):
  """Everything that decides the records, except the text; names are those of the flags.

  With `spm_model_file`, a sentencepiece model, `vocab_file` is not read.
  """

  vocab_file: str | None
  spm_model_file: str | None = None
  format: str = "bert"
  do_lower_case: bool = True
  strip_accents: bool = True
  max_seq_length: int = 128
  max_predictions_per_seq: int = 20
  dupe_factor: int = 10
  short_seq_prob: float = 0.1
  masked_lm_prob: float = 0.15
  random_seed: int = 12345
  do_whole_word_mask: bool = False
  ngram_max: int = 1
  favor_shorter_ngram: bool = True
  do_permutation: bool = False
  random_next_sentence: bool = False
  no_next_sentence: bool = False
  dynamic_masking: bool = False
  text_format: corpus.TextFormat = corpus.TextFormat()

  @property
  def rules(self) -> Format:
    """The rules of the format."""
    return FORMATS[self.format]

  def facts(self, vocab: Mapping[str, int]) -> dict[str, Any]:
    """Returns the settings for the manifest of a record file; options only if they were used."""
    unused = self.rules.unused
    used = {name: getattr(self, name) for name in OPTIONS_OFF if name not in unused}
    used = {name: value for name, value in used.items() if value != OPTIONS_OFF[name]}
    values = self._replace(max_predictions_per_seq=self.masks_per_record)
    of_bytes = vocabulary_kind.is_of_byte_pairs(vocab)
    if of_bytes:  # which keep the case
      unused = unused | {"do_lower_case"}
    return {
      "vocabulary": tokenization.vocabulary_hash(vocab),
      "vocab_size": vocabulary_kind.size(vocab),
      **({"pad_id": vocab[vocabulary_kind.padding_token(vocab)]} if of_bytes else {}),
      **{name: getattr(values, name) for name in _FACTS if name not in unused},
      **used,
      **{name: value for name, value in self.text_format._asdict().items() if value},
    }

  def new_statistics(self, **options: Any) -> corpus_statistics.TextStatistics:
    """Counts of a text, with the length of these settings; `options` as in `TextStatistics`."""
    is_filled = self.no_next_sentence or self.rules.of_lines
    longest = self.max_seq_length - (2 if is_filled else 3)
    return corpus_statistics.TextStatistics(
      max_tokens=sys.maxsize if is_filled else longest,
      random_pairs=not is_filled and self.rules.has_labels,
      **options,
    )

  @property
  def masks_words(self) -> bool:
    """Whether tokens are masked in words, or in units of several words."""
    return self.do_whole_word_mask or self.ngram_max > 1

  @property
  def masks_nothing(self) -> bool:
    """Whether records have no masks at all; BERT's have one at least, ALBERT's not with 0%."""
    return self.rules.may_mask_nothing and self.masked_lm_prob == 0

  @property
  def has_sentence_order(self) -> bool:
    """Whether labels say that two segments are in the wrong order, instead of unrelated."""
    return self.rules.has_sentence_order and not self.random_next_sentence

  @property
  def masks_per_record(self) -> int:
    """The room for predictions in a record; permuted tokens are predicted as well."""
    return self.max_predictions_per_seq * (2 if self.do_permutation else 1)
