"""The queue of rows: its order, its batches, what leaves it. Nothing is computed.

Alone: python -m pytest tests/serving/row_queue_test.py (a second)
"""

import random

import pytest

from bert.serving.row_queue import Request, RowQueue


def request(*lengths, engine=0):
  rows = [{"input_ids": [1] * length} for length in lengths]
  return Request(engine, rows, lengths)


def queue_of(*requests, max_batch_tokens=8):
  queue = RowQueue(max_batch_tokens)
  for each in requests:
    queue.add(each)
  return queue


def lengths_of(batch):
  return [request.lengths[index] for request, index in batch.places()]


def test_a_batch_has_rows_up_to_its_tokens():
  queue = queue_of(request(3, 3, 3, 1))
  assert (len(queue), queue.tokens) == (1, 10)
  first = queue.take()
  assert (lengths_of(first), first.tokens, queue.tokens) == ([3, 3], 6, 4)
  assert [len(row["input_ids"]) for row in first.rows()] == [3, 3]
  assert lengths_of(queue.take()) == [3, 1]
  assert (queue.take(), len(queue), queue.tokens) == (None, 0, 0)


def test_a_row_that_is_longer_than_a_batch_is_alone_in_one():
  queue = queue_of(request(2, 20, 2))
  assert [lengths_of(queue.take()) for _ in range(3)] == [[2], [20], [2]]


def test_one_text_overtakes_a_large_request():
  large = request(*[4] * 2000)
  queue = queue_of(large)
  queue.take()
  single = request(4)
  queue.add(single)
  assert single in [part.request for part in queue.take().parts]


def test_single_texts_do_not_hold_up_a_large_request_for_ever():
  large = request(*[8] * 5)
  queue = queue_of(large)
  num_batches = 0
  while large.left_tokens:
    queue.add(request(8))  # another one before each batch
    queue.take()
    num_batches += 1
    assert num_batches < 30


def test_a_batch_is_of_one_engine():
  queue = queue_of(request(2), request(2, engine=1), request(2))
  batches = [queue.take(), queue.take()]
  assert [(batch.engine, len(batch.parts)) for batch in batches] == [(0, 2), (1, 1)]
  assert queue.take() is None


@pytest.mark.parametrize(("tokens", "expected"), [(1, 13), (10, 18), (1000, 38)])
def test_ahead_of_a_request_is_at_most_as_much_as_it_has_of_each(tokens, expected):
  queue = queue_of(request(*[5] * 6), request(8))
  assert queue.tokens_ahead(tokens) == expected


def test_rows_whose_time_has_come_are_ahead_and_those_of_later_are_not():
  giant = request(*[10] * 100)
  queue = queue_of(giant, max_batch_tokens=10)
  for _ in range(6):
    queue.take()  # six rows: alone, the giant is where it would be
  queue.add(request(10))
  assert queue.tokens_ahead(5) == 10 + 10
  queue.take()  # the giant is ahead of its time by nothing, the other request waits
  assert queue.tokens_ahead(5) <= 10 + 10 + 5


def test_each_row_is_taken_once_whatever_happens():
  choice = random.Random(0)
  queue, requests, taken = RowQueue(20), [], []
  for _ in range(300):
    if choice.random() < 0.6:
      lengths = [choice.randint(1, 15) for _ in range(choice.randint(1, 6))]
      requests.append(request(*lengths, engine=choice.randint(0, 2)))
      queue.add(requests[-1])
    if choice.random() < 0.1:
      queue.remove(choice.choice(requests or [request(1)]))
    if batch := queue.take():
      assert batch.tokens <= 20
      taken += batch.places()
    waiting = {each for each in requests if each.is_open and each.left_tokens}
    assert (len(queue), queue.tokens) == (
      len(waiting),
      sum(each.left_tokens for each in waiting),
    )
  while batch := queue.take():
    taken += batch.places()
  assert len(set(taken)) == len(taken)
  for each in requests:
    if each.is_open:
      assert [index for other, index in taken if other is each] == list(range(len(each.rows)))
