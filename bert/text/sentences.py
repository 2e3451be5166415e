"""Paragraphs -> sentences, by a rule that fits on a page.

A sentence ends
  - after `. ! ? …` and closing quotes or brackets, where a blank follows and then something that
    can begin a sentence: no small letter, perhaps behind opening quotes or brackets;
  - after the full-width `。 ！ ？ ｡` and closing quotes or brackets, whatever follows;
but not after a full stop that ends
  - an abbreviation of the list below (`Dr.`, `e.g.`), or one capital letter (`J. S. Bach`);
  - an abbreviation that a number follows (`No. 5`, `fig. 2`).

No model and no data: a wrong cut costs pre-training little, but results must be reproducible.
"""

import re

# Lower-case abbreviations that are usually followed by a name, a number or more of the sentence.
_ABBREVIATION = re.compile(
  r"mrs?|ms|dr|prof|rev|hon|sr|jr|st|mt|gen|col|maj|capt|lt|sgt|gov|sen|rep|pres|messrs|mme|mlle"
  r"|vs|viz|cf|e\.g|i\.e|eg|ie|al|ca|approx|resp|incl|eds?|trans|vol"
  r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_ABBREVIATION_BEFORE_NUMBER = re.compile(r"nos?|nr|figs?|pp?|vols|sec|ch|art|op|eq|ver")

_CLOSING = "\"'”’»›)\\]}」』）】》〉］"
_OPENING = "\"'“‘«‹„‚(\\[{「『（【《〈［¿¡"
# The lookbehind keeps this linear: a long row of marks is tried once, not from each of them.
_END = re.compile(
  f"(?<![.!?…])(?P<mark>[.!?…]+)[{_CLOSING}]*(?P<blank>\\s+)(?=(?P<next>[{_OPENING}]*\\S))"
  f"|(?<![。！？｡])[。！？｡]+[{_CLOSING}]*(?P<wide_blank>\\s*)(?=\\S)"
)
_LAST_WORD = re.compile(r"[^\W\d_](?:[.\w]*\w)?$")
_LONGEST_WORD = 40  # characters


def split_sentences(paragraph: str) -> list[str]:
  """Splits a paragraph into its sentences, blanks around them removed.

  Example:
    >>> split_sentences('Dr. J. Smith has No. 5. "Why?" Pi is 3.14... or so.')
    ['Dr. J. Smith has No. 5.', '"Why?"', 'Pi is 3.14... or so.']
    >>> split_sentences("你好。“再见！”他说。")
    ['你好。', '“再见！”', '他说。']
  """
  sentences = []
  start = 0
  for match in _END.finditer(paragraph):
    if match["mark"] and not _ends_sentence(paragraph, match):
      continue
    sentences.append(paragraph[start : match.end()].strip())
    start = match.end()
  sentences.append(paragraph[start:].strip())
  return [sentence for sentence in sentences if sentence]


def _ends_sentence(paragraph: str, match: re.Match) -> bool:
  following = match["next"][-1]
  if following.islower():
    return False
  if match["mark"] != ".":
    return True
  end = match.start()
  before = _LAST_WORD.search(paragraph[max(0, end - _LONGEST_WORD) : end])
  word = before.group() if before else ""
  if len(word) == 1 and word.isupper() and word != "I":
    return False
  if following.isdigit() and _ABBREVIATION_BEFORE_NUMBER.fullmatch(word.lower()):
    return False
  return not _ABBREVIATION.fullmatch(word.lower())
