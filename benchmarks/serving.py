"""The server under load, beside infinity and bert-as-service: speed, and waiting times.

  python benchmarks/serving.py --weights=uncased_L-12_H-768_A-12 --squad_dir=squad \\
    --mrpc=glue/MRPC --infinity=infinity-venv/bin/infinity_emb \\
    --bert_as_service=tf1-venv/bin/bert-serving-start

All servers have the same weights, run on the processor with all of its cores, and give the mean of
the last layer. A request has one text: of five, four are sentences of MRPC and one is a paragraph
of SQuAD, up to 512 tokens. Each server is started, warmed up, measured with 1, 8 and 64 clients and
stopped; then the next; and all again, --repeats times. With --overhead one short text goes to the
server and to a bare `Predictor` in turns instead, and the difference is what the server adds;
beside them /health, which computes nothing: what the client and HTTP take of it.

  ours, onnxruntime          serve.py with `export_hub.py --format=onnx`, /v1/embeddings
  ours, onnxruntime int8     the same with --precision=int8
  infinity, torch            /embeddings, its default engine
  infinity, onnxruntime      its engine `optimum`, with our model.onnx
  bert-as-service            on TensorFlow 1.15, /encode
"""

import argparse
import contextlib
import csv
import http.client
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common, http_load  # noqa: E402

MAX_SEQ_LENGTH = 512
NUM_TEXTS = 1000
_CALLS_IN_A_ROW = 50
PROBE = "A cat sat on the mat."


class Server(NamedTuple):
  """How a server is started and asked."""

  command: Callable[[int], list[str]]  # of its port
  path: str
  body: Callable[[str], dict]  # of a text
  vector: Callable[[dict], Sequence[float]]  # of an answer
  folder: str | None = None  # where it runs


def main():
  args = _parse()
  texts = mixed_texts(args.mrpc, args.squad_dir)
  with tempfile.TemporaryDirectory() as folder:
    if args.overhead:
      _overhead(args, folder)
      return
    servers = _servers(args, folder)
    measured: dict[tuple[str, int], list] = {}
    for turn in range(1, args.repeats + 1):
      for name, server in servers.items():
        with running(server.command, server.path, server.body(PROBE), server.folder) as port:
          bodies = [json.dumps(server.body(text)).encode() for text in texts]
          http_load.run(port, server.path, bodies, clients=8, seconds=args.warmup_s)
          for clients in args.clients:
            replies = http_load.run(port, server.path, bodies, clients, args.seconds)
            failed = sum(reply.status != 200 for reply in replies)
            figures = (
              http_load.speed(replies, args.seconds),
              http_load.percentile(replies, 50),
              http_load.percentile(replies, 99),
              failed,
            )
            measured.setdefault((name, clients), []).append(figures)
            words = "{:.1f} texts/s, p50 {:.1f} ms, p99 {:.1f} ms, failed {}".format(*figures)
            print(f"turn {turn}, {name}, {clients} clients: {words}", file=sys.stderr)
  _report(args, measured)


def _report(args, measured) -> None:
  rows, table = [], [["server", "clients", "texts/s", "spread", "p50 ms", "p99 ms", "failed"]]
  for (name, clients), turns in measured.items():
    speeds, p50, p99, failed = zip(*turns, strict=True)
    rows.append(common.Row(f"{clients} clients", name, "texts/s", speeds))
    spread = f"{min(speeds):.1f}-{max(speeds):.1f}"
    medians = [f"{statistics.median(values):.1f}" for values in (speeds, p50, p99)]
    table.append([name, str(clients), medians[0], spread, *medians[1:], str(sum(failed))])
  common.print_markdown(table)
  latencies = [[*key, *turns] for key, turns in measured.items()]
  references = [name for name in dict.fromkeys(key[0] for key in measured) if "ours" not in name]
  common.report("serving", rows, references, latencies=latencies, seconds=args.seconds)


def _overhead(args, folder: str) -> None:
  """Times a short text through the server and through `Predictor`, in turns."""
  from bert.predicting.predictor import Predictor

  model = export(args.weights, folder)
  server = ours(model, "float32")
  predictor = Predictor.load(model, "onnxruntime", max_seq_length=MAX_SEQ_LENGTH)
  body = json.dumps(server.body(PROBE)).encode()
  with running(server.command, server.path, server.body(PROBE)) as port:
    connection = http.client.HTTPConnection(http_load.HOST, port)

    def ask() -> None:
      connection.request("POST", server.path, body, {"Content-Type": "application/json"})
      connection.getresponse().read()

    def ask_health() -> None:
      connection.request("GET", "/health")
      connection.getresponse().read()

    calls = {"Predictor": lambda: predictor([PROBE]), "serve.py": ask, "/health": ask_health}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(args.calls // _CALLS_IN_A_ROW + 1):
      for name, call in calls.items():
        time.sleep(0.2)  # threads of the other one, which wait in a loop for a while, are at rest
        for _ in range(_CALLS_IN_A_ROW):
          start = time.perf_counter()
          call()
          times[name] += [1000 * (time.perf_counter() - start)] if turn else []
    parts = _headers(connection, server.path, body)
  rows = [common.Row("one text", name, "ms", values) for name, values in times.items()]
  medians = {row.system: row.median for row in rows}
  added = medians["serve.py"] - medians["Predictor"]
  common.report("serving_overhead", rows, ["Predictor"], added_ms=added, headers=parts)


def _headers(connection: http.client.HTTPConnection, path: str, body: bytes) -> dict[str, float]:
  """Asks a few times more, and returns the medians of the times that the server says, in ms."""
  found: dict[str, list[float]] = {}
  for _ in range(_CALLS_IN_A_ROW):
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    for name, value in answer.getheaders():
      if name.endswith("-time"):
        found.setdefault(name, []).append(float(value))
  return {name: statistics.median(values) for name, values in found.items()}


def mixed_texts(mrpc: str, squad_dir: str) -> list[str]:
  """Returns four sentences of MRPC for each paragraph of SQuAD, always in the same order."""
  with open(os.path.join(mrpc, "dev.tsv"), encoding="utf-8") as file:
    rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
  short = [text for row in rows for text in row[3:5]]
  found = next(iter(sorted(pathlib.Path(squad_dir).glob("dev*.json"))))
  articles = json.loads(found.read_text("utf-8"))["data"]
  long = [part["context"] for article in articles for part in article["paragraphs"]]
  choose = random.Random(1)
  return [choose.choice(long if number % 5 == 4 else short) for number in range(NUM_TEXTS)]


@contextlib.contextmanager
def running(
  command: Callable[[int], list[str]], path: str, probe: dict, folder: str | None = None
) -> Iterator[int]:
  """Starts a server, waits for its first answer, gives its port, and ends it."""
  port = http_load.free_port()
  log = tempfile.TemporaryFile()  # noqa: SIM115  as long as the server runs
  environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "DO_NOT_TRACK": "1"}
  environment |= {"HF_HOME": folder} if folder else {}
  process = subprocess.Popen(
    command(port), stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True
  )
  try:
    http_load.wait_until_ready(process, port, path, json.dumps(probe).encode())
    yield port
  except RuntimeError:
    log.seek(0)
    sys.stderr.write(log.read().decode(errors="replace")[-3000:])
    raise
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, 15)
    try:
      process.wait(20)
    except subprocess.TimeoutExpired:
      os.killpg(process.pid, 9)
      process.wait()


# ---------------------------------------------------------------------------------------------
# The servers.


def _servers(args, folder: str) -> dict[str, Server]:
  model = export(args.weights, folder)
  servers = {
    "ours, onnxruntime": ours(model, "float32"),
    "ours, onnxruntime int8": ours(model, "int8"),
  }
  if args.infinity:
    own = os.path.join(folder, "transformers")
    _script("convert_checkpoint.py", "to_transformers", args.weights, f"--output_dir={own}")
    shutil.copy(os.path.join(model, "onnx", "model.onnx"), own)
    servers["infinity, torch"] = _infinity(args.infinity, own, "torch")
    servers["infinity, onnxruntime"] = _infinity(args.infinity, own, "optimum")
  if args.bert_as_service:
    servers["bert-as-service"] = _bert_as_service(args.bert_as_service, args.weights, folder)
  if args.only:
    servers = {name: server for name, server in servers.items() if args.only in name}
  return servers


def export(weights: str, folder: str) -> str:
  """Writes the encoder as float32 and int8; returns its folder."""
  model = os.path.join(folder, "export")
  _script(
    *("export_hub.py", weights, f"--export_dir={model}", "--format=onnx", "--int8"),
    *("--head=none", f"--max_seq_length={MAX_SEQ_LENGTH}"),
  )
  return model


def _script(name: str, *words: str) -> None:
  """Runs a script of this project; of words without dashes the last is the checkpoint."""
  flags = [word for word in words if word.startswith("--")]
  *commands, weights = [word for word in words if not word.startswith("--")]
  command = [sys.executable, str(ROOT / name), *commands, f"--init_checkpoint={weights}", *flags]
  common.run_command(command)


def ours(model: str, precision: str, *more: str) -> Server:
  """Returns how serve.py is started; `more` are flags."""

  def command(port):
    flags = (f"--model={model}", f"--port={port}", f"--precision={precision}", *more)
    return [sys.executable, str(ROOT / "serve.py"), *flags, f"--max_seq_length={MAX_SEQ_LENGTH}"]

  return Server(command, "/v1/embeddings", lambda text: {"input": text}, _openai_vector)


def _openai_vector(answer):
  return answer["data"][0]["embedding"]


def _infinity(program: str, folder: str, engine: str) -> Server:
  def command(port):
    # Of a folder with a longer name its engine `optimum` does not find the file.
    flags = ("--model-id", ".", "--engine", engine, "--device", "cpu", "--port", str(port))
    return [program, "v2", *flags, "--host", http_load.HOST, "--served-model-name", "m"]

  return Server(
    command, "/embeddings", lambda text: {"input": text, "model": "m"}, _openai_vector, folder
  )


def _bert_as_service(program: str, weights: str, folder: str) -> Server:
  def command(port):
    ports = http_load.free_ports(2)
    return [
      *(program, "-model_dir", weights, "-cpu", "-num_worker", "1", "-http_port", str(port)),
      *("-port", str(ports[0]), "-port_out", str(ports[1]), "-max_seq_len", str(MAX_SEQ_LENGTH)),
      *("-pooling_layer", "-1", "-pooling_strategy", "REDUCE_MEAN"),
    ]

  return Server(
    command,
    "/encode",
    lambda text: {"id": 1, "texts": [text], "is_tokenized": False},
    lambda answer: answer["result"][0],
    folder,
  )


def add_flags(parser: argparse.ArgumentParser) -> None:
  """Adds the flags of weights and texts."""
  common.add_weights_flag(parser)
  parser.add_argument("--squad_dir", required=True, help="folder with a dev*.json of SQuAD")
  parser.add_argument("--mrpc", required=True, help="folder with MRPC's dev.tsv")


def _parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  add_flags(parser)
  parser.add_argument("--infinity", help="program infinity_emb, in an environment of its own")
  parser.add_argument("--bert_as_service", help="program bert-serving-start, on TensorFlow 1.15")
  parser.add_argument("--clients", type=common.numbers(int), default=[1, 8, 64])
  parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
  parser.add_argument("--warmup_s", type=float, default=5, help="before the first one")
  parser.add_argument("--repeats", type=int, default=3, help="turns of each server")
  parser.add_argument("--overhead", action="store_true", help="measure what the server adds")
  parser.add_argument("--calls", type=int, default=400, help="of --overhead")
  parser.add_argument("--only", help="only servers with this in their name")
  return parser.parse_args()


if __name__ == "__main__":
  main()
