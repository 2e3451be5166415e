"""Lines of text to vectors in files: what `extract_features.py` does, on one machine or on many.

extraction = Extraction(prefix, "bert_config.json", "vocab.txt", True, (-1,), "mean", 128, ...)
encode = extraction.load()
extraction.write_vectors(encode, "vectors.npz", map(split_pair, read_lines("texts.txt")))
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bert.io import text_lines
from bert.model.configuration import BertConfig
from bert.predicting import load_export, load_model, sentence_vectors, text_shards
from bert.predicting.predictor import Predictor
from bert.predicting.vector_files import WRITERS, Layout, TextVectors
from bert.text.sequence_layout import layout_of

TextPair = tuple[str, str | None]  # the second text is None where there is one


class Encoder(NamedTuple):
  """A loaded model, and the layout of its vectors."""

  predictor: Predictor  # from `TextPair`s to `TextVectors`
  layout: Layout


class Extraction(NamedTuple):
  """Which vectors, of which model, and how they are written; a `text_shards.Work`."""

  init_checkpoint: str  # the prefix of the weights, or the folder of an export
  bert_config_file: str
  vocab_file: str
  do_lower_case: bool
  layers: tuple[int, ...]  # 0 is the first, -1 the last
  pooling: str  # see `sentence_vectors.layer_vectors`
  max_seq_length: int  # longer texts are cut
  batch_size: int
  batch_invariant: bool  # see `sentence_vectors.batching`
  dtype: str = "float32"  # of matrix products
  use_one_hot_embeddings: bool = False
  output_format: str = "jsonl"  # of `vector_files.WRITERS`
  similarity: bool = False  # write the similarity of the two texts of a line instead
  engine: str = "tensorflow"  # another one computes an export, see `load_export.load`
  precision: str = "float32"  # of an export's weights

  def load(self) -> Encoder:
    """Reads the files of the model, which have been checked, and loads it."""
    from bert import tokenization

    config = BertConfig.from_json_file(self.bert_config_file)
    return self.loaded(config, tokenization.load_tokenizer(self.vocab_file, self.do_lower_case))

  def loaded(self, config: BertConfig, tokenizer) -> Encoder:
    """Loads the weights for a configuration and a tokenizer."""
    is_export = self.engine != "tensorflow"
    batches = sentence_vectors.batching(
      config,
      len(self.layers),
      self.pooling,
      self.max_seq_length,
      1 if is_export and self.batch_invariant else self.batch_size,
      self.batch_invariant and not is_export,
    )
    if is_export and self.batch_invariant:
      batches = batches._replace(batch_tokens=0)  # each text alone
    compute = self._computed_by_engine() if is_export else self._computed(config, batches)

    def featurize(pair: TextPair):
      features = sentence_vectors.text_features(tokenizer, pair, self.max_seq_length)
      return {"text": pair[0], **features}

    def finish(features, outputs) -> TextVectors:
      vectors = sentence_vectors.own_vectors(features, outputs["vectors"], self.pooling)
      return TextVectors(features["text"], features["tokens"], features["input_ids"], vectors)

    longest = max(map(len, tokenizer.vocab))
    layout = Layout(self.layers, config.hidden_size, self.pooling != "none", longest)
    padding = {"input_ids": layout_of(tokenizer).pad_id}
    inputs = sentence_vectors.INPUTS
    return Encoder(Predictor(featurize, compute, inputs, finish, *batches, padding=padding), layout)

  def _computed(self, config: BertConfig, batches: sentence_vectors.Batching):
    """Traces the model in TensorFlow, with its weights."""
    build = sentence_vectors.layer_vectors(
      config,
      self.layers,
      self.pooling,
      self.dtype,
      self.use_one_hot_embeddings,
      batches.batch_shapes,
    )
    names = sentence_vectors.INPUTS
    return load_model.load_graph(build, names, self.init_checkpoint, ("bert/pooler/",))

  def _computed_by_engine(self):
    """Loads an export, which gives the last layer alone: `vectors` float32 `[B, 1, W]`."""
    layers = list(self.layers)
    model = load_export.read_encoder(self.init_checkpoint, layers, self.pooling, self.vocab_file)
    engine = load_export.load(
      self.init_checkpoint, model, self.engine, self.precision, pooling=self.pooling
    )
    return lambda batch: {"vectors": engine(batch)["vectors"][:, None]}

  def write(
    self, model: Encoder, path: str, lines: text_shards.ShardLines, first_index: int
  ) -> int:
    """See `text_shards.Work`."""
    pairs = map(text_lines.split_pair, lines)
    if self.similarity:
      return write_similarities(model.predictor, path, pairs, lines.place, first_index)
    layout = model.layout._replace(first_index=first_index)
    return WRITERS[self.output_format](path, model.predictor.stream(pairs), layout)

  @property
  def needs_index(self) -> bool:
    """Whether the output holds the number of each line."""
    return self.similarity or self.output_format != "npz"

  def facts(self) -> dict[str, Any]:
    """See `text_shards.Work`."""
    files = (self.init_checkpoint, self.bert_config_file, self.vocab_file)
    return {"model": text_shards.identity(*files), "settings": self._asdict()}


def write_similarities(
  encode: Predictor,
  path: str,
  pairs: Iterable[TextPair],
  source: text_lines.Source,
  first_index: int = 0,
) -> int:
  """Writes `{"linex_index": i, "similarity": cosine}` for the two texts of each line.

  Returns:
    The number of lines.

  Raises:
    ValueError: a line is one text; names the line, by `source`.
  """
  vectors = (result.vectors[0] for result in encode.stream(_single_texts(pairs, source)))
  count = 0
  with text_lines.written_output(path) as writer:
    # The same iterator twice: the vectors of a line's two texts are consecutive.
    for count, (a, b) in enumerate(zip(vectors, vectors, strict=True), start=1):
      similarity = round(float(sentence_vectors.cosine_similarity(a, b)), 6)
      index = first_index + count - 1
      writer.write(text_lines.to_json({"linex_index": index, "similarity": similarity}))
  return count


def _single_texts(pairs: Iterable[TextPair], source: text_lines.Source) -> Iterator[TextPair]:
  """Yields the first and the second text of each line, as two items."""
  for number, (text_a, text_b) in enumerate(pairs, start=1):
    if text_b is None:
      raise ValueError(
        f"{text_lines.place(source, number)}: --similarity needs two texts, as in "
        f'"It rains. ||| It is wet.", not {text_a!r:.80}.'
      )
    yield text_a, None
    yield text_b, None
