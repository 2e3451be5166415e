"""What the tokenizers of transformers 4 return, recorded: `tests/transformers/calls.jsonl`.

Where transformers 4 and its TensorFlow are installed, `python -m tests.kit.transformers_calls`
records anew; 4.57.6 with tokenizers 0.22.2 made the file. Texts and vocabularies are made up here.
"""

import json
import pathlib
import random
import tempfile
from collections.abc import Iterator
from typing import Any

from tests.kit import byte_pairs, piece_model

RECORDED = pathlib.Path(__file__).parent.parent / "transformers" / "calls.jsonl"

WORDS = (
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "##s", "of", "end", "was", "good"),
  *(
    "##ness",
    "un",
    "##want",
    "##ed",
    "runn",
    "##ing",
    ",",
    ".",
    "!",
    "'",
    "é",
    "e",
    "##e",
    "a",
    "A",
  ),
  *(
    "Ou",
    "ou",
    "Où",
    "est",
    "-",
    "il",
    "?",
    "博",
    "士",
    "[",
    "]",
    "cls",
    "##k",
    "new",
    "2008",
    "low",
  ),
)
TEXTS = (
  "The films of the end, unwanted!",
  "Où est-il? 博士",
  "a [MASK] e\u0301 \u00e9 A\u200b\u00adA [CLS] of",
  "it\u2028was   <mask> good 200 8, <x>newtok the",
  "running  unwantedness of the film was good; \u01c5 \u1e9e \U0001d15e",
  "",
  " ",
  "Hello and the hell aa\u00a0(the) ... wat",
  "newtok NEWTOK a newtoke\u0301",
)
_SETTINGS: tuple[dict[str, Any], ...] = (
  {},
  {"model_max_length": 8, "truncation_side": "left", "padding_side": "left"},
)
_OWN: dict[str, tuple[dict[str, Any], ...]] = {
  "Bert": ({}, {"do_lower_case": False}, {"strip_accents": False, "tokenize_chinese_chars": False}),
  "DistilBert": ({},),
  "Electra": ({"strip_accents": True, "do_lower_case": False},),
  "Roberta": ({}, {"add_prefix_space": True}),
  "Albert": ({}, {"keep_accents": True, "do_lower_case": False}),
}
_CALLS_EACH = 4


def classes() -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields the name of a class and arguments of its constructor."""
  for family, variants in _OWN.items():
    for suffix in ("Tokenizer", "TokenizerFast"):
      for own in variants:
        for settings in _SETTINGS:
          yield f"{family}{suffix}", {**own, **settings}


def write_vocabularies(folder: pathlib.Path) -> dict[str, tuple[str, ...]]:
  """Writes them; returns first arguments of the constructors, by family."""
  path = folder / "vocab.txt"
  path.write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
  vocab = byte_pairs.write(folder)
  pairs = (vocab, str(folder / "merges.txt"))
  pieces = (str(piece_model.write(folder)),)
  words = (str(path),)
  return {
    **dict.fromkeys(("Bert", "DistilBert", "Electra"), words),
    **{"Roberta": pairs, "Albert": pieces},
  }


def make(module: Any, name: str, arguments: dict[str, Any], files: dict) -> Any:
  """Makes a tokenizer with a few added tokens."""
  family = name.removesuffix("Fast").removesuffix("Tokenizer")
  tokenizer = getattr(module, name)(*files[family], **arguments)
  added = [module.AddedToken("<x>", lstrip=True), "newtok"]
  tokenizer.add_tokens(added)
  return tokenizer


def answer(tokenizer: Any, texts: list, options: dict[str, Any]) -> dict[str, Any]:
  """Calls a tokenizer; what it returns, and all that a fast one knows of it."""
  found = tokenizer(*texts, **options)
  answer = {name: _plain(values) for name, values in found.items()}
  if found.is_fast:
    answer["rows"] = [
      [row.tokens, [list(each) for each in row.offsets], row.word_ids, row.sequence_ids]
      for row in found.encodings
    ]
  ids = found["input_ids"]
  first = ids if not ids or isinstance(ids[0], int) else ids[0]
  decoded = (tokenizer.decode(first, skip_special_tokens=skip) for skip in (False, True))
  answer["decoded"] = list(decoded)
  return answer


def _plain(value: Any) -> Any:
  return list(map(_plain, value)) if isinstance(value, list | tuple) else value


def questions(rng: random.Random, is_fast: bool, splits: bool) -> tuple[list, dict[str, Any]]:
  """Draws texts and arguments of a call."""

  def text():
    drawn = rng.choice(TEXTS)
    return drawn.split() or ["a"] if options.get("is_split_into_words") else drawn

  options: dict[str, Any] = {"is_split_into_words": True} if splits and rng.random() < 0.3 else {}
  count, is_pair = rng.choice([0, 1, 3]), rng.random() < 0.5
  several = [[text() for _ in range(count)] if count else text() for _ in range(1 + is_pair)]
  drawn = {
    "padding": (True, "max_length", False),
    "truncation": (True, "only_first", False),
    "max_length": (4, 7, 10, 16),
    "stride": (0, 1, 2),
    "return_overflowing_tokens": (True, False),
    "return_special_tokens_mask": (True, False),
    "return_token_type_ids": (True, False),
    "return_length": (True, False),
    "pad_to_multiple_of": (4, None),
    "add_special_tokens": (False, True),
  }
  if is_fast:
    drawn["return_offsets_mapping"] = (True,)
  options |= {name: rng.choice(values) for name, values in drawn.items() if rng.random() < 0.4}
  return several, options


def record() -> None:
  """Asks transformers."""
  import transformers

  rng = random.Random(30)
  lines = []
  with tempfile.TemporaryDirectory() as folder:
    files = write_vocabularies(pathlib.Path(folder))
    for name, arguments in classes():
      tokenizer = make(transformers, name, arguments, files)
      splits = not name.startswith("RobertaTokenizerFast") or "add_prefix_space" in arguments
      for _ in range(_CALLS_EACH):
        texts, options = questions(rng, name.endswith("Fast"), splits)
        try:
          found = answer(tokenizer, texts, options)
        except BaseException as error:
          if isinstance(error, KeyboardInterrupt):
            raise
          continue  # what is refused has tests of its own
        lines.append(json.dumps([name, arguments, texts, options, found]))
  RECORDED.write_text("".join(f"{line}\n" for line in lines))
  print(f"{len(lines)} calls: {RECORDED}")


if __name__ == "__main__":
  record()
