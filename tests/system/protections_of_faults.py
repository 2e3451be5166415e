"""Protections from full disks, power cuts and deaths at any moment; see
tests/system/protections.py.

For each subject: what is promised, the file, the line as it stands there, what breaks it, the test
that has to fail.
"""

F = "tests/system/fault_injection_test.py::"

SUBJECTS = {
  "A full disk, a power cut, a death at any operation": (
    (
      "an exported folder is exchanged in one step: no moment without one",
      "bert/io/atomic_files.py",
      "    if _exchange(aside, path):\n      return\n",
      "",
      F + "test_exports",
    ),
    (
      "a full disk is told with the name of the file that is written",
      "bert/io/atomic_files.py",
      "    with errors_naming(self._final_name):\n      return super().write(data)\n",
      "    return super().write(data)\n",
      "tests/io/atomic_files_test.py::test_whatever_writes_what_is_buffered_names_the_file[write]",
    ),
    (
      "and if it is told late, when a zip file goes back to its directory",
      "bert/io/atomic_files.py",
      "    with errors_naming(self._final_name):\n      return super().seek(offset, whence)\n",
      "    return super().seek(offset, whence)\n",
      "tests/io/atomic_files_test.py::test_whatever_writes_what_is_buffered_names_the_file[seek]",
    ),
    (
      "errors name the file that the user knows, not a temporary one",
      "bert/io/atomic_files.py",
      "is_temporary = instead_of is not None and str(error.filename).startswith(instead_of)",
      "is_temporary = False",
      "tests/io/atomic_files_test.py::test_an_error_names_the_file_that_is_to_be[replace]",
    ),
    (
      "a full disk is no reason not to hold a folder",
      "bert/io/atomic_files.py",
      "  with contextlib.suppress(OSError):\n    os.ftruncate(descriptor, 0)\n",
      "  if True:\n    os.ftruncate(descriptor, 0)\n",
      "tests/io/atomic_files_test.py::test_a_full_disk_does_not_keep_from_holding_a_folder",
    ),
    (
      "a folder is tried without a named file, which a death would leave for ever",
      "bert/io/atomic_files.py",
      "tempfile.TemporaryFile(dir=folder) as probe",
      'open(os.path.join(folder, ".probe"), "wb") as probe',
      "tests/io/atomic_files_test.py::test_a_folder_is_tried_without_a_trace",
    ),
    (
      "TensorFlow's errors in an export become one message",
      "bert/exporting/saved_models.py",
      "    except (tf.errors.OpError, OSError) as error:",
      "    except OSError as error:",
      F + "test_exports",
    ),
    (
      "closing a nameless file on a full disk does not hide the error that names one",
      "bert/predicting/vector_files.py",
      "      stack.callback(_close_quietly, aside)\n",
      "      stack.callback(aside.close)\n",
      F + "test_vectors",
    ),
    (
      "errors of nameless files name the file of the vectors",
      "bert/predicting/vector_files.py",
      "    with files.errors_naming(self._path):\n      self._aside.write(array.tobytes())\n",
      "    self._aside.write(array.tobytes())\n",
      F + "test_vectors",
    ),
    (
      "an old manifest goes before new records come: it would refuse them",
      "bert/io/record_files.py",
      "      os.remove(manifest)",
      "      os.stat(manifest)",
      F + "test_records_keep_their_manifest",
    ),
    (
      "the same of records for pre-training",
      "bert/pretraining/record_output.py",
      "os.remove(manifest_path(path))  # of an older file",
      "pass",
      F + "test_data",
    ),
    (
      "a checkpoint is on disk before its name, in a power cut at any moment",
      "bert/checkpoints/saving.py",
      "    force_to_disk(prefix + suffix)\n",
      "    pass\n",
      F + "test_training",
    ),
    (
      "what the last save of a killed run left is cleaned, though no other save comes",
      "bert/training/estimator.py",
      "    self._variables.clean(newest)\n",
      "",
      F + "test_a_death_after_the_last_step_leaves_nothing_for_ever",
    ),
    (
      "superseded checkpoints go, though their own save was killed",
      "bert/checkpoints/saving.py",
      "  _purge(directory, earlier)\n",
      "",
      F + "test_a_death_after_the_last_step_leaves_nothing_for_ever",
    ),
    (
      "a later checkpoint that was put there by hand is not cleaned away",
      "bert/checkpoints/saving.py",
      "  _purge(directory, earlier)\n",
      "  _purge(directory, superseded)\n",
      F + "test_what_is_cleaned_is_ours",
    ),
    (
      "a disk that takes no events costs the curves, not the run",
      "bert/training/progress.py",
      "    except tf.errors.OpError as error:\n      reason",
      "    except KeyError as error:\n      reason",
      F + "test_events_that_cannot_be_written_cost_no_run[written]",
    ),
  ),
}
