"""Protections of distillation, and of models of other families; see protections.py.

For each subject: what is promised, the function, what is left out of it (tests/kit/mutations.py),
the test that then fails.
"""

SUBJECTS = {
  "Distillation": (
    (
      "a student reads the vocabulary that its teacher reads",
      "_check_texts",
      "guard",
      "test_a_student_of_another_vocabulary",
    ),
    (
      "a teacher of other labels is refused",
      "logits.columns_of",
      "guard",
      "test_labels_in_another_order",
    ),
    (
      "labels in another order are put into the student's",
      "logits.columns_of",
      "index() -> learned.index(label)",
      "test_labels_in_another_order",
    ),
    (
      "a student is never written into its teacher's folder",
      "distilling.check_folder",
      "guard",
      "test_the_teachers_own_folder",
    ),
    (
      "a run does not go on with another teacher",
      "Taught._facts",
      "_identity -> None",
      "test_another_teacher_is_refused",
    ),
    (
      "a student has layers that its teacher has, each once",
      "students.check_layers",
      "guard",
      "test_layers_that_do_not_exist",
    ),
    (
      "each layer of TinyBERT's student stands for as many of the teacher's",
      "_teacher_layers_per_layer",
      "guard",
      "test_a_student_that_does_not_fit_is_refused",
    ),
    (
      "TinyBERT's teacher does not drop out, unless --teacher_dropout asks for it",
      "Layers.losses",
      "operand and",
      "test_the_teacher_drops_out_only_where_that_is_asked_for",
    ),
    (
      "examples without a label count for nothing in the loss of labels",
      "mean_label_loss",
      "operand *",
      "test_examples_without_a_label_learn_from_the_teacher_alone",
    ),
    (
      "tags are learned of the pieces that predict a word",
      "LogitsMethod._soft_loss",
      "cast() -> tf.ones_like({0}, tf.float32)",
      "test_tags_are_learned_of_words_alone",
    ),
    (
      "of rare tokens, too, that share of a batch is masked, rounded up as in the original",
      "rare_tokens._count",
      "ceil -> tf.math.floor",
      "test_a_share_of_the_batch_is_masked_and_labelled",
    ),
    (
      "no more tokens are masked than there are",
      "rare_tokens._chosen",
      "count_nonzero() -> tf.size(weights)",
      "test_no_more_tokens_than_there_are_are_masked",
    ),
    (
      "GloVe's lines are checked: a cut file is named with its line",
      "read_vectors",
      "guard",
      "test_vectors_may_have_words_with_blanks",
    ),
  ),
  "Byte-level BPE, and RoBERTa's models": (
    (
      "merges of another vocabulary are refused",
      "byte_pair_files._checked",
      "guard",
      "test_a_bad_file_is_one_line",
    ),
    (
      "a vocabulary has all 256 bytes: any text has tokens",
      "byte_pair_files._checked",
      "guard",
      "test_a_bad_file_is_one_line",
    ),
    (
      "no two tokens have one id",
      "byte_pair_files._vocab",
      "guard",
      "test_a_bad_file_is_one_line",
    ),
    (
      "half a surrogate, which is no character, becomes U+FFFD",
      "byte_pairs._valid",
      "sub() -> text",
      "byte_pairs_test.test_tokens",
    ),
    (
      "exports refuse special tokens whose rules they do not know",
      "graph_byte_pairs._special_tokens",
      "guard",
      "test_special_tokens_with_unknown_rules_are_refused",
    ),
    (
      "word pieces are refused where a model reads byte pairs",
      "check_vocabulary_size",
      "guard",
      "test_word_pieces_for_roberta_are_refused",
    ),
    (
      "a missing library is named with what installs it",
      "byte_pairs._library_tokenizer",
      "call extra",
      "test_without_the_library",
    ),
    (
      "the row of padding learns nothing from where it stands",
      "embedding_lookup",
      "where() -> {2}",
      "test_rows_of_padding_learn_nothing_from_the_look_up",
    ),
    (
      "records have the padding by which a model counts positions",
      "_wrong_padding",
      "always",
      "roberta_test.test_what_cannot_be_is_one_clear_line",
    ),
    (
      "no random word of RoBERTa's masks is a special token",
      "Masking.from_vocabulary",
      "never",
      "test_roberta_draws_no_special_token",
    ),
    (
      "separators within a sequence are not masked",
      "blocks._records",
      "sep_id -> -1",
      "test_masks_in_the_records",
    ),
    (
      "special tokens in a text of pre-training are text",
      "piece_tables.load_tables",
      "keyword plain",
      "test_special_tokens_in_a_text_are_text",
    ),
  ),
  "Models of other origin": (
    (
      "a checkpoint of another family is refused, not read in part",
      "loading._check_required",
      "guard",
      "test_a_checkpoint_of_another_family_is_refused_in_one_line",
    ),
    (
      "an encoder of the Model Garden that normalizes first is refused",
      "_check_order_of_norms",
      "guard",
      "test_a_model_that_normalizes_first_is_refused",
    ),
    (
      "layers of the Model Garden that the original does not have are refused, not left out",
      "model_garden._take",
      "guard",
      "test_other_encoders_are_refused_in_one_line",
    ),
    (
      "each variable of the Model Garden has as many dimensions as it is read with",
      "model_garden._place",
      "guard",
      "test_other_encoders_are_refused_in_one_line",
    ),
    (
      "what the Model Garden has no place for is not written without it",
      "model_garden_writer.write",
      "guard",
      "test_other_families_and_lacking_variables_are_not_written",
    ),
  ),
}
