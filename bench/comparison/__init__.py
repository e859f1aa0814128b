"""What `bench/compare` measures: one module for each kind of work. Only the standard library of Python."""
