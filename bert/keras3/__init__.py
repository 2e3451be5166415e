"""BERT in Keras 3, on TensorFlow, JAX or PyTorch: encoder, heads, tasks, training.

  config = NLPTaskConfig("sentiment", NLPTaskType.SENTIMENT_ANALYSIS, num_classes=3)
  model = create_bert_with_head("base", config, pretrained=True)
  model.compile(AdamWeightDecay(2e-5), "sparse_categorical_crossentropy", metrics=["accuracy"])
  model.fit({"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}, labels)

This module exports all public names of the Keras side. Importing it registers the classes, so that
`keras.models.load_model` needs no `custom_objects`. The environment variable KERAS_BACKEND selects
the backend; on JAX and PyTorch nothing here imports TensorFlow.

`AutoTokenizer` and `BertTokenizer` are those of `bert.transformers`, which needs the package
transformers: pip install 'bert-alive[transformers]'.
"""

import importlib

from bert.checkpoints.load_report import LoadReport
from bert.keras3.data import (
  ClassificationDataset,
  MLMDataset,
  NSPDataset,
  TextLoader,
  create_classification_dataloader,
  create_mlm_dataloader,
)
from bert.keras3.encoder import BERT
from bert.keras3.heads import (
  MultipleChoiceHead,
  QuestionAnsweringHead,
  TaskHead,
  TextClassificationHead,
  TextSimilarityHead,
  TokenClassificationHead,
  create_nlp_head,
)
from bert.keras3.kit import (
  GELU,
  BERTForMaskedLM,
  BERTForSequenceClassification,
  BERTModel,
  BertPreTrainingModel,
  FeedForward,
  LayerNorm,
  MultiHeadAttention,
  TransformerEncoderBlock,
  create_model_config,
  get_tokenizer,
)
from bert.keras3.layers import BertEmbeddings, TransformerLayer
from bert.keras3.models import (
  BertForMaskedLM,
  BertForMultipleChoice,
  BertForNextSentencePrediction,
  BertForPreTraining,
  BertForQuestionAnswering,
  BertForReplacedTokens,
  BertForSequenceClassification,
  BertForTokenClassification,
  BertModel,
  MaskedLanguageModel,
)
from bert.keras3.optimization import (
  AdamW,
  AdamWeightDecay,
  LinearWithWarmup,
  WarmUpLinearDecay,
  create_optimizer,
  get_linear_schedule_with_warmup,
)
from bert.keras3.pretraining_heads import MaskedLMHead, NextSentenceHead, ReplacedTokensHead
from bert.keras3.saving import save_checkpoint, save_pretrained
from bert.keras3.sizes import WEIGHTS_DATASETS
from bert.keras3.task_models import create_bert_with_head, create_inputs
from bert.keras3.tasks import (
  LabelledAccuracy,
  NLPTaskConfig,
  NLPTaskType,
  SparseCrossentropy,
)
from bert.keras3.training import (
  AMPTrainer,
  compute_classification_loss,
  compute_confusion_matrix,
  compute_mlm_loader_loss,
  compute_mlm_loss,
  compute_precision_recall_f1,
  evaluate_classification_metrics,
)

_TOKENIZERS = ("AutoTokenizer", "BertTokenizer")


def __getattr__(name: str):
  """Finds the tokenizers by name: models and loaders need neither these nor transformers.

  Raises:
    ImportError: transformers is not installed.
    AttributeError: there is no such name.
  """
  if name in _TOKENIZERS:
    return getattr(importlib.import_module("bert.transformers"), name)
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
  "BERT",
  "GELU",
  "WEIGHTS_DATASETS",
  "AMPTrainer",
  "AdamW",
  "AdamWeightDecay",
  "BERTForMaskedLM",
  "BERTForSequenceClassification",
  "BERTModel",
  "BertEmbeddings",
  "BertForMaskedLM",
  "BertForMultipleChoice",
  "BertForNextSentencePrediction",
  "BertForPreTraining",
  "BertForQuestionAnswering",
  "BertForReplacedTokens",
  "BertForSequenceClassification",
  "BertForTokenClassification",
  "BertModel",
  "BertPreTrainingModel",
  "ClassificationDataset",
  "FeedForward",
  "LabelledAccuracy",
  "LayerNorm",
  "LinearWithWarmup",
  "LoadReport",
  "MLMDataset",
  "MaskedLMHead",
  "MaskedLanguageModel",
  "MultiHeadAttention",
  "MultipleChoiceHead",
  "NLPTaskConfig",
  "NLPTaskType",
  "NSPDataset",
  "NextSentenceHead",
  "QuestionAnsweringHead",
  "ReplacedTokensHead",
  "SparseCrossentropy",
  "TaskHead",
  "TextClassificationHead",
  "TextLoader",
  "TextSimilarityHead",
  "TokenClassificationHead",
  "TransformerEncoderBlock",
  "TransformerLayer",
  "WarmUpLinearDecay",
  "compute_classification_loss",
  "compute_confusion_matrix",
  "compute_mlm_loader_loss",
  "compute_mlm_loss",
  "compute_precision_recall_f1",
  "create_bert_with_head",
  "create_classification_dataloader",
  "create_inputs",
  "create_mlm_dataloader",
  "create_model_config",
  "create_nlp_head",
  "create_optimizer",
  "evaluate_classification_metrics",
  "get_linear_schedule_with_warmup",
  "get_tokenizer",
  "save_checkpoint",
  "save_pretrained",
]
