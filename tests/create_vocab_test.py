"""Vocabularies: every word can be spelled, sizes are exact, bytes are always the same.

Alone: python -m pytest tests/create_vocab_test.py (20 seconds, half of them to import TensorFlow)
"""

import collections
import os
import pathlib
import subprocess
import sys
import warnings

import pytest
import tokenizers

from bert import create_vocab, tokenization
from bert.text import text_files, word_counts
from tests.kit.paths import ROOT, SAMPLE_TEXT
from tests.kit.script_runs import Script

TRAPS = """Ἀχιλλεὺς ΟΔΥΣΣΕΥΣ naïve Ärger ﬁnal İstanbul 12.5% "quoted" -- C++ a_b [MASK] ##ing #hash
東京タワー 你好,世界 हिन्दी में क्ष
สวัสดี 한국어 עִבְרִית ½ € 🙂🙂
e\u0301te\u0301 non\u00a0breaking zero\u200bwidth carriage\rreturn tab\tbed
"""


def run(**settings):
  """Runs the script in this process; returns its exit code and what it wrote to stderr."""
  done = Script(create_vocab).run(**settings)
  return done.code or 0, done.err


def create(output, **settings):
  """Runs the script, fails if it does, and returns the tokens and what was logged."""
  code, errors = run(output_file=output, **settings)
  assert code == 0, errors
  assert output.read_bytes().endswith(b"\n")
  return output.read_text("utf-8").split("\n")[:-1], errors


def tokens_of(vocab_file, text, **options):
  with warnings.catch_warnings():
    warnings.simplefilter("error")  # a vocabulary made here gives `load_vocab` nothing to say
    tokenizer = tokenization.FullTokenizer(vocab_file, **options)
  return tokenizer.tokenize(text)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
  """The sample text with traps, among them a word that is too long for any vocabulary."""
  path = tmp_path_factory.mktemp("text") / "text.txt"
  long_words = f"{'x' * 200}y {'q' * 200}\n"
  path.write_text(SAMPLE_TEXT.read_text("utf-8") + TRAPS + long_words, "utf-8")
  return path


@pytest.fixture(scope="module")
def learned(text, tmp_path_factory):
  """A vocabulary of the text: path, tokens, log."""
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  return path, *create(path, input_file=text, vocab_size=320, num_unused=3)


# ---------------------------------------------------------------------------------------------
# Words.


def words_of(path, do_lower_case=True):
  """Word -> occurrences, straight from the tokenizer."""
  tokenizer = tokenization.BasicTokenizer(do_lower_case)
  counts = collections.Counter()
  for data in pathlib.Path(path).read_bytes().split(b"\n"):
    line = data.decode("utf-8", "replace").replace("\r", "")
    counts.update(word for word in tokenizer.tokenize(line) if len(word) <= 200)
  return counts


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_words_are_those_of_training(text, do_lower_case):
  counts = word_counts.count_words([str(text)], do_lower_case)
  expected = words_of(text, do_lower_case)
  assert counts.words == expected
  assert counts.long_words == 1
  assert counts.read_bytes == text.stat().st_size
  spelled = collections.Counter()
  for word, count in expected.items():
    spelled.update({character: count * word.count(character) for character in set(word)})
  assert counts.characters == spelled


@pytest.mark.parametrize("max_words", [1000, 40])
def test_number_of_workers_changes_nothing(text, max_words):
  one, two = (
    word_counts.count_words([str(text)], num_workers=n, max_words=max_words, range_bytes=700)
    for n in (1, 2)
  )
  assert one == two
  assert list(one.words) == list(two.words)
  assert (one.forgotten > 0) == (max_words == 40)


def test_invalid_utf8_is_counted_or_refused(tmp_path):
  path = tmp_path / "latin.txt"
  path.write_bytes(b"good line\ncaf\xe9 au lait\n")
  counts = word_counts.count_words([str(path)])
  assert counts.words["caf"] == 1
  assert counts.invalid_lines == 1
  assert text_files.describe_place(counts.first_invalid) == f"{path}, line 2"
  code, errors = run(input_file=path, output_file=tmp_path / "v", strict_utf8=True)
  assert code == 1
  assert "latin.txt, line 2: byte 4 of the line, 0xe9, is not valid UTF-8" in errors


# ---------------------------------------------------------------------------------------------
# Vocabularies.


def test_every_word_can_be_spelled(text, learned):
  path, _, log = learned
  found = tokens_of(path, text.read_text("utf-8"))
  assert found.count("[UNK]") == 1  # the word of 201 characters
  assert "1 words have more than 200 characters" in log
  assert "0 of " in log
  assert "words are [UNK] (0.0000%)" in log


def test_every_spelling_of_its_characters_can_be_spelled(text, learned):
  """Also words that the text does not have."""
  path, tokens, _ = learned
  spellable = [token for token in tokens if len(token) == 1 and f"##{token}" in tokens]
  assert {"a", "z", "ς", "क", "ᄒ"} <= set(spellable)
  word = "".join(reversed(spellable))[:200]
  assert "[UNK]" not in tokens_of(path, word, do_lower_case=False)
  assert "##京" not in tokens  # always a word by itself, as punctuation is
  assert not [token for token in tokens if token.startswith("##") and token[2:] in ".,#%"]


def test_size_and_order(learned):
  _, tokens, _ = learned
  assert len(tokens) == len(set(tokens)) == 320
  special = ["[PAD]", "[unused0]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  assert tokens[:8] == special
  kinds = [(token.startswith("##"), len(token.removeprefix("##")) > 1) for token in tokens[8:]]
  first_continuation = kinds.index((True, False))
  first_piece = next(index for index, (_, is_long) in enumerate(kinds) if is_long)
  assert set(kinds[:first_continuation]) == {(False, False)}
  assert set(kinds[first_continuation:first_piece]) == {(True, False)}
  assert all(is_long for _, is_long in kinds[first_piece:])
  assert "the" in tokens[first_piece + 8 : first_piece + 18]


@pytest.mark.ci
def test_bytes_are_always_the_same(text, learned, tmp_path):
  path = tmp_path / "again.txt"
  command = [sys.executable, ROOT / "create_vocab.py", f"--input_file={text}", "--num_unused=3"]
  command += [f"--output_file={path}", "--vocab_size=320", "--num_workers=2"]
  environment = {**os.environ, "PYTHONHASHSEED": "7"}
  done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr
  assert path.read_bytes() == learned[0].read_bytes()


def test_too_small_for_the_characters(text, tmp_path):
  code, errors = run(input_file=text, output_file=tmp_path / "v", vocab_size=100)
  assert code == 1
  needed = int(errors.split("of the text take ")[1].split(".")[0])
  assert "--vocab_size=100 is too small: reserved tokens and the" in errors
  assert run(input_file=text, output_file=tmp_path / "v", vocab_size=needed - 1)[0] == 1
  assert not (tmp_path / "v").exists()
  tokens, _ = create(tmp_path / "v", input_file=text, vocab_size=needed)
  assert max(len(token.removeprefix("##")) for token in tokens[5:]) == 1
  assert tokens_of(tmp_path / "v", text.read_text("utf-8")).count("[UNK]") == 1


def test_too_large_for_the_text(tmp_path):
  path = tmp_path / "text.txt"
  path.write_text("abab abab cd cd " * 5)
  tokens, log = create(tmp_path / "v", input_file=path, vocab_size=100, num_unused=2)
  assert len(tokens) == len(set(tokens)) == 100
  assert tokens[-1] == f"[unused{sum(token.startswith('[unused') for token in tokens) - 1}]"
  assert {"abab", "cd"} <= set(tokens)
  assert "[unused] tokens fill up --vocab_size=100" in log


def test_cut_alphabet_is_told(tmp_path):
  path = tmp_path / "text.txt"
  path.write_text("aaa aab bbb ab " * 99 + "axa aza\n")
  tokens, log = create(tmp_path / "v", input_file=path, vocab_size=30, max_unique_chars=2)
  assert not {"x", "z", "##x", "##z"} & set(tokens)
  found = tokens_of(tmp_path / "v", path.read_text())
  assert found.count("[UNK]") == 2
  assert "2 of 398 words are [UNK] (0.5025%), such as axa aza" in log
  assert "4 different characters, more than --max_unique_chars=2: 0.5025% of its words" in log


# ---------------------------------------------------------------------------------------------
# Extending.


DOMAIN = "the cardiomyopathy and tachycardia of the patient 薬\n" * 20


@pytest.fixture(scope="module")
def domain(tmp_path_factory):
  path = tmp_path_factory.mktemp("domain") / "medical.txt"
  path.write_text(DOMAIN, "utf-8")
  return path


def test_unused_lines_are_replaced(learned, domain, tmp_path):
  old_path, old, _ = learned
  new, log = create(tmp_path / "v", input_file=domain, extend=old_path)
  assert len(new) == len(old)
  changed = [index for index in range(len(old)) if new[index] != old[index]]
  assert changed == [1, 2, 3]
  before, after = (tokens_of(path, DOMAIN) for path in (old_path, tmp_path / "v"))
  assert "[UNK]" in before
  assert "[UNK]" not in after
  assert len(after) < len(before)
  assert f"Before: {len(before) / 160:.3f} pieces per word" in log
  assert f"After: {len(after) / 160:.3f} pieces per word" in log


def test_new_tokens_are_appended(learned, domain, tmp_path):
  old_path, old, _ = learned
  new, _ = create(tmp_path / "v", input_file=domain, extend=old_path, extend_by="append", num_new=4)
  assert new[: len(old)] == old
  assert len(new) == len(set(new)) == len(old) + 4
  assert {"cardiomyopathy", "tachycardia", "薬"} <= set(new[len(old) :])
  assert tokens_of(tmp_path / "v", "cardiomyopathy") == ["cardiomyopathy"]


def test_other_lines_stay_as_they_are(domain, tmp_path):
  """Also blank and repeated ones, whose ids some checkpoint may count on."""
  old = ["[PAD]", "[UNK]", "", "[CLS]", "a", "[SEP]", "a", "[unused0]", "", "\u2028"]
  (tmp_path / "old").write_bytes("\r\n".join(old).encode() + b"\r\n")
  with pytest.warns(tokenization.VocabularyWarning):
    new, _ = create(tmp_path / "v", input_file=domain, extend=tmp_path / "old", min_count=99)
  assert [*new[:7], *new[8:]] == ["" if line == "\u2028" else line for line in old[:7] + old[8:]]
  assert new[7] != "[unused0]"


UNUSED = "\n".join(
  ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"[unused{n}]" for n in range(20)), ""]
)


@pytest.mark.parametrize("stated_in", ["tokenizer_config.json", "tokenizer.json"])
def test_settings_beside_the_old_vocabulary_are_kept(tmp_path, stated_in):
  (tmp_path / "old").mkdir()
  old = tmp_path / "old" / "vocab.txt"
  old.write_text(UNUSED)
  if stated_in == "tokenizer.json":
    tokenizer = tokenizers.BertWordPieceTokenizer(str(old), strip_accents=False)
    tokenizer.save(str(old.with_name(stated_in)))
  else:
    old.with_name(stated_in).write_text('{"strip_accents": false, "do_lower_case": true}')
  text = tmp_path / "text"
  text.write_text("Märchen\n" * 5, "utf-8")
  new, _ = create(tmp_path / "new" / "vocab.txt", input_file=text, extend=old)
  assert "märchen" in new
  tokenizer = tokenization.load_tokenizer(str(tmp_path / "new" / "vocab.txt"), True)
  assert tokenizer.tokenize("Märchen") == ["märchen"]
  (tmp_path / "new" / "tokenizer_config.json").write_text('{"strip_accents": true}')
  code, errors = run(input_file=text, output_file=tmp_path / "new" / "vocab.txt", extend=old)
  assert code == 1
  assert "states other settings than are beside --extend. Write to another" in errors


def test_too_few_unused_lines(learned, domain, tmp_path):
  flags = {"input_file": domain, "output_file": tmp_path / "v"}
  code, errors = run(**flags, extend=learned[0], num_new=5)
  assert code == 1
  assert "--num_new=5:" in errors
  assert "has only 3 [unusedN] lines" in errors
  (tmp_path / "full").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n")
  code, errors = run(**flags, extend=tmp_path / "full")
  assert code == 1
  assert "has no [unusedN] line to replace" in errors
  code, errors = run(**flags, extend=learned[0], extend_by="append")
  assert code == 1
  assert "--extend_by=append needs --num_new" in errors


# ---------------------------------------------------------------------------------------------
# Wrong input, found before any work.


@pytest.fixture
def no_work(monkeypatch):
  def refuse(*_, **__):
    raise AssertionError("work has begun")

  monkeypatch.setattr(word_counts, "count_words", refuse)


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"output_file": "{tmp}/text.txt"}, "is also an input file"),
    ({"output_file": "{tmp}"}, "is a folder"),
    ({"output_file": "{tmp}/text.txt/v"}, "cannot write"),
    ({"extend": "{tmp}/none.txt"}, "none.txt: No such file"),
    ({"extend": "{tmp}/v", "output_file": "{tmp}/v"}, "is also an input file"),
    ({"num_workers": 0}, "--num_workers=0: must be at least 1"),
    ({"num_unused": -1}, "--num_unused=-1: must be at least 0"),
    ({"extend_by": "magic"}, "--extend_by takes one of replace_unused, append"),
  ],
)
def test_bad_input(no_work, tmp_path, settings, message):
  (tmp_path / "text.txt").write_text("some text\n")
  (tmp_path / "empty.txt").write_text("")
  (tmp_path / "utf16.txt").write_text("text", "utf-16")
  given_flags = {"input_file": "{tmp}/text.txt", "output_file": "{tmp}/vocab.txt", **settings}
  code, errors = run(**{k: str(v).format(tmp=tmp_path) for k, v in given_flags.items()})
  assert code == 1
  assert message in errors
  assert "Traceback" not in errors
  assert not (tmp_path / "vocab.txt").exists()


@pytest.mark.usefixtures("no_work")
def test_the_library_is_missed_before_the_text_is_read(text, tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "tokenizers", None)
  code, errors = run(input_file=text, output_file=tmp_path / "v")
  assert code == 1
  assert 'Install it: pip install "bert-alive[roberta]"' in errors


def test_a_dead_worker_is_told(text):
  with pytest.raises(text_files.CorpusError, match="fewer --num_workers"):
    list(word_counts._map_in_order(os._exit, [3, 3, 3], 2))
