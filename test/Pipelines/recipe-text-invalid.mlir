// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=fancy 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=Current 2>&1 | FileCheck %s --check-prefix=CASE
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current,fromat=e4m3 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=none,format=e4m3 2>&1 | FileCheck %s --check-prefix=NOKEY
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=rowwise,format= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=rowwise,pow2 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current,pow2=true,pow2=false 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current,pow2=7 2>&1 | FileCheck %s --check-prefix=BOOL
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=block,x_dim=two 2>&1 | FileCheck %s --check-prefix=INT
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=block,x_dim=3 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=mxfp8,mode=Floor 2>&1 | FileCheck %s --check-prefix=ENUM
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=mxfp8,format=e5m3 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=static,state=s,accumulate=fast_dgrad 2>&1 | FileCheck %s --check-prefix=ACCUMULATE
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current,amax_epsilon=tiny 2>&1 | FileCheck %s --check-prefix=FLOAT
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current,amax_epsilon=inf 2>&1 | FileCheck %s --check-prefix=INF
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=current,amax_epsilon=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=delayed,amax_history_len=0 2>&1 | FileCheck %s --check-prefix=HISTORY
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=delayed,initial=two 2>&1 | FileCheck %s --check-prefix=INITIAL
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=delayed,compat=flax,margin=1 2>&1 | FileCheck %s --check-prefix=FLAX
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=static,format=e4m3 2>&1 | FileCheck %s --check-prefix=NEEDED
// RUN: not fp8-opt %s --fp8-apply-recipe=recipe=acme.powers 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not fp8-opt %s --fp8-pipeline="recipe=acme.powers to=recipe" 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: not fp8-opt %s --fp8-apply-recipe="recipe=current max-padding=-1" 2>&1 | FileCheck %s --check-prefix=PADDING

// NAME: error: expected a recipe (current, rowwise, block, mxfp8, nvfp4, delayed, static, none), but got 'fancy'
// NAME-NOT: current operation
// CASE: but got 'Current'
// KEY: error: unknown key 'fromat' of recipe 'current': expected one of format, pow2, amax_epsilon, style, accumulate
// NOKEY: error: unknown key 'format' of recipe 'none': expected no key
// EMPTY: error: expected a value for key 'format' of recipe 'rowwise'
// MISSING: error: expected a value for key 'pow2' of recipe 'rowwise'
// TWICE: error: expected key 'pow2' of recipe 'current' once, but got it twice
// BOOL: error: expected true or false for key 'pow2' of recipe 'current', but got '7'
// INT: error: expected 1 or 2 for key 'x_dim' of recipe 'block', but got 'two'
// RANGE: error: expected 1 or 2 for key 'x_dim' of recipe 'block', but got '3'
// ENUM: error: expected one of rceil, floor, ceil, even for key 'mode' of recipe 'mxfp8', but got 'Floor'
// FORMAT: error: expected one of hybrid, e4m3, e5m2 for key 'format' of recipe 'mxfp8', but got 'e5m3'
// ACCUMULATE: error: expected one of promote, fast, fast_fprop for key 'accumulate' of recipe 'static', but got 'fast_dgrad'
// FLOAT: error: expected a finite number of at least 0 for key 'amax_epsilon' of recipe 'current', but got 'tiny'
// INF: error: expected a finite number of at least 0 for key 'amax_epsilon' of recipe 'current', but got 'inf'
// NEGATIVE: error: expected a finite number of at least 0 for key 'amax_epsilon' of recipe 'current', but got '-1'
// HISTORY: error: expected an integer in 1..65536 for key 'amax_history_len' of recipe 'delayed', but got '0'
// INITIAL: error: expected one of auto, current, one for key 'initial' of recipe 'delayed', but got 'two'
// FLAX: error: recipe 'delayed,compat=flax,margin=1': expected margin to be 0 with compat flax, which knows no other
// NEEDED: error: expected key 'state' of recipe 'static', the path of a saved state
// OUTSIDE: error: expected a recipe (current, rowwise, block, mxfp8, nvfp4, delayed, static, none), but got 'acme.powers'
// PADDING: error: expected max-padding to be a number that is not negative, but got -1

func.func @f() {
  return
}
