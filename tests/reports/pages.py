"""What tests read of pages."""

import html.parser
import json
import re


class Elements(html.parser.HTMLParser):
  """Elements that stand in a page, its texts, its scripts, and where its links lead."""

  def __init__(self, page):
    super().__init__(convert_charrefs=True)
    self.names, self.ids, self.texts, self.scripts, self.links = [], [], [], [], []
    self.feed(page)

  def handle_starttag(self, tag, attrs):
    values = dict(attrs)
    self.names.append(tag)
    self.ids += [values["id"]] if "id" in values else []
    assert not [name for name in values if name.startswith("on")], attrs
    assert "src" not in values, attrs
    target = values.get("href", "#")
    if tag == "a" and not target.startswith("#"):
      self.links.append(target)
    else:
      assert target.startswith("#"), attrs

  def handle_data(self, data):
    is_script = self.names and self.names[-1] == "script"
    (self.scripts if is_script else self.texts).append(data)


def check_alone(page: str) -> Elements:
  """A page needs no other file, and its ids are unique and there where they are used."""
  found = Elements(page)
  assert not {"link", "img", "iframe", "object", "base"} & set(found.names)
  assert "default-src 'none'" in page
  assert len(found.ids) == len(set(found.ids))
  assert not re.findall(r"url\((?!#)", page)
  used = re.findall(r'(?:xlink:href="#|url\(#|aria-labelledby=")([^")]+)', page)
  assert set(used) <= set(found.ids)
  return found


def check_is_text(page: str, nasty: str) -> Elements:
  """What users wrote is text, wherever it stands."""
  found = Elements(page)
  assert found.names.count("script") == 2
  assert "<script>alert" not in page
  assert "alert(1)" not in "".join(found.scripts[1:])
  assert sum(nasty in text for text in found.texts) >= 5
  return found


def data_of(page: str):
  """The numbers of a page."""
  return json.loads(re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)[1])
