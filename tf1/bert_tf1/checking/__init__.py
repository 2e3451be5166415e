"""What `bert-tf1 --check` knows: what a script uses, and whether it is there."""
