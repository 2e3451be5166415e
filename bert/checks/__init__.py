"""What `doctor.py` and every run check beforehand."""
