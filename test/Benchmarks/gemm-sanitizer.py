# RUN: env PYTHONPATH=%fp8_source/benchmarks PYTHONDONTWRITEBYTECODE=1 %python %s | FileCheck %s
"""Reports of compute-sanitizer become counts, of all and of each kernel."""

from matmul.sanitize import parse

# CHECK: races {'errors': 1, 'warnings': 1, 'launches': 12, 'kernels': {'fp8_matmul_a': 2}}
print("races", parse("""========= COMPUTE-SANITIZER
12 launches
========= Error: Race reported between Write access at fp8_matmul_a+0x10 in x.c:1
=========     and Read access at fp8_matmul_a+0x20 [4 hazards]
=========
========= Warning: Race reported between Read access at fp8_matmul_a+0x10
=========     and Write access at fp8_matmul_a+0x20 [1 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""))

# CHECK: memory {'errors': 2, 'warnings': 0, 'launches': 1, 'kernels': {'fp8_matmul_b': 1}}
print("memory", parse("""1 launches
========= Invalid __global__ write of size 4 bytes
=========     at fp8_matmul_b+0x40
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 2 errors
"""))

# CHECK: clean {'errors': 0, 'warnings': 0, 'launches': 3, 'kernels': {}}
print("clean", parse("3 launches\n========= ERROR SUMMARY: 0 errors\n"))
