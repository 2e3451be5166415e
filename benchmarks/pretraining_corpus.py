"""Writes the text of `pretraining_budget.py`: some 20 MB of English from two public repositories.

  git clone https://github.com/nltk/nltk_data
  git clone https://github.com/pytorch/examples
  python benchmarks/pretraining_corpus.py --nltk_data=nltk_data/packages/corpora \
    --wikitext=examples/word_language_model/data/wikitext-2/test.txt --output_dir=corpus

A sentence per line, an empty line between documents, as `create_pretraining_data.py` reads them:
the Brown corpus, film reviews, ABC's news, speeches, the English books of Genesis, film plots and
quotes, a part of the Wall Street Journal, and articles of Wikipedia. A tenth of the documents,
chosen by a hash of their text, goes to `held_out.txt`, the others in the order of their hashes to
`train.txt`.
Prints one JSON line.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sys
import zipfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bert.text.sentences import split_sentences  # noqa: E402

# Members of the archives that hold text; those of whole paragraphs are cut into sentences.
_ARCHIVES = {
  "abc": r"abc/\w+\.txt",
  "brown": r"brown/c[a-r]\d\d",
  "genesis": r"genesis/english-\w+\.txt",
  "inaugural": r"inaugural/\d.*\.txt",
  "movie_reviews": r"movie_reviews/(neg|pos)/.*\.txt",
  "state_union": r"state_union/\d.*\.txt",
  "subjectivity": r"subjectivity/(plot|quote)\..*",
  "treebank": r"treebank/raw/wsj_\d+",
}
# These are long rows of independent texts: N of their lines make a document.
_LINES_OF_DOCUMENT = {"abc": 40, "subjectivity": 20}
_SMALLEST = 3  # sentences; a shorter document is left out


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--nltk_data", required=True, help="folder of the zip files")
  parser.add_argument("--wikitext", required=True, nargs="+", help="text files, articles in a row")
  parser.add_argument("--output_dir", required=True)
  args = parser.parse_args()
  documents = [*_of_archives(pathlib.Path(args.nltk_data)), *_of_wikitext(args.wikitext)]
  documents = [document for document in documents if len(document) >= _SMALLEST]
  folder = pathlib.Path(args.output_dir)
  folder.mkdir(parents=True, exist_ok=True)
  by_hash = sorted(("\n".join(lines) for lines in documents), key=_hash)
  facts = {"documents": len(by_hash)}
  first = len(by_hash) // 10
  for name, part in (("held_out", by_hash[:first]), ("train", by_hash[first:])):
    text = "\n\n".join(part) + "\n"
    (folder / f"{name}.txt").write_text(text, "utf-8")
    facts |= {f"{name}_bytes": len(text.encode()), f"{name}_documents": len(part)}
  print(json.dumps(facts))


def _hash(text: str) -> str:
  return hashlib.sha256(text.encode()).hexdigest()


def _of_archives(folder: pathlib.Path) -> Iterator[list[str]]:
  for corpus, pattern in _ARCHIVES.items():
    with zipfile.ZipFile(folder / f"{corpus}.zip") as archive:
      for member in sorted(archive.namelist()):
        if re.fullmatch(pattern, member):
          text = archive.read(member).decode("utf-8", "replace").replace("�", "'")
          yield from _documents(corpus, text)


def _documents(corpus: str, text: str) -> Iterator[list[str]]:
  if corpus == "brown":
    lines = [" ".join(map(_without_tag, line.split())) for line in text.splitlines()]
  elif corpus == "movie_reviews":  # a sentence per line already
    lines = text.splitlines()
  elif corpus in _LINES_OF_DOCUMENT:
    lines = [sentence for line in text.splitlines() for sentence in split_sentences(line)]
  else:  # lines are broken anywhere
    paragraphs = re.split(r"\n\s*\n", text.replace(".START", ""))
    lines = [each for part in paragraphs for each in split_sentences(" ".join(part.split()))]
  lines = [line for line in map(str.strip, lines) if line]
  size = _LINES_OF_DOCUMENT.get(corpus, len(lines) or 1)
  for begin in range(0, len(lines), size):
    yield lines[begin : begin + size]


def _without_tag(word: str) -> str:
  """A word of the Brown corpus.

  Example:
    >>> _without_tag("and/or/cc"), _without_tag("``/``")
    ('and/or', '"')
  """
  word = word.rpartition("/")[0]
  return '"' if word in ("``", "''") else word


def _of_wikitext(paths: list[str]) -> Iterator[list[str]]:
  """Articles begin at a title, `= Title =`, or, in a file without titles, at an empty line."""
  for path in paths:
    text = pathlib.Path(path).read_text("utf-8")
    text = re.sub(r" @([-,.])@ ", r"\1", text)
    title = r"(?m)^ = [^=].* = $"
    for article in re.split(title if re.search(title, text) else r"\n\s*\n", text):
      lines = [line.strip() for line in article.splitlines()]
      lines = [line for line in lines if line and not line.startswith("=")]
      yield [sentence for line in lines for sentence in split_sentences(line)]


if __name__ == "__main__":
  main()
