"""Fine-tuning: what a task says (`task.py`), and the one run of all tasks (`engine.py`)."""
