"""Names of released models: the other names under which people know them, and the nearest ones.

  released_name_of("bert-base-uncased")     # "uncased_L-12_H-768_A-12"
  question("uncased_L12_H-768_A-12")        # "Did you mean uncased_L-12_H-768_A-12? ..."

Aliases are names of the very same weights: in transformers, in KerasHub, on TensorFlow Hub, on
Kaggle, and the addresses of Google's archives. Nothing here looks at the disk or the network.
"""

import re
from collections.abc import Iterator

from bert.families.files import FILES, NOT_READ, RELEASED

LIST_COMMAND = "bert download --list"

OTHER_NAMES = {alias: name for files in FILES.values() for alias, name in files.aliases.items()}
"""Name elsewhere -> released model with the same weights."""
# Before a name, or the last part of an address: who publishes it.
_OWNERS = [owner for files in FILES.values() for owner in files.owners]

# Addresses whose parts are names of models, and those of Google's archives.
_BASES = {re.escape(model.base_url.removeprefix("https://")) for model in RELEASED.values()}
_HUBS = re.compile(
  r"(?:https?://)?(?:www\.)?"
  rf"(?:tfhub\.dev/|hf\.co/|kaggle\.com/models/|{'|'.join(sorted(_BASES))})(?P<page>.+)"
  r"|gs://bert_models/(?P<archive>.+\.zip)"
)
_ARCHIVE = re.compile(r"\.(zip|tar\.gz|tgz|tar|gz)$", re.IGNORECASE)


def _published_names() -> Iterator[tuple[str, str]]:
  """Yields (name, released model) for each name that people use."""
  yield from OTHER_NAMES.items()
  yield from ((name, name) for name in RELEASED)
  for name in FILES["bert"].released:
    yield f"bert_{name}", name
    yield f"bert_en_{name}", name
    yield f"en_{name}", name
    if name.startswith("chinese_"):
      yield name.replace("chinese_", "bert_zh_"), name
      yield name.replace("chinese_", "zh_"), name


def _letters(name: str) -> str:
  """Drops what people mistype in a name: capitals, and signs between letters and digits."""
  return re.sub(r"[^a-z0-9]", "", name.lower())


_BY_NAME = {name.lower(): released for name, released in _published_names()}
_BY_LETTERS = {_letters(name): released for name, released in _published_names()}


def released_name_of(name: str) -> str | None:
  """Finds the released model that a name or an address stands for; None if there is none.

  Example:
    >>> released_name_of("google-bert/bert-base-cased")
    'cased_L-12_H-768_A-12'
    >>> released_name_of("https://tfhub.dev/tensorflow/small_bert/bert_en_uncased_L-2_H-128_A-2/1")
    'uncased_L-2_H-128_A-2'
    >>> released_name_of("uncased_L12_H-768_A-12") is None
    True
  """
  if name in RELEASED:
    return name
  if hub := _HUBS.fullmatch(name):
    parts = [
      _letters(_ARCHIVE.sub("", part)) for part in (hub["page"] or hub["archive"]).split("/")
    ]
    return next((_BY_LETTERS[part] for part in parts if part in _BY_LETTERS), None)
  for owner in _OWNERS:
    name = name.removeprefix(owner)
  return _BY_NAME.get(_ARCHIVE.sub("", name).lower())


def family_of(name: str) -> str | None:
  """Names the family of a model that is not read here; None for others.

  Example:
    >>> family_of("deberta-v3-base"), family_of("bert-base-uncased")
    ('DeBERTa', None)
  """
  letters = _letters(name)
  return next((family for word, family in NOT_READ.items() if word in letters), None)


def question(name: str) -> str:
  """Asks which released model was meant: the nearest names, and how to list all of them."""
  if family := family_of(name):
    return (
      f"It looks like {family}, another family of models, which is not read. "
      f"`{LIST_COMMAND}` lists those that are."
    )
  nearest = _nearest(name)
  meant = f"Did you mean {' or '.join(nearest)}? " if nearest else ""
  return f"{meant}`{LIST_COMMAND}` lists the names."


def _nearest(name: str) -> list[str]:
  """Finds at most two released models with a similar name, the nearest first."""
  import difflib  # Rarely needed, and not free to import.

  for part in reversed(name.rstrip("/").split("/")):
    letters = _letters(_ARCHIVE.sub("", part))
    begun = [each for each in _BY_LETTERS if each.startswith(letters)] if len(letters) > 3 else []
    begun.sort(key=lambda each: each[len(letters) :][:1].isdigit())  # L-2 before L-24
    # More than two, because several may be names of the same model.
    if matches := begun or difflib.get_close_matches(letters, _BY_LETTERS, n=4, cutoff=0.75):
      return list(dict.fromkeys(_BY_LETTERS[match] for match in matches))[:2]
  return []
