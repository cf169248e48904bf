"""What Python runs first in each test. A test makes graphs for seconds and ends: collecting their cycles was a seventh of its
time, and a quarter of that of imports. One that is about memory collects by itself."""

import gc

gc.set_threshold(100_000, 50, 100)
