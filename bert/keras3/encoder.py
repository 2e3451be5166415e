"""BERT as a Keras 3 model, on TensorFlow, JAX or PyTorch (arXiv:1810.04805).

  bert = BERT.from_variant("base", pretrained=True)
  outputs = bert({"input_ids": ids, "attention_mask": mask, "token_type_ids": segments})
  outputs["last_hidden_state"], outputs["pooler_output"]

`modeling.py` is the same encoder as graph functions of TensorFlow. The two share only the names of
their variables, so each reads the other's checkpoints; tests compare their outputs. Models of other
families are the same class: `model_type` says which row of `bert/families` holds.

Letters in shapes: B = batch size, S = sequence length, W = width, the hidden size, E = width of the
embeddings.
"""

import inspect
import os
from typing import ClassVar

import keras
from keras import ops

from bert.checkpoints import keras_model, loading, released_models
from bert.checkpoints.load_report import LoadReport
from bert.keras3 import older_files, padding, parts, sizes
from bert.keras3.building_blocks import (
  ACTIVATIONS,
  create_dense,
  create_normalization,
  own_arguments,
  register,
  without_retired,
)
from bert.keras3.input_checks import CheckedInputs
from bert.keras3.layers import BertEmbeddings, Encoder, Pooler, TransformerLayer
from bert.keras3.saving import Savable
from bert.keras3.torch_modules import TorchModule, register_parameters
from bert.model.configuration import BertConfig


@register
class BERT(TorchModule, CheckedInputs, Savable, keras.Model):
  """The encoder with its pooler, without a head.

  Attributes:
    vocab_size, hidden_size, num_layers, num_heads, ...: the constructor's arguments.
    embeddings: `BertEmbeddings`.
    embeddings_project: ELECTRA's `keras.layers.Dense` from E to W; None where they are equal.
    encoder: `Encoder`, of which `encoder.layer` are the `TransformerLayer`s.
    pooler: `Pooler`, or None (`add_pooler=False`, or a family without one).
    family: the row of `bert/families`.
    longest_sequence: in tokens.
    embeddings_class: of `embeddings`.
  """

  embeddings_class: type[BertEmbeddings] = BertEmbeddings
  MODEL_VARIANTS = sizes.NAMED_VARIANTS
  retired: ClassVar = {
    "use_stochastic_depth": False,
    "stochastic_depth_rate": 0.1,
    "output_hidden_states": False,
  }

  def __init__(
    self,
    vocab_size: int = 30522,
    hidden_size: int = 768,
    num_layers: int = 12,
    num_heads: int = 12,
    intermediate_size: int = 3072,
    hidden_act: str = "gelu",
    hidden_dropout_prob: float = 0.1,
    attention_probs_dropout_prob: float = 0.1,
    max_position_embeddings: int = 512,
    type_vocab_size: int | None = None,
    initializer_range: float = 0.02,
    layer_norm_eps: float | None = None,
    pad_token_id: int | None = None,
    position_embedding_type: str = "absolute",
    normalization_type: str = "layer_norm",
    normalization_position: str = "post",
    attention_type: str = "multi_head",
    ffn_type: str = "mlp",
    layer_args: dict | None = None,
    add_pooler: bool = True,
    name: str = "bert",
    model_type: str = "bert",
    embedding_size: int | None = None,
    num_hidden_groups: int | None = None,
    inner_group_num: int | None = None,
    seq_classif_dropout: float | None = None,
    qa_dropout: float | None = None,
    transformers_heads: bool | None = None,
    classifier_activation: str | None = None,
    **kwargs,
  ):
    """Creates the model and all its variables, with random values.

    Args:
      vocab_size: number of tokens in the vocabulary.
      hidden_size: W.
      num_layers: number of transformer layers.
      num_heads: attention heads per layer; must divide `hidden_size`.
      intermediate_size: width of the feed-forward networks.
      hidden_act: their activation, see `building_blocks.ACTIVATIONS`; `gelu` is the form that the
        family means.
      hidden_dropout_prob: dropout of embeddings and of each sub-layer's output.
      attention_probs_dropout_prob: dropout of attention probabilities.
      max_position_embeddings: longest sequence.
      type_vocab_size: number of segment ids; that of the family by default, BERT's is 2.
      initializer_range: standard deviation of the initial weights.
      layer_norm_eps: epsilon of every normalization; that of the family by default, BERT's is
        1e-12.
      pad_token_id: id of the padding token; that of the family by default, BERT's is 0.
      position_embedding_type: `absolute` or its synonym `learned`, or `sinusoidal`.
      normalization_type: `layer_norm` or `rms_norm`.
      normalization_position: `post` or `pre`; with `pre` the last layer's output is normalized.
      attention_type: `multi_head`, `window` or `group_query`.
      ffn_type: `mlp`, `swiglu`, `geglu` or `glu`.
      layer_args: additional arguments of each `TransformerLayer`, such as `{"window_size": 16}`.
      add_pooler: whether to compute `pooler_output`.
      name: name of the model, the first part of its variables' paths.
      model_type: the family: `bert`, `electra`, `albert`, `roberta` or `distilbert`.
      embedding_size: E, of families that have it; by default W in ELECTRA, 128 in ALBERT.
      num_hidden_groups: ALBERT: number of groups of layers, each of which shares its weights.
      inner_group_num: ALBERT: number of layers in a group, each with its own weights.
      seq_classif_dropout: DistilBERT: dropout before the outputs of a classifier of texts.
      qa_dropout: DistilBERT: dropout before the scores of start and end positions.
      transformers_heads: ELECTRA: whether heads for texts and choices have the hidden layer that
        transformers' classes have, and ELECTRA's own do not.
      classifier_activation: BERT: `relu` where heads for texts have one between the pooler and
        their scores, as TinyBERT's own models.
      **kwargs: arguments of `keras.Model`.

    Raises:
      ValueError: a value is out of range or unknown.
    """
    arguments = own_arguments(locals())
    super().__init__(name=name, **kwargs)
    for argument, value in sizes.completed(arguments).items():
      setattr(self, argument, value)
    self.family = keras_model.family_of(vars(self))
    self._check_sizes()
    self._create_layers()
    # Before the first call, so that parameters can be counted and weights loaded.
    self.build()

  def _check_sizes(self):
    config = self.config
    if str(self.hidden_act).lower() in ACTIVATIONS:
      config.hidden_act = "gelu"  # BertConfig knows fewer activations
    config.validate()
    if not 0 <= self.pad_token_id < self.vocab_size:
      raise ValueError(
        f"pad_token_id is {self.pad_token_id}; it must be between 0 and {self.vocab_size - 1}."
      )
    if self.family.positions_from_ids and self.position_embedding_type == "sinusoidal":
      raise ValueError(f"{self.family.title} has no sinusoidal positions: they depend on the ids.")
    self.longest_sequence = config.longest_sequence

  def _create_layers(self):
    config = self.config
    width = config.embedding_width
    arguments = {**self._arguments_of(BertEmbeddings), "hidden_size": width}
    self.embeddings = self.embeddings_class(**arguments)
    projection = None
    if width != self.hidden_size:
      projection = create_dense(
        self.hidden_size,
        self.family.projection.rpartition("/")[2],
        self.dtype_policy,
        None if self.family.projection_is_glorot else self.initializer_range,
      )
    in_encoder = projection is not None and self.family.projection.startswith("encoder/")
    self.embeddings_project = None if in_encoder else projection
    scopes = self.family.layer_scopes(config)
    names = [scope.rpartition("/")[2] for scope in dict.fromkeys(scopes)]
    layers = [self._create_layer(name) for name in names]
    norm = None
    if self.normalization_position == "pre":
      # With `pre`, the last residual sum, which grows with every layer, is not yet normalized.
      norm = create_normalization(self.normalization_type, self.layer_norm_eps, self.dtype_policy)
    self.encoder = Encoder(
      layers,
      scopes,
      group_size=self.inner_group_num if self.family.shares_layers else None,
      projection=projection if in_encoder else None,
      norm=norm,
      name="encoder",
      dtype=self.dtype_policy,
    )
    self.pooler = None
    if self.add_pooler and self.family.has_pooler:
      self.pooler = self._create_pooler()

  def _create_layer(self, name: str) -> TransformerLayer:
    arguments = {
      **self._arguments_of(TransformerLayer),
      "dropout_rate": self.hidden_dropout_prob,
      "attention_dropout_rate": self.attention_probs_dropout_prob,
      "activation": self.hidden_act,
      **(self.layer_args or {}),
    }
    return TransformerLayer(name=name, **arguments)

  def _arguments_of(self, layer_class: type[keras.layers.Layer]) -> dict:
    """Returns the arguments of a layer that this model has under the same names."""
    names = set(own_arguments(inspect.signature(layer_class).parameters)) & set(_ARGUMENTS)
    return {"dtype": self.dtype_policy, **{name: getattr(self, name) for name in names}}

  def _create_pooler(self) -> Pooler:
    return Pooler(self.hidden_size, self.initializer_range, dtype=self.dtype_policy)

  def require_pooler(self) -> None:
    """Adds a pooler in a family that has none, for the head that has one in transformers."""
    if self.pooler is None:
      self._tracker.unlock()  # as Keras's own layers do to be quantized
      self.pooler = self._create_pooler()
      self.add_pooler = True
      self.built = False
      self.build()
      self._tracker.lock()

  def build(self, input_shape=None):
    """Creates the variables under the original's names; no shape depends on the input."""
    del input_shape
    width = self.embeddings.spec.hidden_size
    for part, shape in (
      (self.embeddings, (None, None)),
      (self.embeddings_project, (None, None, width)),
      (self.encoder, (None, None, width)),
      (self.pooler, (None, None, self.hidden_size)),
    ):
      if part is not None and not part.built:
        part.build(shape)
    self.built = True

  @property
  def encoder_layers(self) -> list[TransformerLayer]:
    """The layers, first to last; in a family whose layers share weights, each once."""
    return self.encoder.layer

  @property
  def transformer(self) -> Encoder:
    """The encoder, under DistilBERT's name."""
    return self.encoder

  @property
  def projection(self) -> keras.layers.Dense | None:
    """The dense layer from E to W, wherever the family has it; None where they are equal."""
    return self.embeddings_project or self.encoder.embedding_hidden_mapping_in

  def get_input_embeddings(self) -> BertEmbeddings:
    """Returns the layer with the word embeddings."""
    return self.embeddings

  def set_input_embeddings(self, value) -> None:
    """Replaces the word embeddings.

    Args:
      value: the table, `[vocab_size, E]`; or a layer with one as `weight`.
    """
    table = ops.convert_to_tensor(getattr(value, "weight", value))
    if table.shape[0] != self.vocab_size:
      self.resize_vocabulary(table.shape[0])
    self.embeddings.word_embeddings.assign(table)

  # -------------------------------------------------------------------------------------------
  # Computing.

  def call(
    self,
    inputs,
    attention_mask=None,
    token_type_ids=None,
    position_ids=None,
    output_hidden_states=None,
    training=None,
    output_attentions=None,
    reads_padding=True,
  ):
    """Encodes sequences.

    Args:
      inputs: int `[B, S]`, ids of tokens; or a dictionary with `input_ids` and any of the next
        three arguments. Instead of `input_ids` it may have `inputs_embeds`, `[B, S, E]`, vectors
        for the word embeddings, and with either `head_mask`, float `[N]` or for each layer
        `[L, N]`, by which attention probabilities are multiplied.
      attention_mask: `[B, S]`, 1 for a token, 0 for padding; ones by default.
      token_type_ids: int `[B, S]`, segments; zeros by default.
      position_ids: int `[B, S]`; 0, 1, 2, ... by default.
      output_hidden_states: whether to return `hidden_states` as well.
      training: whether to apply dropout; on PyTorch by default the module's mode.
      output_attentions: whether to return `attentions` as well; they are computed once more.
      reads_padding: whether what `last_hidden_state` has at padding matters; otherwise it may be
        zeros there, see `padding.py`.

    Returns:
      A dict of `last_hidden_state` `[B, S, W]`; `pooler_output` `[B, W]`, the first token after
      a dense layer and a tanh, or as it is in a family without a pooler; `attention_mask` int32
      `[B, S]`, for heads; optionally `hidden_states`, a tuple of the projected embeddings and each
      layer's output, `[B, S, W]` each; and `attentions`, a tuple of each layer's attention
      probabilities, `[B, N, S, S]` each, N heads.

    Raises:
      ValueError: `input_ids` is missing, or an input is unknown.
    """
    inputs = gather_inputs(inputs, attention_mask, token_type_ids, position_ids)
    mask = inputs["attention_mask"]
    if mask is None:
      mask = ops.ones_like(token_places(inputs), "int32")
    mask = ops.cast(mask, "int32")
    embedded = self.embeddings(
      inputs["input_ids"],
      inputs["token_type_ids"],
      inputs["position_ids"],
      training=training,
      inputs_embeds=inputs["inputs_embeds"],
    )
    given, rows = inputs["attention_mask"], padding.AllRows()
    is_seen = reads_padding or output_hidden_states or output_attentions
    if not (is_seen or self.attention_type == "window" or given is None):
      rows = padding.TokenRows(given)
    embedded = rows.remove(embedded)
    if self.embeddings_project is not None:
      embedded = self.embeddings_project(embedded)
    outputs = self.encoder(
      embedded,
      attention_mask=mask,
      head_mask=inputs["head_mask"],
      output_attentions=output_attentions,
      output_hidden_states=output_hidden_states,
      training=training,
      rows=rows,
    )
    outputs["attention_mask"] = mask
    if self.add_pooler:
      states = outputs["last_hidden_state"]
      outputs["pooler_output"] = states[:, 0] if self.pooler is None else self.pooler(states)
    return outputs

  def compute_output_spec(
    self,
    inputs,
    attention_mask=None,
    token_type_ids=None,
    position_ids=None,
    output_hidden_states=None,
    training=None,
    output_attentions=None,
    reads_padding=True,
  ):
    """Returns shapes and types of the outputs, without tracing the layers."""
    inputs = gather_inputs(inputs, attention_mask, token_type_ids, position_ids)
    batch_size, length = token_places(inputs).shape

    def spec(*shape: int | None, dtype=self.compute_dtype) -> keras.KerasTensor:
      return keras.KerasTensor((batch_size, *shape), dtype)

    outputs = {
      "last_hidden_state": spec(length, self.hidden_size),
      "attention_mask": spec(length, dtype="int32"),
    }
    if self.add_pooler:
      outputs["pooler_output"] = spec(self.hidden_size)
    layers = self.encoder.schedule
    if output_hidden_states:
      outputs["hidden_states"] = tuple(spec(length, self.hidden_size) for _ in (None, *layers))
    if output_attentions:
      outputs["attentions"] = tuple(spec(self.num_heads, length, length) for _ in layers)
    return outputs

  def resize_vocabulary(self, rows: int) -> None:
    """Changes the size of the vocabulary; the rows that stay keep their values.

    Raises:
      ValueError: `rows` is below 1.
    """
    self.embeddings.resize_vocabulary(rows)
    self.vocab_size = rows
    register_parameters(self)

  # -------------------------------------------------------------------------------------------
  # Sizes and weights.

  @classmethod
  def from_variant(
    cls,
    variant: str,
    pretrained: bool | str | os.PathLike = False,
    weights_dataset: str = "uncased",
    cache_dir: str | os.PathLike | None = None,
    **overrides,
  ) -> "BERT":
    """Creates a model of a known size, with released, given or random weights.

    Args:
      variant: `base`, `large`, `small`, `tiny`, or the name of a released model, such as
        `uncased_L-2_H-128_A-2`.
      pretrained: False for random weights; True for the released weights of this size, which are
        downloaded once; or the path of weights: an original checkpoint, its folder, a file of
        transformers' weights, a folder with one, or a `.keras` file that contains a BERT.
      weights_dataset: a key of `WEIGHTS_DATASETS`; it also determines the vocabulary size.
      cache_dir: folder of downloads; the default is that of `bert/io/download_cache.py`.
      **overrides: arguments of `BERT` that replace the variant's. Weights whose shape then no
        longer fits are skipped, with a warning that names them.

    Raises:
      ValueError: an unknown variant or dataset; no released model has this size; or the weights
        cannot be used.
    """
    arguments = sizes.variant_arguments(variant, weights_dataset)
    if pretrained is True:
      name = sizes.released_name({**arguments, **overrides}, variant, weights_dataset)
      pretrained = released_models.download_model(name, cache_dir)
    elif pretrained:
      arguments.update(loading.vocabulary_sizes(pretrained))
    model = cls(**{**arguments, **overrides})
    if pretrained:
      model.load_pretrained_weights(pretrained)
    return model

  @classmethod
  def from_checkpoint(cls, path: str | os.PathLike, **overrides) -> "BERT":
    """Creates the model of a checkpoint, sized by the configuration file beside it.

    Raises:
      ValueError: the file is missing, or the checkpoint does not fit it.
    """
    config = sizes.config_of_weights(path)
    model = cls(**{**sizes.arguments_from_config(config), **overrides})
    model.load_pretrained_weights(path)
    return model

  def load_pretrained_weights(
    self, path: str | os.PathLike, skip_mismatch: bool = True
  ) -> LoadReport:
    """Loads the variables from a file, by the original's names.

    Args:
      path: an original checkpoint's prefix or folder; a file of weights that transformers saved, or
        its folder; or a `.keras` file that contains a BERT.
      skip_mismatch: where shapes differ or a variable is missing, keep the random values with a
        warning; otherwise raise an error.

    Returns:
      A report of what was loaded and what was not.

    Raises:
      ValueError: the file cannot be read or has no variable of this model; or a variable does not
        fit and `skip_mismatch` is False.
    """
    return loading.load(self.checkpoint_variables(), path, skip_mismatch)

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    return loading.original_names(self, self.family.scope)

  @property
  def config(self) -> BertConfig:
    """The sizes as the configuration of `modeling.py`; a copy."""
    return sizes.config_of({name: getattr(self, name) for name in _ARGUMENTS})

  def get_config(self):
    """Returns the constructor's arguments."""
    config = {name: getattr(self, name) for name in _ARGUMENTS}
    config["layer_args"] = dict(self.layer_args) if self.layer_args else None
    return {**super().get_config(), **config, "parts": parts.described(self)}

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Creates the model of a config, perhaps one that was written before."""
    config = without_retired(config, cls.retired)
    found = config.pop("parts", {})
    model = cls(**config)
    parts.restore(model, found)
    return model

  def load_own_variables(self, store):
    """Loads a file, perhaps one that was written when the layers had other places."""
    if group := older_files.group(store, "encoder_layers"):
      older_files.read_encoder(self, group)
    else:
      super().load_own_variables(store)


_ARGUMENTS = tuple(own_arguments(inspect.signature(BERT.__init__).parameters))


def token_places(inputs: dict):
  """Returns something of the shape of the ids, `[B, S]`: they, or a part of their vectors."""
  vectors = inputs["inputs_embeds"]
  return inputs["input_ids"] if vectors is None else vectors[..., 0]


def gather_inputs(inputs, attention_mask, token_type_ids, position_ids) -> dict:
  """Returns all inputs by name, None for missing ones; a dictionary comes before arguments."""
  gathered = {
    "input_ids": None,
    "attention_mask": attention_mask,
    "token_type_ids": token_type_ids,
    "position_ids": position_ids,
    "head_mask": None,
    "inputs_embeds": None,
  }
  if not isinstance(inputs, dict):
    return {**gathered, "input_ids": inputs}
  unknown = sorted(set(inputs) - set(gathered))
  if (inputs.get("input_ids") is None) == (inputs.get("inputs_embeds") is None) or unknown:
    raise ValueError(
      f"The inputs of BERT are input_ids or inputs_embeds and, optionally, "
      f"{', '.join(list(gathered)[1:-1])}; got {', '.join(map(str, inputs)) or 'none'}."
    )
  return {**gathered, **{name: value for name, value in inputs.items() if value is not None}}
