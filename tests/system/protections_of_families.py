"""Protections of distillation, and of models of other families; see protections.py.

For each subject: what is promised, the function, the part of it that does it, what replaces that
part, the test that then fails.
"""

SUBJECTS = {
  "Distillation": (
    (
      "a student reads the vocabulary that its teacher reads",
      "_check_texts",
      "vocabulary_hash(self.tokenizer.vocab)",
      "vocabulary_hash(vocab)",
      "test_a_student_of_another_vocabulary",
    ),
    (
      "a teacher of other labels is refused",
      "logits.columns_of",
      "if set(taught) != set(learned):",
      "if not taught:",
      "test_labels_in_another_order",
    ),
    (
      "labels in another order are put into the student's",
      "logits.columns_of",
      "return [list(taught).index(label) for label in learned]",
      "return list(range(len(learned)))",
      "test_labels_in_another_order",
    ),
    (
      "a student is never written into its teacher's folder",
      "distilling.check_folder",
      "if len({os.path.realpath(folder) for folder in folders}) == 1:",
      "if not folders:",
      "test_the_teachers_own_folder",
    ),
    (
      "a run does not go on with another teacher",
      "Taught._facts",
      '"teacher": self._identity}',
      '"teacher": None}',
      "test_another_teacher_is_refused",
    ),
    (
      "a student has layers that its teacher has, each once",
      "students.check_layers",
      "if bad := [layer for layer in layers if not 0 <= layer < count]:",
      "if bad := []:",
      "test_layers_that_do_not_exist",
    ),
    (
      "each layer of TinyBERT's student stands for as many of the teacher's",
      "_teacher_layers_per_layer",
      "if teacher % student:",
      "if not student:",
      "test_a_student_that_does_not_fit_is_refused",
    ),
    (
      "examples without a label count for nothing in the loss of labels",
      "mean_label_loss",
      "losses * has_label",
      "losses",
      "test_examples_without_a_label_learn_from_the_teacher_alone",
    ),
    (
      "tags are learned of the pieces that predict a word",
      "LogitsMethod._soft_loss",
      'weights = tf.cast(step.features["word_mask"], tf.float32)',
      'weights = tf.ones_like(step.features["word_mask"], tf.float32)',
      "test_tags_are_learned_of_words_alone",
    ),
    (
      "masks of rare tokens are the same in a batch with more padding",
      "rare_tokens.draw_masks",
      "tf.where(is_token, tf.gather(tf.constant(masking.token_weights), ids), 0.0)",
      "1.0 + tf.gather(tf.constant(masking.token_weights), ids)",
      "test_draws_are_repeatable_and_padding_changes_none",
    ),
    (
      "no more tokens are masked than there are",
      "rare_tokens._chosen",
      "count = tf.minimum(count, tf.math.count_nonzero(weights, dtype=tf.int32))",
      "count = tf.minimum(count, tf.size(weights))",
      "test_no_more_tokens_than_there_are_are_masked",
    ),
    (
      "GloVe's lines are checked: a cut file is named with its line",
      "read_vectors",
      "if len(items) <= length or not length:",
      "if not items:",
      "test_vectors_may_have_words_with_blanks",
    ),
  ),
  "Byte-level BPE, and RoBERTa's models": (
    (
      "merges of another vocabulary are refused",
      "byte_pair_files._checked",
      "if unknown:",
      "if unknown is None:",
      "test_a_bad_file_is_one_line",
    ),
    (
      "a vocabulary has all 256 bytes: any text has tokens",
      "byte_pair_files._checked",
      "if bytes_missing:",
      "if bytes_missing is None:",
      "test_a_bad_file_is_one_line",
    ),
    (
      "no two tokens have one id",
      "byte_pair_files._vocab",
      "if len(set(vocab.values())) != len(vocab):",
      "if not vocab:",
      "test_a_bad_file_is_one_line",
    ),
    (
      "half a surrogate, which is no character, becomes U+FFFD",
      "byte_pairs._valid",
      'else _SURROGATES.sub("\\ufffd", text)',
      "else text",
      "test_any_text_is_restored_and_has_places",
    ),
    (
      "exports refuse special tokens whose rules they do not know",
      "graph_byte_pairs._special_tokens",
      'if rule.get("rstrip") or rule.get("single_word") or others:',
      "if not rule:",
      "test_special_tokens_with_unknown_rules_are_refused",
    ),
    (
      "word pieces are refused where a model reads byte pairs",
      "check_vocabulary_size",
      "if is_of_other_kind(vocab, vocab_size, family):",
      "if not vocab:",
      "test_word_pieces_for_roberta_are_refused",
    ),
    (
      "a missing library is named with what installs it",
      "byte_pairs._library_tokenizer",
      'with installation.extra("roberta", f"The byte-level BPE {pairs.path}"):',
      "if True:",
      "test_without_the_library",
    ),
    (
      "the row of padding learns nothing from where it stands",
      "embedding_lookup",
      "output = tf.where(is_padding, tf.stop_gradient(output), output)",
      "del is_padding",
      "test_rows_of_padding_learn_nothing_from_the_look_up",
    ),
    (
      "a sequence too long for its positions is refused, not read from other rows",
      "embeddings.check_length",
      "elif seq_length > longest:",
      "elif seq_length < 0:",
      "test_a_sequence_too_long_for_its_positions_is_refused",
    ),
  ),
}
