"""Writes the sample data of this folder: `python samples/make_samples.py` (a second, no arguments).

The paraphrase set is news-like English in MRPC's file format. Each sentence states one small fact:
who did what to whom, where, when, and how it went. A pair is one fact worded twice (quality 1), or
two facts that contradict each other or differ entirely (quality 0). Both kinds go through
the same wording, so neither length nor shape distinguishes them.

Why it can be learned from random weights in a minute: nearly all pairs of quality 0 disagree on how
it went (approved, rejected), which some 70 verbs express; and most news is good (`GOOD_SHARE`), so
a bad word in either sentence alone is a hint, with which learning starts. The rest, pairs that
differ only in who or where, is meant to be too hard for a small model.

Everything is drawn from `random.Random(SEED)`: the same files on every machine and Python version.
"""

import collections
import pathlib
import random
import re
import unicodedata
from typing import NamedTuple

SEED = 2018
SPLIT_SIZES = {"train": 4000, "dev": 500, "test": 200}
PARAPHRASE_SHARE = 0.56  # of all pairs: the majority class, which a model must beat
GOOD_SHARE = 0.8  # of all facts
CONTRADICTION_SHARE = 0.9  # of the pairs of quality 0
HERE = pathlib.Path(__file__).parent

Wordings = tuple[str, ...]  # interchangeable


class Outcome(NamedTuple):
  """The verbs for one way things went: past forms, all good paraphrases of each other."""

  both_voices: Wordings  # serve as participles too: "approved it", "it was approved by"
  active_only: Wordings = ()


class Topic(NamedTuple):
  """One corner of the news: who may do what to whom, and what its numbers count."""

  actors: tuple[Wordings, ...]
  good: Outcome
  bad: Outcome
  targets: tuple[Wordings, ...]  # empty: the verbs take no object
  amounts: Wordings  # "{}" takes the number


TEAMS = tuple(
  (f"the {name}",)
  for name in ("Rovers", "Falcons", "Mariners", "Wolves", "Pilgrims", "Comets", "Giants")
)

TOPICS = (
  Topic(  # town hall
    actors=(
      ("the city council", "the council"),
      ("the mayor", "the city 's mayor"),
      ("the school board", "the board of schools"),
      ("the transport ministry", "the ministry of transport"),
      ("the governor", "the state 's governor"),
      ("local residents", "people living nearby"),
      ("the trade union", "the workers ' union"),
    ),
    good=Outcome(("approved", "backed", "endorsed", "supported", "welcomed"), ("voted for",)),
    bad=Outcome(("rejected", "opposed", "turned down", "condemned"), ("voted against",)),
    targets=(
      ("the new bridge", "the bridge project"),
      ("the tram line", "the tramway"),
      ("the annual budget", "the spending plan"),
      ("the housing scheme", "the housing project"),
      ("the parking tax", "the parking levy"),
      ("the football stadium", "the sports arena"),
      ("the public library", "the library"),
      ("the harbour tunnel", "the tunnel under the harbour"),
    ),
    amounts=("after {} weeks of debate", "following {} weeks of talks"),
  ),
  Topic(  # business; the companies are invented
    actors=(
      ("Norvane", "the Norvane group"),
      ("Quillon Motors", "carmaker Quillon"),
      ("Haldera", "the Haldera group"),
      ("Brixby Foods", "food maker Brixby"),
      ("Osterly Bank", "lender Osterly"),
      ("Kestrin Airways", "airline Kestrin"),
    ),
    good=Outcome(("expanded", "enlarged", "modernised", "upgraded"), ("put money into",)),
    bad=Outcome(("closed", "shut down", "abandoned", "dismantled"), ("pulled out of",)),
    targets=(
      ("the paper mill", "the paper factory"),
      ("the oil refinery", "the refinery"),
      ("the steel plant", "the steelworks"),
      ("the warehouse", "the storage depot"),
      ("the call centre", "the telephone centre"),
      ("the research laboratory", "the laboratory"),
      ("the training school", "the school for apprentices"),
    ),
    amounts=("at a cost of $ {} million", "for $ {} million"),
  ),
  Topic(  # courts
    actors=(
      ("the judge", "the local judge"),
      ("the police", "police officers"),
      ("the appeals court", "the court of appeal"),
      ("the tax office", "the revenue service"),
      ("federal investigators", "federal agents"),
      ("the jury", "members of the jury"),
    ),
    good=Outcome(("cleared", "acquitted", "freed", "released"), ("let go",)),
    bad=Outcome(("convicted", "punished", "accused", "charged"), ("found against",)),
    targets=(
      ("the banker", "the investment banker"),
      ("the former minister", "the ex-minister"),
      ("the lorry driver", "the truck driver"),
      ("the art dealer", "the gallery owner"),
      ("the nurse", "the hospital nurse"),
      ("the journalist", "the reporter"),
      ("the football coach", "the team 's coach"),
    ),
    amounts=("after {} days in court", "at the end of {} days of hearings"),
  ),
  Topic(  # science
    actors=(
      ("astronomers", "a group of astronomers"),
      ("marine biologists", "sea life experts"),
      ("geologists", "a team of geologists"),
      ("university scientists", "researchers at the university"),
      ("museum experts", "specialists from the museum"),
      ("volunteers", "amateur helpers"),
    ),
    good=Outcome(("discovered", "found", "located", "spotted"), ("came across",)),
    bad=Outcome(("missed", "overlooked"), ("failed to find", "did not find", "never saw")),
    targets=(
      ("a rare frog", "an unusual frog"),
      ("an ancient skull", "a very old skull"),
      ("a bright comet", "a brilliant comet"),
      ("a giant squid", "an enormous squid"),
      ("a sunken ship", "a shipwreck"),
      ("a meteorite", "a rock from space"),
      ("an unknown orchid", "a new kind of orchid"),
    ),
    amounts=("after a search of {} months", "{} months into their search"),
  ),
  Topic(  # weather and accidents
    actors=(
      ("the storm", "the tempest"),
      ("the flood", "the rising water"),
      ("the fire", "the blaze"),
      ("the earthquake", "the quake"),
      ("the landslide", "the mudslide"),
      ("the explosion", "the blast"),
    ),
    good=Outcome(("spared", "bypassed"), ("did no harm to", "left alone", "stopped short of")),
    bad=Outcome(("damaged", "destroyed", "ruined", "wrecked", "flattened")),
    targets=(
      ("the power station", "the power plant"),
      ("the old market", "the historic market"),
      ("the coastal road", "the road along the coast"),
      ("the fishing village", "the village of fishermen"),
      ("the mountain railway", "the railway in the mountains"),
      ("the children 's hospital", "the hospital for children"),
      ("the vineyard", "the wine estate"),
    ),
    amounts=("within {} hours", "in the space of {} hours"),
  ),
  Topic(  # sport
    actors=TEAMS,
    good=Outcome(("defeated", "outplayed", "outclassed", "overpowered"), ("won against",)),
    bad=Outcome((), ("lost to", "fell to", "were no match for", "gave way to")),
    targets=TEAMS,
    amounts=("in a game of {} points", "before {} thousand spectators"),
  ),
  Topic(  # markets
    actors=(
      ("shares in Norvane", "Norvane shares"),
      ("sales at Quillon", "Quillon 's sales"),
      ("profits at Haldera", "Haldera 's profits"),
      ("the price of oil", "oil prices"),
      ("exports of wine", "wine exports"),
      ("bookings at Kestrin", "Kestrin 's bookings"),
    ),
    good=Outcome((), ("rose", "climbed", "advanced", "increased", "jumped")),
    bad=Outcome((), ("dropped", "declined", "slid", "tumbled", "sank")),
    targets=(),
    amounts=("by {} percent", "by as much as {} percent"),
  ),
)

PLACES = ("Lisbon", "Oslo", "Cairo", "Lima", "Boston", "Delhi", "Nairobi", "Prague", "Dublin")
TIMES: tuple[Wordings, ...] = (
  *((f"on {day}",) for day in ("Monday", "Tuesday", "Thursday", "Friday")),
  ("at the weekend", "over the weekend"),
  ("last month", "a month ago"),
  ("last year", "a year ago"),
  ("this morning", "early today"),
)
NUMBERS: tuple[Wordings, ...] = (
  *(("two", "2"), ("three", "3"), ("five", "5"), ("eight", "8"), ("ten", "10")),
  *(("twelve", "12"), ("twenty", "20"), ("thirty", "30"), ("fifty", "50")),
)
SOURCES = ("officials said", "a spokesman said", "witnesses said", "local papers reported")


# ---------------------------------------------------------------------------------------------
# Facts and how they are worded.


class Fact(NamedTuple):
  """What a sentence says, before it is worded."""

  topic: Topic
  actor: Wordings
  is_good: bool
  target: Wordings  # () in a topic without targets
  place: str
  time: Wordings
  number: Wordings
  details: Wordings  # those of "place", "time" and "amount" that are stated


def _draw_fact(rng: random.Random) -> Fact:
  topic = rng.choice(TOPICS)
  actor = rng.choice(topic.actors)
  return Fact(
    topic=topic,
    actor=actor,
    is_good=rng.random() < GOOD_SHARE,
    target=_other(rng, topic.targets, actor),
    place=rng.choice(PLACES),
    time=rng.choice(TIMES),
    number=rng.choice(NUMBERS),
    details=tuple(rng.sample(["place", "time", "amount"], rng.choice([1, 2, 2]))),
  )


def _other(rng, options, *taken):
  """One of `options` that is not among `taken`; () if there are no options."""
  return rng.choice([option for option in options if option not in taken] or [()])


def _differing_fact(fact: Fact, rng: random.Random) -> Fact:
  """A fact of which `fact` is no paraphrase: it contradicts it, or others do it elsewhere."""
  if rng.random() < CONTRADICTION_SHARE:
    return fact._replace(is_good=not fact.is_good)
  actor = _other(rng, fact.topic.actors, fact.actor, fact.target)
  return fact._replace(
    actor=actor,
    target=_other(rng, fact.topic.targets, fact.target, actor),
    place=_other(rng, PLACES, fact.place),
    number=_other(rng, NUMBERS, fact.number),
  )


def _word_clause(fact: Fact, rng: random.Random) -> str:
  actor, outcome = rng.choice(fact.actor), fact.topic.good if fact.is_good else fact.topic.bad
  verb = rng.choice(outcome.both_voices + outcome.active_only)
  if not fact.target:
    return f"{actor} {verb}"
  target = rng.choice(fact.target)
  if verb in outcome.both_voices and rng.random() < 0.4:
    return f"{target} {'were' if fact.target in TEAMS else 'was'} {verb} by {actor}"
  return f"{actor} {verb} {target}"


def _word_fact(fact: Fact, rng: random.Random) -> str:
  """One sentence that states `fact`, tokens apart as in MRPC ("the council 's plan .")."""
  wordings = {
    "place": f"in {fact.place}",
    "time": rng.choice(fact.time),
    "amount": rng.choice(fact.topic.amounts).format(rng.choice(fact.number)),
  }
  clause, details = _word_clause(fact, rng), [wordings[name] for name in fact.details]
  rng.shuffle(details)
  first, rest = details[0], " ".join(["", *details[1:]])
  sentence = rng.choice([
    f"{clause} {first}{rest}",
    f"{first} , {clause}{rest}",
    rng.choice([f"{rng.choice(SOURCES)} {clause} {first}{rest}",
                f"{clause} {first}{rest} , {rng.choice(SOURCES)}"]),
  ])  # fmt: skip
  return sentence[0].upper() + sentence[1:] + " ."


def make_pairs(count: int, rng: random.Random) -> list[tuple[str, str, str]]:
  """`count` triples (quality, sentence 1, sentence 2), in which no sentence occurs twice."""
  pairs, used = [], set()
  paraphrases = round(count * PARAPHRASE_SHARE)
  while len(pairs) < count:
    is_paraphrase = len(pairs) < paraphrases
    fact = _draw_fact(rng)
    # In either order: what `_differing_fact` does must not show in the second sentence alone.
    facts = rng.sample([fact, fact if is_paraphrase else _differing_fact(fact, rng)], 2)
    sentences = {_word_fact(fact, rng): None for fact in facts}
    if len(sentences) == 2 and used.isdisjoint(sentences):
      used.update(sentences)
      pairs.append((str(int(is_paraphrase)), *sentences))
  rng.shuffle(pairs)
  return pairs


# ---------------------------------------------------------------------------------------------
# Files.


def _write_splits(folder: pathlib.Path, pairs: list[tuple[str, str, str]], rng) -> None:
  """`train.tsv`, `dev.tsv` with labels and `test.tsv` without, in GLUE's layout of MRPC."""
  ids = iter(rng.sample(range(100_000, 1_000_000), 2 * len(pairs)))
  remaining = iter(pairs)
  folder.mkdir(exist_ok=True)
  for split, size in SPLIT_SIZES.items():
    first_column = "index" if split == "test" else "Quality"
    lines = [f"{first_column}\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    for index in range(size):
      quality, first, second = next(remaining)
      key = index if split == "test" else quality
      lines.append(f"{key}\t{next(ids)}\t{next(ids)}\t{first}\t{second}")
    _write_lines(folder / f"{split}.tsv", lines)


def _write_vocab(path: pathlib.Path, texts: list[str]) -> None:
  """Special tokens, characters (alone and as `##` pieces), word endings, then words by frequency.

  The characters make every word of these texts, and any word in plain letters, come out in pieces
  rather than as [UNK].
  """
  counts = collections.Counter(word for text in texts for word in _words(text))
  characters = sorted(set("".join(counts)) | set("abcdefghijklmnopqrstuvwxyz0123456789"))
  characters += [c for c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" if c not in characters]
  endings = ["ed", "ing", "er", "ly", "es", "en", "al", "ion", "ment", "ness", "able"]
  words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
  _write_lines(path, [
    "[PAD]", *(f"[unused{i}]" for i in range(8)), "[UNK]", "[CLS]", "[SEP]", "[MASK]",
    *characters,
    *("##" + c for c in characters if c.isalnum() or not c.isascii()),
    *("##" + e for e in endings),
    *(word for word in words if len(word) > 1),
  ])  # fmt: skip


def _words(text: str) -> list[str]:
  """Roughly what BERT's uncased `BasicTokenizer` makes of `text`: enough to list words with."""
  plain = "".join(
    character
    for character in unicodedata.normalize("NFD", text.lower())
    if unicodedata.category(character) not in ("Mn", "Cf", "Cc") or character in "\t\n"
  )
  # Chinese characters are words of their own to BERT; kana and hangul are not.
  return re.findall(
    r"[\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3400-\u4dbf\u4e00-\u9fff]+|[^\w\s]|_", plain
  )


def _write_lines(path: pathlib.Path, lines: list[str]) -> None:
  path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")


def main() -> None:
  """Writes `MRPC/*.tsv` and, from their words and those of `sample_text.txt`, `vocab.txt`."""
  rng = random.Random(SEED)
  pairs = make_pairs(sum(SPLIT_SIZES.values()), rng)
  _write_splits(HERE / "MRPC", pairs, rng)
  texts = [sentence for _, *sentences in pairs for sentence in sentences]
  texts.append((HERE / "sample_text.txt").read_text(encoding="utf-8"))
  _write_vocab(HERE / "vocab.txt", texts)


if __name__ == "__main__":
  main()
