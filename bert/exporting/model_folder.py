"""A folder with a model in other formats than TensorFlow's, and all that belongs to it.

No TensorFlow is needed here.
"""

from bert.model.task_head import SEQUENCES

INPUT_NAMES = dict(zip(SEQUENCES, ("input_ids", "attention_mask", "token_type_ids"), strict=True))
"""What `SEQUENCES` are called in the files of models: transformers' names."""
