"""Protections from full disks, power cuts and deaths at any moment; see protections.py.

For each subject: what is promised, the function, what is left out of it (tests/kit/mutations.py),
the test that then fails.
"""

SUBJECTS = {
  "A full disk, a power cut, a death at any operation": (
    (
      "an exported folder is exchanged in one step: it is never missing",
      "_replace_folder",
      "_exchange() -> False",
      "test_exports",
    ),
    (
      "a full disk is reported with the name of the file that is written",
      "_NamedWriter.write",
      "call errors_naming",
      "test_whatever_writes_what_is_buffered_names_the_file[write]",
    ),
    (
      "and if it shows late, when a zip file seeks back to its directory",
      "_NamedWriter.seek",
      "call errors_naming",
      "test_whatever_writes_what_is_buffered_names_the_file[seek]",
    ),
    (
      "errors name the file that the user knows, not a temporary one",
      "errors_naming",
      "startswith() -> False",
      "test_an_error_names_the_file_that_is_to_be[replace]",
    ),
    (
      "a folder can be locked on a full disk",
      "atomic_files._lock",
      "call suppress",
      "test_a_full_disk_does_not_keep_from_holding_a_folder",
    ),
    (
      "a folder is tested without a named file, which a killed process would leave behind",
      "check_writable",
      'TemporaryFile() -> open(os.path.join(folder, ".probe"), "wb")',
      "test_a_folder_is_tried_without_a_trace",
    ),
    (
      "TensorFlow's errors in an export become one message",
      "written_aside",
      "except OpError",
      "test_exports",
    ),
    (
      "closing a nameless file on a full disk does not hide the error that names one",
      "column",
      "_close_quietly -> aside.close",
      "test_vectors",
    ),
    (
      "errors of nameless files name the file of the vectors",
      "_Column.append",
      "call errors_naming",
      "test_vectors",
    ),
    (
      "an old manifest is removed before new records are written: it would refuse them",
      "write_records",
      "call remove",
      "test_records_keep_their_manifest",
    ),
    (
      "the same of records for pre-training",
      "_publish",
      "call remove",
      "test_data",
    ),
    (
      "a checkpoint is on disk before its name, in a power cut at any moment",
      "_write_aside",
      "call force_to_disk",
      "test_training",
    ),
    (
      "remains of a killed run's last save are removed, even if no other save follows",
      "Estimator._train",
      "call clean",
      "test_a_death_after_the_last_step_leaves_nothing_for_ever",
    ),
    (
      "superseded checkpoints are removed, even if their own save was killed",
      "saving.clean",
      "call _purge",
      "test_a_death_after_the_last_step_leaves_nothing_for_ever",
    ),
    (
      "a later checkpoint that was put there by hand is not cleaned away",
      "saving.clean",
      "earlier -> superseded",
      "test_what_is_cleaned_is_ours",
    ),
    (
      "a disk that accepts no event files costs the curves, not the run",
      "_may_fail",
      "except OpError",
      "test_events_that_cannot_be_written_cost_no_run[written]",
    ),
  ),
}
