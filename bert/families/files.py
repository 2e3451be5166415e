"""What files hold of each family of models: a module for each; `form.py` says what each has.

  files_of("albert").transformers.class_prefix     # "Albert"
  RELEASED["roberta-base"].files[-1]               # "model.safetensors"

What a model of a family computes is in `__init__.py`. No TensorFlow is needed here.
"""

from bert.families import albert, bert, distilbert, electra, roberta
from bert.families.form import FamilyFiles, Released

FILES: dict[str, FamilyFiles] = {
  module.FILES.name: module.FILES for module in (bert, electra, albert, roberta, distilbert)
}
"""`model_type` -> what files hold of its models."""

RELEASED: dict[str, Released] = {
  name: model for files in FILES.values() for name, model in files.released.items()
}
"""Name of a released model -> where it is, and its sizes."""

# What the names of models contain that are not read here -> what they are.
NOT_READ = {
  "xlmroberta": "XLM-RoBERTa",
  "deberta": "DeBERTa",
  "mobilebert": "MobileBERT",
  "modernbert": "ModernBERT",
  "mpnet": "MPNet",
  "xlnet": "XLNet",
  "longformer": "Longformer",
  "camembert": "CamemBERT",
  "gpt": "GPT",
}


def files_of(model_type: str) -> FamilyFiles:
  """Finds what files hold of a family.

  Raises:
    ValueError: there is no such family here.

  Example:
    >>> files_of("roberta").transformers.class_prefix
    'Roberta'
  """
  if model_type not in tuple(FILES):  # of a file, so perhaps not even hashable
    raise ValueError(
      f"model_type is {model_type!r}, but this project has models of {', '.join(FILES)} only."
    )
  return FILES[model_type]
