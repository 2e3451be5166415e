"""Writes the sample data of this folder: `python samples/make_samples.py` (a second, no arguments).

The paraphrase set is news-like English in MRPC's file format. Each sentence states one small fact:
who did what to whom, where, when, and by how much. A pair is made from one fact worded twice
(quality 1) or from two facts of the same topic that differ in some of their parts (quality 0).
Both classes go through the same wording, so length, word choice and sentence shape tell nothing;
only comparing the two sentences does.

Everything is drawn from `random.Random(SEED)`: the same files on every machine and Python version.
"""

import collections
import csv
import dataclasses
import pathlib
import random
import re
import unicodedata

SEED = 2018
SPLIT_SIZES = {"train": 3600, "dev": 500, "test": 200}
PARAPHRASE_SHARE = 0.57  # of all pairs; the majority class a model has to beat
NEGATED_SHARE = 0.2  # of all facts
HERE = pathlib.Path(__file__).parent

# In each list of wordings, any may stand for any other. Verbs are (plain form, past = participle).
Wordings = tuple[str, ...]
Verbs = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Topic:
  """One corner of the news: who may do what to whom, and what its numbers count."""

  actors: tuple[Wordings, ...]
  actions: tuple[Verbs, ...]
  targets: tuple[Wordings, ...]
  amount: Wordings  # "{}" takes the number


TOPICS = (
  Topic(  # town hall
    actors=(
      ("the city council", "the council"),
      ("the mayor", "the city 's mayor"),
      ("the school board",),
      ("the transport ministry", "the ministry of transport"),
      ("the governor",),
      ("local residents", "people living nearby"),
      ("the trade union", "the workers ' union"),
    ),
    actions=(
      (("approve", "approved"), ("back", "backed"), ("endorse", "endorsed")),
      (("reject", "rejected"), ("oppose", "opposed"), ("turn down", "turned down")),
      (("delay", "delayed"), ("postpone", "postponed")),
      (("praise", "praised"), ("welcome", "welcomed"), ("applaud", "applauded")),
      (("review", "reviewed"), ("examine", "examined"), ("study", "studied")),
      (("cancel", "cancelled"), ("scrap", "scrapped"), ("abandon", "abandoned")),
    ),
    targets=(
      ("the new bridge", "the bridge project"),
      ("the tram line", "the tramway"),
      ("the annual budget", "the spending plan"),
      ("the housing scheme", "the housing project"),
      ("the parking tax", "the parking levy"),
      ("the football stadium", "the sports arena"),
      ("the public library",),
      ("the harbour tunnel", "the tunnel under the harbour"),
    ),
    amount=("after {} weeks of debate", "following {} weeks of talks"),
  ),
  Topic(  # business; the companies are invented
    actors=(
      ("Norvane",),
      ("Quillon Motors", "carmaker Quillon"),
      ("Haldera", "the Haldera group"),
      ("Brixby Foods", "food maker Brixby"),
      ("Osterly Bank", "lender Osterly"),
      ("Kestrin Airways", "airline Kestrin"),
      ("Velmora",),
    ),
    actions=(
      (("buy", "bought"), ("purchase", "purchased"), ("acquire", "acquired")),
      (("sell", "sold"), ("dispose of", "disposed of")),
      (("close", "closed"), ("shut down", "shut down")),
      (("expand", "expanded"), ("enlarge", "enlarged")),
      (("modernise", "modernised"), ("upgrade", "upgraded")),
      (("lease", "leased"), ("rent", "rented")),
    ),
    targets=(
      ("the paper mill", "the paper factory"),
      ("the shipping unit", "the shipping division"),
      ("the oil refinery", "the refinery"),
      ("the shoe brand", "the footwear brand"),
      ("the chain of hotels", "the hotel chain"),
      ("the steel plant", "the steelworks"),
      ("the online shop", "the internet store"),
      ("the warehouse", "the storage depot"),
    ),
    amount=("for $ {} million", "in a $ {} million deal", "at a price of $ {} million"),
  ),
  Topic(  # courts
    actors=(
      ("the judge",),
      ("the prosecutor", "the state 's lawyer"),
      ("the police", "police officers"),
      ("the appeals court", "the court of appeal"),
      ("the tax office", "the revenue service"),
      ("federal investigators", "federal agents"),
    ),
    actions=(
      (("clear", "cleared"), ("acquit", "acquitted")),
      (("fine", "fined"), ("penalise", "penalised")),
      (("question", "questioned"), ("interview", "interviewed")),
      (("release", "released"), ("free", "freed")),
      (("arrest", "arrested"), ("detain", "detained")),
      (("warn", "warned"), ("caution", "cautioned")),
    ),
    targets=(
      ("the banker", "the investment banker"),
      ("the former minister", "the ex-minister"),
      ("the lorry driver", "the truck driver"),
      ("the art dealer", "the gallery owner"),
      ("the nurse",),
      ("the journalist", "the reporter"),
      ("the football coach", "the team 's coach"),
      ("the student",),
    ),
    amount=("after {} days in court", "at the end of {} days of hearings"),
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
    actions=(
      (("discover", "discovered"), ("find", "found")),
      (("photograph", "photographed"), ("take pictures of", "pictured")),
      (("describe", "described"), ("document", "documented")),
      (("rescue", "rescued"), ("save", "saved")),
      (("lose", "lost"), ("mislay", "mislaid")),
      (("track", "tracked"), ("follow", "followed")),
    ),
    targets=(
      ("a rare frog", "an unusual frog"),
      ("an ancient skull", "a very old skull"),
      ("a bright comet", "a brilliant comet"),
      ("a giant squid", "an enormous squid"),
      ("a sunken ship", "a shipwreck"),
      ("a meteorite", "a rock from space"),
      ("an unknown orchid", "a new kind of orchid"),
      ("a blue whale",),
    ),
    amount=("after a search of {} months", "{} months into their search"),
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
    actions=(
      (("damage", "damaged"), ("harm", "harmed")),
      (("destroy", "destroyed"), ("wipe out", "wiped out")),
      (("threaten", "threatened"), ("endanger", "endangered")),
      (("block", "blocked"), ("cut off", "cut off")),
      (("miss", "missed"), ("spare", "spared")),
      (("reach", "reached"), ("hit", "hit")),
    ),
    targets=(
      ("the power station", "the power plant"),
      ("the old market", "the historic market"),
      ("the coastal road", "the road along the coast"),
      ("the fishing village", "the village of fishermen"),
      ("the mountain railway", "the railway in the mountains"),
      ("the children 's hospital", "the hospital for children"),
      ("the cathedral",),
      ("the vineyard", "the wine estate"),
    ),
    amount=("within {} hours", "in the space of {} hours"),
  ),
  Topic(  # sport; actors and targets are the same teams, so that they can trade places
    actors=(
      ("the Rovers",),
      ("the Falcons",),
      ("the Mariners",),
      ("the Wolves",),
      ("the Pilgrims",),
      ("the Comets",),
      ("the Giants",),
    ),
    actions=(
      (("defeat", "defeated"), ("overpower", "overpowered"), ("conquer", "conquered")),
      (("face", "faced"), ("meet", "met")),
      (("surprise", "surprised"), ("stun", "stunned")),
      (("trail", "trailed"), ("chase", "chased")),
      (("outplay", "outplayed"), ("outclass", "outclassed")),
    ),
    targets=(
      ("the Rovers",),
      ("the Falcons",),
      ("the Mariners",),
      ("the Wolves",),
      ("the Pilgrims",),
      ("the Comets",),
      ("the Giants",),
    ),
    amount=("with {} points on the board", "in a game of {} points"),
  ),
)

PLACES = (
  "Lisbon", "Oslo", "Cairo", "Lima", "Boston", "Delhi", "Nairobi", "Prague", "Quebec", "Dublin",
)  # fmt: skip
TIMES: tuple[Wordings, ...] = (
  ("on Monday",),
  ("on Tuesday",),
  ("on Thursday",),
  ("on Friday",),
  ("at the weekend", "over the weekend"),
  ("last month", "a month ago"),
  ("last year", "a year ago"),
  ("in the summer", "during the summer"),
  ("this morning", "early today"),
)
NUMBERS: tuple[Wordings, ...] = (
  ("two", "2"), ("three", "3"), ("five", "5"), ("eight", "8"), ("ten", "10"), ("twelve", "12"),
  ("twenty", "20"), ("thirty", "30"), ("fifty", "50"), ("ninety", "90"),
)  # fmt: skip
SOURCES = (
  "officials said", "a spokesman said", "witnesses reported", "local papers reported",
  "a statement confirmed",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Fact:
  """What a sentence says, before it is worded. Everything but `negated` is an index or a choice."""

  topic: Topic
  actor: Wordings
  action: Verbs
  target: Wordings
  place: str
  time: Wordings
  number: Wordings
  negated: bool


def draw_fact(rng: random.Random) -> Fact:
  """A fact with every part drawn evenly."""
  topic = rng.choice(TOPICS)
  actor = rng.choice(topic.actors)
  return Fact(
    topic=topic,
    actor=actor,
    action=rng.choice(topic.actions),
    target=rng.choice([target for target in topic.targets if target != actor]),
    place=rng.choice(PLACES),
    time=rng.choice(TIMES),
    number=rng.choice(NUMBERS),
    negated=rng.random() < NEGATED_SHARE,
  )


def change_fact(fact: Fact, rng: random.Random) -> Fact:
  """Another fact of the same topic: a few parts replaced, the sense turned round, or roles swapped.

  A swap of the roles leaves every word in place and changes only who did it to whom; it is rare
  because no bag of words can see it.
  """
  if fact.target in fact.topic.actors and rng.random() < 0.25:
    return dataclasses.replace(fact, actor=fact.target, target=fact.actor)
  if rng.random() < 0.15:
    return dataclasses.replace(fact, negated=not fact.negated)
  changes = {}
  for part in rng.sample(["actor", "action", "target"], rng.choice([1, 2, 2, 3])):
    taken = (getattr(fact, part), fact.actor, fact.target, changes.get("actor"))
    options = getattr(fact.topic, part + "s")
    changes[part] = rng.choice([option for option in options if option not in taken])
  if rng.random() < 0.5:
    changes["number"] = rng.choice([n for n in NUMBERS if n != fact.number])
  if rng.random() < 0.5:
    changes["place"] = rng.choice([p for p in PLACES if p != fact.place])
  return dataclasses.replace(fact, **changes)


def word_clause(fact: Fact, rng: random.Random) -> str:
  """Who did what to whom, active or passive, with one of the wordings of each part.

  Plural and singular agree without effort: the active past has one form, and the passive is
  chosen only for targets that are singular (all but the teams).
  """
  actor, target = rng.choice(fact.actor), rng.choice(fact.target)
  plain, past = rng.choice(fact.action)
  teams = fact.target in fact.topic.actors
  if rng.random() < 0.35:
    auxiliary = "were" if teams else "was"
    adverb = rng.choice([" not", " never"]) if fact.negated else ""
    # "pictured" is a participle of its own; all other pasts serve as participles as they are.
    return f"{target} {auxiliary}{adverb} {past} by {actor}"
  if fact.negated:
    return f"{actor} {rng.choice([f'did not {plain}', f'never {past}'])} {target}"
  return f"{actor} {past} {target}"


def word_fact(fact: Fact, rng: random.Random) -> str:
  """One sentence that states `fact`, tokens apart as in MRPC ("the council 's plan .")."""
  clause = word_clause(fact, rng)
  place, time = f"in {fact.place}", rng.choice(fact.time)
  amount = rng.choice(fact.topic.amount).format(rng.choice(fact.number))
  source = rng.choice(SOURCES)
  sentence = rng.choice([
    f"{clause} {place} {time} {amount}",
    f"{clause} {place} {amount} {time}",
    f"{time} , {clause} {place} {amount}",
    f"{place} , {clause} {time} {amount}",
    f"{amount} , {clause} {place} {time}",
    f"{source} {clause} {place} {time} {amount}",
    f"{clause} {place} {time} {amount} , {source}",
  ])  # fmt: skip
  return sentence[0].upper() + sentence[1:] + " ."


def make_pairs(count: int, rng: random.Random) -> list[tuple[str, str, str]]:
  """`count` triples (quality, sentence 1, sentence 2), in which no sentence occurs twice."""
  pairs, used = [], set()
  paraphrases = round(count * PARAPHRASE_SHARE)
  while len(pairs) < count:
    is_paraphrase = len(pairs) < paraphrases
    first = draw_fact(rng)
    second = first if is_paraphrase else change_fact(first, rng)
    # Either may come first: `change_fact` must not show in the second sentence alone.
    facts = rng.sample([first, second], 2)
    sentences = [word_fact(fact, rng) for fact in facts]
    if sentences[0] != sentences[1] and used.isdisjoint(sentences):
      used.update(sentences)
      pairs.append((str(int(is_paraphrase)), *sentences))
  rng.shuffle(pairs)
  return pairs
