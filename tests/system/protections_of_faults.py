"""Protections from full disks, power cuts and deaths at any moment; see protections.py.

For each subject: what is promised, the function, the part of it that does it, what replaces that
part, the test that then fails.
"""

SUBJECTS = {
  "A full disk, a power cut, a death at any operation": (
    (
      "an exported folder is exchanged in one step: it is never missing",
      "_replace_folder",
      "    if _exchange(aside, path):\n      return\n",
      "",
      "test_exports",
    ),
    (
      "a full disk is reported with the name of the file that is written",
      "_NamedWriter.write",
      "with errors_naming(self._final_name):\n      return super().write(data)",
      "return super().write(data)",
      "test_whatever_writes_what_is_buffered_names_the_file[write]",
    ),
    (
      "and if it shows late, when a zip file seeks back to its directory",
      "_NamedWriter.seek",
      "with errors_naming(self._final_name):\n      return super().seek(offset, whence)",
      "return super().seek(offset, whence)",
      "test_whatever_writes_what_is_buffered_names_the_file[seek]",
    ),
    (
      "errors name the file that the user knows, not a temporary one",
      "errors_naming",
      "is_temporary = instead_of is not None and str(error.filename).startswith(instead_of)",
      "is_temporary = False",
      "test_an_error_names_the_file_that_is_to_be[replace]",
    ),
    (
      "a folder can be locked on a full disk",
      "atomic_files._lock",
      "with contextlib.suppress(OSError):\n    os.ftruncate(descriptor, 0)",
      "if True:\n    os.ftruncate(descriptor, 0)",
      "test_a_full_disk_does_not_keep_from_holding_a_folder",
    ),
    (
      "a folder is tested without a named file, which a killed process would leave behind",
      "check_writable",
      "tempfile.TemporaryFile(dir=os.fspath(folder)) as probe",
      'open(os.path.join(folder, ".probe"), "wb") as probe',
      "test_a_folder_is_tried_without_a_trace",
    ),
    (
      "TensorFlow's errors in an export become one message",
      "written_aside",
      "except (tf.errors.OpError, OSError) as error:",
      "except OSError as error:",
      "test_exports",
    ),
    (
      "closing a nameless file on a full disk does not hide the error that names one",
      "column",
      "stack.callback(_close_quietly, aside)",
      "stack.callback(aside.close)",
      "test_vectors",
    ),
    (
      "errors of nameless files name the file of the vectors",
      "_Column.append",
      "with atomic_files.errors_naming(self._path):",
      "if True:",
      "test_vectors",
    ),
    (
      "an old manifest is removed before new records are written: it would refuse them",
      "write_records",
      "os.remove(manifest)",
      "os.stat(manifest)",
      "test_records_keep_their_manifest",
    ),
    (
      "the same of records for pre-training",
      "_publish",
      "os.remove(manifest_path(path))  # of an older file",
      "pass",
      "test_data",
    ),
    (
      "a checkpoint is on disk before its name, in a power cut at any moment",
      "_write_aside",
      "force_to_disk(prefix + suffix)",
      "pass",
      "test_training",
    ),
    (
      "remains of a killed run's last save are removed, even if no other save follows",
      "Estimator._train",
      "self._variables.clean(newest)",
      "pass",
      "test_a_death_after_the_last_step_leaves_nothing_for_ever",
    ),
    (
      "superseded checkpoints are removed, even if their own save was killed",
      "saving.clean",
      "_purge(directory, earlier)",
      "pass",
      "test_a_death_after_the_last_step_leaves_nothing_for_ever",
    ),
    (
      "a later checkpoint that was put there by hand is not cleaned away",
      "saving.clean",
      "_purge(directory, earlier)",
      "_purge(directory, superseded)",
      "test_what_is_cleaned_is_ours",
    ),
    (
      "a disk that accepts no event files costs the curves, not the run",
      "_may_fail",
      "except tf.errors.OpError as error:\n      reason",
      "except KeyError as error:\n      reason",
      "test_events_that_cannot_be_written_cost_no_run[written]",
    ),
  ),
}
