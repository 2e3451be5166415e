"""An exported preprocess model and encoder, used as those of TensorFlow Hub.

python export_hub.py --init_checkpoint=uncased_L-12_H-768_A-12 --export_dir=export
python examples/hub_layers.py export
"""

import sys

import tensorflow_hub as hub
import tensorflow_text as text  # noqa: F401 (registers ops of the preprocess model)


def main(export_dir: str) -> None:
  bert_preprocess_model = hub.KerasLayer(f"{export_dir}/preprocess")

  test = ["This is a spam mail", "Computers are not unique to computers"]
  text_preprocessed = bert_preprocess_model(test)
  print(text_preprocessed.keys())
  print(text_preprocessed["input_mask"])
  print(text_preprocessed["input_type_ids"])
  print(text_preprocessed["input_word_ids"])  # 101 is [CLS], 102 is [SEP]

  bert_model = hub.KerasLayer(f"{export_dir}/encoder")
  bert_results = bert_model(text_preprocessed)
  print(bert_results.keys())
  print(len(bert_results["encoder_outputs"]))  # one per layer
  print(bert_results["encoder_outputs"][-1] == bert_results["sequence_output"])
  print(bert_results["sequence_output"].shape)
  print(bert_results["pooled_output"].shape)


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(__doc__)
  main(sys.argv[1])
