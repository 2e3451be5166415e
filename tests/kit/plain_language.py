"""How hard a page is to read: long sentences, passive verbs, terms that nothing explains.

A count for a comparison of two versions of a page, and for a cap; no measure of whether a page is
good. Code, tables, headings and comments are left out. A command in the text counts as one word.

  python -m tests.kit.plain_language docs/your_data.md docs/serving.md
"""

import pathlib
import re
import sys
from typing import NamedTuple

LONG = 30  # words; a sentence of more is long
# What a newcomer to the field may not know, and what the pages cannot do without.
TERMS = (
  *("checkpoint", "dev set", "dropout", "embedding", "encoder", "epoch", "fine-tun", "gradient"),
  *("head", "learning rate", "logits", "overfit", "pooling", "pre-train", "seed", "softmax"),
  *("token", "tokenizer", "vocabulary", "warm-up"),
)

_LEFT_OUT = re.compile(
  r"^```.*?^```$|<!--.*?-->|^\|[^\n]*$|^#+ [^\n]*$|^ {4,}\S[^\n]*$|!\[[^\]]*\]\([^)]*\)",
  re.MULTILINE | re.DOTALL,
)
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[\"(*]*[A-Z`])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|et al|vs)\.")
_BE = r"(?:am|is|are|was|were|be|been|being|get|gets|got)"
_IRREGULAR = (
  "written|read|taken|given|made|kept|done|found|drawn|said|told|shown|chosen|left|put|cut|set|held|"
  "sent|built|known|meant|begun|run|seen|lost|split|spoken|thrown|understood"
)
_PASSIVE = re.compile(
  rf"\b{_BE}(?: (?:not|also|then|only|never|always|all|\w+ly))* (?:\w{{2,}}ed|{_IRREGULAR})\b",
  re.IGNORECASE,
)


class Counts(NamedTuple):
  """What was counted on a page."""

  words: int  # of its prose
  sentences: int
  long: int  # sentences of more than LONG words
  passives: int  # a form of "be" or "get" with a participle
  unexplained: list[str]  # of TERMS, that nothing explains where they come first


def prose(text: str) -> str:
  """The sentences of a page of Markdown: no code, tables, headings and comments.

  Example:
    >>> prose("# T\\n\\nA `b c` is [d e](f.md).\\n\\n| x |\\n").split()
    ['A', '``', 'is', 'd', 'e.']
  """
  text = re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", _LEFT_OUT.sub("", text))
  return _ABBREVIATION.sub(r"\1", re.sub(r"`[^`]+`", "``", text))


def sentences(text: str) -> list[str]:
  """Sentences of a page; an item of a list begins a new one.

  Example:
    >>> sentences("One. Two is\\nlonger.\\n\\n- Three: `x` is here\\n- four")
    ['One.', 'Two is longer.', 'Three: `` is here', 'four']
  """
  blocks = re.split(r"\n\s*\n", _ITEM.sub("\n\n", prose(text)))
  found = [part for block in blocks for part in _END.split(" ".join(block.split()))]
  return [sentence for sentence in found if sentence]


def long_sentences(text: str) -> list[str]:
  """Sentences of more than LONG words.

  Example:
    >>> [len(sentence.split()) for sentence in long_sentences("Short. " + "A " * 31 + ".")]
    [32]
  """
  return [sentence for sentence in sentences(text) if len(sentence.split()) > LONG]


def passives(text: str) -> list[str]:
  """Chains of a passive verb.

  Example:
    >>> passives("It is not yet known. They are quickly written and it runs. A red car is fast.")
    ['are quickly written']
  """
  return _PASSIVE.findall(" ".join(sentences(text)))


def _inflected(term: str) -> str:
  return re.escape(term) + "(?:s|es|e|ed|ing|ings)?"


def is_explained(term: str, sentence: str) -> bool:
  """Whether the sentence says what a term is: by brackets, a colon, "is a", "called" or emphasis.

  Example:
    >>> is_explained("epoch", "An epoch is one pass over the data.")
    True
    >>> is_explained("epoch", "It trains for three epochs.")
    False
  """
  word = _inflected(term)
  after = (
    rf"{word}\*? ?(?:\(|:|, (?:a|an|the|which|that)\b|(?:is|are) (?:a|an|the|what|one)\b|means\b)"
  )
  before = rf"(?:called (?:an? |the )?|\((?:an? |the )?|\*){word}"
  return bool(re.search(f"{after}|{before}", sentence, re.IGNORECASE))


def unexplained(text: str) -> list[str]:
  """Those of TERMS that occur and that the first sentence with them does not explain.

  Example:
    >>> unexplained("Logits (scores before softmax) come first. Dropout helps.")
    ['dropout', 'softmax']
  """
  found = []
  for term in TERMS:
    first = next(
      (s for s in sentences(text) if re.search(rf"\b{_inflected(term)}\b", s, re.IGNORECASE)), None
    )
    if first and not is_explained(term, first):
      found.append(term)
  return found


def counts(text: str) -> Counts:
  """Counts a page of Markdown."""
  words = sum(len(sentence.split()) for sentence in sentences(text))
  return Counts(
    words, len(sentences(text)), len(long_sentences(text)), len(passives(text)), unexplained(text)
  )


if __name__ == "__main__":
  for name in sys.argv[1:]:
    print(name, *counts(pathlib.Path(name).read_text(encoding="utf-8")))
