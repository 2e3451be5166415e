"""Files that appear whole, tables, lines of text, record bytes, downloads."""
