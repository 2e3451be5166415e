"""Clients as programs, for an interpreter that has them: texts as JSON in, vectors as JSON out.

python more_clients.py langchain http://127.0.0.1:8080 minilm < texts.json

This file imports nothing of the project, which that interpreter may not have.
"""

import json
import sys


def langchain(address: str, model: str, texts: list[str]) -> dict:
  from langchain_openai import OpenAIEmbeddings

  client = OpenAIEmbeddings(
    base_url=f"{address}/v1", api_key="none", model=model, check_embedding_ctx_length=False
  )
  return {"texts": client.embed_documents(texts), "query": client.embed_query(texts[0])}


def llamaindex(address: str, model: str, texts: list[str]) -> dict:
  from llama_index.embeddings.openai_like import OpenAILikeEmbedding

  client = OpenAILikeEmbedding(model_name=model, api_base=f"{address}/v1", api_key="none")
  found = client.get_text_embedding_batch(texts)
  return {"texts": found, "query": client.get_query_embedding(texts[0])}


if __name__ == "__main__":
  client, *where = sys.argv[1:]
  print(json.dumps(globals()[client](*where, json.load(sys.stdin))))
